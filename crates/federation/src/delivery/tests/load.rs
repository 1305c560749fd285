//! Many peers at once: who answers waits for nobody, and who does not costs little.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::super::Delivery;
use super::super::answer::{Failure, FailureKind};
use super::net::Hub;
use super::world::{Act, Running, World, domain};
use crate::limits::{HOT_PEERS_MAX, PROBE_BYTES_MAX, PUSH_PROMPT, VIEWS_MAX};
use crate::outbox::Fate;
use crate::peers::{PeerChange, PeerStore as _};

const BETA: &str = "beta.example";
const DEAD: usize = 1_000;

fn dead(number: usize) -> String {
    format!("dead-{number}.example")
}

#[tokio::test(start_paused = true)]
async fn a_thousand_peers_that_hang_hold_up_nobody() {
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    world.drained(BETA, Duration::from_secs(1)).await;
    for number in 0..DEAD {
        world.hub(&dead(number), |hub| hub.always = Some(Act::Hang));
        world.send(&delivery, "alice", "bob", &dead(number));
    }
    let mut worst = 0;
    for _ in 0..600 {
        sleep(Duration::from_millis(100)).await;
        let before = world.now();
        world.send(&delivery, "alice", "bob", BETA);
        world.drained(BETA, Duration::from_secs(5)).await;
        worst = worst.max(world.now().millis_since(before));
    }
    assert!(worst <= 20, "{worst} ms");
}

/// Mail to one that answers goes out beside that to so many which answered before, and now do what `now` has them do.
/// Says how long each message took, in milliseconds: ten a second, for a minute.
async fn beside_those_who_answered(many: usize, now: impl Fn(&mut Hub)) -> Vec<i64> {
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    for peer in (0..many).map(dead).chain([BETA.to_owned()]) {
        for _ in 0..4 {
            world.send(&delivery, "alice", "bob", &peer);
            world.drained(&peer, Duration::from_secs(1)).await;
        }
    }
    for peer in (0..many).map(dead) {
        world.hub(&peer, &now);
        for number in 0..512 {
            world.put(&format!("agent-{number}"), "bob", &peer);
        }
        delivery.wake(&domain(&peer));
    }
    let mut took = Vec::new();
    for _ in 0..600 {
        sleep(Duration::from_millis(100)).await;
        let before = world.now();
        world.send(&delivery, "alice", "bob", BETA);
        world.drained(BETA, Duration::from_secs(20)).await;
        took.push(world.now().millis_since(before));
    }
    took
}

