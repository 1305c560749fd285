//! Accepted envelopes: what is stored, deduplicated, counted against quotas and told.

use std::pin::pin;

use futures_util::future::poll_immediate;

use super::*;
use crate::mailbox::{Quota, Route, Status};

#[tokio::test]
async fn a_message_is_stored_and_its_sender_can_ask() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    let answer = bench.send(&envelope).await.unwrap();
    let expected = Submission {
        id: envelope.id,
        status: Sent::Stored,
        route: Route::Mailbox,
        seq: Some(1),
    };
    assert_eq!(answer, expected);
    assert_eq!(answer.status.http_status(), 202);

    let records = bench.relay.status(&alice.did, envelope.id, None).await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].to.clone(), records[0].status),
        (bob.did.clone(), Status::Stored)
    );
    assert!(
        bench
            .relay
            .status(&bob.did, envelope.id, None)
            .await
            .unwrap()
            .is_empty(),
        "the sender only"
    );
}

#[tokio::test]
async fn the_bytes_are_stored_as_they_came() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let canonical = String::from_utf8(bench.envelope(&alice, &bob).to_wire()).unwrap();
    // Another order of members, white space inside and escapes: the same envelope, other bytes.
    let sig = canonical.find("\"sig\":").unwrap();
    let (head, tail) = canonical.split_at(sig);
    let (sig, rest) = tail.split_once(',').unwrap();
    let wire = format!(
        "{{ {sig} , \n{}{rest}",
        head.strip_prefix('{')
            .unwrap()
            .replace("aip.message", "aip\\u002emessage")
    );
    let wire = wire.replace("aip.message", "aip\\u002emessage");
    assert_ne!(wire, canonical);
    assert_eq!(
        bench.code(format!("\r\n {wire} \n\n"), &Door::Home).await,
        "stored"
    );
    assert_eq!(bench.waiting(&bob).await, [wire.as_bytes()]);
    // And it is the same envelope to the dedup window.
    assert_eq!(bench.code(canonical, &Door::Home).await, "duplicate");
}

#[tokio::test]
async fn row_49_the_same_envelope_again_gets_the_first_answer() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    bench.send(&bench.envelope(&alice, &bob)).await.unwrap();
    assert_eq!(bench.send(&envelope).await.unwrap().seq, Some(2));
    bench.send(&bench.envelope(&alice, &bob)).await.unwrap();
    for _ in 0..3 {
        let again = bench.send(&envelope).await.unwrap();
        assert_eq!(
            (again.status, again.route, again.seq),
            (Sent::Duplicate, Route::Mailbox, Some(2))
        );
        assert_eq!(again.status.http_status(), 200);
    }
    assert_eq!(bench.waiting(&bob).await.len(), 3);
}

#[tokio::test]
async fn a_retry_meets_its_record_as_long_as_it_is_legal() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let mut draft = bench.draft(&alice, &bob);
    draft.created_at = at(300_000);
    let envelope = bench.seal(draft, &alice, &bob);
    assert_eq!(bench.code(envelope.to_wire(), &Door::Home).await, "stored");
    // The longest life there is: accepted 300 s early, legal until 900 s after.
    bench.clock.set(at(1_200_000));
    assert_eq!(bench.code(envelope.to_wire(), &Door::Home).await, "duplicate");
    bench.clock.set(at(1_200_001));
    assert_eq!(
        bench.code(envelope.to_wire(), &Door::Home).await,
        "created_at_out_of_window"
    );
}

#[tokio::test]
async fn an_id_is_the_senders_and_the_recipients_own() {
    let bench = Bench::new();
    let (alice, bob, carol) = (bench.agent("alice"), bench.agent("bob"), bench.agent("carol"));
    let first = bench.envelope(&alice, &bob);
    bench.send(&first).await.unwrap();
    let with_id = |from: &Agent, to: &Agent| {
        let mut draft = bench.draft(from, to);
        draft.id = first.id;
        bench.seal(draft, from, to)
    };
    assert_eq!(
        bench.code(with_id(&alice, &bob).to_wire(), &Door::Home).await,
        "id_reused"
    );
    assert_eq!(
        bench.code(with_id(&alice, &carol).to_wire(), &Door::Home).await,
        "stored"
    );
    assert_eq!(
        bench.code(with_id(&carol, &bob).to_wire(), &Door::Home).await,
        "stored"
    );
    assert_eq!(bench.waiting(&bob).await.len(), 2);
    let records = bench.relay.status(&alice.did, first.id, None).await.unwrap();
    assert_eq!(records.len(), 2);
    let one = bench
        .relay
        .status(&alice.did, first.id, Some(&carol.did))
        .await
        .unwrap();
    assert_eq!((one.len(), &one[0].to), (1, &carol.did));
}

