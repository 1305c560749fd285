//! The calls without a body: backfill, and what became of a message.

use super::*;
use crate::backfill::BackfillPage;
use crate::limits::BACKFILL_ITEMS_MAX;
use crate::outbox::Fate;

const OUTBOX: &str = "/federation/v1/outbox";
const STATUS: &str = "/federation/v1/status";

async fn backfill(world: &World, query: &str) -> Result<BackfillPage, Refusal> {
    let incoming = Signing::get(&world.peer, OUTBOX, query).ask(world);
    let ticket = world.inbound.knock(Call::Backfill, incoming, None)?;
    world.inbound.outbox(ticket).await
}

async fn status(world: &World, query: &str) -> Result<StatusAnswer, Refusal> {
    let incoming = Signing::get(&world.peer, STATUS, query).ask(world);
    let ticket = world.inbound.knock(Call::Status, incoming, None)?;
    world.inbound.mail_status(ticket).await
}

/// Messages from bob: 300 for the peer, of which two have left, and one for another hub.
async fn with_mail(world: &World) -> String {
    let now = world.clock.now();
    for _ in 0..300 {
        world.outbox.put(&world.bob, &world.alice.did, now, None);
    }
    let other = Did::parse("did:aip:other.example:zoe").unwrap();
    world.outbox.put(&world.bob, &other, now, None);
    let left = [(1, Fate::Delivered), (2, Fate::Expired), (5, Fate::Delivered)];
    world.outbox.settle(&world.peer.domain, &left).await.unwrap();
    world.outbox.epoch()
}

#[tokio::test]
async fn a_peer_gets_what_waits_for_it_and_nothing_else() {
    let world = World::new();
    let epoch = with_mail(&world).await;
    let page = backfill(&world, &format!("epoch={epoch}&after=2")).await.unwrap();
    assert_eq!(page.items.len(), BACKFILL_ITEMS_MAX);
    let seqs: Vec<u64> = page.items.iter().take(3).map(|item| item.peer_seq).collect();
    assert_eq!(seqs, [3, 4, 6]);
    let next = page.next.unwrap();
    let rest = backfill(&world, &format!("epoch={epoch}&after={next}"))
        .await
        .unwrap();
    assert_eq!(rest.next, None);
    assert_eq!(page.items.len() + rest.items.len(), 297);
    assert!(
        page.items
            .iter()
            .chain(&rest.items)
            .all(|item| item.recipient == world.alice.did)
    );
    let two = backfill(&world, &format!("epoch={epoch}&after=2&limit=2"))
        .await
        .unwrap();
    let json = aip_protocol::json::Json::parse(&two.to_body()).unwrap();
    let members: Vec<&str> = json.as_object().unwrap().iter().map(|(name, _)| name).collect();
    assert_eq!(members, ["aip", "domain", "epoch", "floor", "items", "next"]);
    assert_eq!(json.get("next").unwrap().as_int(), Some(4));
    let batch = aip_protocol::peer::Batch::from_json(&json, OWN).unwrap();
    assert_eq!((batch.epoch, batch.items.len()), (epoch, 2));
}

