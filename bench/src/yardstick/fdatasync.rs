//! The disk alone: append 1 KiB to a file and `fdatasync`, one after the other.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rate and latency of one-at-a-time durable appends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disk {
    /// Appends per second.
    pub(crate) rate: f64,
    /// Median latency in microseconds.
    pub(crate) p50_us: f64,
    /// 99th percentile in microseconds.
    pub(crate) p99_us: f64,
}

/// Measures for `duration` in `folder`.
pub(crate) fn measure(folder: &Path, duration: Duration) -> anyhow::Result<Disk> {
    let path = folder.join("fdatasync");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let block = [0x5a_u8; 1024];
    let mut latencies: Vec<f64> = Vec::new();
    let started = Instant::now();
    while started.elapsed() < duration {
        let at = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        latencies.push(at.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(path)?;
    latencies.sort_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand appends")]
    let rate = latencies.len() as f64 / started.elapsed().as_secs_f64();
    let at = |share: usize| {
        latencies
            .get(latencies.len() * share / 100)
            .copied()
            .unwrap_or(f64::NAN)
    };
    Ok(Disk {
        rate,
        p50_us: at(50),
        p99_us: at(99),
    })
}
