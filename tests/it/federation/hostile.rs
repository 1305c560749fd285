//! A peer that floods, lies, replays, re-signs, hangs: the hub stays well, delivers nothing that is not authentic, and says who
//! did what.

use aip_tests::keyed::send;
use aip_tests::peer::{Mood, item, item_of, signed_push};
use aip_tests::raw::{Request, ask, try_ask};
use aip_tests::{TestAgent, TestHub, TestPeer, Vitals};
use serde_json::{Value, json};

use super::{inbox, local_mail_passes, roomy, until};

/// A hub with two agents, and a peer that has handed in one good message.
struct Scene {
    hub: TestHub,
    peer: TestPeer,
    bob: TestAgent,
    carol: TestAgent,
    token: String,
    mallory: TestAgent,
}

impl Scene {
    async fn new() -> Self {
        let hub = TestHub::start_with(roomy());
        let peer = TestPeer::start("e1").await;
        let bob = TestAgent::registered(&hub, "bob").await;
        let carol = TestAgent::registered(&hub, "carol").await;
        let token = bob.token(&hub).await;
        let mallory = peer.agent("mallory");
        let scene = Self {
            hub,
            peer,
            bob,
            carol,
            token,
            mallory,
        };
        let result = scene
            .result(1, item(1, &scene.mallory.envelope(&scene.bob)))
            .await;
        assert_eq!(result["status"], "stored", "{result}");
        scene
    }

