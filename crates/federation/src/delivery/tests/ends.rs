//! How messages leave an outbox without having been delivered, and how delivery itself ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use tokio::time::sleep;

use super::world::{Act, Running, World, agent, domain, pending};
use crate::outbox::Fate;
use crate::peers::PeerStore as _;

const BETA: &str = "beta.example";
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

#[tokio::test(start_paused = true)]
async fn after_five_days_a_message_is_dead_with_the_last_code_and_its_sender_is_told() {
    let world = World::new();
    world.hub(BETA, |hub| {
        hub.always = Some(Act::Say(
            503,
            "application/problem+json",
            r#"{"code":"unavailable"}"#,
        ));
    });
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    sleep(HOUR * (5 * 24 - 1)).await;
    assert_eq!(pending(&world, BETA).await, 1, "an open breaker drops nothing");
    world.drained(BETA, HOUR * 3).await;
    assert_eq!(world.fates(BETA)[&1], Fate::Dead("unavailable".to_owned()));
    let bounces = world.told.bounces.lock().unwrap().clone();
    assert_eq!(bounces.len(), 1);
    assert_eq!(bounces[0].fate, Fate::Dead("unavailable".to_owned()));
    assert_eq!(bounces[0].sender, agent("alice", "alpha.example"));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_never_tried_in_five_days_was_too_long_on_its_way() {
    let world = World::new();
    world.put("alice", "bob", BETA);
    sleep(DAY * 5 + HOUR).await;
    world.put("alice", "bob", BETA);
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    world.drained(BETA, HOUR).await;
    let too_long = ErrorCode::TransitTooLong.as_str().to_owned();
    assert_eq!(
        world.fates(BETA).into_values().collect::<Vec<_>>(),
        [Fate::Dead(too_long), Fate::Delivered]
    );
    world.hub(BETA, |hub| assert_eq!(hub.stored, [2]));
}

#[tokio::test(start_paused = true)]
async fn mail_beside_one_that_cannot_be_ended_just_now_is_not_stranded() {
    let world = World::new();
    world.put("alice", "bob", BETA);
    sleep(DAY * 5 + HOUR).await;
    world.put("alice", "carol", BETA);
    world.put("alice", "bob", BETA);
    world.told.fails.store(true, Ordering::SeqCst);
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    sleep(Duration::from_secs(1)).await;
    world.told.fails.store(false, Ordering::SeqCst);
    world.drained(BETA, HOUR).await;
    world.hub(BETA, |hub| {
        hub.stored.sort_unstable();
        assert_eq!(hub.stored, [2, 3]);
    });
}

#[tokio::test(start_paused = true)]
async fn mail_of_an_attempt_that_broke_down_is_not_stranded() {
    let world = World::new();
    world.put("alice", "bob", BETA);
    sleep(DAY * 5 + HOUR).await;
    world.put("alice", "carol", BETA);
    world.told.panics.store(true, Ordering::SeqCst);
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    world.drained(BETA, HOUR).await;
    assert!(!world.told.panics.load(Ordering::SeqCst), "it broke down once");
    world.hub(BETA, |hub| assert_eq!(hub.stored, [2]));
}

#[tokio::test(start_paused = true)]
async fn what_the_peer_wanted_again_until_the_end_dies_of_that() {
    let world = World::new();
    let full = r#"{"results":[{"peer_seq":1,"status":"retry","code":"mailbox_full","retry_after_s":600}]}"#;
    world.hub(BETA, |hub| {
        hub.always = Some(Act::Say(200, "application/json", full));
    });
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    world.drained(BETA, DAY * 6).await;
    assert_eq!(world.fates(BETA)[&1], Fate::Dead("mailbox_full".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_expired_message_is_not_sent() {
    let world = World::new();
    world.hub(BETA, |hub| hub.script = vec![Act::Refuse; 3].into());
    let (alice, bob) = (agent("alice", "alpha.example"), agent("bob", BETA));
    let soon = world.now() + Duration::from_millis(1_500);
    for expires_at in [Some(world.now()), Some(soon), None] {
        world.outbox.put(&alice, &bob, world.now(), expires_at);
    }
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    world.drained(BETA, HOUR).await;
    world.hub(BETA, |hub| {
        assert!(hub.pushes.iter().all(|(_, items)| !items.contains(&1)));
        assert!(hub.pushes[0].1.contains(&2));
    });
    let fates = world.fates(BETA);
    assert_eq!((&fates[&1], &fates[&3]), (&Fate::Expired, &Fate::Delivered));
    assert!(world.told.bounces.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn row_a_permanent_refusal_bounces_one_message_and_counts_as_an_answer() {
    // mastodon#37235: 404, 410 and 403 counted as success.
    let world = World::new();
    world.hub(BETA, |hub| {
        hub.refuses.insert(2, "recipient_deactivated");
    });
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    for to in ["x", "gone", "y"] {
        world.put("alice", to, BETA);
    }
    delivery.wake(&domain(BETA));
    world.drained(BETA, HOUR).await;
    let fates: Vec<Fate> = world.fates(BETA).into_values().collect();
    let refused = Fate::Refused("recipient_deactivated".to_owned());
    assert_eq!(fates, [Fate::Delivered, refused, Fate::Delivered]);
    assert_eq!(world.told.bounces.lock().unwrap().len(), 1);
    let stats = delivery.stats();
    assert_eq!(
        (stats.delivered, stats.refused, stats.pushes, stats.failures),
        (2, 1, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_sender_who_cannot_be_told_is_told_later() {
    let world = World::new();
    world.hub(BETA, |hub| {
        hub.refuses.insert(1, "recipient_unknown");
    });
    world.told.fails.store(true, Ordering::SeqCst);
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "nobody", BETA);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(pending(&world, BETA).await, 1);
    let pushes = world.hub(BETA, |hub| hub.pushes.len());
    assert!(pushes <= 31, "every two seconds: {pushes}");
    world.told.fails.store(false, Ordering::SeqCst);
    world.drained(BETA, Duration::from_secs(5)).await;
    assert_eq!(world.told.bounces.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_what_is_on_its_way_and_settles_it_once() {
    let world = World::new();
    world.hub(BETA, |hub| hub.delay = Duration::from_secs(3));
    let delivery = world.delivery("here");
    let running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    sleep(Duration::from_millis(100)).await;
    world.send(&delivery, "alice", "bob", BETA);
    let before = world.now();
    running.stop().await;
    assert!(world.now().millis_since(before) < 3_100);
    assert_eq!(world.fates(BETA).len(), 1);
    world.hub(BETA, |hub| assert_eq!(hub.pushes.len(), 1, "nothing new begins"));
    let lease = world.now() + Duration::from_secs(10);
    assert!(
        world
            .store
            .lease(&domain(BETA), "other", world.now(), lease)
            .await
            .unwrap(),
        "the lease is free"
    );
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_a_peer_that_hangs() {
    let world = World::new();
    world.hub(BETA, |hub| hub.script = [Act::Hang].into());
    let delivery = world.delivery("here");
    let running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    sleep(Duration::from_millis(100)).await;
    let before = world.now();
    running.stop().await;
    assert!((5_000..5_100).contains(&world.now().millis_since(before)));
    let next = world.delivery("next");
    let _running = Running::start(&next);
    world.drained(BETA, Duration::from_secs(1)).await;
    world.hub(BETA, |hub| assert_eq!(hub.stored, [1]));
}
