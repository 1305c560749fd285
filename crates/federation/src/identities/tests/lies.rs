//! Hubs that show another history than before, or one that is not their agent's.

use super::*;
use crate::limits::EVIDENCE_PER_PEER_MAX;
use crate::peers::Evidence;

impl World {
    /// An agent with three operations, known here.
    async fn settled() -> Self {
        let mut world = Self::new();
        world.agent.rotate(31, world.now() - Duration::from_mins(3));
        world.agent.rotate(32, world.now() - Duration::from_mins(2));
        world.serve();
        assert_eq!(world.cached().await.unwrap().identity.seq(), 2);
        world
    }

    async fn evidence(&self) -> Vec<Evidence> {
        self.store.evidence(None, 0, EVIDENCE_PER_PEER_MAX).await.unwrap()
    }

    /// What is shown now is not believed: these two operations are the evidence, and what was known stays.
    async fn assert_refused(&self, known: &Json, shown: &Json) {
        let before = self.known().await;
        let found = self.fresh().await;
        assert_eq!(code(&found), ErrorCode::HistoryForked);
        assert!(!found.unwrap_err().is_transient());
        assert_eq!(
            code(&self.cached().await),
            ErrorCode::HistoryForked,
            "what was good is no longer given"
        );
        assert_eq!(self.known().await, before);
        let evidence = self.evidence().await;
        assert_eq!(evidence.len(), 1);
        let Evidence {
            peer,
            code,
            subject,
            objects,
            at,
            ..
        } = &evidence[0];
        assert_eq!((peer, code.as_str()), (&self.hub.domain, "history_forked"));
        assert_eq!((subject.as_str(), *at), (self.agent.did.as_str(), self.now()));
        assert_eq!(objects, &[known.clone(), shown.clone()]);
        assert_eq!(self.actions().await, ["fork"]);
    }
}

#[tokio::test]
async fn a_history_that_grew_is_taken() {
    let mut world = World::settled().await;
    world.agent.rotate(33, world.now());
    world.serve();
    assert_eq!(world.fresh().await.unwrap().identity.seq(), 3);
    assert_eq!(world.cached().await.unwrap().identity.seq(), 3);
    assert_eq!(
        world.known().await.unwrap().operations,
        json(&world.agent.operations)
    );
    assert!(world.evidence().await.is_empty());
}

#[tokio::test]
async fn another_operation_in_the_place_of_a_known_one_is_a_fork() {
    let world = World::settled().await;
    let mut forked = world.agent.clone();
    forked.operations.truncate(1);
    forked.rotate(41, world.now());
    forked.rotate(42, world.now());
    forked.rotate(43, world.now());
    world.hub.serve(&world.net, &forked);
    world
        .assert_refused(&world.agent.operations[1].json, &forked.operations[1].json)
        .await;
}

#[tokio::test]
async fn another_beginning_is_a_fork() {
    let world = World::settled().await;
    let other = world.hub.agent("bob", 50, world.now());
    world.hub.serve(&world.net, &other);
    world
        .assert_refused(&world.agent.operations[0].json, &other.operations[0].json)
        .await;
}

#[tokio::test]
async fn fewer_operations_than_before_are_a_rollback() {
    let world = World::settled().await;
    let mut earlier = world.agent.clone();
    earlier.operations.pop();
    world.hub.serve(&world.net, &earlier);
    world
        .assert_refused(&world.agent.operations[2].json, &earlier.operations[1].json)
        .await;
}

#[tokio::test]
async fn an_operation_of_somebody_else_is_refused() {
    let world = World::settled().await;
    let mut taken = world.agent.clone();
    // The hub itself signs, say.
    let next = taken.identity().next_draft(world.now());
    let next = next.sign(&world.hub.key).unwrap();
    taken.operations.push(next);
    world.hub.serve(&world.net, &taken);
    world
        .assert_refused(&taken.operations[2].json, &taken.operations[3].json)
        .await;
}

#[tokio::test]
async fn a_changed_operation_is_refused_also_at_first_sight() {
    let mut world = World::new();
    world.agent.rotate(31, world.now());
    let mut operations = json(&world.agent.operations);
    let mut changed = operations[1].as_object().unwrap().clone();
    changed.insert("profile", Json::from([("name", Json::from("Mallory"))]));
    operations[1] = Json::Object(changed);
    world.tell(page(operations.clone()));
    assert_eq!(code(&world.cached().await), ErrorCode::HistoryForked);
    assert_eq!(world.evidence().await[0].objects, operations);
    assert_eq!(world.known().await, None);
}

