//! NATS alone and in a cluster.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use aip_engines::{Nats, NatsCluster, NatsOptions};
use serde_json::Value;

use crate::processes::{folder, state, until};
use crate::wire::{Client, monitor};

#[test]
fn a_server_is_new_enough_and_has_jetstream() {
    let info = Client::connect(Nats::shared().address()).info;
    let version = info["version"].as_str().expect("a version");
    let mut numbers = version
        .split('.')
        .map(|number| number.parse::<u32>().expect("a number"));
    assert!(
        (numbers.next(), numbers.next()) >= (Some(2), Some(14)),
        "{version}"
    );
    assert_eq!(info["jetstream"], Value::Bool(true));
}

#[test]
fn all_share_one_server() {
    let there = std::thread::spawn(|| Nats::shared().pid());
    assert_eq!(there.join().expect("a process id"), Nats::shared().pid());
}

#[test]
fn acknowledged_messages_survive_a_kill() {
    let mut nats = Nats::start(NatsOptions {
        sync_always: true,
        config: "max_payload: 2MB".to_owned(),
        ..NatsOptions::default()
    });
    let jetstream = monitor(&nats.monitor_url(), "/jsz");
    assert_eq!(jetstream.pointer("/config/sync_always"), Some(&Value::Bool(true)));

    let mut client = Client::connect(nats.address());
    assert_eq!(client.info["max_payload"], 2 << 20);
    client.create_stream("kept", 1);
    client.publish("kept.one");
    let before = nats.pid().expect("it runs");
    nats.kill();
    assert_eq!((nats.pid(), state(before)), (None, None));

    nats.restart();
    assert_ne!(nats.pid(), Some(before));
    assert_eq!(Client::connect(nats.address()).messages("kept"), 1);
}

#[test]
fn a_paused_server_stands_still() {
    let mut nats = Nats::start(NatsOptions::default());
    let pid = nats.pid().expect("it runs");
    nats.pause();
    assert_eq!(state(pid), Some('T'));
    nats.resume();
    assert_eq!(
        Client::connect(nats.address()).info["jetstream"],
        Value::Bool(true)
    );
    // A paused one can be killed all the same.
    nats.pause();
    nats.kill();
    assert_eq!(state(pid), None);
}

#[test]
fn nothing_is_left_of_a_dropped_server() {
    let nats = Nats::start(NatsOptions::default());
    let pid = nats.pid().expect("it runs");
    assert!(nats.resident_bytes().expect("it holds memory") > 1 << 20);
    let folder = folder(pid);
    assert!(folder.join("data/jetstream").exists());
    drop(nats);
    assert_eq!(state(pid), None);
    assert!(!folder.exists());
}

#[test]
fn a_server_that_cannot_start_shows_its_log() {
    let failure = Nats::try_start(&NatsOptions {
        config: "no_such_setting: 1".to_owned(),
        ..NatsOptions::default()
    })
    .expect_err("no such setting");
    let shown = failure.to_string();
    assert!(
        shown.starts_with("NATS: it ended before it was ready; its log:\n"),
        "{shown}"
    );
    assert!(shown.contains("no_such_setting"), "{shown}");
}

#[test]
fn an_old_server_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = folder.path().join("nats-server");
    std::fs::write(&old, "#!/bin/sh\necho 'nats-server: v2.9.10'\n").expect("written");
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let output = Command::new(env!("CARGO_BIN_EXE_aip-engines"))
        .arg("nats")
        .env("AIP_NATS_SERVER", &old)
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        said.contains("nats-server is 2.9, but 2.14 is needed: run `scripts/setup test`"),
        "{said}"
    );
}

#[test]
fn without_jetstream_there_is_none() {
    let nats = Nats::start(NatsOptions {
        without_jetstream: true,
        ..NatsOptions::default()
    });
    assert_eq!(Client::connect(nats.address()).info.get("jetstream"), None);
}

#[test]
fn a_cluster_loses_its_leaders_and_gets_new_ones() {
    let mut cluster = NatsCluster::start(3, true);
    assert_eq!(cluster.urls().len(), 3);
    let first = cluster.leader().expect("a leader");
    let mut client = Client::connect(cluster.address((first + 1) % 3));
    client.create_stream("kept", 3);
    client.publish("kept.one");

    cluster.kill(first);
    until("another leader", || {
        cluster.leader().is_some_and(|leader| leader != first)
    });
    cluster.restart(first);

    let of_stream = cluster.await_stream_leader("kept");
    cluster.pause(of_stream);
    until("another leader of the stream", || {
        cluster
            .stream_leader("kept")
            .is_some_and(|leader| leader != of_stream)
    });
    let now = cluster.await_stream_leader("kept");
    assert_eq!(Client::connect(cluster.address(now)).messages("kept"), 1);
    cluster.resume(of_stream);

    let pids: Vec<_> = (0..3).filter_map(|index| cluster.pid(index)).collect();
    drop(cluster);
    assert_eq!(pids.iter().map(|pid| state(*pid)).collect::<Vec<_>>(), [None; 3]);
}

#[test]
fn a_cluster_survives_the_death_of_all() {
    let mut cluster = NatsCluster::start(3, true);
    let mut client = Client::connect(cluster.address(0));
    client.create_stream("kept", 3);
    client.publish("kept.one");
    (0..3).for_each(|index| cluster.kill(index));
    assert_eq!(cluster.leader(), None);
    cluster.restart_all(&[0, 1, 2]);
    let leader = cluster.await_stream_leader("kept");
    assert_eq!(Client::connect(cluster.address(leader)).messages("kept"), 1);
}
