//! How long the models take on this machine: `cargo run --release -p aip-embed --example speed`.

use std::path::Path;
use std::time::{Duration, Instant};

use aip_catalog::{Embedder, Purpose};
use aip_embed::{LocalEmbedder, LocalOptions, ModelFiles};

#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it measures and tells"
)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let query = ["a table for two in an italian restaurant".to_owned()];
    let short: Vec<String> = (0..64)
        .map(|n| format!("A tool that books a table number {n} in a restaurant of your choice"))
        .collect();
    let long = vec![["A tool that books a table in a restaurant"; 28].join(", "); 8];
    for name in ["use-multilingual-v3-84k", "multilingual-e5-small-q4-67k"] {
        let files = ModelFiles::in_dir(&models.join(name));
        let embedder = match name {
            "use-multilingual-v3-84k" => LocalEmbedder::universal(files, LocalOptions::default()),
            _ => LocalEmbedder::e5(files, LocalOptions::default()),
        };
        let begin = Instant::now();
        embedder.embed(Purpose::Query, &query).await?;
        println!("{name}: first answer after {:?}, {}", begin.elapsed(), memory()?);
        let mut times = Vec::new();
        for _ in 0..100 {
            let begin = Instant::now();
            embedder.embed(Purpose::Query, &query).await?;
            times.push(begin.elapsed());
        }
        times.sort();
        let at = |place: usize| times.get(place).copied().unwrap_or_default();
        println!("  a query: {:?} median, {:?} of 20 the slowest", at(50), at(95));
        for (kind, texts) in [("short", &short), ("long", &long)] {
            let begin = Instant::now();
            embedder.embed(Purpose::Passage, texts).await?;
            println!(
                "  {kind} texts: {:.1} a second",
                rate(texts.len(), begin.elapsed())
            );
        }
        println!("  {}", memory()?);
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a few texts")]
fn rate(texts: usize, time: Duration) -> f64 {
    texts as f64 / time.as_secs_f64()
}

/// What this process holds.
fn memory() -> std::io::Result<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let lines = status
        .lines()
        .filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    Ok(lines.collect::<Vec<_>>().join(", "))
}
