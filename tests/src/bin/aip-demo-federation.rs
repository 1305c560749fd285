//! Prints the story of `aip_tests::federation_story` while it plays against three real hub processes.
#![expect(clippy::print_stdout, reason = "the transcript is the output of this program")]

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let step = std::sync::atomic::AtomicUsize::new(1);
    runtime.block_on(aip_tests::federation_story::play(|line| {
        println!(
            "{:>3}. {line}",
            step.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        );
    }))
}