#[tokio::test]
async fn what_is_fetched_is_paid_for() {
    let world = World::with(Policy {
        bytes_per_sec: 1_000,
        ..policy()
    });
    let long = |_: Uuid| "x".repeat(1_000_000);
    world
        .outbox
        .put_wire(&world.bob, &world.alice.did, world.clock.now(), long);
    let query = format!("epoch={}&after=0", world.outbox.epoch());
    let mut pages = 0;
    let refusal = loop {
        match backfill(&world, &query).await {
            Ok(page) => pages += page.items.len(),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal.code, ErrorCode::RateLimited);
    assert_eq!(pages, 5, "four bodies at once, and one on credit");
}

#[tokio::test]
async fn cursors_that_cannot_be_served_say_why() {
    let world = World::new();
    let epoch = with_mail(&world).await;
    for (query, expected) in [
        (format!("epoch=x{epoch}&after=2"), ErrorCode::EpochChanged),
        (format!("epoch={epoch}&after=301"), ErrorCode::FutureCursor),
        (format!("epoch={epoch}&after=1"), ErrorCode::OutdatedCursor),
        (
            format!("epoch={epoch}&after=2&limit=257"),
            ErrorCode::ParameterInvalid,
        ),
        (
            format!("epoch={epoch}&after=2&limit=0"),
            ErrorCode::ParameterInvalid,
        ),
        (format!("epoch={epoch}&after=-1"), ErrorCode::ParameterInvalid),
        (format!("epoch={epoch}"), ErrorCode::ParameterInvalid),
        ("after=2".to_owned(), ErrorCode::ParameterInvalid),
        (
            format!("epoch={epoch}&after=2&after=3"),
            ErrorCode::ParameterInvalid,
        ),
        (format!("epoch={epoch}&after=2&to=x"), ErrorCode::ParameterUnknown),
    ] {
        assert_eq!(code(backfill(&world, &query).await), expected, "{query}");
    }
    let outdated = backfill(&world, &format!("epoch={epoch}&after=0"))
        .await
        .unwrap_err();
    assert_eq!(outdated.members, [("floor", 2.into())]);
    assert!(
        backfill(&world, &format!("epoch={epoch}&after=300"))
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn the_query_is_covered_by_the_signature() {
    let world = World::new();
    let epoch = with_mail(&world).await;
    let mut incoming = Signing::get(&world.peer, OUTBOX, &format!("epoch={epoch}&after=2")).ask(&world);
    incoming.target.query.push('0');
    let ticket = world.inbound.knock(Call::Backfill, incoming, None).unwrap();
    assert_eq!(
        code(world.inbound.outbox(ticket).await),
        ErrorCode::RequestSignatureInvalid
    );
    // A request for backfill is none with a body, and the other way round.
    let ticket = |call, incoming| world.inbound.knock(call, incoming, None);
    let ask = Signing::get(&world.peer, OUTBOX, "epoch=1&after=0").ask(&world);
    let ticket_to_ask = ticket(Call::Backfill, ask).unwrap();
    let pushed = world.inbound.push(ticket_to_ask, world.batch(&[])).await;
    assert_eq!(code(pushed), ErrorCode::RequestSignatureInvalid);
    let push = ticket(Call::Push, world.sign_push(&world.batch(&[]))).unwrap();
    assert_eq!(
        code(world.inbound.outbox(push).await),
        ErrorCode::RequestSignatureInvalid
    );
}

#[tokio::test]
async fn a_peer_hears_what_became_of_its_own_agents_mail() {
    let world = World::new();
    let (id, now) = (world.mail(1).0, world.clock.now());
    let known = MailStatus {
        status: "acked".to_owned(),
        code: None,
        accepted_at: now,
        at: now,
    };
    world.statuses.0.lock().unwrap().insert(id, known.clone());
    let query = |from: &str, id: &str, to: &str| format!("from={from}&id={id}&to={to}");
    let (alice, bob, id) = (world.alice.did.as_str(), world.bob.as_str(), id.to_string());
    let answer = status(&world, &query(alice, &id, bob)).await.unwrap();
    assert_eq!(answer.status, known);
    let body = format!(r#"{{"accepted_at":"{now}","at":"{now}","id":"{id}","status":"acked","to":"{bob}"}}"#);
    assert_eq!(answer.to_body(), body);
    let other = "did:aip:other.example:zoe";
    let unknown = Uuid::from_u128(7).to_string();
    for (from, id, to, expected) in [
        (other, id.as_str(), bob, ErrorCode::FromDomainMismatch),
        (alice, &id, other, ErrorCode::ToDomainMismatch),
        (alice, &unknown, bob, ErrorCode::NotFound),
        (alice, "7", bob, ErrorCode::ParameterInvalid),
        ("alice", &id, bob, ErrorCode::DidInvalid),
    ] {
        assert_eq!(code(status(&world, &query(from, id, to)).await), expected);
    }
    assert_eq!(code(status(&world, "to=x").await), ErrorCode::ParameterInvalid);
    let counts = world.counts();
    assert_eq!(counts.taken[2], ("status", 1));
}
