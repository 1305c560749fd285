//! The inbox over HTTP; its rules are tested in the relay.

use actix_web::test::TestRequest;
use aip_protocol::clock::Clock as _;
use aip_protocol::envelope::{EnvelopeDraft, new_id};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::testing::{Answer, TestAgent, TestHub};

struct Bed {
    hub: TestHub,
    alice: TestAgent,
    bob: TestAgent,
    token: String,
}

impl Bed {
    async fn new() -> Self {
        let hub = TestHub::new();
        let (alice, bob) = (hub.registered("alice").await, hub.registered("bob").await);
        let token = hub.token(&bob).await;
        Self {
            hub,
            alice,
            bob,
            token,
        }
    }

    async fn send(&self, number: u64) -> u64 {
        self.hub.send(&self.alice, &self.bob, number).await
    }

    /// The same in a conversation.
    async fn send_in(&self, thread: &str, number: u64) {
        let mut rng = StdRng::seed_from_u64(number);
        let (id, now) = (new_id(&mut rng), self.hub.clock.now());
        let (from, to) = (self.alice.did.clone(), self.bob.did.clone());
        let mut draft = EnvelopeDraft::new(id, from, to, "aip.message", now);
        draft.thread = Some(thread.to_owned());
        let key = self.bob.identity.sealing_key().unwrap();
        let envelope = draft.seal(&self.alice.signing, key, b"{}", &mut rng).unwrap();
        let answer = self.hub.post("/api/v1/messages", envelope.to_wire()).await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }

