//! Sending at the HTTP door; the rules of admission are tested in the relay.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix_web::test::TestRequest;
use aip_protocol::challenge::challenge_object;
use aip_protocol::clock::Clock as _;
use aip_protocol::envelope::{Envelope, EnvelopeDraft, new_id};
use aip_protocol::signature::{Tag, sign};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::testing::{Answer, DOMAIN, TestAgent, TestDisk, TestHub};

const MESSAGES: &str = "/api/v1/messages";

fn envelope(hub: &TestHub, from: &TestAgent, to: &TestAgent, number: u64) -> Envelope {
    let mut rng = StdRng::seed_from_u64(number);
    let id = new_id(&mut rng);
    let draft = EnvelopeDraft::new(
        id,
        from.did.clone(),
        to.did.clone(),
        "aip.message",
        hub.clock.now(),
    );
    draft
        .seal(&from.signing, to.identity.sealing_key().unwrap(), b"{}", &mut rng)
        .unwrap()
}

async fn alice_and_bob(hub: &TestHub) -> (TestAgent, TestAgent) {
    (hub.registered("alice").await, hub.registered("bob").await)
}

async fn token(hub: &TestHub, agent: &TestAgent) -> String {
    let did = agent.did.as_str();
    let answer = hub
        .post("/api/v1/auth/challenge", json!({ "did": did }).to_string())
        .await;
    let challenge = answer.json()["challenge"].as_str().unwrap().to_owned();
    let sig = sign(
        &agent.signing,
        Tag::Challenge,
        &challenge_object(DOMAIN, &challenge, &agent.did),
    );
    let body = json!({ "did": did, "kid": agent.kid(), "challenge": challenge, "sig": sig.to_string() });
    let answer = hub.post("/api/v1/auth/token", body.to_string()).await;
    answer.json()["token"].as_str().unwrap().to_owned()
}

async fn status(hub: &TestHub, agent: &TestAgent, id: &str, query: &str) -> Answer {
    let bearer = format!("Bearer {}", token(hub, agent).await);
    let uri = format!("{MESSAGES}/{id}/status{query}");
    hub.ask(
        TestRequest::get()
            .uri(&uri)
            .insert_header(("authorization", bearer)),
    )
    .await
}

#[actix_web::test]
async fn an_envelope_is_stored_and_a_retry_is_a_duplicate() {
    let hub = TestHub::new();
    let (alice, bob) = alice_and_bob(&hub).await;
    let wire = envelope(&hub, &alice, &bob, 1).to_wire();
    let first = hub.post(MESSAGES, wire.clone()).await;
    let id = envelope(&hub, &alice, &bob, 1).id.to_string();
    assert_eq!(first.status, 202);
    assert_eq!(
        first.json(),
        json!({ "id": id, "status": "stored", "route": "mailbox", "seq": 1 })
    );
    let again = hub.post("/relay/bob", wire).await;
    assert_eq!(again.status, 200);
    assert_eq!(
        again.json(),
        json!({ "id": id, "status": "duplicate", "route": "mailbox", "seq": 1 })
    );
}

#[actix_web::test]
async fn both_media_types_are_taken_and_no_other_and_no_encoding() {
    let hub = TestHub::new();
    let (alice, bob) = alice_and_bob(&hub).await;
    let send = async |number, header: (&'static str, &'static str)| {
        let body = envelope(&hub, &alice, &bob, number).to_wire();
        hub.ask(
            TestRequest::post()
                .uri(MESSAGES)
                .insert_header(header)
                .set_payload(body),
        )
        .await
    };
    assert_eq!(
        send(1, ("content-type", "application/aip+json")).await.status,
        202
    );
    assert_eq!(
        send(2, ("content-type", "application/json; charset=utf-8"))
            .await
            .status,
        202
    );
    let other = send(3, ("content-type", "text/plain")).await;
    assert_eq!(
        (other.status.as_u16(), other.code().as_str()),
        (415, "media_type_unsupported")
    );
    for coding in ["gzip", "br", "deflate"] {
        let coded = send(4, ("content-encoding", coding)).await;
        assert_eq!(
            (coded.status.as_u16(), coded.code().as_str()),
            (415, "encoding_unsupported")
        );
    }
}

#[actix_web::test]
async fn row_83_sizes_end_exactly_at_their_limits() {
    let hub = TestHub::new();
    let (alice, bob) = alice_and_bob(&hub).await;
    let padded = |number, bytes: usize| {
        let mut wire = envelope(&hub, &alice, &bob, number).to_wire();
        wire.resize(bytes, b' ');
        wire
    };
    assert_eq!(hub.post(MESSAGES, padded(1, 256 * 1024)).await.status, 202);
    let one = hub.post(MESSAGES, padded(2, 256 * 1024 + 1)).await;
    assert_eq!(
        (one.status.as_u16(), one.code().as_str()),
        (413, "envelope_too_large")
    );
    let array = |bytes: usize| {
        let mut body = b"[]".to_vec();
        body.resize(bytes, b' ');
        body
    };
    assert_eq!(hub.post(MESSAGES, array(4 * 1024 * 1024)).await.status, 200);
    let many = hub.post(MESSAGES, array(4 * 1024 * 1024 + 1)).await;
    assert_eq!(
        (many.status.as_u16(), many.code().as_str()),
        (413, "body_too_large")
    );
    let long = format!("[{}]", vec!["{}"; 101].join(","));
    assert_eq!(hub.post(MESSAGES, long).await.code(), "body_too_large");
}

