//! Keys: the first is pinned, a vouched one follows, any other freezes.

use super::*;
use crate::limits::{EVIDENCE_PER_PEER_MAX, PEER_RECHECK};
use crate::peers::Frozen;

#[tokio::test]
async fn the_first_keys_are_pinned_and_the_log_says_so() {
    let world = World::new();
    world.cached().await.unwrap();
    let record = world.record().await;
    assert_eq!(record.pinned, [world.hub.key.public().clone()]);
    assert_eq!(record.document, Some(world.hub.document(world.now()).json));
    assert_eq!(record.fresh_until, Some(world.now() + Duration::from_mins(10)));
    assert_eq!(world.actions().await, ["pin"]);
    let detail = world.store.audit_log(None, 0, 1).await.unwrap().remove(0).detail;
    assert_eq!(detail, world.hub.kid());
}

#[tokio::test]
async fn a_key_that_a_pinned_one_vouches_for_is_taken() {
    let mut world = World::new();
    world.cached().await.unwrap();
    world.pass(10);
    let before = world.hub.kid();
    world.hub.rotate(3);
    world.publish();
    let peer = world.fresh().await.unwrap();
    assert!(peer.key(&world.hub.kid(), world.now()).is_some());
    assert!(
        peer.key(&before, world.now()).is_none(),
        "the old one is no longer listed"
    );
    assert_eq!(world.record().await.pinned, [world.hub.key.public().clone()]);
    assert_eq!(world.actions().await, ["pin", "rotate"]);
    let detail = world.store.audit_log(None, 1, 1).await.unwrap().remove(0).detail;
    assert_eq!(detail, format!("{before} -> {}", world.hub.kid()));
    // Once it is pinned, it needs nobody to vouch for it.
    world.hub.previous = None;
    world.pass(3600);
    world.publish();
    world.cached().await.unwrap();
    assert_eq!(world.actions().await.len(), 2);
}

#[tokio::test]
async fn a_key_that_nobody_vouches_for_freezes_the_peer_until_the_operator_decides() {
    let mut world = World::new();
    world.cached().await.unwrap();
    let known = world.record().await.document.unwrap();
    world.pass(3600);
    world.hub.key = SigningKey::from_seed([66; 32]);
    world.publish();
    let shown = world.hub.document(world.now()).json;

    let found = world.cached().await;
    assert_eq!(code(&found), ErrorCode::HubKeyNotPinned);
    assert!(!found.unwrap_err().is_transient());
    let frozen = Frozen {
        code: "key_mismatch".to_owned(),
        kid: world.hub.kid(),
        since: world.now(),
    };
    let record = world.record().await;
    assert_eq!(record.frozen, Some(frozen));
    assert_ne!(record.pinned, [world.hub.key.public().clone()]);
    let evidence = world
        .store
        .evidence(None, 0, EVIDENCE_PER_PEER_MAX)
        .await
        .unwrap();
    assert_eq!(evidence.len(), 1);
    assert_eq!(
        (evidence[0].code.as_str(), evidence[0].subject.as_str()),
        ("hub_key_not_pinned", world.hub.kid().as_str())
    );
    assert_eq!(evidence[0].objects, [known, shown]);
    assert_eq!(world.actions().await, ["pin", "freeze"]);

    // Frozen is frozen: for other processes, past caches, and when the right key is shown again.
    assert_eq!(
        code(&world.sibling().peer(&world.hub.domain, Freshness::Cached).await),
        ErrorCode::HubKeyNotPinned
    );
    world.pass(86_400);
    world.hub.key = SigningKey::from_seed([2; 32]);
    world.publish();
    assert_eq!(code(&world.fresh().await), ErrorCode::HubKeyNotPinned);
    assert_eq!(world.asked(), 2, "it is not even asked");

    // The operator takes what is shown.
    world.hub.key = SigningKey::from_seed([66; 32]);
    world.publish();
    world.change(PeerChange::Repinned).await;
    world.directory.forget(&world.hub.domain);
    let peer = world.cached().await.unwrap();
    assert!(peer.key(&world.hub.kid(), world.now()).is_some());
    assert_eq!(world.actions().await, ["pin", "freeze", "pin"]);
}

#[tokio::test]
async fn a_forged_voucher_freezes_too() {
    let mut world = World::new();
    world.cached().await.unwrap();
    world.pass(3600);
    world.hub.key = SigningKey::from_seed([66; 32]);
    // A key that was never pinned vouches.
    world.hub.previous = Some(SigningKey::from_seed([67; 32]));
    world.publish();
    assert_eq!(code(&world.cached().await), ErrorCode::HubKeyNotPinned);
}

