//! A hub of one process that becomes one of several: nothing is lost, nothing comes twice, and it can be begun anew.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use aip_client::protocol::envelope::Envelope;
use aip_tests::cluster::{Cluster, DOMAIN, Engines};
use aip_tests::peer::Mood;
use aip_tests::raw::{Request, ask};
use aip_tests::ws::Socket;
use aip_tests::{HubOptions, TestAgent, TestHub, TestPeer, binary, keyed};
use serde_json::{Value, json};

use super::{inbox, places, sent, status, until};

/// A hub on its data folder.
fn embedded() -> TestHub {
    TestHub::start_with(HubOptions {
        domain: Some(DOMAIN.to_owned()),
        ..HubOptions::default()
    })
}

/// The command that moves it.
fn migrate(hub: &TestHub, engines: &Engines) -> Command {
    let config = hub.folder().join("engines.toml");
    std::fs::write(&config, engines.config()).unwrap();
    let mut command = Command::new(binary("aip-hub"));
    command
        .args(["migrate-store", "--from", "embedded", "--to", "nats", "--dev"])
        .args(["--domain", DOMAIN])
        .arg("--data")
        .arg(hub.data())
        .arg("--config")
        .arg(config)
        .envs(engines.environment());
    command
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

fn moved(hub: &TestHub, engines: &Engines) -> String {
    let output = migrate(hub, engines).output().unwrap();
    let told = text(&output);
    assert!(output.status.success(), "{told}");
    told
}

/// The ids of what waits, in order.
async fn waiting(hub: &TestHub, token: &str) -> Vec<String> {
    let answer = inbox(hub, token).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let items = answer.json()["items"].as_array().cloned().unwrap_or_default();
    let id = |item: &Value| item["envelope"]["id"].as_str().unwrap_or_default().to_owned();
    items.iter().map(id).collect()
}

fn ids(envelopes: &[Envelope]) -> Vec<String> {
    envelopes.iter().map(|envelope| envelope.id.to_string()).collect()
}

async fn told(hub: &TestHub, envelope: &Envelope) -> Value {
    keyed::send(hub, envelope.to_wire()).await.json()["status"].clone()
}

/// The recipient gives the first message back for good and acks the second.
async fn reject_and_ack(hub: &TestHub, bob: &TestAgent) {
    let (mut socket, ready) = Socket::signed_in(hub, bob, json!({})).await;
    socket.frame("msg").await;
    let reject = json!({ "t": "reject", "epoch": ready["epoch"], "seq": 1, "code": "no_thanks" });
    socket.say(&reject).await;
    let ack = json!({ "t": "ack", "epoch": ready["epoch"], "upto": 0, "also": [2] });
    until("the second message", async || {
        (socket.frame("msg").await["seq"] == 2).then_some(())
    })
    .await;
    socket.say(&ack).await;
    socket.frame("acked").await;
}

#[tokio::test]
async fn a_running_hub_is_moved_with_everything_it_keeps() {
    let mut hub = embedded();
    let (alice, bob) = (
        TestAgent::registered(&hub, "alice").await,
        TestAgent::registered(&hub, "bob").await,
    );
    let (alices, bobs) = (alice.token(&hub).await, bob.token(&hub).await);
    let envelopes: Vec<Envelope> = (0..5).map(|_| alice.envelope(&bob)).collect();
    for envelope in &envelopes {
        assert_eq!(told(&hub, envelope).await, "stored");
    }
    reject_and_ack(&hub, &bob).await;
    let before = inbox(&hub, &bobs).await.json();

    let engines = Engines::shared();
    let words = moved(&hub, &engines);
    assert!(words.contains("3 messages in 1 mailboxes"), "{words}");
    assert!(words.contains("1 dead letters"), "{words}");
    assert_eq!(hub.readiness().await, (503, Some("paused".to_owned())));
    assert_eq!(
        alice.send(&hub, &bob).await.status,
        503,
        "the old hub takes nothing more"
    );

    let mut cluster = Cluster::with_key(engines.clone(), &hub.data().join("hub.key"));
    cluster.add();
    cluster.add();
    let (a, b) = (cluster.hub(0), cluster.hub(1));
    assert_eq!(waiting(a, &bobs).await, ids(envelopes.get(2..).unwrap()));
    assert_ne!(
        inbox(a, &bobs).await.json()["epoch"],
        before["epoch"],
        "places are new"
    );
    for envelope in &envelopes {
        assert_eq!(told(b, envelope).await, "duplicate", "also of what is gone");
    }
    status(b, &alices, envelopes[0].id, "dead").await;
    status(b, &alices, envelopes[1].id, "acked").await;
    status(b, &alices, envelopes[2].id, "stored").await;
    let dead = ask(a.url(), &Request::get("/api/v1/inbox/dead").bearer(&bobs))
        .await
        .json();
    assert_eq!(dead["items"][0]["code"], "no_thanks", "{dead}");
    assert_eq!(dead["items"][0]["envelope"]["id"], envelopes[0].id.to_string());
    sent(b, &alice, &bob).await;

    hub.terminate(Duration::from_secs(30));
    let refused = hub.try_restart().unwrap_err();
    assert!(refused.log.contains("moved to engines"), "{}", refused.log);
    let again = migrate(&hub, &engines).output().unwrap();
    assert!(
        !again.status.success() && text(&again).contains("was moved before"),
        "{}",
        text(&again)
    );
}

/// Kills the move when it says these words.
fn killed_at(mut child: Child, words: &str) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).any(|line| line.contains(words));
    assert!(found, "it never said {words:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_move_that_was_killed_lets_the_hub_go_on_and_is_begun_anew() {
    let hub = embedded();
    let (alice, bob) = (
        TestAgent::registered(&hub, "alice").await,
        TestAgent::registered(&hub, "bob").await,
    );
    let bobs = bob.token(&hub).await;
    let mut envelopes: Vec<Envelope> = (0..60).map(|_| alice.envelope(&bob)).collect();
    for envelope in &envelopes {
        assert_eq!(told(&hub, envelope).await, "stored");
    }
    let engines = Engines::shared();
    let child = migrate(&hub, &engines)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    killed_at(child.unwrap(), "second pass");
    let cluster = Cluster::with_key(engines.clone(), &hub.data().join("hub.key"));
    let failure = TestHub::prepare(cluster.options()).try_restart().unwrap_err();
    assert!(failure.log.contains("is not complete"), "{}", failure.log);

    until("the hub goes on by itself", async || {
        (hub.readiness().await.0 == 200).then_some(())
    })
    .await;
    // The first ten are acked, the order of the rest goes on.
    let waiting_at = inbox(&hub, &bobs).await;
    let epoch = waiting_at.json()["epoch"].clone();
    let tenth = places(&waiting_at)[9];
    let acked = super::acked(&hub, &bobs, &epoch, tenth).await;
    assert_eq!(acked.status, 200, "{}", acked.text());
    envelopes.push(alice.envelope(&bob));
    assert_eq!(told(&hub, &envelopes[60]).await, "stored");

    moved(&hub, &engines);
    let mut cluster = cluster;
    cluster.add();
    let there = cluster.hub(0);
    assert_eq!(waiting(there, &bobs).await, ids(&envelopes[10..]));
    for envelope in &envelopes {
        assert_eq!(told(there, envelope).await, "duplicate");
    }
}

