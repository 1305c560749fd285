//! Mail from other hubs.

use aip_federation::inbound::{Local, Reception};
use aip_protocol::peer::{AdmittedItem, Item};

use super::federation::{PEER, peer};
use super::store::Failure;
use super::*;
use crate::admission::Blocklist;
use crate::limits::{DEDUP_LIFE_SECS, FULL_RETRY_SECS, UNAVAILABLE_RETRY_SECS};
use crate::mailbox::Status;

/// As the receiving side has it after its checks.
fn item_at(bench: &Bench, envelope: &Envelope, accepted_at: Timestamp) -> AdmittedItem {
    let mut object = Object::new();
    object.insert("peer_seq", 1);
    object.insert("accepted_at", accepted_at.to_string());
    object.insert("envelope", envelope.json.clone());
    let item = Item::from_json(&Json::Object(object)).unwrap();
    let own = Domain::parse("hub.example").unwrap();
    item.admit(&peer(), &own, bench.clock.now()).unwrap()
}

async fn receive(bench: &Bench, envelope: &Envelope) -> Reception {
    let item = item_at(bench, envelope, envelope.created_at);
    bench.relay.receive(item, envelope.to_wire().into()).await
}

fn refused(code: ErrorCode) -> Reception {
    Reception::Refused(code)
}

fn retry(code: ErrorCode, after_secs: u64) -> Reception {
    Reception::Retry { code, after_secs }
}

#[tokio::test]
async fn an_item_of_a_peer_reaches_its_recipient() {
    let bench = Bench::new();
    let (erin, bob) = (bench.stranger_at(PEER, "erin"), bench.agent("bob"));
    let reading = bench
        .presence
        .attach(MailboxId::of(&bob.did))
        .await
        .read()
        .unwrap();
    let envelope = bench.envelope(&erin, &bob);
    assert_eq!(receive(&bench, &envelope).await, Reception::Stored);
    reading.changed().await;
    assert_eq!(receive(&bench, &envelope).await, Reception::Duplicate);
    assert_eq!(bench.waiting(&bob).await, [envelope.to_wire()]);
    let told = bench
        .relay
        .status(&erin.did, envelope.id, Some(&bob.did))
        .await
        .unwrap();
    assert_eq!(told[0].status, Status::Stored, "for when its hub asks");
    let stats = bench.relay.stats();
    assert_eq!((stats.stored(), stats.duplicates()), (0, 0), "not of our agents");
}

#[tokio::test]
async fn an_items_age_was_judged_by_its_first_hub() {
    let bench = Bench::new();
    let (erin, bob) = (bench.stranger_at(PEER, "erin"), bench.agent("bob"));
    let envelope = bench.envelope(&erin, &bob);
    let accepted_at = bench.clock.now();
    bench.clock.advance(secs(4 * 86_400));
    let item = item_at(&bench, &envelope, accepted_at);
    let wire = Bytes::from(envelope.to_wire());
    assert_eq!(
        bench.relay.receive(item.clone(), wire.clone()).await,
        Reception::Stored
    );
    bench.clock.advance(secs(DEDUP_LIFE_SECS));
    assert_eq!(
        bench.relay.receive(item, wire).await,
        Reception::Duplicate,
        "remembered from its arrival on"
    );
}

