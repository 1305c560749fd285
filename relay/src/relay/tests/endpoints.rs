//! Recipients in direct mode.

use aip_federation::egress::fake::Reply;

use super::store::Failure;
use super::*;
use crate::mailbox::{Health, Route, Status, StoreError};

#[tokio::test]
async fn the_endpoint_takes_it_and_the_mailbox_stays_empty() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    let answer = bench.send(&envelope).await.unwrap();
    let expected = Submission {
        id: envelope.id,
        status: Sent::Delivered,
        route: Route::Direct,
        seq: None,
    };
    assert_eq!(answer, expected);
    assert_eq!(answer.status.http_status(), 200);
    let posted = bench.outbound.posted();
    assert_eq!(posted.len(), 1);
    assert_eq!(
        (posted[0].url.as_str(), posted[0].content_type),
        (ENDPOINT, "application/aip+json")
    );
    assert_eq!(posted[0].body, envelope.to_wire());
    assert!(bench.waiting(&bob).await.is_empty());
    let records = bench.relay.status(&alice.did, envelope.id, None).await.unwrap();
    assert_eq!(records[0].status, Status::Delivered);
}

#[tokio::test]
async fn whatever_else_the_endpoint_does_the_message_is_in_the_mailbox() {
    for reply in [
        Reply::Status(500),
        Reply::Status(404),
        Reply::Status(307),
        Reply::Status(400),
        Reply::TimedOut,
        Reply::TooLarge,
    ] {
        let bench = Bench::new();
        let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
        bench.outbound.set([reply]);
        let envelope = bench.envelope(&alice, &bob);
        let answer = bench.send(&envelope).await.unwrap();
        assert_eq!(
            (answer.status, answer.route, answer.seq),
            (Sent::Stored, Route::Mailbox, Some(1)),
            "{reply:?}"
        );
        assert_eq!(bench.waiting(&bob).await, [envelope.to_wire()]);
        assert_eq!(bench.relay.stats().direct_failed(), 1);
    }
}

#[tokio::test]
async fn row_49_a_retry_does_not_call_the_endpoint_again() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    bench.send(&envelope).await.unwrap();
    let again = bench.send(&envelope).await.unwrap();
    assert_eq!(
        (again.status, again.route, again.seq),
        (Sent::Duplicate, Route::Direct, None)
    );
    let mut draft = bench.draft(&alice, &bob);
    draft.id = envelope.id;
    let reused = bench.seal(draft, &alice, &bob);
    assert_eq!(bench.code(reused.to_wire(), &Door::Home).await, "id_reused");
    assert_eq!(bench.outbound.posted().len(), 1);
}

#[tokio::test]
async fn row_49_a_retry_that_overtakes_its_first_attempt_waits_for_it() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
    let wire = Bytes::from(bench.envelope(&alice, &bob).to_wire());
    let door = Door::Home;
    let calls = (0..10).map(|_| bench.relay.submit(wire.clone(), &door));
    let answers = futures_util::future::join_all(calls).await;
    let delivered = answers
        .iter()
        .filter(|answer| answer.as_ref().unwrap().status == Sent::Delivered)
        .count();
    assert_eq!(delivered, 1);
    assert_eq!(bench.outbound.posted().len(), 1);
}

#[tokio::test]
async fn row_51_a_failed_endpoint_is_skipped_for_a_while() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
    bench.outbound.set([Reply::Status(502), Reply::Status(200)]);
    for expected in [Sent::Stored, Sent::Stored, Sent::Stored] {
        assert_eq!(
            bench.send(&bench.envelope(&alice, &bob)).await.unwrap().status,
            expected
        );
    }
    assert_eq!(bench.outbound.posted().len(), 1);
    assert_eq!(bench.relay.stats().direct_skipped(), 2);
    bench.clock.advance(secs(31));
    assert_eq!(
        bench.send(&bench.envelope(&alice, &bob)).await.unwrap().status,
        Sent::Delivered
    );
}

#[tokio::test]
async fn a_delivery_that_cannot_be_recorded_is_not_acknowledged() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
    bench
        .store
        .fail_next(Failure::Before(StoreError::Unavailable("down".into())));
    assert_eq!(
        bench
            .code(bench.envelope(&alice, &bob).to_wire(), &Door::Home)
            .await,
        "unavailable"
    );
    assert_eq!(bench.relay.stats().delivered(), 0);
}

#[tokio::test]
async fn an_endpoint_is_not_called_for_what_cannot_be_recorded() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
    let known = bench.envelope(&alice, &bob);
    bench.send(&known).await.unwrap();
    for health in [
        Health::DiskFull { free_bytes: 9 },
        Health::Poisoned {
            reason: "no space left on device".to_owned(),
        },
    ] {
        bench.store.set_health(health);
        let wire = bench.envelope(&alice, &bob).to_wire();
        for _retry in 0..2 {
            assert_eq!(bench.code(wire.clone(), &Door::Home).await, "unavailable");
        }
        let again = bench.send(&known).await.unwrap();
        assert_eq!(again.status, Sent::Duplicate, "what is known is still told");
    }
    assert_eq!(bench.outbound.posted().len(), 1);
}

#[tokio::test]
async fn a_suspended_agents_mail_only_waits() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
    bench.change(&bob, |known| known.suspended = true);
    assert_eq!(
        bench
            .code(bench.envelope(&alice, &bob).to_wire(), &Door::Home)
            .await,
        "stored"
    );
    assert!(bench.outbound.posted().is_empty());
}