    async fn ask(&self, request: TestRequest) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        self.hub
            .ask(request.insert_header(("authorization", bearer)))
            .await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(TestRequest::get().uri(path)).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        let request = TestRequest::post()
            .uri(path)
            .insert_header(("content-type", "application/json"));
        self.ask(request.set_payload(body.to_string())).await
    }

    async fn epoch(&self) -> String {
        self.get("/api/v1/inbox").await.json()["epoch"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

fn seqs(answer: &Answer) -> Vec<u64> {
    let items = answer.json();
    items["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["seq"].as_u64().unwrap())
        .collect()
}

#[actix_web::test]
async fn a_poll_brings_envelopes_as_they_were_sent() {
    let bed = Bed::new().await;
    let wire = bed.hub.envelope(&bed.alice, &bed.bob, 1).to_wire();
    // Written with line breaks, as a person would.
    let pretty = serde_json::to_string_pretty(&serde_json::from_slice::<Value>(&wire).unwrap()).unwrap();
    assert_eq!(bed.hub.post("/api/v1/messages", pretty.clone()).await.status, 202);
    let answer = bed.get("/api/v1/inbox").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "application/json")
    );
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(
        String::from_utf8_lossy(&answer.body).contains(&pretty),
        "byte for byte"
    );
    let body = answer.json();
    assert_eq!(
        (&body["floor"], &body["items"][0]["attempt"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(body["items"][0]["accepted_at"], "2026-11-29T20:15:30.000Z");
}

#[actix_web::test]
async fn a_poll_goes_on_after_a_cursor_and_acks_move_the_floor() {
    let bed = Bed::new().await;
    for number in 1..=3 {
        bed.send(number).await;
    }
    let epoch = bed.epoch().await;
    assert_eq!(
        seqs(&bed.get(&format!("/api/v1/inbox?after={epoch}:1&limit=1")).await),
        [2]
    );
    assert_eq!(
        seqs(
            &bed.get(&format!("/api/v1/inbox?after={epoch}%3A2&wait_s=0"))
                .await
        ),
        [3]
    );
    let acked = bed
        .post(
            "/api/v1/inbox/ack",
            json!({ "epoch": epoch, "upto": 1, "also": [3] }),
        )
        .await;
    assert_eq!(
        (acked.status.as_u16(), acked.json()),
        (200, json!({ "epoch": epoch, "floor": 1 }))
    );
    assert_eq!(seqs(&bed.get("/api/v1/inbox").await), [2]);
    let acked = bed
        .post("/api/v1/inbox/ack", json!({ "epoch": epoch, "upto": 2 }))
        .await;
    assert_eq!(acked.json()["floor"], 3);
}

#[actix_web::test]
async fn a_wait_ends_with_the_message() {
    let bed = Bed::new().await;
    let (answer, seq) = futures_util::future::join(bed.get("/api/v1/inbox?wait_s=30"), bed.send(1)).await;
    assert_eq!(seqs(&answer), [seq]);
}

#[actix_web::test]
async fn a_wait_ends_when_the_hub_goes_away() {
    let bed = Bed::new().await;
    bed.hub.hub.begin_to_close();
    assert_eq!(seqs(&bed.get("/api/v1/inbox?wait_s=30").await), [0; 0]);
}

#[actix_web::test]
async fn what_cannot_be_read_is_refused() {
    let bed = Bed::new().await;
    bed.send(1).await;
    let epoch = bed.epoch().await;
    for (path, status, code) in [
        ("/api/v1/inbox?after=nonsense".to_owned(), 400, "cursor_invalid"),
        (format!("/api/v1/inbox?after={epoch}:x"), 400, "cursor_invalid"),
        (format!("/api/v1/inbox?after={epoch}:-1"), 400, "cursor_invalid"),
        (format!("/api/v1/inbox?after={epoch}:7"), 400, "cursor_invalid"),
        ("/api/v1/inbox?after=another:1".to_owned(), 409, "epoch_changed"),
        ("/api/v1/inbox?limit=0".to_owned(), 400, "parameter_invalid"),
        ("/api/v1/inbox?limit=101".to_owned(), 400, "parameter_invalid"),
        ("/api/v1/inbox?wait_s=61".to_owned(), 400, "parameter_invalid"),
        ("/api/v1/inbox?wait=1".to_owned(), 400, "parameter_unknown"),
        ("/api/v1/inbox/dead?cursor=x".to_owned(), 400, "cursor_invalid"),
        (
            "/api/v1/inbox/dead?cursor=another:1".to_owned(),
            409,
            "epoch_changed",
        ),
        ("/api/v1/inbox/dead?after=x".to_owned(), 400, "parameter_unknown"),
    ] {
        let answer = bed.get(&path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (status, code),
            "{path}"
        );
    }
}

#[actix_web::test]
async fn acks_are_checked_member_by_member() {
    let bed = Bed::new().await;
    bed.send(1).await;
    bed.send(2).await;
    let epoch = bed.epoch().await;
    bed.send(3).await;
    for (body, status, code) in [
        (json!({ "upto": 1 }), 400, "member_missing"),
        (json!({ "epoch": epoch }), 400, "member_missing"),
        (json!({ "epoch": 7, "upto": 1 }), 400, "member_invalid"),
        (json!({ "epoch": epoch, "upto": -1 }), 400, "member_invalid"),
        (
            json!({ "epoch": epoch, "upto": 1, "also": 2 }),
            400,
            "member_invalid",
        ),
        (
            json!({ "epoch": epoch, "upto": 1, "also": vec![1; 1_025] }),
            400,
            "member_invalid",
        ),
        (
            json!({ "epoch": "another", "upto": 1, "also": [] }),
            409,
            "epoch_changed",
        ),
        (json!({ "epoch": epoch, "upto": 3 }), 400, "cursor_invalid"),
        (
            json!({ "epoch": epoch, "upto": 0, "also": [900] }),
            400,
            "cursor_invalid",
        ),
    ] {
        let answer = bed.post("/api/v1/inbox/ack", body.clone()).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (status, code),
            "{body}"
        );
    }
    let large = json!({ "epoch": epoch, "upto": 0, "also": vec![u64::MAX / 4_096; 3_000] });
    assert_eq!(
        bed.post("/api/v1/inbox/ack", large).await.code(),
        "body_too_large"
    );
    assert_eq!(
        seqs(&bed.get("/api/v1/inbox").await),
        [1, 2, 3],
        "nothing was acked"
    );
}

#[actix_web::test]
async fn row_29_only_the_recipient_can_ack() {
    let bed = Bed::new().await;
    bed.send(1).await;
    let epoch = bed.epoch().await;
    let carol = bed.hub.registered("carol").await;
    let bearer = format!("Bearer {}", bed.hub.token(&carol).await);
    let request = TestRequest::post()
        .uri("/api/v1/inbox/ack")
        .insert_header(("authorization", bearer));
    let answer = bed
        .hub
        .ask(request.set_json(json!({ "epoch": epoch, "upto": 1, "also": [1] })))
        .await;
    assert_eq!(answer.code(), "cursor_invalid");
    assert_eq!(seqs(&bed.get("/api/v1/inbox").await), [1]);
}

#[actix_web::test]
async fn every_path_needs_a_token() {
    let hub = TestHub::new();
    for path in ["/api/v1/inbox", "/api/v1/inbox/stream", "/api/v1/inbox/dead"] {
        assert_eq!(hub.get(path).await.code(), "token_invalid", "{path}");
    }
    for path in ["/api/v1/inbox/ack", "/api/v1/inbox/dead/1/redrive"] {
        assert_eq!(hub.post(path, "{}").await.code(), "token_invalid", "{path}");
    }
}

#[actix_web::test]
async fn dead_letters_are_paged_and_redriven() {
    let bed = Bed::new().await;
    for number in 1..=3 {
        bed.send(number).await;
    }
    let mailbox = aip_relay::mailbox::MailboxId::of(&bed.bob.did);
    let (store, now) = (&bed.hub.hub.app.store, bed.hub.hub.app.clock.now());
    for seq in 1..=3 {
        store.bury(&mailbox, seq, "unreadable", now).await.unwrap();
    }
    let page = bed.get("/api/v1/inbox/dead?limit=2").await;
    assert_eq!(seqs(&page), [1, 2]);
    let (item, next) = (
        page.json()["items"][0].clone(),
        page.json()["next_cursor"].clone(),
    );
    assert_eq!(
        (&item["code"], &item["at"]),
        (&json!("unreadable"), &json!("2026-11-29T20:15:30.000Z"))
    );
    let sent: Value = serde_json::from_slice(&bed.hub.envelope(&bed.alice, &bed.bob, 1).to_wire()).unwrap();
    assert_eq!(item["envelope"], sent);
    let rest = bed
        .get(&format!("/api/v1/inbox/dead?cursor={}", next.as_str().unwrap()))
        .await;
    assert_eq!(
        (seqs(&rest), &rest.json()["next_cursor"]),
        (vec![3], &Value::Null)
    );

    let again = bed.post("/api/v1/inbox/dead/2/redrive", json!({})).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, json!({ "seq": 4 })));
    assert_eq!(seqs(&bed.get("/api/v1/inbox/dead").await), [1, 3]);
    assert_eq!(seqs(&bed.get("/api/v1/inbox").await), [4]);
    for (seq, status, code) in [
        ("2", 404, "not_found"),
        ("x", 400, "parameter_invalid"),
        ("+1", 400, "parameter_invalid"),
    ] {
        let answer = bed
            .post(&format!("/api/v1/inbox/dead/{seq}/redrive"), json!({}))
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (status, code),
            "{seq}"
        );
    }
}

