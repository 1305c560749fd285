//! Servers end with the process that started them, however it ends.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::processes::{folder, state, until};

/// A process that owns one of each engine, and the engines' processes with their folders.
fn owner() -> (Child, Vec<(u32, PathBuf)>) {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_aip-engines"))
        .args(["nats", "postgres", "redis"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let stdout = BufReader::new(owner.stdout.take().expect("its output"));
    let lines = stdout
        .lines()
        .map_while(Result::ok)
        .take_while(|line| line != "ready");
    let pids = lines.map(|line| {
        let (_, pid) = line.rsplit_once("pid=").expect("a process id");
        pid.parse().expect("a number")
    });
    let servers: Vec<_> = pids.map(|pid| (pid, folder(pid))).collect();
    assert_eq!(servers.len(), 3);
    (owner, servers)
}

fn assert_gone(servers: &[(u32, PathBuf)]) {
    for (pid, folder) in servers {
        until("the server's end", || state(*pid).is_none());
        until("an empty place", || !folder.exists());
    }
}

#[test]
fn when_it_is_killed() {
    let (mut owner, servers) = owner();
    owner.kill().expect("killed");
    owner.wait().expect("ended");
    assert_gone(&servers);
}

#[test]
fn when_it_is_killed_while_they_stand_still() {
    let (mut owner, servers) = owner();
    for (pid, _) in &servers {
        let stopped = Command::new("kill")
            .args(["-s", "STOP", &pid.to_string()])
            .status();
        assert!(stopped.expect("it runs").success());
        until("a stop", || state(*pid) == Some('T'));
    }
    owner.kill().expect("killed");
    owner.wait().expect("ended");
    assert_gone(&servers);
}

#[test]
fn when_it_ends_by_itself() {
    let (mut owner, servers) = owner();
    drop(owner.stdin.take());
    assert!(owner.wait().expect("ended").success());
    assert_gone(&servers);
}
