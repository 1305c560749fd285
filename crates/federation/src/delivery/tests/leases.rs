//! Several processes of one hub, restarts, and mail that nobody told of.

use std::time::Duration;

use tokio::time::sleep;

use super::world::{Act, Running, World, domain};
use crate::delivery::DeliveryConfig;
use crate::peers::{PeerChange, PeerStore as _};

const BETA: &str = "beta.example";

#[tokio::test(start_paused = true)]
async fn one_of_two_processes_sends_and_mail_of_the_other_goes_out_at_once() {
    let world = World::new();
    let (first, second) = (world.delivery("first"), world.delivery("second"));
    let _running = [Running::start(&first), Running::start(&second)];
    for _ in 0..50 {
        world.send(&first, "alice", "bob", BETA);
        sleep(Duration::from_millis(100)).await;
        let before = world.now();
        world.send(&second, "carol", "bob", BETA);
        world.drained(BETA, Duration::from_secs(1)).await;
        assert!(world.now().millis_since(before) <= 300);
    }
    world.hub(BETA, |hub| {
        let pushed: usize = hub.pushes.iter().map(|(_, items)| items.len()).sum();
        assert_eq!(pushed, 100, "nothing went out twice");
        assert_eq!(hub.stored.len(), 100);
    });
    assert_eq!(
        second.stats().delivered,
        0,
        "who has the lease keeps it while there is mail"
    );
}

#[tokio::test(start_paused = true)]
async fn another_process_takes_over_when_one_dies() {
    let world = World::new();
    let (first, second) = (world.delivery("first"), world.delivery("second"));
    let dies = Running::start(&first);
    let _running = Running::start(&second);
    world.hub(BETA, |hub| hub.script = [Act::Hang].into());
    world.send(&first, "alice", "bob", BETA);
    sleep(Duration::from_secs(1)).await;
    world.send(&second, "alice", "bob", BETA);
    drop(dies);
    world.drained(BETA, Duration::from_secs(25)).await;
    world.hub(BETA, |hub| assert_eq!(hub.stored, [1, 2]));
}

#[tokio::test(start_paused = true)]
async fn another_process_takes_over_soon_when_one_ends_in_order() {
    let world = World::new();
    let (first, second) = (world.delivery("first"), world.delivery("second"));
    let ends = Running::start(&first);
    let _running = Running::start(&second);
    world.send(&first, "alice", "bob", BETA);
    world.drained(BETA, Duration::from_secs(1)).await;
    ends.stop().await;
    world.send(&second, "alice", "bob", BETA);
    world.drained(BETA, Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_needed_is_given_back_and_the_peer_forgotten() {
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    sleep(Duration::from_secs(2)).await;
    let until = world.now() + Duration::from_secs(1);
    let beta = domain(BETA);
    let lease = || world.store.lease(&beta, "other", world.now(), until);
    assert!(!lease().await.unwrap(), "kept for a while");
    sleep(Duration::from_secs(4)).await;
    assert_eq!(
        delivery.stats().peers,
        0,
        "nothing is held of a peer without mail"
    );
    assert!(lease().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_mail_goes_out_although_nobody_speaks() {
    // matrix-org/synapse#2528: nothing was sent until somebody spoke.
    let world = World::new();
    for number in 0..1_200 {
        let peer = format!("peer-{number}.example");
        world
            .store
            .change(&domain(&peer), PeerChange::Met, world.now())
            .await
            .unwrap();
        if number % 100 == 0 {
            world.put("alice", "bob", &peer);
        }
    }
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    for number in (0..1_200).step_by(100) {
        world
            .drained(&format!("peer-{number}.example"), Duration::from_secs(2))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_with_mail_is_known_from_the_first_attempt_on() {
    let world = World::new();
    world.hub(BETA, |hub| hub.always = Some(Act::Refuse));
    let delivery = world.delivery("here");
    let running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    sleep(Duration::from_millis(100)).await;
    assert!(world.store.peer(&domain(BETA)).await.unwrap().is_some());
    drop(running);
    world.hub(BETA, |hub| hub.always = None);
    let next = world.delivery("next");
    let _running = Running::start(&next);
    world.drained(BETA, Duration::from_mins(1)).await;
    let record = world.store.peer(&domain(BETA)).await.unwrap().unwrap();
    assert!(record.last_out.is_some(), "that it answered is noted");
}

#[tokio::test(start_paused = true)]
async fn mail_that_nobody_told_of_is_found() {
    let world = World::new();
    world
        .store
        .change(&domain(BETA), PeerChange::Met, world.now())
        .await
        .unwrap();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    sleep(Duration::from_secs(100)).await;
    world.put("alice", "bob", BETA);
    world.drained(BETA, Duration::from_secs(31)).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_was_dead_for_a_month_is_forgotten_unless_mail_waits_for_it() {
    let world = World::new();
    for peer in [BETA, "gone.example"] {
        world
            .store
            .change(&domain(peer), PeerChange::Met, world.now())
            .await
            .unwrap();
    }
    world.hub(BETA, |hub| hub.always = Some(Act::Refuse));
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    sleep(Duration::from_hours(30 * 24 - 2)).await;
    world.send(&delivery, "alice", "bob", BETA);
    assert!(world.store.peer(&domain("gone.example")).await.unwrap().is_some());
    sleep(Duration::from_hours(4)).await;
    assert!(world.store.peer(&domain("gone.example")).await.unwrap().is_none());
    assert!(world.store.peer(&domain(BETA)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dead_peer_whose_outbox_cannot_be_read_is_not_forgotten() {
    let world = World::new();
    world
        .store
        .change(&domain(BETA), PeerChange::Met, world.now())
        .await
        .unwrap();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    sleep(Duration::from_hours(30 * 24 - 2)).await;
    world.outbox.fail(true);
    world.put("alice", "bob", BETA);
    sleep(Duration::from_hours(4)).await;
    world.outbox.fail(false);
    world.drained(BETA, Duration::from_secs(31)).await;
}

#[tokio::test(start_paused = true)]
async fn however_many_peers_are_dead_they_are_forgotten_within_the_hour() {
    let world = World::new();
    for number in 0..1_200 {
        let peer = domain(&format!("gone-{number}.example"));
        world
            .store
            .change(&peer, PeerChange::Met, world.now())
            .await
            .unwrap();
    }
    let delivery = world.configured(DeliveryConfig {
        sweep_every: Duration::from_mins(10),
        forget_after: Duration::from_hours(24),
        ..DeliveryConfig::new("here")
    });
    let _running = Running::start(&delivery);
    sleep(Duration::from_hours(23)).await;
    assert_eq!(world.store.peers(None, 500).await.unwrap().len(), 500);
    sleep(Duration::from_mins(150)).await;
    assert!(world.store.peers(None, 500).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn too_many_strangers_are_forgotten_unless_mail_waits_for_them() {
    let world = World::new();
    let known = async |peer| world.store.peer(&domain(peer)).await.unwrap().is_some();
    for peer in [BETA, "first.example", "second.example", "third.example"] {
        let peer = domain(peer);
        let met = world.store.change(&peer, PeerChange::Met, world.now());
        met.await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    world.hub(BETA, |hub| hub.always = Some(Act::Refuse));
    world.put("alice", "bob", BETA);
    let delivery = world.configured(DeliveryConfig {
        strangers_max: 2,
        ..DeliveryConfig::new("here")
    });
    let _running = Running::start(&delivery);
    sleep(Duration::from_secs(10)).await;
    assert!(!known("first.example").await);
    assert!(known("second.example").await && known("third.example").await);
    assert!(known(BETA).await, "met again");
}