#[actix_web::test]
async fn one_conversation_is_read_without_touching_the_others() {
    let bed = Bed::new().await;
    bed.send(1).await;
    bed.send_in("tea & \"more\"", 2).await;
    bed.send(4).await;
    let thread = "/api/v1/inbox?thread=tea%20%26%20%22more%22";
    assert_eq!(seqs(&bed.get(thread).await), [2]);
    assert_eq!(seqs(&bed.get("/api/v1/inbox?thread=other").await), [0; 0]);
    let epoch = bed.epoch().await;
    let ack = json!({ "epoch": epoch, "upto": 0, "also": [2] });
    assert_eq!(bed.post("/api/v1/inbox/ack", ack).await.status, 200);
    let rest = bed.get("/api/v1/inbox").await.json();
    let attempts: Vec<_> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["seq"], &item["attempt"]))
        .collect();
    // `epoch` has looked once.
    assert_eq!(attempts, [(&json!(1), &json!(2)), (&json!(3), &json!(2))]);
    assert_eq!(bed.get("/api/v1/inbox?thread=").await.json()["items"], json!([]));
}

#[actix_web::test]
async fn one_conversation_is_read_page_by_page() {
    let bed = Bed::new().await;
    bed.send(1).await;
    for number in 2..5 {
        bed.send_in("tea", number).await;
    }
    bed.send(6).await;
    let epoch = bed.epoch().await;
    for (after, page) in [(0, vec![2]), (2, vec![3]), (3, vec![4]), (4, vec![])] {
        let path = format!("/api/v1/inbox?thread=tea&limit=1&after={epoch}:{after}");
        assert_eq!(seqs(&bed.get(&path).await), page, "after {after}");
    }
}