#[tokio::test]
async fn after_the_operator_took_a_key_an_older_document_is_no_rollback() {
    let mut world = World::new();
    world.cached().await.unwrap();
    world.change(PeerChange::Repinned).await;
    world.directory.forget(&world.hub.domain);
    // Restored from a backup, key and all, with a document of before.
    world.hub.key = SigningKey::from_seed([68; 32]);
    world
        .hub
        .publish(&world.net, world.now() - Duration::from_secs(999));
    world.cached().await.unwrap();
}

#[tokio::test]
async fn an_older_document_that_says_something_else_is_refused() {
    let mut world = World::new();
    world.cached().await.unwrap();
    let kept = world.record().await;
    world.pass(10);
    world.hub.epoch = "0".to_owned();
    world
        .hub
        .publish(&world.net, world.now() - Duration::from_secs(11));
    let found = world.fresh().await;
    assert_eq!(code(&found), ErrorCode::PeerFailed);
    assert_eq!(world.record().await, kept);
    // What was known before is used meanwhile.
    assert_eq!(world.cached().await.unwrap().epoch.as_deref(), Some("1"));
    // The same with a key that was replaced: a page in some cache, no reason to freeze.
    world.hub.rotate(5);
    world.pass(10);
    world.publish();
    world.fresh().await.unwrap();
    let replaced = FakeHub::new("two.example", 2);
    replaced.publish(&world.net, world.now() - Duration::from_mins(1));
    world.pass(10);
    assert_eq!(code(&world.fresh().await), ErrorCode::PeerFailed);
    assert!(world.record().await.frozen.is_none());
}

#[tokio::test]
async fn processes_of_one_hub_need_not_sign_at_the_same_moment() {
    let world = World::new();
    world.cached().await.unwrap();
    let kept = world.record().await.document;
    world.pass(3600);
    // Another process of it signed the same a little earlier.
    let earlier = Timestamp::from_unix_millis(START_MS - 30_000);
    world.hub.publish(&world.net, earlier);
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 2);
    let record = world.record().await;
    assert_eq!(record.document, kept, "the newer one stays");
    assert_eq!(record.fresh_until, Some(world.now() + Duration::from_mins(10)));
}

#[tokio::test]
async fn a_document_from_the_future_is_refused() {
    for (ahead_secs, is_good) in [(300, true), (301, false)] {
        let world = World::new();
        world
            .hub
            .publish(&world.net, world.now() + Duration::from_secs(ahead_secs));
        assert_eq!(world.cached().await.is_ok(), is_good, "{ahead_secs}");
    }
}

#[tokio::test]
async fn another_epoch_is_told() {
    let mut world = World::new();
    world.cached().await.unwrap();
    world.pass(10);
    world.hub.epoch = "2".to_owned();
    world.publish();
    assert_eq!(world.fresh().await.unwrap().epoch.as_deref(), Some("2"));
    assert_eq!(world.actions().await, ["pin", "epoch"]);
    let detail = world.store.audit_log(None, 1, 1).await.unwrap().remove(0).detail;
    assert_eq!(detail, "1 -> 2");
}

#[tokio::test]
async fn a_blocked_peer_is_not_asked_and_the_decision_is_seen_soon() {
    let world = World::new();
    world.cached().await.unwrap();
    // Decided in another process: this one notices when it next looks into the store.
    world.change(PeerChange::Stance(Stance::Blocked)).await;
    assert!(world.cached().await.is_ok());
    world.clock.advance(PEER_RECHECK);
    assert_eq!(code(&world.cached().await), ErrorCode::PeerBlocked);
    assert_eq!(code(&world.fresh().await), ErrorCode::PeerBlocked);
    assert_eq!(world.asked(), 1);
    // Decided in this one.
    world.change(PeerChange::Stance(Stance::Undecided)).await;
    world.directory.forget(&world.hub.domain);
    assert!(world.cached().await.is_ok());
    assert_eq!(world.asked(), 1);
}

#[tokio::test]
async fn a_peer_that_was_frozen_while_it_was_asked_is_frozen() {
    let world = World::new();
    world.cached().await.unwrap();
    world.pass(3600);
    world.publish();
    world.net.hold();
    let (directory, domain) = (world.directory.clone(), world.hub.domain.clone());
    let asking = tokio::spawn(async move { directory.peer(&domain, Freshness::Cached).await });
    while world.asked() < 2 {
        tokio::task::yield_now().await;
    }
    let frozen = Frozen {
        code: "key_mismatch".to_owned(),
        kid: "two.example#other".to_owned(),
        since: world.now(),
    };
    world.change(PeerChange::Frozen(frozen)).await;
    world.net.release();
    assert_eq!(code(&asking.await.unwrap()), ErrorCode::HubKeyNotPinned);
}