#[actix_web::test]
async fn an_array_answers_for_each_in_order() {
    let hub = TestHub::new();
    let (alice, bob) = alice_and_bob(&hub).await;
    let nobody = hub.agent("nobody");
    let good = |number| String::from_utf8(envelope(&hub, &alice, &bob, number).to_wire()).unwrap();
    let lost = envelope(&hub, &alice, &nobody, 3);
    let lost_wire = String::from_utf8(lost.to_wire()).unwrap();
    let body = format!(" [{}, {lost_wire}, {{\"x\":1.5}}, {}]", good(1), good(2));
    let answer = hub.post(MESSAGES, body).await;
    assert_eq!(answer.status, 200);
    let items = answer.json();
    let states: Vec<_> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["status"].clone())
        .collect();
    assert_eq!(states, ["stored", "refused", "refused", "stored"]);
    assert_eq!(items[1]["code"], "recipient_unknown");
    assert_eq!(items[1]["id"], lost.id.to_string());
    assert_eq!(items[2]["code"], "json_invalid");
    assert!(
        items[2]["detail"]
            .as_str()
            .is_some_and(|detail| !detail.is_empty())
    );
    assert!(items[2].get("id").is_none());
    assert_eq!((&items[0]["seq"], &items[3]["seq"]), (&json!(1), &json!(2)));
}

#[actix_web::test]
async fn refusals_keep_their_code_status_and_retry_after() {
    let hub = TestHub::with(|settings| settings.relay.mailbox_messages_per_sender_max = 1);
    let (alice, bob) = alice_and_bob(&hub).await;
    let nobody = hub.agent("nobody");
    let wire = |from, to, number| envelope(&hub, from, to, number).to_wire();
    assert_eq!(hub.post(MESSAGES, wire(&alice, &bob, 1)).await.status, 202);
    let full = hub.post(MESSAGES, wire(&alice, &bob, 2)).await;
    assert_eq!(
        (full.status.as_u16(), full.code().as_str()),
        (507, "mailbox_full")
    );
    assert_eq!(full.header("retry-after"), "60");
    for (answer, status, code) in [
        (hub.post(MESSAGES, "hello").await, 400, "json_invalid"),
        (hub.post(MESSAGES, "").await, 400, "json_invalid"),
        (
            hub.post(MESSAGES, wire(&nobody, &bob, 3)).await,
            401,
            "sender_unknown",
        ),
        (
            hub.post(MESSAGES, wire(&alice, &nobody, 4)).await,
            404,
            "recipient_unknown",
        ),
        (
            hub.post("/relay/alice", wire(&alice, &bob, 5)).await,
            400,
            "recipient_mismatch",
        ),
        (
            hub.post("/relay/-x", wire(&alice, &bob, 6)).await,
            400,
            "name_invalid",
        ),
        (
            hub.post("/api/v1/messages?x=1", wire(&alice, &bob, 7)).await,
            400,
            "parameter_unknown",
        ),
        (hub.get(MESSAGES).await, 405, "method_not_allowed"),
    ] {
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, code));
    }
}

#[actix_web::test]
async fn the_rate_of_a_sender_is_told_in_one_and_in_many() {
    let hub = TestHub::with(|settings| settings.relay.sender_burst_messages = 2);
    let (alice, bob) = alice_and_bob(&hub).await;
    let wire = |number| String::from_utf8(envelope(&hub, &alice, &bob, number).to_wire()).unwrap();
    let items = hub
        .post(MESSAGES, format!("[{},{},{}]", wire(1), wire(2), wire(3)))
        .await
        .json();
    assert_eq!(
        (&items[1]["status"], &items[2]["code"]),
        (&json!("stored"), &json!("rate_limited"))
    );
    assert_eq!(items[2]["retry_after_s"], 1);
    let one = hub.post(MESSAGES, wire(3)).await;
    assert_eq!((one.status.as_u16(), one.code().as_str()), (429, "rate_limited"));
    assert_eq!(one.header("retry-after"), "1");
}

