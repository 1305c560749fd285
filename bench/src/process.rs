//! What the kernel says of a process: CPU seconds and resident memory.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// CPU time and memory of a process at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// User and system time, in seconds.
    pub(crate) cpu_secs: f64,
    /// Resident memory, in KiB.
    pub(crate) resident_kib: f64,
}

/// Clock ticks per second of `/proc/PID/stat` on Linux.
const TICKS_PER_SEC: f64 = 100.0;

/// Reads the usage of a process; zero when it is gone.
pub(crate) fn usage(pid: u32) -> Usage {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|t| t.parse::<f64>().ok())
            .unwrap_or_default()
    };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let resident = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .and_then(|line| line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()));
    Usage {
        cpu_secs: (ticks(11) + ticks(12)) / TICKS_PER_SEC,
        resident_kib: resident.unwrap_or_default(),
    }
}

/// Resident memory of a process at one moment, in KiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Its own.
    pub(crate) anonymous_kib: f64,
    /// Pages of files, which the kernel takes back when it needs room.
    pub(crate) file_kib: f64,
}

/// Reads the memory of a process; zero when it is gone.
pub(crate) fn memory(pid: u32) -> Memory {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Memory {
        anonymous_kib: field("RssAnon:").unwrap_or_default(),
        file_kib: field("RssFile:").unwrap_or_default(),
    }
}

/// A child that is killed when the measurement is over.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    /// Starts the command.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        Ok(Self(command.spawn().with_context(|| format!("{command:?}"))?))
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Takes its standard output, where it was piped.
    pub(crate) fn stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.0.stdout.take()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// A port of the loopback interface that is free at this moment.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?
        .local_addr()?
        .port())
}

/// Waits until something listens on the port.
pub(crate) fn wait_for_port(port: u16) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > deadline {
            bail!("nothing listens on port {port} after 20 s");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
