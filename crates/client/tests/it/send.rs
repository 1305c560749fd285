//! Sending: the same bytes until there is an answer, and never a second message.

use std::collections::BTreeSet;
use std::time::Duration;

use aip_client::protocol::error::ErrorCode;
use aip_client::{Draft, Error, SealedEnvelope, SentStatus};
use serde_json::json;

use crate::fake::{FakeHub, Fault};
use crate::support::{agent, builder};

const MESSAGES: &str = "/api/v1/messages";

fn refusal(status: u16, code: &str) -> Fault {
    Fault::Answer(
        status,
        json!({"status": status, "code": code, "detail": "as scripted"}),
    )
}

#[tokio::test]
async fn a_retry_sends_the_same_bytes() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    let slow_down = Fault::Answer(429, json!({"code": "rate_limited", "retry_after_s": 0}));
    hub.fail(
        MESSAGES,
        [
            Fault::HangUp,
            refusal(503, "unavailable"),
            slow_down,
            refusal(503, "outcome_unknown"),
            Fault::HangUp,
        ],
    );
    let sent = alice
        .send(&Draft::text(format!("bob#{}", hub.domain), "once"))
        .await
        .unwrap();
    assert_eq!(sent.status, SentStatus::Stored);
    let bodies = hub.bodies(MESSAGES);
    assert_eq!(bodies.len(), 6);
    assert_eq!(
        bodies.iter().collect::<BTreeSet<_>>().len(),
        1,
        "every attempt sends the same bytes"
    );
}

#[tokio::test]
async fn row_49_a_message_whose_answer_was_lost_is_sent_once() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    hub.fail(MESSAGES, [Fault::LoseAnswer]);
    let sent = alice
        .send(&Draft::text(format!("bob#{}", hub.domain), "once"))
        .await
        .unwrap();
    assert_eq!((sent.status, sent.seq), (SentStatus::Duplicate, Some(1)));
    assert_eq!(hub.state().mailboxes["bob"].pending(), 1);
}

#[tokio::test]
async fn a_message_that_was_written_down_goes_out_after_a_restart() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    let sealed = alice
        .seal(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap();
    assert_eq!(alice.submit(&sealed).await.unwrap().status, SentStatus::Stored);
    let written = SealedEnvelope::from_wire(sealed.wire().clone()).unwrap();
    let later = builder(&hub).build().unwrap();
    assert_eq!(
        later.submit(&written).await.unwrap().status,
        SentStatus::Duplicate
    );
    let bodies = hub.bodies(MESSAGES);
    assert_eq!(bodies[0], bodies[1]);
}

#[tokio::test]
async fn a_refusal_is_a_value_and_is_not_tried_again() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    hub.fail(
        MESSAGES,
        [Fault::Answer(
            507,
            json!({"code": "mailbox_full", "detail": "Later.", "retry_after_s": 9}),
        )],
    );
    let refused = alice
        .send(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap_err();
    assert!(refused.is_code(ErrorCode::MailboxFull), "{refused}");
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(9)));
    assert_eq!(hub.count(MESSAGES), 1);
}

#[tokio::test]
async fn an_outcome_that_nobody_knows_is_called_unknown() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    let sealed = alice
        .seal(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap();
    // The hub stored it, the answer was lost, and then it is too late to ask by sending.
    hub.fail(
        MESSAGES,
        [Fault::LoseAnswer, refusal(422, "created_at_out_of_window")],
    );
    let unknown = alice.submit(&sealed).await.unwrap_err();
    assert!(
        matches!(unknown, Error::OutcomeUnknown { id, .. } if id == sealed.id()),
        "{unknown}"
    );
    hub.fail(MESSAGES, [refusal(422, "created_at_out_of_window")]);
    let refused = alice.submit(&sealed).await.unwrap_err();
    assert!(
        refused.is_code(ErrorCode::CreatedAtOutOfWindow),
        "the first attempt was refused, so it is known: {refused}"
    );
}

