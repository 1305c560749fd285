//! All processes of a hub have its key; what would have another one does not start.

use std::process::Command;

use aip_tests::cluster::Cluster;
use aip_tests::{HubOptions, TestHub, binary};

fn without_key(options: HubOptions) -> HubOptions {
    let environment = options.environment.into_iter();
    HubOptions {
        environment: environment
            .filter(|(name, _)| name != "AIP_HUB__HUB__KEY_FILE")
            .collect(),
        ..options
    }
}

fn refusal(options: HubOptions) -> String {
    let failure = TestHub::prepare(options).try_restart().unwrap_err();
    assert!(
        failure.status.is_some_and(|status| !status.success()),
        "{failure}"
    );
    failure.log
}

#[tokio::test]
async fn a_process_without_the_hubs_key_does_not_make_another_one() {
    let cluster = Cluster::start(1);
    let log = refusal(without_key(cluster.options()));
    assert!(log.contains("hub.key_file"), "{log}");
}

#[tokio::test]
async fn a_process_with_another_key_than_the_hub_does_not_start() {
    let cluster = Cluster::start(1);
    let mut options = cluster.options();
    let other = cluster.hub(0).folder().join("other.key");
    let made = Command::new(binary("aip-hub"))
        .args(["keygen", "--out"])
        .arg(&other)
        .output();
    assert!(made.unwrap().status.success());
    for (name, value) in &mut options.environment {
        if name == "AIP_HUB__HUB__KEY_FILE" {
            *value = other.display().to_string();
        }
    }
    let log = refusal(options);
    assert!(log.contains("another key than the hub"), "{log}");
}

/// The first process of a hub makes the key when nobody has one.
#[tokio::test]
async fn the_first_process_may_make_the_key() {
    let cluster = Cluster::start(0);
    let hub = TestHub::start_with(without_key(cluster.options()));
    assert!(hub.data().join("hub.key").exists());
    let log = refusal(without_key(cluster.options()));
    assert!(log.contains("hub.key_file"), "{log}");
}