#[tokio::test]
async fn row_83_a_full_mailbox_refuses_with_its_limit_and_still_knows_a_retry() {
    let quota = Quota {
        mailbox_messages: 3,
        sender_messages: 2,
        ..Quota::default()
    };
    let bench = Bench::with(|config| config.quota = quota);
    let (alice, bob, carol) = (bench.agent("alice"), bench.agent("bob"), bench.agent("carol"));
    let first = bench.envelope(&alice, &bob);
    bench.send(&first).await.unwrap();
    bench.send(&bench.envelope(&alice, &bob)).await.unwrap();
    let refused = bench.envelope(&alice, &bob);
    let Err(SendError::Refused(refusal)) = bench.send(&refused).await else {
        panic!("not refused")
    };
    assert_eq!(
        (refusal.code, refusal.retry_after_secs),
        (ErrorCode::MailboxFull, Some(60))
    );
    assert_eq!(refusal.members, [("scope", "sender".into()), ("limit", 2.into())]);

    bench.send(&bench.envelope(&carol, &bob)).await.unwrap();
    let Err(SendError::Refused(refusal)) = bench.send(&bench.envelope(&carol, &bob)).await else {
        panic!("not refused")
    };
    assert_eq!(
        refusal.members,
        [("scope", "mailbox".into()), ("limit", 3.into())]
    );
    assert_eq!(bench.code(first.to_wire(), &Door::Home).await, "duplicate");

    // Nothing of the refused one is remembered: with room again it is stored.
    let mailbox = MailboxId::of(&bob.did);
    bench
        .store
        .ack(&mailbox, 3, &[], bench.clock.now())
        .await
        .unwrap();
    assert_eq!(bench.code(refused.to_wire(), &Door::Home).await, "stored");
}

#[tokio::test]
async fn an_agents_own_quota_replaces_the_hubs() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    bench.change(&bob, |known| {
        known.quota = Some(Quota {
            mailbox_messages: 0,
            ..Quota::default()
        });
    });
    assert_eq!(
        bench
            .code(bench.envelope(&alice, &bob).to_wire(), &Door::Home)
            .await,
        "mailbox_full"
    );
}

#[tokio::test]
async fn the_recipients_own_door_and_a_message_to_oneself() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let door = Door::Relay(Name::parse("bob").unwrap());
    assert_eq!(
        bench.code(bench.envelope(&alice, &bob).to_wire(), &door).await,
        "stored"
    );
    assert_eq!(
        bench
            .code(bench.envelope(&alice, &alice).to_wire(), &Door::Home)
            .await,
        "stored"
    );
}

#[tokio::test]
async fn a_message_is_offered_until_its_expiry_or_the_retention() {
    let bench = Bench::with(|config| config.retention = secs(100));
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    bench.send(&bench.envelope(&alice, &bob)).await.unwrap();
    let mut draft = bench.draft(&alice, &bob);
    draft.expires_at = Some(at(50_000));
    bench.send(&bench.seal(draft, &alice, &bob)).await.unwrap();
    assert_eq!(bench.waiting(&bob).await.len(), 2);
    bench.clock.set(at(50_001));
    assert_eq!(bench.waiting(&bob).await.len(), 1);
    bench.clock.set(at(100_001));
    assert_eq!(bench.waiting(&bob).await.len(), 0);
}

#[tokio::test]
async fn row_49_a_caller_that_hangs_up_does_not_undo_what_was_admitted() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let wire = Bytes::from(bench.envelope(&alice, &bob).to_wire());
    let door = Door::Home;
    let mut call = Box::pin(bench.relay.submit(wire.clone(), &door));
    // Polled once, up to the store, and dropped.
    assert!(poll_immediate(&mut call).await.is_none());
    drop(call);
    bench.relay.drained().await;
    assert_eq!(bench.waiting(&bob).await.len(), 1);
    assert_eq!(bench.relay.stats().stored(), 1);
}

#[tokio::test]
async fn many_retries_at_once_store_one() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let wire = Bytes::from(bench.envelope(&alice, &bob).to_wire());
    let door = Door::Home;
    let calls = (0..40).map(|_| bench.relay.submit(wire.clone(), &door));
    let answers = futures_util::future::join_all(calls).await;
    let stored = answers
        .iter()
        .filter(|answer| answer.as_ref().unwrap().status == Sent::Stored)
        .count();
    assert_eq!(stored, 1);
    assert!(
        answers
            .iter()
            .all(|answer| answer.as_ref().unwrap().seq == Some(1))
    );
    assert_eq!(bench.waiting(&bob).await.len(), 1);
}

#[tokio::test]
async fn new_mail_wakes_its_reader_and_a_retry_does_not() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let mut reading = bench
        .presence
        .attach(MailboxId::of(&bob.did))
        .await
        .read()
        .unwrap();
    reading.look();
    assert!(poll_immediate(pin!(reading.changed())).await.is_none());
    let envelope = bench.envelope(&alice, &bob);
    bench.send(&envelope).await.unwrap();
    assert!(poll_immediate(pin!(reading.changed())).await.is_some());
    reading.look();
    bench.send(&envelope).await.unwrap();
    assert!(poll_immediate(pin!(reading.changed())).await.is_none());
}

#[tokio::test]
async fn a_connected_sender_hears_what_became_of_its_messages() {
    let bench = Bench::new();
    let (alice, bob, carol) = (
        bench.agent("alice"),
        bench.agent("bob"),
        bench.direct_agent("carol"),
    );
    let (attached, session) = bench.listen(&alice).await;
    for (to, status) in [(&bob, Status::Stored), (&carol, Status::Delivered)] {
        let envelope = bench.envelope(&alice, to);
        bench.send(&envelope).await.unwrap();
        bench.send(&envelope).await.unwrap();
        let update = attached.next_status(session).unwrap();
        assert_eq!(
            (update.id, &update.to, update.status),
            (envelope.id, &to.did, status)
        );
        assert!(attached.next_status(session).is_none(), "a retry is no news");
    }
}