#[tokio::test]
async fn what_is_no_history_of_the_agent_is_refused() {
    let world = World::new();
    let stranger = world.hub.agent("eve", 60, world.now());
    let elsewhere = FakeHub::new("six.example", 6).agent("bob", 61, world.now());
    let mut broken = world.agent.clone();
    broken.rotate(31, world.now());
    broken.rotate(32, world.now());
    broken.operations.remove(1);
    let mut mixed = json(&world.agent.operations);
    mixed.extend(json(&stranger.operations));
    for (what, operations) in [
        ("another agent's", json(&stranger.operations)),
        ("one of another domain", json(&elsewhere.operations)),
        ("one with a gap", json(&broken.operations)),
        ("two agents'", mixed),
        ("one without its beginning", json(&broken.operations[1..])),
    ] {
        let world = World::new();
        world.tell(page(operations));
        let error = world.cached().await.unwrap_err();
        assert!(matches!(error, IdentityError::Unsound(_)), "{what}: {error:?}");
        assert_eq!(error.code(), ErrorCode::HistoryUnsound, "{what}");
        assert_eq!(world.known().await, None, "{what}");
        assert!(!error.is_transient(), "{what}");
        assert_eq!(world.identities.looks().words(), [("unsound", 1)], "{what}");
    }
}

#[tokio::test]
async fn what_is_broken_in_our_own_store_refuses_nothing_for_good() {
    let world = World::new();
    let mut broken = world.agent.clone();
    broken.rotate(31, world.now());
    let broken = KnownHistory {
        did: world.agent.did.clone(),
        operations: json(&broken.operations[1..]),
        fetched_at: world.now(),
    };
    let caps = HistoryCaps::default();
    world.store.keep_history(&broken, caps).await.unwrap();
    let found = world.cached().await;
    assert_eq!(code(&found), ErrorCode::Unavailable);
    assert!(found.unwrap_err().is_transient());
    assert_eq!(world.identities.looks().words(), [("store", 1)]);
}

#[tokio::test]
async fn the_same_lie_again_is_recorded_once() {
    let world = World::settled().await;
    let other = world.hub.agent("bob", 50, world.now());
    world.hub.serve(&world.net, &other);
    for _ in 0..3 {
        world.pass(60);
        assert_eq!(code(&world.cached().await), ErrorCode::HistoryForked);
    }
    assert_eq!(world.asked(), 4, "it is looked at again all the same");
    assert_eq!(world.evidence().await.len(), 1);
    assert_eq!(world.actions().await, ["fork"]);
    // Another lie is another line.
    let third = world.hub.agent("bob", 51, world.now());
    world.hub.serve(&world.net, &third);
    world.pass(60);
    assert_eq!(code(&world.cached().await), ErrorCode::HistoryForked);
    assert_eq!(world.evidence().await.len(), 2);
    // The truth heals it.
    world.serve();
    world.pass(60);
    assert_eq!(world.cached().await.unwrap().identity.seq(), 2);
}

#[tokio::test]
async fn the_operators_word_takes_the_other_history() {
    let world = World::settled().await;
    let other = world.hub.agent("bob", 50, world.now());
    world.hub.serve(&world.net, &other);
    assert_eq!(code(&world.fresh().await), ErrorCode::HistoryForked);
    assert!(world.store.forget_history(&world.agent.did).await.unwrap());
    world.identities.forget(&world.agent.did);
    let resolved = world.cached().await.unwrap();
    assert_eq!(resolved.identity.genesis_hash(), other.operations[0].hash());
    assert_eq!(world.known().await.unwrap().operations, json(&other.operations));
}

#[tokio::test]
async fn what_another_process_learned_meanwhile_is_no_lie() {
    let mut world = World::new();
    world.net.hold();
    let (identities, did) = (world.identities.clone(), world.agent.did.clone());
    let asking = tokio::spawn(async move { identities.identity(&did, Freshness::Cached).await });
    while world.net.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    // The answer that is on its way is older than what the other process has kept by now.
    world.agent.rotate(31, world.now());
    let newer = KnownHistory {
        did: world.agent.did.clone(),
        operations: json(&world.agent.operations),
        fetched_at: world.now(),
    };
    let caps = HistoryCaps::default();
    world.store.keep_history(&newer, caps).await.unwrap();
    world.net.release();
    assert_eq!(asking.await.unwrap().unwrap().identity.seq(), 1);
    assert_eq!(world.known().await, Some(newer));
    assert!(world.evidence().await.is_empty());
}
