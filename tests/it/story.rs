//! The story of `make demo`, as a test.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_story() {
    if let Err(error) = aip_tests::story::play(|_| {}).await {
        panic!("{error:#}");
    }
}