#[tokio::test(start_paused = true)]
async fn a_hundred_peers_that_answered_and_hang_now_hold_up_nobody() {
    let took = beside_those_who_answered(100, |hub| hub.always = Some(Act::Hang)).await;
    assert!(took.iter().all(|took| *took <= 20), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn five_hundred_of_them_do_not_hold_up_others_for_longer_than_prompt_answers_take() {
    let took = beside_those_who_answered(500, |hub| hub.always = Some(Act::Hang)).await;
    let prompt = PUSH_PROMPT.as_millis().try_into().unwrap();
    assert!(took.iter().all(|took| *took <= prompt), "{took:?}");
    assert!(took[100..].iter().all(|took| *took <= 20), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn peers_that_let_every_answer_wait_hold_up_nobody() {
    let took = beside_those_who_answered(100, |hub| hub.delay = Duration::from_secs(14)).await;
    assert!(took.iter().all(|took| *took <= 20), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_hangs_gets_a_few_requests_and_not_all_of_them() {
    let world = World::new();
    world.hub(BETA, |hub| hub.always = Some(Act::Hang));
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    for number in 0..1_000 {
        world.send(&delivery, &format!("agent-{number}"), "bob", BETA);
    }
    sleep(Duration::from_hours(1)).await;
    world.hub(BETA, |hub| {
        assert_eq!(hub.busy_most, hub.pushes.len(), "the fake never lets go of one");
        assert!(hub.pushes.len() <= 14, "{}", hub.pushes.len());
        assert_eq!(hub.pushes.last().unwrap().1.len(), 1, "less and less at a time");
    });
}

#[tokio::test(start_paused = true)]
async fn dead_peers_are_asked_once_in_a_long_while_and_hold_little() {
    const DEAD: usize = 200;
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    for number in 0..DEAD {
        world.hub(&dead(number), |hub| hub.always = Some(Act::Refuse));
        for _ in 0..100 {
            world.send(&delivery, "alice", "bob", &dead(number));
        }
    }
    sleep(Duration::from_hours(3)).await;
    let (pushes, reads) = (delivery.stats().pushes, world.outbox.reads());
    sleep(Duration::from_hours(1)).await;
    let attempts = delivery.stats().pushes - pushes;
    assert!(attempts <= 4 * DEAD as u64, "{attempts} attempts in an hour");
    // The looks through all outboxes, and a few for each attempt.
    assert!(world.outbox.reads() - reads <= DEAD * (120 + 4 * 4));
    let state = delivery.lock();
    let (waiting, away) = state.peers.values().fold((0, 0), |(waiting, away), peer| {
        (waiting + peer.ledger.waiting_count(), away + peer.ledger.away())
    });
    assert_eq!(state.peers.len(), DEAD);
    assert!(waiting <= 64 * DEAD, "no more than one batch each: {waiting}");
    assert!(away <= 64);
}

/// An attempt at a peer failed, and it wants to be asked again after so long.
fn fail(delivery: &Delivery, peer: &str, kind: FailureKind, after: Duration) {
    let now = delivery.now();
    let mut state = delivery.lock();
    let known = Arc::clone(state.peers.get_key_value(&domain(peer)).unwrap().0);
    let failure = Failure {
        retry_after: Some(after),
        ..Failure::new(kind, "peer_failed", "HTTP 429")
    };
    let peer = state.peers.get_mut(&known).unwrap();
    peer.failed(&failure, 1, 0, now, 0);
    delivery.plan(&mut state, &known, now);
}

#[tokio::test(start_paused = true)]
async fn the_failing_peer_that_is_asked_last_makes_room() {
    let world = World::new();
    let delivery = world.delivery("here");
    for number in 0..HOT_PEERS_MAX {
        delivery.wake(&domain(&dead(number)));
    }
    let is_known = |peer: &str| delivery.lock().peers.contains_key(&domain(peer));
    delivery.wake(&domain(BETA));
    assert!(!is_known(BETA), "nobody failed");
    let busy = domain(&dead(6));
    delivery.lock().peers.get_mut(&busy).unwrap().push_begins();
    fail(&delivery, &dead(6), FailureKind::Away, Duration::from_hours(1));
    // None of the last two opens a breaker.
    fail(&delivery, &dead(7), FailureKind::Away, Duration::from_secs(10));
    fail(&delivery, &dead(8), FailureKind::Policy, Duration::from_mins(40));
    fail(&delivery, &dead(9), FailureKind::Busy, Duration::from_mins(20));
    for (newcomer, gone) in [("one.example", 8), ("two.example", 9), ("six.example", 7)] {
        delivery.wake(&domain(newcomer));
        assert!(is_known(newcomer) && !is_known(&dead(gone)), "{newcomer}");
        assert_eq!(delivery.stats().peers, HOT_PEERS_MAX);
    }
    delivery.wake(&domain(BETA));
    assert!(!is_known(BETA), "who has something on its way stays");
    assert!(is_known(&dead(6)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_of_ten_thousand_known_peers_without_mail() {
    let world = World::new();
    for number in 0..10_000 {
        world
            .store
            .change(&domain(&dead(number)), PeerChange::Met, world.now())
            .await
            .unwrap();
    }
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    sleep(Duration::from_mins(2)).await;
    assert_eq!(delivery.lock().peers.capacity(), 0);
    assert!(delivery.stats() == super::super::DeliveryStats::default());
}

#[tokio::test(start_paused = true)]
async fn large_messages_go_in_bodies_of_a_mebibyte_and_to_strangers_in_small_ones() {
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    let filler = "x".repeat(60_000);
    for number in 0..60 {
        let from = super::world::agent(&format!("agent-{number}"), "alpha.example");
        let to = super::world::agent("bob", BETA);
        world.outbox.put_wire(&from, &to, world.now(), |id| {
            format!("{{\"id\":\"{id}\",\"x\":\"{filler}\"}}")
        });
    }
    delivery.wake(&domain(BETA));
    world.drained(BETA, Duration::from_mins(1)).await;
    world.hub(BETA, |hub| {
        assert_eq!(hub.pushes[0].1.len(), PROBE_BYTES_MAX / filler.len());
        assert_eq!(hub.pushes[1].1.len(), 17);
        assert_eq!(hub.stored.len(), 60);
    });
}

#[tokio::test(start_paused = true)]
async fn the_largest_envelope_goes_alone_if_it_must() {
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    let filler = "x".repeat(256 * 1024 - 100);
    let (from, to) = (
        super::world::agent("alice", "alpha.example"),
        super::world::agent("bob", BETA),
    );
    for _ in 0..9 {
        world.outbox.put_wire(&from, &to, world.now(), |id| {
            format!("{{\"id\":\"{id}\",\"x\":\"{filler}\"}}")
        });
    }
    delivery.wake(&domain(BETA));
    world.drained(BETA, Duration::from_mins(1)).await;
    world.hub(BETA, |hub| {
        let sizes: Vec<usize> = hub.pushes.iter().map(|(_, items)| items.len()).collect();
        assert_eq!(sizes, [1, 3, 3, 2]);
        assert_eq!(hub.stored, (1..=9).collect::<Vec<u64>>());
    });
}

#[tokio::test(start_paused = true)]
async fn views_are_bounded_and_show_those_that_fail_first() {
    let world = World::new();
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.hub(&dead(7), |hub| hub.always = Some(Act::Refuse));
    world.send(&delivery, "alice", "bob", &dead(7));
    sleep(Duration::from_secs(1)).await;
    for number in 100..100 + VIEWS_MAX + 20 {
        world.hub(&dead(number), |hub| hub.always = Some(Act::Hang));
        world.send(&delivery, "alice", "bob", &dead(number));
    }
    sleep(Duration::from_secs(1)).await;
    let views = delivery.views().await.unwrap();
    assert_eq!(views.len(), VIEWS_MAX);
    assert_eq!(views[0].domain, domain(&dead(7)));
    assert!(views.iter().all(|view| view.pending == 1 && view.bytes > 0));
    assert_eq!(world.outbox.left(&domain(&dead(7))), [(0_u64, Fate::Expired); 0]);
}
