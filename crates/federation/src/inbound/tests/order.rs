//! The order of the checks, proven by what they cost: look-ups, signatures, reads and writes of the store.

use super::*;
use crate::peers::{Frozen, PeerChange, PeerStore as _, Stance};

/// Requests to other hubs, signatures of requests, calls of the store, items handed on.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Cost {
    lookups: usize,
    signatures: u64,
    reads: usize,
    writes: usize,
}

const NOTHING: Cost = Cost {
    lookups: 0,
    signatures: 0,
    reads: 0,
    writes: 0,
};

fn spent(world: &World) -> Cost {
    Cost {
        lookups: world.net.asked().len(),
        signatures: world.counts().signatures,
        reads: world.store.reads(),
        writes: world.store.writes(),
    }
}

/// What a request costs, and how it ends.
async fn cost(world: &World, incoming: Incoming, body: Bytes) -> (Cost, Result<PushAnswer, Refusal>) {
    let before = spent(world);
    let answer = world.send(incoming, body).await;
    let after = spent(world);
    let cost = Cost {
        lookups: after.lookups - before.lookups,
        signatures: after.signatures - before.signatures,
        reads: after.reads - before.reads,
        writes: after.writes - before.writes,
    };
    (cost, answer)
}

#[tokio::test]
async fn what_is_wrong_at_the_door_costs_nothing() {
    let world = World::new();
    let body = world.batch(&[world.mail(1).1]);
    let honest = Signing::of(&world.peer);
    let long = Bytes::from(vec![b' '; 1024 * 1024 + 1]);
    let (spent, answer) = cost(&world, honest.push(&world, &long), long).await;
    assert_eq!((spent, code(answer)), (NOTHING, ErrorCode::BodyTooLarge));
    let mut unsigned = honest.push(&world, &body);
    unsigned.fields.retain(|(name, _)| name != "signature");
    let late = Signing {
        later_secs: -900,
        ..honest.clone()
    };
    let early = Signing {
        later_secs: 900,
        ..honest.clone()
    };
    let long_lived = Signing {
        life_secs: 3_600,
        ..honest.clone()
    };
    let nameless = Signing {
        keyid: "no domain".to_owned(),
        ..honest.clone()
    };
    let spelled_otherwise = Signing {
        keyid: honest.keyid.replace("peer.example", "Peer.example"),
        ..honest.clone()
    };
    let long_nonce = Signing {
        nonce: Some("n".repeat(500)),
        ..honest.clone()
    };
    let signings = [late, early, long_lived, nameless, spelled_otherwise, long_nonce];
    let signed = signings.map(|signing| signing.push(&world, &body));
    for incoming in std::iter::once(unsigned).chain(signed) {
        let (spent, answer) = cost(&world, incoming, body.clone()).await;
        assert_eq!(
            (spent, code(answer)),
            (NOTHING, ErrorCode::RequestSignatureInvalid)
        );
    }
}

#[tokio::test]
async fn who_is_blocked_or_frozen_costs_one_read() {
    let one_read = Cost { reads: 1, ..NOTHING };
    let frozen = Frozen {
        code: "key_mismatch".to_owned(),
        kid: "peer.example#z6Mk".to_owned(),
        since: World::new().clock.now(),
    };
    for change in [PeerChange::Stance(Stance::Blocked), PeerChange::Frozen(frozen)] {
        let world = World::new();
        let now = world.clock.now();
        world.store.change(&world.peer.domain, change, now).await.unwrap();
        let body = world.batch(&[world.mail(1).1]);
        let (spent, answer) = cost(&world, world.sign_push(&body), body).await;
        assert_eq!((spent, code(answer)), (one_read, ErrorCode::PeerBlocked));
    }
    let world = World::new();
    let own = FakeHub {
        domain: Domain::parse(OWN).unwrap(),
        ..world.peer.clone()
    };
    let body = batch_of(&own.domain, "1", &[]);
    let (spent, answer) = cost(&world, Signing::of(&own).push(&world, &body), body).await;
    assert_eq!((spent, code(answer)), (one_read, ErrorCode::PeerBlocked));
}