    /// What the peer is answered when it hands in items.
    async fn pushed(&self, items: &[Value]) -> Value {
        let answer = self.peer.hand_in(&self.hub, "e1", items).await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Status and code of each of these items, above which item 1 stays what is acknowledged.
    async fn fates(&self, items: &[Value]) -> Vec<(String, String)> {
        let mut fates = Vec::new();
        for batch in items.chunks(64) {
            let answer = self.pushed(batch).await;
            assert_eq!(answer["acked_through"], 1, "{answer}");
            let results = answer["results"].as_array().cloned().unwrap_or_default();
            assert_eq!(results.len(), batch.len(), "{answer}");
            let word = |result: &Value, name: &str| result[name].as_str().unwrap_or_default().to_owned();
            fates.extend(
                results
                    .iter()
                    .map(|result| (word(result, "status"), word(result, "code"))),
            );
        }
        fates
    }

    /// The result of one item.
    async fn result(&self, seq: u64, item: Value) -> Value {
        let answer = self.pushed(&[item]).await;
        let results = answer["results"].as_array().cloned().unwrap_or_default();
        let found = results.into_iter().find(|result| result["peer_seq"] == seq);
        found.unwrap_or_else(|| panic!("no result for {seq}: {answer}"))
    }

    /// What the operator sees of the peer.
    async fn shown(&self) -> Value {
        let path = format!("/admin/peers/{}", self.peer.domain);
        self.hub.operate(Request::get(path)).await.json()
    }

    /// The operator has the peer tried now.
    async fn retry(&self) {
        let path = format!("/admin/peers/{}/retry", self.peer.domain);
        let answer = self.hub.operate(Request::post(path, "{}")).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
    }

    async fn received(&self) -> usize {
        inbox(&self.hub, &self.token).await.len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_speaks_for_nobody_else() {
    let scene = Scene::new().await;
    let before = Vitals::of(&scene.hub).await;
    let elsewhere = TestAgent::at("elsewhere.example", "eve");
    let stolen = scene.mallory.resigned(&elsewhere.envelope(&scene.bob), |_| ());
    let stolen = serde_json::from_slice(&stolen).expect("JSON");
    let nobody = TestAgent::new(&scene.hub, "nobody");
    let mut changed = Value::from(scene.mallory.envelope(&scene.bob).json.clone());
    changed["type"] = json!("aip.receipt");
    let cases = [
        (
            "of another domain",
            Value::from(elsewhere.envelope(&scene.bob).json.clone()),
            "from_domain_mismatch",
        ),
        (
            "of our own agent",
            Value::from(scene.carol.envelope(&scene.bob).json.clone()),
            "from_domain_mismatch",
        ),
        ("signed by another agent", stolen, "from_domain_mismatch"),
        ("changed on the way", changed, "signature_invalid"),
        (
            "of nobody",
            Value::from(
                TestAgent::at(scene.peer.domain.as_str(), "nobody")
                    .envelope(&scene.bob)
                    .json
                    .clone(),
            ),
            "sender_unknown",
        ),
        (
            "to somebody elsewhere",
            Value::from(scene.mallory.envelope(&elsewhere).json.clone()),
            "to_domain_mismatch",
        ),
        (
            "to nobody",
            Value::from(scene.mallory.envelope(&nobody).json.clone()),
            "recipient_unknown",
        ),
        ("no envelope", json!({ "aip": "1" }), "member_missing"),
    ];
    for (seq, (what, envelope, code)) in (2..).zip(cases) {
        let result = scene.result(seq, item_of(seq, envelope.clone())).await;
        assert_eq!(
            (result["status"].as_str(), result["code"].as_str()),
            (Some("refused"), Some(code)),
            "{what}: {result}"
        );
        let again = scene.result(seq, item_of(seq, envelope)).await;
        assert_eq!(again["code"], code, "again: {again}");
    }
    assert_eq!(scene.received().await, 1, "something false came through");
    local_mail_passes(&scene.hub, &scene.carol, &scene.bob).await;
    Vitals::assert_well(&scene.hub, &before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_replayed_spoofed_or_oversized_is_refused() {
    let scene = Scene::new().await;
    let before = Vitals::of(&scene.hub).await;
    let push = scene.peer.push(
        &scene.hub,
        scene
            .peer
            .batch("e1", &[item(2, &scene.mallory.envelope(&scene.bob))]),
    );
    assert_eq!(ask(scene.hub.url(), &push).await.status, 200);
    let replayed = ask(scene.hub.url(), &push).await;
    assert_eq!(
        replayed.status,
        401,
        "a nonce was used twice: {}",
        replayed.text()
    );

    let other = aip_client::protocol::multikey::SigningKey::from_seed([3; 32]);
    let domain = scene.peer.domain.as_str();
    let spoofed = signed_push(&scene.hub, &other, domain, scene.peer.batch("e1", &[]));
    assert_eq!(ask(scene.hub.url(), &spoofed).await.code(), "hub_key_unknown");
    let ours = scene.hub.domain();
    let claimed = signed_push(&scene.hub, &other, &ours, scene.peer.batch("e1", &[]));
    let answer = ask(scene.hub.url(), &claimed).await;
    assert_eq!(answer.code(), "peer_blocked", "in the name of the hub itself");
    let lying = json!({ "aip": "1", "domain": "elsewhere.example", "epoch": "e1", "items": [] }).to_string();
    assert_eq!(
        ask(scene.hub.url(), &scene.peer.push(&scene.hub, lying))
            .await
            .code(),
        "from_domain_mismatch"
    );

    let many: Vec<Value> = (3..68)
        .map(|seq| item(seq, &scene.mallory.envelope(&scene.bob)))
        .collect();
    let answer = scene
        .peer
        .hand_in(&scene.hub, "e1", &many)
        .await
        .expect("an answer");
    assert_eq!(answer.status, 413, "{}", answer.text());
    let large = scene.peer.push(&scene.hub, vec![b' '; 1024 * 1024 + 1]);
    let answer = try_ask(scene.hub.url(), &large).await;
    assert!(
        answer.is_none_or(|answer| answer.status == 413),
        "a push above 1 MiB was read"
    );
    assert_eq!(scene.received().await, 2);
    local_mail_passes(&scene.hub, &scene.carol, &scene.bob).await;
    Vitals::assert_well(&scene.hub, &before).await;
}

/// Items of bad form with every second number, from `highest` down to `lowest`: nothing is ever contiguous.
fn gaps(lowest: u64, highest: u64) -> Vec<Value> {
    let seqs = (lowest..=highest).rev().step_by(2);
    seqs.map(|seq| item_of(seq, json!({ "aip": "1" }))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_out_of_order_fill_no_memory_and_lose_nothing() {
    let scene = Scene::new().await;
    let before = Vitals::of(&scene.hub).await;
    // Item 1 is acknowledged. Of those far above the window the first 3,584 are judged, and the others are to come again;
    // those up to 4,097 are judged in any case, and again as they were.
    let fate = |status: &str, code: &str, count| vec![(status.to_owned(), code.to_owned()); count];
    let mut far = fate("refused", "member_missing", 3_584);
    far.extend(fate("retry", "future_cursor", 12_800 - 3_584));
    assert_eq!(scene.fates(&gaps(74_402, 100_000)).await, far);
    for _ in 0..2 {
        let near = fate("refused", "member_missing", 2_047);
        assert_eq!(scene.fates(&gaps(4, 4_096)).await, near);
    }
    for (seq, acked_through) in [(2, 2), (3, 4)] {
        let filling = item(seq, &scene.mallory.envelope(&scene.bob));
        let answer = scene.pushed(&[filling]).await;
        assert_eq!(
            answer["results"][0]["status"], "stored",
            "it fills a gap: {answer}"
        );
        assert_eq!(answer["acked_through"], acked_through, "{answer}");
    }
    let moved_on = scene.pushed(&gaps(4_100, 4_100)).await;
    assert_eq!(moved_on["results"][0]["code"], "member_missing", "{moved_on}");
    assert_eq!(scene.received().await, 3);
    local_mail_passes(&scene.hub, &scene.carol, &scene.bob).await;
    Vitals::assert_well(&scene.hub, &before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_peer_answers_mail_waits_until_it_is_kind() {
    let scene = Scene::new().await;
    let before = Vitals::of(&scene.hub).await;
    let moods = [Mood::Busy, Mood::Html, Mood::Nonsense, Mood::Endless, Mood::Hangs];
    let mut sent = Vec::new();
    for (number, mood) in moods.into_iter().enumerate() {
        scene.peer.turn(mood);
        let pushed = scene.peer.items().len();
        let envelope = scene.bob.envelope(&scene.mallory);
        let answer = send(&scene.hub, envelope.to_wire()).await;
        assert_eq!(
            (answer.status, answer.json()["status"].as_str()),
            (202, Some("queued")),
            "{}",
            answer.text()
        );
        sent.push(envelope.id.to_string());
        until("it is tried", || async {
            // The first is tried by itself.
            if number > 0 {
                scene.retry().await;
            }
            scene.peer.items().len() > pushed
        })
        .await;
        local_mail_passes(&scene.hub, &scene.carol, &scene.bob).await;
    }
    let shown = scene.shown().await;
    assert_eq!(shown["outbox"]["pending"], 5, "nothing has left: {shown}");
    assert!(
        shown["outbox"]["last_error"].is_string(),
        "the operator sees why: {shown}"
    );
    let pushed = scene.peer.items().len();
    scene.peer.turn(Mood::Kind);
    until("all of it leaves", || async {
        scene.retry().await;
        scene.shown().await["outbox"]["pending"] == 0
    })
    .await;
    let taken = scene.peer.items().split_off(pushed);
    for id in &sent {
        let is_taken = taken.iter().any(|item| item["envelope"]["id"] == *id);
        assert!(is_taken, "{id} left, and not to the peer");
    }
    // The peer's first message and carol's five: nothing came back to bob.
    assert_eq!(scene.received().await, 6);
    Vitals::assert_well(&scene.hub, &before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_that_forks_is_evidence_and_waits_for_the_operator() {
    let scene = Scene::new().await;
    let forked = scene.peer.agent("mallory");
    let result = scene.result(2, item(2, &forked.envelope(&scene.bob))).await;
    assert_eq!(
        (result["status"].as_str(), result["code"].as_str()),
        (Some("refused"), Some("history_forked")),
        "{result}"
    );
    let evidence = scene.hub.operate(Request::get("/admin/evidence")).await.json();
    let found = &evidence["items"][0];
    assert_eq!(
        (found["code"].as_str(), found["subject"].as_str()),
        (Some("history_forked"), Some(forked.did.as_str())),
        "{evidence}"
    );
    assert!(
        found["objects"]
            .as_array()
            .is_some_and(|objects| objects.len() >= 2),
        "both operations: {evidence}"
    );
    let path = format!("/admin/histories/{}", forked.did.as_str().replace('%', "%25"));
    assert_eq!(scene.hub.operate(Request::new("DELETE", path)).await.status, 204);
    let result = scene.result(3, item(3, &forked.envelope(&scene.bob))).await;
    assert_eq!(result["status"], "stored", "the operator's word: {result}");
    assert_eq!(scene.received().await, 2);
}
