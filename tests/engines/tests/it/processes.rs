//! What the system says of processes, and waiting for it to say something else.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Ends a test that would hang; no test is about time.
const DEADLINE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(10);

/// The letter that `ps` shows; nothing when there is no such process.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// The folder that the process works in.
pub(crate) fn folder(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/cwd")).expect("a working folder")
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let children =
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("a list of children");
    children
        .split_whitespace()
        .map(|child| child.parse().expect("a process id"))
        .collect()
}

/// Waits until `holds`.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let mut waited = Duration::ZERO;
    while !holds() {
        assert!(waited < DEADLINE, "not in time: {what}");
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}
