//! The story of `make demo-federation`, as a test.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_story_of_three_hubs() {
    if let Err(error) = aip_tests::federation_story::play(|_| {}).await {
        panic!("{error:#}");
    }
}
