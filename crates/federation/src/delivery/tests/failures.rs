//! What a peer answers, and what becomes of mail and peer.

use std::time::Duration;

use tokio::time::sleep;

use super::world::{Act, Running, World, domain};
use crate::delivery::LookUpError;
use crate::outbox::Fate;

const BETA: &str = "beta.example";
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

#[tokio::test(start_paused = true)]
async fn one_message_that_the_peer_wants_later_delays_only_its_pair() {
    let world = World::new();
    world.hub(BETA, |hub| {
        hub.script = [Act::WantAgain(vec![1, 2], Some(50))].into();
    });
    for to in ["x", "x", "y"] {
        world.put("alice", to, BETA);
    }
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    sleep(Duration::from_secs(40)).await;
    world.hub(BETA, |hub| assert_eq!(hub.stored, [3]));
    world.send(&delivery, "alice", "y", BETA);
    sleep(Duration::from_secs(1)).await;
    world.hub(BETA, |hub| assert_eq!(hub.stored, [3, 4], "the peer is well"));
    world.drained(BETA, Duration::from_secs(10)).await;
    world.hub(BETA, |hub| assert_eq!(hub.stored, [3, 4, 1, 2]));
}

#[tokio::test(start_paused = true)]
async fn the_one_message_that_spoils_a_batch_is_found_and_refused() {
    let world = World::new();
    world.hub(BETA, |hub| hub.chokes_on = Some(40));
    for number in 0..200 {
        world.put(&format!("agent-{number}"), "bob", BETA);
    }
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    world.drained(BETA, Duration::from_mins(1)).await;
    let refused = world
        .fates(BETA)
        .into_iter()
        .filter(|(_, fate)| *fate != Fate::Delivered);
    assert_eq!(
        refused.collect::<Vec<_>>(),
        [(40, Fate::Refused("member_invalid".to_owned()))]
    );
    let bounces = world.told.bounces.lock().unwrap().clone();
    assert_eq!(bounces.len(), 1);
    assert_eq!(bounces[0].sender.name(), "agent-39");
    assert_eq!(bounces[0].recipient.name(), "bob");
    world.hub(BETA, |hub| {
        assert!(hub.pushes.len() <= 30, "{}", hub.pushes.len());
    });
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_finds_everything_too_large_refuses_nothing_for_good() {
    let world = World::new();
    world.hub(BETA, |hub| {
        hub.always = Some(Act::Say(413, "text/html", "<html>"));
    });
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    for _ in 0..3 {
        world.put("alice", "bob", BETA);
    }
    delivery.wake(&domain(BETA));
    sleep(HOUR).await;
    assert_eq!(world.fates(BETA).len(), 0);
    world.hub(BETA, |hub| hub.always = None);
    world.drained(BETA, DAY).await;
}

#[tokio::test(start_paused = true)]
async fn a_document_is_fetched_afresh_once_when_our_signature_is_not_taken() {
    let world = World::new();
    let unknown = Act::Say(401, "application/problem+json", r#"{"code":"hub_key_unknown"}"#);
    world.hub(BETA, |hub| hub.script = vec![unknown; 3].into());
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    world.drained(BETA, HOUR).await;
    let asked: Vec<bool> = world
        .whereabouts
        .asked
        .lock()
        .unwrap()
        .iter()
        .map(|(_, fresh)| *fresh)
        .collect();
    assert_eq!(asked, [false, true, false, false]);
    assert_eq!(world.fates(BETA)[&1], Fate::Delivered);
}

#[tokio::test(start_paused = true)]
async fn who_is_blocked_or_frozen_gets_nothing_until_the_operator_decides() {
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    let instead = |error: fn() -> LookUpError| {
        world
            .whereabouts
            .instead
            .lock()
            .unwrap()
            .insert(domain(BETA), error);
    };
    instead(|| LookUpError::Frozen {
        code: "hub_key_not_pinned".to_owned(),
    });
    world.send(&delivery, "alice", "bob", BETA);
    sleep(HOUR * 2).await;
    assert_eq!(world.push_secs(BETA), [0_i64; 0]);
    let view = delivery.view(&domain(BETA)).await.unwrap();
    assert_eq!(view.last_error.unwrap().code, "hub_key_not_pinned");
    assert!(world.whereabouts.asked.lock().unwrap().len() <= 5);
    instead(|| LookUpError::Blocked);
    delivery.retry(&domain(BETA));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        delivery
            .view(&domain(BETA))
            .await
            .unwrap()
            .last_error
            .unwrap()
            .code,
        "peer_blocked"
    );
    world.whereabouts.instead.lock().unwrap().clear();
    delivery.retry(&domain(BETA));
    world.drained(BETA, Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_blocks_us_is_asked_again_after_half_an_hour_at_least() {
    let world = World::new();
    let blocked = Act::Say(403, "application/problem+json", r#"{"code":"peer_blocked"}"#);
    world.hub(BETA, |hub| hub.script = [blocked].into());
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    world.drained(BETA, HOUR * 2).await;
    let asked = world.push_secs(BETA);
    assert!((1_800..=3_601).contains(&(asked[1] - asked[0])), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn our_own_store_that_fails_costs_no_message_and_is_no_fault_of_the_peer() {
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.store.fail(true);
    world.send(&delivery, "alice", "bob", BETA);
    sleep(Duration::from_secs(9)).await;
    assert_eq!(
        world.push_secs(BETA),
        [0_i64; 0],
        "without a lease nothing goes out"
    );
    world.store.fail(false);
    world.outbox.fail(true);
    sleep(Duration::from_secs(9)).await;
    assert_eq!(world.push_secs(BETA), [0_i64; 0]);
    assert_eq!(delivery.stats().breakers_open, 0);
    world.outbox.fail(false);
    world.drained(BETA, Duration::from_secs(5)).await;
}