/// Three letters for a peer that takes none; the first two have the same id.
async fn queued(hub: &TestHub, alice: &TestAgent, peer: &TestPeer) -> [Envelope; 3] {
    peer.turn(Mood::Busy);
    let (erin, frank) = (peer.agent("erin"), peer.agent("frank"));
    let first = alice.envelope(&erin);
    let same_id = alice.envelope_with(&frank, b"{}", |draft| draft.id = first.id);
    let envelopes = [first, same_id, alice.envelope(&erin)];
    for envelope in &envelopes {
        assert_eq!(told(hub, envelope).await, "queued");
    }
    envelopes
}

/// Waits until nothing waits for the peer any more.
async fn drained(hub: &TestHub, peer: &TestPeer) {
    let path = format!("/admin/peers/{}", peer.domain);
    peer.turn(Mood::Kind);
    until("an empty outbox", async || {
        hub.operate(Request::post(format!("{path}/retry"), "{}")).await;
        let shown = hub.operate(Request::get(path.clone())).await.json();
        (shown["outbox"]["pending"] == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mail_for_other_hubs_is_moved_and_what_left_during_the_move_is_not_sent_again() {
    let mut hub = embedded();
    let (back, away) = (TestPeer::start("e1").await, TestPeer::start("e1").await);
    let alice = TestAgent::registered(&hub, "alice").await;
    let alices = alice.token(&hub).await;
    let left = queued(&hub, &alice, &back).await;
    let waiting = queued(&hub, &alice, &away).await;
    let engines = Engines::shared();
    let child = migrate(&hub, &engines)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    tokio::task::block_in_place(|| killed_at(child.unwrap(), "second pass"));
    until("the hub goes on by itself", async || {
        (hub.readiness().await.0 == 200).then_some(())
    })
    .await;
    // The engines have all six by now.
    drained(&hub, &back).await;
    let words = tokio::task::block_in_place(|| moved(&hub, &engines));
    assert!(words.contains("3 messages in"), "{words}");
    tokio::task::block_in_place(|| hub.terminate(Duration::from_secs(30)));

    let before = [&back, &away].map(|peer| peer.items().len());
    away.turn(Mood::Kind);
    let mut cluster = Cluster::with_key(engines, &hub.data().join("hub.key"));
    tokio::task::block_in_place(|| cluster.add());
    let there = cluster.hub(0);
    status(there, &alices, waiting[2].id, "delivered").await;
    status(there, &alices, left[2].id, "delivered").await;
    for envelope in left.iter().chain(&waiting) {
        assert_eq!(told(there, envelope).await, "duplicate");
    }
    let came = away.items().split_off(before[1]);
    let to_erin: Vec<&Value> = came
        .iter()
        .map(|item| &item["envelope"])
        .filter(|envelope| envelope["to"] == waiting[0].to.as_str())
        .map(|envelope| &envelope["id"])
        .collect();
    assert_eq!(to_erin, [&waiting[0].id.to_string(), &waiting[2].id.to_string()]);
    assert_eq!(back.items().len(), before[0], "it has its mail already");
}

/// A hub that does not run is moved from its folder, and engines that are in use are left alone.
#[tokio::test]
async fn a_stopped_hub_is_moved_too_and_never_into_another_hubs_engines() {
    let mut hub = embedded();
    let (alice, bob) = (
        TestAgent::registered(&hub, "alice").await,
        TestAgent::registered(&hub, "bob").await,
    );
    let bobs = bob.token(&hub).await;
    sent(&hub, &alice, &bob).await;
    hub.terminate(Duration::from_secs(30));

    let others = Cluster::start(1);
    TestAgent::registered(others.hub(0), "mallory").await;
    let refused = migrate(&hub, others.engines()).output().unwrap();
    assert!(!refused.status.success(), "{}", text(&refused));
    assert!(
        text(&refused).contains("names of a hub already"),
        "{}",
        text(&refused)
    );

    let engines = Engines::shared();
    moved(&hub, &engines);
    let mut cluster = Cluster::with_key(engines, &hub.data().join("hub.key"));
    cluster.add();
    assert_eq!(places(&inbox(cluster.hub(0), &bobs).await), [1]);
}