#[tokio::test]
async fn an_item_waits_as_long_as_local_mail_from_its_arrival_on() {
    let bench = Bench::new();
    let (erin, bob) = (bench.stranger_at(PEER, "erin"), bench.agent("bob"));
    let mut draft = bench.draft(&erin, &bob);
    draft.expires_at = Some(at(60_000));
    let short = bench.seal(draft, &erin, &bob);
    let long = bench.envelope(&erin, &bob);
    let early = item_at(&bench, &short, short.created_at);
    assert_eq!(receive(&bench, &short).await, Reception::Stored);
    assert_eq!(receive(&bench, &long).await, Reception::Stored);
    bench.clock.set(at(60_000));
    assert_eq!(bench.waiting(&bob).await, [long.to_wire()]);
    bench.clock.set(at(60_001));
    assert_eq!(
        bench.relay.receive(early, short.to_wire().into()).await,
        refused(ErrorCode::Expired)
    );
    bench
        .clock
        .set(at(0) + secs(7 * 86_400) - Duration::from_millis(1));
    assert_eq!(bench.waiting(&bob).await.len(), 1);
    bench.clock.set(at(0) + secs(7 * 86_400));
    assert!(bench.waiting(&bob).await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_delivered_is_refused_for_good() {
    let bench = Bench::with(|config| {
        config.blocklist = Blocklist::parse(["eve#other.example"]).unwrap();
        config.envelope_bytes_max = 4_096;
    });
    let (erin, eve) = (bench.stranger_at(PEER, "erin"), bench.stranger_at(PEER, "eve"));
    let (bob, carol) = (bench.agent("bob"), bench.agent("carol"));
    bench.deactivate(&carol);
    let nobody = bench.stranger("nobody");
    for (from, to, code) in [
        (&erin, &nobody, ErrorCode::RecipientUnknown),
        (&erin, &carol, ErrorCode::RecipientDeactivated),
        (&eve, &bob, ErrorCode::SenderBlocked),
    ] {
        assert_eq!(receive(&bench, &bench.envelope(from, to)).await, refused(code));
    }
    let large = bench
        .draft(&erin, &bob)
        .seal(
            &erin.signing,
            bob.opening.public(),
            &[b'x'; 4_096],
            &mut *bench.rng.lock().unwrap(),
        )
        .unwrap();
    assert_eq!(
        receive(&bench, &large).await,
        refused(ErrorCode::EnvelopeTooLarge)
    );
    let first = bench.envelope(&erin, &bob);
    assert_eq!(receive(&bench, &first).await, Reception::Stored);
    let mut draft = bench.draft(&erin, &bob);
    draft.id = first.id;
    let reused = bench.seal(draft, &erin, &bob);
    assert_eq!(receive(&bench, &reused).await, refused(ErrorCode::IdReused));
    assert_eq!(bench.relay.stats().refused().count(), 0, "of our agents none");
}

#[tokio::test]
async fn what_may_work_later_is_put_off() {
    let bench = Bench::with(|config| config.quota.sender_messages = 1);
    let (erin, bob) = (bench.stranger_at(PEER, "erin"), bench.agent("bob"));
    let unavailable = retry(ErrorCode::Unavailable, UNAVAILABLE_RETRY_SECS);
    let envelope = bench.envelope(&erin, &bob);
    bench.identities.broken.store(true, Ordering::SeqCst);
    assert_eq!(receive(&bench, &envelope).await, unavailable);
    bench.identities.broken.store(false, Ordering::SeqCst);
    bench
        .store
        .fail_next(Failure::Before(StoreError::Unavailable("away".into())));
    assert_eq!(receive(&bench, &envelope).await, unavailable);
    bench
        .store
        .fail_next(Failure::After(StoreError::OutcomeUnknown("away".into())));
    assert_eq!(receive(&bench, &envelope).await, unavailable);
    assert_eq!(receive(&bench, &envelope).await, Reception::Duplicate);
    assert_eq!(
        receive(&bench, &bench.envelope(&erin, &bob)).await,
        retry(ErrorCode::MailboxFull, FULL_RETRY_SECS)
    );
}

#[tokio::test]
async fn an_item_for_a_direct_agent_goes_to_its_endpoint() {
    let bench = Bench::new();
    let (erin, bob) = (bench.stranger_at(PEER, "erin"), bench.direct_agent("bob"));
    let envelope = bench.envelope(&erin, &bob);
    assert_eq!(receive(&bench, &envelope).await, Reception::Stored);
    assert_eq!(receive(&bench, &envelope).await, Reception::Duplicate);
    let posted = bench.outbound.posted();
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0].body, envelope.to_wire());
    assert!(bench.waiting(&bob).await.is_empty());
}

#[tokio::test]
async fn who_lives_here_is_known() {
    let bench = Bench::new();
    let (bob, nobody) = (bench.agent("bob"), bench.stranger("nobody"));
    let far = bench.stranger_at(PEER, "erin");
    bench.register(&far, None);
    let own = OwnAgents::new(bench.relay.clone());
    assert!(own.knows(&bob.did).await);
    assert!(!own.knows(&nobody.did).await);
    assert!(!own.knows(&far.did).await, "whatever is registered");
    bench.identities.broken.store(true, Ordering::SeqCst);
    assert!(own.knows(&nobody.did).await, "perhaps");
    bench.identities.broken.store(false, Ordering::SeqCst);
    let envelope = bench.envelope(&far, &bob);
    let item = item_at(&bench, &envelope, envelope.created_at);
    assert_eq!(
        own.deliver(item, envelope.to_wire().into()).await,
        Reception::Stored
    );
}
