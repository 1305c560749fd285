//! Hubs that are killed, cut off and put back to an earlier state while mail passes between them.

use std::path::Path;
use std::process::Command;

use aip_engines::Proxy;
use aip_tests::clients::Home;
use aip_tests::history::Event;
use aip_tests::raw::{Request, ask};
use aip_tests::{TestAgent, TestHub, binary, chance, free_port, rounds, seed};
use anyhow::Result;
use rand::RngExt as _;
use serde_json::{Value, json};

use super::{DEADLINE, inbox, local_mail_passes, roomy, until};
use crate::faults::assert_good;
use crate::faults::load::{Load, Pace};

/// Messages that wait out a partition.
const QUEUED: usize = 2_000;

/// A hub that others reach by way of a proxy only, as far as its own address goes.
fn behind_a_proxy() -> (TestHub, Proxy) {
    let mut hub = TestHub::prepare(roomy());
    let port = hub
        .domain()
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(free_port);
    let proxy = Proxy::to(std::net::SocketAddr::from(([127, 0, 0, 1], port)));
    let url = format!("http://{}", proxy.addr());
    hub.use_environment(vec![("AIP_HUB__HUB__PUBLIC_URL".to_owned(), url)]);
    hub.restart();
    (hub, proxy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn row_50_either_hub_may_be_killed_at_any_point() -> Result<()> {
    let seed = seed("federation-kill");
    let mut chance = chance(seed);
    let mut hubs = [TestHub::start_with(roomy()), TestHub::start_with(roomy())];
    let [home, there] = [0, 1].map(|n: usize| Home::from(&hubs[n]));
    let load = Load::between(&home, &there, seed, Pace::FULL).await?;
    for _ in 0..rounds() {
        load.progress(chance.random_range(20..400)).await;
        let victim = &mut hubs[chance.random_range(0..2)];
        tokio::task::block_in_place(|| victim.kill());
        load.history.push(Event::Crash);
        tokio::task::block_in_place(|| victim.restart());
    }
    let history = load.finish().await?;
    assert_good("federation-kill", seed, &history);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_partition_holds_up_its_two_sides_only_and_heals() {
    let alpha = TestHub::start_with(roomy());
    let (beta, way) = behind_a_proxy();
    let gamma = TestHub::start_with(roomy());
    let alice = TestAgent::registered(&alpha, "alice").await;
    let bob = TestAgent::registered(&beta, "bob").await;
    let carol = TestAgent::registered(&gamma, "carol").await;
    let (bobs, carols) = (bob.token(&beta).await, carol.token(&gamma).await);
    assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
    until("the first message is there", || async {
        inbox(&beta, &bobs).await.len() == 1
    })
    .await;

    let outbox = async || {
        let path = format!("/admin/peers/{}", beta.domain());
        alpha.operate(Request::get(path)).await.json()["outbox"].clone()
    };
    until("alpha knows that it is", async || outbox().await["pending"] == 0).await;

    way.cut();
    let sent = queued(&alpha, &alice, &bob, QUEUED).await;
    assert_eq!(alice.send(&alpha, &carol).await.json()["status"], "queued");
    until("carol has her mail while beta is away", || async {
        inbox(&gamma, &carols).await.len() == 1
    })
    .await;
    local_mail_passes(&alpha, &alice, &alice).await;
    until("alpha has tried in vain", async || {
        outbox().await["last_error"].is_string()
    })
    .await;
    assert_eq!(outbox().await["pending"], QUEUED);
    assert_eq!(inbox(&beta, &bobs).await.len(), 1, "the line is not cut");
    way.heal();
    let got = drained(&beta, &bobs, QUEUED + 1).await;
    assert_eq!(got.len(), QUEUED + 1, "each once");
    assert_eq!(&got[1..], &sent[..], "in the order of their sender");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_peer_that_was_put_back_to_a_backup_goes_on() {
    let alpha = TestHub::start_with(roomy());
    let mut beta = TestHub::start_with(roomy());
    let alice = TestAgent::registered(&alpha, "alice").await;
    let bob = TestAgent::registered(&beta, "bob").await;
    let token = bob.token(&beta).await;
    for _ in 0..3 {
        assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
    }
    until("all three are there", || async {
        inbox(&beta, &token).await.len() == 3
    })
    .await;
    let backup = beta.folder().join("backup");
    tokio::task::block_in_place(|| {
        run(Command::new(binary("aip-hub"))
            .args(["backup", "--data"])
            .arg(beta.data())
            .arg("--to")
            .arg(&backup));
    });
    for _ in 0..3 {
        assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
    }
    until("three more are there", || async {
        inbox(&beta, &token).await.len() == 6
    })
    .await;
    let alices = alice.token(&alpha).await;
    assert_eq!(bob.send(&beta, &alice).await.json()["status"], "queued");
    // Its number is given again after the backup is put back, in another epoch.
    until("one the other way is there", || async {
        inbox(&alpha, &alices).await.len() == 1
    })
    .await;

    tokio::task::block_in_place(|| put_back(&mut beta, &backup));
    let token = bob.token(&beta).await;
    assert_eq!(inbox(&beta, &token).await.len(), 3, "what the backup held");
    assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
    until("new mail arrives", || async {
        inbox(&beta, &token).await.len() == 4
    })
    .await;
    assert_eq!(bob.send(&beta, &alice).await.json()["status"], "queued");
    until("mail the other way arrives, in the new epoch", || async {
        inbox(&alpha, &alices).await.len() == 2
    })
    .await;
}

/// Hands in so many messages, a hundred at a time; their ids in order.
pub(super) async fn queued(hub: &TestHub, from: &TestAgent, to: &TestAgent, count: usize) -> Vec<String> {
    let mut sent = Vec::new();
    for _ in 0..count / 100 {
        let envelopes: Vec<Value> = (0..100)
            .map(|_| Value::from(from.envelope(to).json.clone()))
            .collect();
        sent.extend(
            envelopes
                .iter()
                .filter_map(|envelope| envelope["id"].as_str().map(str::to_owned)),
        );
        let body = json!(envelopes).to_string();
        let answer = ask(hub.url(), &Request::post("/api/v1/messages", body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let taken = answer.json();
        let results = taken.as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(results.len(), 100, "{taken}");
        assert!(results.iter().all(|one| one["status"] == "queued"), "{taken}");
    }
    sent
}

/// Reads a mailbox until it has given so many messages, acknowledging; the ids in order.
pub(super) async fn drained(hub: &TestHub, token: &str, wanted: usize) -> Vec<String> {
    let mut ids = Vec::new();
    let reading = async {
        while ids.len() < wanted {
            let request = Request::get("/api/v1/inbox?limit=100&wait_s=5").bearer(token);
            let page = ask(hub.url(), &request).await.json();
            let items = page["items"].as_array().cloned().unwrap_or_default();
            let Some(last) = items.last() else { continue };
            let ack = json!({ "epoch": page["epoch"], "upto": last["seq"], "also": [] }).to_string();
            ids.extend(
                items
                    .iter()
                    .filter_map(|item| item["envelope"]["id"].as_str().map(str::to_owned)),
            );
            let answer = ask(hub.url(), &Request::post("/api/v1/inbox/ack", ack).bearer(token)).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, reading).await;
    assert!(in_time.is_ok(), "{} of {wanted} messages came", ids.len());
    ids
}

/// Stops a hub and starts it again with what a backup of it holds.
fn put_back(hub: &mut TestHub, backup: &Path) {
    hub.terminate(DEADLINE).expect("it stops");
    let folder = hub.folder().join("restored");
    run(Command::new(binary("aip-hub"))
        .args(["restore", "--from"])
        .arg(backup)
        .arg("--data")
        .arg(&folder));
    hub.use_data(folder);
    hub.restart();
}

/// Runs a command, which must succeed.
fn run(command: &mut Command) {
    let output = command.output().expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