#[actix_web::test]
async fn the_sender_and_nobody_else_can_ask_what_became_of_a_message() {
    let hub = TestHub::new();
    let (alice, bob) = alice_and_bob(&hub).await;
    let sent = envelope(&hub, &alice, &bob, 1);
    hub.post(MESSAGES, sent.to_wire()).await;
    let id = sent.id.to_string();
    let answer = status(&hub, &alice, &id, "").await;
    assert_eq!(answer.status, 200);
    let expected: Value = json!({
        "id": id, "to": bob.did.as_str(), "status": "stored", "seq": 1,
        "accepted_at": hub.clock.now().to_string(), "at": hub.clock.now().to_string(),
    });
    assert_eq!(answer.json(), expected);
    for query in ["?to=bob%23hub.example", "?to=did%3Aaip%3Ahub.example%3Abob"] {
        assert_eq!(status(&hub, &alice, &id, query).await.json(), expected);
    }
    assert_eq!(
        status(&hub, &alice, &id, "?to=alice%23hub.example").await.code(),
        "not_found"
    );
    assert_eq!(status(&hub, &bob, &id, "").await.code(), "not_found");
    assert_eq!(
        status(&hub, &alice, "no-uuid", "").await.code(),
        "parameter_invalid"
    );
    assert_eq!(
        status(&hub, &alice, &id, "?from=x").await.code(),
        "parameter_unknown"
    );
    let anonymous = hub.get(&format!("{MESSAGES}/{id}/status")).await;
    assert_eq!(
        (anonymous.status.as_u16(), anonymous.code().as_str()),
        (401, "token_invalid")
    );
}

#[actix_web::test]
async fn an_id_with_several_recipients_needs_to() {
    let hub = TestHub::new();
    let (alice, bob) = alice_and_bob(&hub).await;
    // The same seed gives the same id.
    hub.post(MESSAGES, envelope(&hub, &alice, &bob, 1).to_wire())
        .await;
    hub.post(MESSAGES, envelope(&hub, &alice, &alice, 1).to_wire())
        .await;
    let id = envelope(&hub, &alice, &bob, 1).id.to_string();
    assert_eq!(status(&hub, &alice, &id, "").await.code(), "parameter_invalid");
    let one = status(&hub, &alice, &id, "?to=bob%23hub.example").await;
    assert_eq!(one.json()["to"], bob.did.as_str());
}

/// A hub that lets an address fail 30 times at once.
fn guarded() -> TestHub {
    TestHub::with(|settings| {
        settings.hub.development = false;
        settings.http.requests_per_sec = 1;
        settings.http.request_burst = 30;
    })
}

fn assert_slowed(answer: &Answer) {
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (429, "rate_limited")
    );
    assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
}

#[actix_web::test]
async fn an_address_that_forges_envelopes_is_refused_before_they_are_looked_at() {
    let hub = guarded();
    let (alice, bob) = alice_and_bob(&hub).await;
    let nobody = hub.agent("nobody");
    let good = envelope(&hub, &alice, &bob, 1).to_wire();
    for _ in 0..40 {
        // Refused, but nobody pretended to be somebody.
        assert_eq!(hub.post(MESSAGES, "{}").await.status, 400);
    }
    assert_eq!(hub.post(MESSAGES, good.clone()).await.status, 202);

    let forged = String::from_utf8(envelope(&hub, &nobody, &bob, 2).to_wire()).unwrap();
    let array = format!("[{}]", vec![forged.as_str(); 100].join(","));
    let answer = hub.post(MESSAGES, array).await;
    assert_eq!(answer.json()[99]["code"], "sender_unknown");
    for (path, body) in [(MESSAGES, good.clone()), ("/relay/bob", forged.into())] {
        assert_slowed(&hub.post(path, body).await);
    }
    let elsewhere = TestRequest::post()
        .uri(MESSAGES)
        .peer_addr("192.0.2.2:9".parse().unwrap());
    assert_eq!(hub.ask(elsewhere.set_payload(good)).await.status, 200);
}

#[actix_web::test]
async fn an_address_that_guesses_tokens_is_refused_before_they_are_looked_up() {
    let hub = guarded();
    let alice = hub.registered("alice").await;
    let good = token(&hub, &alice).await;
    let ask = async |token: &str| {
        let request = TestRequest::get().uri("/api/v1/inbox");
        let bearer = format!("Bearer {token}");
        hub.ask(request.insert_header(("authorization", bearer))).await
    };
    for _ in 0..40 {
        assert_eq!(ask(&good).await.status, 200);
    }
    let mut guesses = 0;
    while ask("guess").await.status == 401 {
        guesses += 1;
        assert!(guesses < 1_000);
    }
    assert!(guesses >= 30, "{guesses}");
    assert_slowed(&ask("guess").await);
}

#[actix_web::test]
async fn failures_in_arrays_fill_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(TestDisk::default());
    let hub = TestHub::on_disk(dir.path(), disk.clone());
    let (alice, bob) = alice_and_bob(&hub).await;
    disk.full.store(true, Ordering::SeqCst);
    let wires: Vec<String> = (0..100)
        .map(|number| String::from_utf8(envelope(&hub, &alice, &bob, number).to_wire()).unwrap())
        .collect();
    let answer = hub.post(MESSAGES, format!("[{}]", wires.join(","))).await;
    assert_eq!(answer.json()[99]["code"], "unavailable");
    assert!(hub.hub.app.failures.held_back() > 0);
}
