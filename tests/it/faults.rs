//! Faults against the real hub: killed, cut off, full, stuck, out of time. Nothing acknowledged is lost, nothing takes
//! effect twice.
//!
//! `AIP_FAULT_ROUNDS` sets the rounds of those that go in rounds, `AIP_FAULT_SEED` their chance. A failure leaves its
//! history in the build folder. What a machine does not allow is skipped, with the reason on standard error.

pub(crate) mod clock;
mod connect;
mod disk;
mod folder;
mod kill;
pub(crate) mod load;
mod power;
mod shutdown;
mod slow;
mod torn;

use std::path::Path;
use std::time::Duration;

use aip_tests::history::{History, check};
use aip_tests::{HubOptions, SEED, TestHub};

/// Ends a test that would hang; no test is about time.
pub(crate) const DEADLINE: Duration = Duration::from_mins(3);

/// A hub without the limits that a test under load would meet, and with room on any disk.
pub(crate) const ROOMY: &str = r#"
[relay]
sender_messages_per_sec = 1_000_000
sender_burst_messages = 1_000_000
mailbox_messages_max = 25_000
mailbox_messages_per_sender_max = 25_000
mailbox_bytes_max = 4_294_967_296
disk_used_percent_max = 0
disk_free_bytes_min = 0
sweep_interval_secs = 1
[receive]
frames_per_sec_max = 100_000
[log]
filter = "info,actix_server=warn"
"#;

/// A roomy hub, with further settings.
fn roomy(more: &str) -> HubOptions {
    HubOptions {
        config: Some(format!("{ROOMY}{more}")),
        ..HubOptions::default()
    }
}

/// Judges a history that is over.
pub(crate) fn assert_good(test: &str, seed: u64, history: &History) {
    let violations = check(&history.events());
    print_summary(test, history);
    if violations.is_empty() {
        return;
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{seed}.jsonl"));
    let saved = history.save(&path);
    let (count, first) = (violations.len(), violations.iter().take(10).collect::<Vec<_>>());
    panic!(
        "{count} violations, first {first:?}; {SEED}={seed}; history in {} ({saved:?})",
        path.display()
    );
}

#[expect(clippy::print_stderr, reason = "a long run is to show what it did")]
fn print_summary(test: &str, history: &History) {
    eprintln!("{test}: {}", history.summary());
}

/// Waits until `reached`, which others bring about.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut reached: impl FnMut() -> F) {
    let wait = async {
        while !reached().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        tokio::time::timeout(DEADLINE, wait).await.is_ok(),
        "waited in vain: {what}"
    );
}

/// Copies a folder as it lies there.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a readable folder") {
        let entry = entry.expect("a readable entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a file type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// The newest write-ahead log of the mailbox store in this data folder.
fn newest_log(data: &Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(data.join("store/db")).expect("a mailbox store");
    let logs = entries.map(|entry| entry.expect("a readable entry").path());
    logs.filter(|path| path.extension().is_some_and(|of| of == "log"))
        .max()
        .expect("a log")
}

/// Starts the hub again, off the async threads.
fn restart(hub: &mut TestHub) {
    tokio::task::block_in_place(|| hub.restart());
}
