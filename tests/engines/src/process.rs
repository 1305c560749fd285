//! What the system tells of a running process, read from `/proc`.

use std::fs;

/// Runs or stands; a process that has ended and was not yet reaped does not count.
pub(crate) fn is_alive(pid: u32) -> bool {
    state(&format!("/proc/{pid}/stat")).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The process and its children.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(pid).chain(children).collect()
}

/// No thread of it runs, and none is within a call to the system; also true of a process that is gone.
pub(crate) fn stands_still(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    threads
        .flatten()
        .filter_map(|thread| state(&thread.path().join("stat").display().to_string()))
        .all(|state| matches!(state, 'T' | 'Z' | 'X'))
}

/// Memory that the process holds, in bytes (`VmRSS`).
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// The letter after the name, which stands in parentheses.
fn state(path: &str) -> Option<char> {
    let stat = fs::read_to_string(path).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}