#[tokio::test]
async fn the_window_ends_the_attempts() {
    let hub = FakeHub::start().await;
    let (_alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    let hasty = builder(&hub).send_window(Duration::ZERO).build().unwrap();
    hasty
        .register("carol", aip_client::Registration::default())
        .await
        .unwrap();
    hub.fail(MESSAGES, [Fault::HangUp]);
    let unknown = hasty
        .send(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap_err();
    assert!(matches!(unknown, Error::OutcomeUnknown { .. }), "{unknown}");
    assert_eq!(hub.count(MESSAGES), 1);
}

#[tokio::test]
async fn an_unknown_key_is_looked_into_once_and_not_for_ever() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    hub.fail(MESSAGES, std::iter::repeat_n(refusal(401, "key_unknown"), 9));
    let refused = alice
        .send(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap_err();
    assert!(refused.is_code(ErrorCode::KeyUnknown), "{refused}");
    assert_eq!(hub.count(MESSAGES), 1, "the same key would be refused again");
}

#[tokio::test]
async fn a_key_that_another_process_replaced_is_taken_from_the_file() {
    let hub = FakeHub::start().await;
    let _bob = agent(&hub, "bob").await;
    let folder = tempfile::tempdir().unwrap();
    let file = aip_client::KeyFile::at(folder.path().join("k"));
    let first = builder(&hub).key_file(file.clone()).unwrap().build().unwrap();
    first
        .register("alice", aip_client::Registration::default())
        .await
        .unwrap();
    let second = builder(&hub).key_file(file).unwrap().build().unwrap();
    second
        .rotate(aip_client::Rotation {
            revoke_old: true,
            ..Default::default()
        })
        .await
        .unwrap();
    hub.fail(MESSAGES, [refusal(401, "key_unknown")]);
    let sent = first
        .send(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap();
    let bodies = hub.bodies(MESSAGES);
    let kid = |body: &[u8]| serde_json::from_slice::<serde_json::Value>(body).unwrap()["kid"].clone();
    assert_ne!(kid(&bodies[0]), kid(&bodies[1]));
    assert_eq!(kid(&bodies[1]), second.keys().unwrap().kid());
    assert_eq!(sent.status, SentStatus::Stored);
}

#[tokio::test]
async fn a_batch_answers_each_in_order_and_tries_again_what_may_be() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    let mut drafts: Vec<Draft> = (0..4)
        .map(|n| Draft::text(format!("bob#{}", hub.domain), n.to_string()))
        .collect();
    drafts.insert(2, Draft::text(format!("nobody#{}", hub.domain), "x"));
    let batch = json!([
        {"id": "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11", "status": "stored", "seq": 1},
        {"code": "rate_limited", "retry_after_s": 0},
    ]);
    hub.fail(MESSAGES, [Fault::Answer(200, batch)]);
    let results = alice.send_batch(&drafts).await.unwrap();
    assert_eq!(results.len(), 5);
    assert_eq!(results[0].as_ref().unwrap().seq, Some(1));
    assert_eq!(results[1].as_ref().unwrap().status, SentStatus::Stored);
    assert!(results[2].as_ref().unwrap_err().is_code(ErrorCode::NotFound));
    assert!(results[3].is_ok() && results[4].is_ok());
    let bodies = hub.bodies(MESSAGES);
    assert_eq!(
        bodies.len(),
        3,
        "two before the one that cannot be sealed, the retried one, two after it"
    );
    let first: Vec<Box<serde_json::value::RawValue>> = serde_json::from_slice(&bodies[0]).unwrap();
    assert_eq!(
        bodies[1],
        first[1].get().as_bytes(),
        "a retry of one is the same bytes"
    );
}

#[tokio::test]
async fn what_no_hub_would_take_is_not_sent() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    let to = format!("bob#{}", hub.domain);
    for draft in [
        Draft::text("bob", "no domain"),
        Draft::text(&to, "one part").kind("message"),
        Draft::text(&to, "too long a thread").thread("x".repeat(129)),
        Draft::text(&to, "x".repeat(300 * 1024)),
        Draft::text(&to, "expires at once").expires_in(Duration::ZERO),
    ] {
        let refused = alice.send(&draft).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{draft:?}: {refused}");
    }
    assert_eq!(hub.count(MESSAGES), 0);
}

#[tokio::test]
async fn a_domain_without_a_hub_is_named() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let error = alice
        .seal(&Draft::text("carol#localhost:1", "x"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }) && error.is_transient());
    let said = error.sentence();
    let start = "asking the hub of another domain: the hub cannot be reached: localhost:1: ";
    assert!(said.starts_with(start), "{said}");
}
