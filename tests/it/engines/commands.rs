//! The commands of an operator, for a hub on engines.

use std::process::{Command, Output};
use std::time::Duration;

use aip_tests::cluster::{Cluster, DOMAIN, Engines};
use aip_tests::raw::{Request, ask};
use aip_tests::{TestAgent, TestHub, binary};

use super::{inbox, places, sent, two};

/// Runs a command about a process of the hub.
fn run(cluster: &Cluster, hub: &TestHub, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary("aip-hub"));
    command
        .args(arguments)
        .args(["--domain", DOMAIN])
        .arg("--data")
        .arg(hub.data())
        .arg("--config")
        .arg(hub.folder().join("hub.toml"))
        .envs(cluster.options().environment);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn the_doctor_looks_at_every_engine() {
    let cluster = Cluster::start(1);
    let hub = cluster.hub(0);
    TestAgent::registered(hub, "alice").await;
    let output = run(&cluster, hub, &["doctor", "--dev"]);
    let told = text(&output.stdout);
    for good in [
        "ok    PostgreSQL is reached",
        "ok    every identity history is whole and signed",
        "ok    this process has the hub's key",
        "ok    NATS 2.",
        "ok    Redis ",
        "ok    the hub runs and takes work",
        "warn  every stream has one copy",
    ] {
        assert!(told.contains(good), "{good:?} is not in:\n{told}");
    }
    let log = hub.log();
    assert!(
        log.contains("every stream has one copy"),
        "also at the start: {log}"
    );
}

#[tokio::test]
async fn the_doctor_names_an_engine_that_does_not_answer() {
    let nobody = format!("127.0.0.1:{}", aip_tests::free_port());
    let engines = Engines {
        shared: format!("redis://:canary@{nobody}"),
        ..Engines::shared()
    };
    let cluster = Cluster::on(engines, 1, "");
    let output = run(&cluster, cluster.hub(0), &["doctor", "--dev"]);
    let told = text(&output.stdout);
    assert!(told.contains("warn  Redis "), "{told}");
    assert!(!told.contains("canary"), "{told}");
}

#[tokio::test]
async fn a_backup_holds_the_folder_and_names_what_lies_elsewhere() {
    let cluster = Cluster::start(1);
    let hub = cluster.hub(0);
    let target = hub.folder().join("backup");
    let output = run(&cluster, hub, &["backup", "--to", target.to_str().unwrap()]);
    let (told, notes) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{notes}");
    assert!(told.contains("verified"), "{told}");
    assert!(
        notes.contains("pg_dump") && notes.contains("nats stream backup"),
        "{notes}"
    );
    assert!(target.join("hub.key").exists() && !target.join("store").exists());
}

#[tokio::test]
async fn the_operator_reaches_every_process() {
    let cluster = Cluster::start(2);
    TestAgent::registered(cluster.hub(0), "alice").await;
    for hub in cluster.hubs() {
        let output = run(&cluster, hub, &["admin", "list"]);
        assert!(text(&output.stdout).contains("alice"), "{}", text(&output.stderr));
    }
    let pause = aip_tests::raw::Request::new("PUT", "/admin/pause")
        .field("content-type", "application/json")
        .body("{\"lease_secs\":5}");
    let refused = cluster.operate(0, pause).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "unavailable"));
}

#[tokio::test]
async fn an_epoch_is_renewed_while_the_hub_is_stopped() {
    let mut cluster = Cluster::start(1);
    let (alice, bob) = two(&cluster).await;
    sent(cluster.hub(0), &alice, &bob).await;
    let epoch = async |cluster: &Cluster| {
        let document = ask(cluster.hub(0).url(), &Request::get("/.well-known/aip")).await;
        document.json()["epoch"].as_str().unwrap().to_owned()
    };
    let before = epoch(&cluster).await;
    let output = run(&cluster, cluster.hub(0), &["epoch", "renew"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("in use by another process"));
    assert_eq!(epoch(&cluster).await, before);

    cluster.hub_mut(0).terminate(Duration::from_secs(30));
    let output = run(&cluster, cluster.hub(0), &["epoch", "renew"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    cluster.hub_mut(0).restart();
    let after = epoch(&cluster).await;
    assert_ne!(after, before);
    assert!(text(&output.stdout).contains(&after), "{after}: {output:?}");
    let token = bob.token(cluster.hub(0)).await;
    assert_eq!(places(&inbox(cluster.hub(0), &token).await), [1]);

    cluster.hub_mut(0).terminate(Duration::from_secs(30));
    let output = run(&cluster, cluster.hub(0), &["clock"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("on NATS"), "{output:?}");
}