#[tokio::test]
async fn without_a_document_no_signature_is_checked() {
    let world = World::new();
    let unreachable = FakeHub::new("nowhere.example", 8);
    let body = batch_of(&unreachable.domain, "1", &[]);
    let incoming = Signing::of(&unreachable).push(&world, &body);
    let (spent, answer) = cost(&world, incoming, body).await;
    assert_eq!(code(answer), ErrorCode::PeerFailed);
    assert_eq!(spent.signatures, 0);
    let body = world.batch(&[]);
    let unlisted = Signing {
        key: SigningKey::from_seed([90; 32]),
        keyid: FakeHub::new(PEER, 90).kid(),
        ..Signing::of(&world.peer)
    };
    let (spent, answer) = cost(&world, unlisted.push(&world, &body), body.clone()).await;
    assert_eq!(code(answer), ErrorCode::HubKeyUnknown);
    assert_eq!(
        (spent.signatures, spent.lookups),
        (0, 1),
        "met for the first time"
    );
    let (spent, answer) = cost(&world, unlisted.push(&world, &body), body.clone()).await;
    assert_eq!(code(answer), ErrorCode::HubKeyUnknown);
    assert_eq!((spent.signatures, spent.lookups), (0, 1), "past the cache, once");
    let (spent, answer) = cost(&world, unlisted.push(&world, &body), body).await;
    assert_eq!(code(answer), ErrorCode::HubKeyUnknown);
    assert_eq!((spent.signatures, spent.lookups), (0, 0), "and not again at once");
}

#[tokio::test]
async fn a_rotated_hub_key_is_seen_by_one_look() {
    let mut world = World::new();
    world.push(&[]).await.unwrap();
    world.clock.advance(Duration::from_secs(30));
    world.peer.rotate(91);
    world.peer.publish(&world.net, world.clock.now());
    let body = world.batch(&[world.mail(1).1]);
    let asked = world.asked(&world.peer.document_url());
    world.send(world.sign_push(&body), body).await.unwrap();
    assert_eq!(world.asked(&world.peer.document_url()), asked + 1);
}

#[tokio::test]
async fn a_wrong_signature_or_digest_uses_up_no_nonce() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let body = world.batch(&[world.mail(1).1]);
    let honest = Signing::of(&world.peer);
    let forged = Signing {
        key: SigningKey::from_seed([92; 32]),
        ..honest.clone()
    };
    let elsewhere = Signing {
        authority: "hub.other.example".to_owned(),
        ..honest.clone()
    };
    let mut other_path = honest.push(&world, &body);
    other_path.target.path = "/federation/v1/outbox".to_owned();
    let changed = Bytes::from([&body[..], b" "].concat());
    for (incoming, body, expected) in [
        (
            forged.push(&world, &body),
            &body,
            ErrorCode::RequestSignatureInvalid,
        ),
        (
            elsewhere.push(&world, &body),
            &body,
            ErrorCode::RequestSignatureInvalid,
        ),
        (other_path, &body, ErrorCode::RequestSignatureInvalid),
        (honest.push(&world, &body), &changed, ErrorCode::DigestMismatch),
    ] {
        let (spent, answer) = cost(&world, incoming, body.clone()).await;
        assert_eq!(code(answer), expected);
        assert_eq!((spent.signatures, spent.writes, spent.lookups), (1, 0, 0));
    }
    assert!(world.local.ids().is_empty());
}

#[tokio::test]
async fn nothing_is_fetched_for_items_that_need_not_be() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let ghost = Did::parse("did:aip:own.example:ghost").unwrap();
    let items = [
        world.item(1, &world.envelope(&world.alice, &ghost).1),
        world.item(
            2,
            &world
                .envelope(&world.alice, &Did::parse("did:aip:x.example:y").unwrap())
                .1,
        ),
        world.item(3, "{}"),
    ];
    let body = world.batch(&items);
    let (spent, answer) = cost(&world, world.sign_push(&body), body).await;
    assert_eq!(answer.unwrap().acked_through, 3);
    assert_eq!(spent.lookups, 0, "no history of anybody");
    let body = world.batch(&items);
    let (again, _) = cost(&world, world.sign_push(&body), body).await;
    assert_eq!(again.writes, 1, "the nonce; nothing is noted twice");
}
