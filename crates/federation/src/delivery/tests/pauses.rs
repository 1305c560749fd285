//! When a peer that fails is asked again.

use std::time::Duration;

use tokio::time::sleep;

use super::world::{Act, Running, World, domain};
use crate::breaker::BreakerState;

const BETA: &str = "beta.example";
const GAMMA: &str = "gamma.example";
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

#[tokio::test(start_paused = true)]
async fn row_51_a_proxy_that_answers_html_for_an_hour_is_asked_less_and_less() {
    let world = World::new();
    world.hub(BETA, |hub| {
        hub.always = Some(Act::Say(502, "text/html", "<html>"));
    });
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    sleep(HOUR).await;
    let asked = world.push_secs(BETA);
    assert!((8..=14).contains(&asked.len()), "{asked:?}");
    assert!(asked[4] <= 2 + 4 + 8 + 16, "quick at first: {asked:?}");
    assert!(
        asked[5] - asked[4] >= 10,
        "the breaker opens after five: {asked:?}"
    );
    let view = delivery.view(&domain(BETA)).await.unwrap();
    assert_eq!((view.pending, view.failures as usize), (1, asked.len()));
    assert_eq!(view.last_error.unwrap().detail, "HTTP 502");
    assert!(view.next_attempt.is_some() && view.breaker != BreakerState::Closed);
    assert_eq!(view.oldest_unsent_age, Some(HOUR));
    world.hub(BETA, |hub| hub.always = None);
    world.drained(BETA, HOUR * 2).await;
    assert_eq!(
        delivery.view(&domain(BETA)).await.unwrap().breaker,
        BreakerState::Closed
    );
}

#[tokio::test(start_paused = true)]
async fn an_intermittent_peer_is_caught_up_with() {
    // A first retry after 20 s never did (LemmyNet/lemmy#4346).
    let world = World::new();
    let every_third = |number: usize| {
        if number.is_multiple_of(3) {
            Act::Refuse
        } else {
            Act::Answer
        }
    };
    world.hub(BETA, |hub| hub.script = (0..400).map(every_third).collect());
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    for number in 0..2_000 {
        world.put(&format!("agent-{number}"), "bob", BETA);
    }
    delivery.wake(&domain(BETA));
    world.drained(BETA, Duration::from_mins(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_talks_to_us_is_probed_and_only_our_own_success_closes() {
    // mastodon#31118: a tracker that inbound traffic reset although outbound still failed.
    let world = World::new();
    world.hub(BETA, |hub| hub.always = Some(Act::Refuse));
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    sleep(HOUR).await;
    let before = world.push_secs(BETA).len();
    delivery.probe(&domain(BETA));
    sleep(Duration::from_millis(20)).await;
    assert_eq!(world.push_secs(BETA).len(), before + 1, "one probe, at once");
    for _ in 0..100 {
        delivery.probe(&domain(BETA));
    }
    sleep(Duration::from_secs(9)).await;
    assert_eq!(
        world.push_secs(BETA).len(),
        before + 1,
        "not more often than every ten seconds"
    );
    assert_ne!(
        delivery.view(&domain(BETA)).await.unwrap().breaker,
        BreakerState::Closed
    );
    world.hub(BETA, |hub| hub.always = None);
    sleep(Duration::from_secs(1)).await;
    delivery.probe(&domain(BETA));
    world.drained(BETA, Duration::from_secs(1)).await;
    delivery.probe(&domain(GAMMA));
    assert!(
        !delivery.stats().peers.gt(&1),
        "a peer without mail is not made by talking"
    );
}

#[tokio::test(start_paused = true)]
async fn the_operator_is_not_made_to_wait() {
    let world = World::new();
    world.hub(BETA, |hub| {
        hub.script = vec![Act::Refuse; 8].into();
        hub.always = Some(Act::Answer);
    });
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    for _ in 0..8 {
        delivery.retry(&domain(BETA));
        sleep(Duration::from_millis(20)).await;
    }
    delivery.retry(&domain(BETA));
    world.drained(BETA, Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn retry_after_of_a_busy_peer_is_honoured() {
    let world = World::new();
    world.hub(BETA, |hub| {
        hub.script = [Act::SayLater(429, "100"), Act::SayLater(503, "999999")].into();
    });
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    world.drained(BETA, DAY).await;
    let asked = world.push_secs(BETA);
    assert!((100..=101).contains(&(asked[1] - asked[0])), "{asked:?}");
    assert!(
        (3_600..=3_601).contains(&(asked[2] - asked[1])),
        "an hour at most: {asked:?}"
    );
}
