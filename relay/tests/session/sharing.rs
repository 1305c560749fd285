//! The machine with several sessions, other doors, and a store that fails.

use std::time::Duration;

use aip_relay::limits::SHARED_SESSIONS_MAX;
use aip_relay::session::{Elsewhere, Event, Said};

use crate::machine::{NONE, delivered, wait, world};
use crate::world::EPOCH;

#[test]
fn sessions_that_share_get_each_message_once() {
    let mut world = world(6);
    let (a, b) = (world.join(true, 2), world.join(true, 2));
    let mut got = delivered(&mut world, a);
    got.extend(delivered(&mut world, b));
    got.sort_unstable();
    assert_eq!(got, [1, 2, 3, 4]);
    assert!(!world.side(a).replaced && !world.side(b).replaced);
    let held: Vec<u64> = world.side(a).held.keys().copied().collect();
    world.leave(a);
    world.ack(b, 0, &[]);
    let others: Vec<u64> = world.side(b).held.keys().copied().collect();
    world.ack(b, 0, &others);
    assert_eq!(delivered(&mut world, b), held, "what the other had comes at once");
}

#[test]
fn a_message_that_one_session_does_not_answer_goes_to_another() {
    let mut world = world(1);
    let hung = world.join(true, 2);
    assert_eq!(delivered(&mut world, hung), [1]);
    let live = world.join(true, 2);
    world.advance(Duration::from_secs(30));
    world.poll(live);
    assert_eq!(delivered(&mut world, live), [1]);
}

#[test]
fn all_must_ask_to_share() {
    let mut world = world(0);
    let (a, b) = (world.join(true, 1), world.join(true, 1));
    let c = world.join(false, 1);
    assert!(world.side(a).replaced && world.side(b).replaced);
    let d = world.join(true, 1);
    assert!(world.side(c).replaced && !world.side(d).replaced);
}

#[test]
fn sharing_sessions_are_bounded() {
    let mut world = world(0);
    let first = world.join(true, 1);
    (1..SHARED_SESSIONS_MAX).for_each(|_| _ = world.join(true, 1));
    assert!(!world.side(first).replaced);
    world.join(true, 1);
    assert!(world.side(first).replaced);
    assert_eq!(world.sides.values().filter(|side| side.replaced).count(), 1);
}

#[test]
fn an_ack_is_told_only_when_it_is_durable() {
    let mut world = world(3);
    let bob = world.join(false, 64);
    world.settle();
    world.ack(bob, 1, &[]);
    world.ack(bob, 2, &[]);
    assert_eq!(world.side(bob).acked, NONE);
    world.work(bob, true);
    world.settle();
    assert_eq!(world.side(bob).acked, NONE, "the store failed");
    world.advance(Duration::from_secs(1));
    world.poll(bob);
    world.settle();
    assert_eq!((&world.side_ref(bob).acked[..], world.floor()), (&[2][..], 2));
}

#[test]
fn an_ack_makes_room_only_when_it_is_durable() {
    let mut world = world(3);
    let bob = world.join(false, 2);
    assert_eq!(delivered(&mut world, bob), [1, 2]);
    world.ack(bob, 2, &[]);
    assert_eq!(world.machine.in_flight(bob).0, 2);
    // The store fails for an hour: what is acked is not offered again all the same.
    world.work(bob, true);
    for _ in 0..3_600 {
        world.advance(Duration::from_secs(1));
        world.poll(bob);
        world.work(bob, true);
    }
    assert_eq!(world.side(bob).delivered, NONE);
    world.advance(Duration::from_secs(1));
    world.poll(bob);
    assert_eq!(delivered(&mut world, bob), [3]);
    assert_eq!(world.side(bob).acked, [2]);
}

#[test]
fn a_failed_read_is_tried_again_after_a_pause() {
    let mut world = world(2);
    let bob = world.join(false, 64);
    world.work(bob, true);
    assert_eq!(delivered(&mut world, bob), NONE);
    let now = world.now();
    assert_eq!(world.machine.next_due(now, bob), Some(Duration::from_secs(1)));
    assert_eq!(wait(&mut world, bob, 1), [1, 2]);
}

#[test]
fn a_failed_offer_keeps_the_order() {
    let mut world = world(2);
    let bob = world.join(false, 2);
    world.work(bob, false);
    world.work(bob, true);
    world.store(1024);
    world.tell_all();
    assert_eq!(delivered(&mut world, bob), NONE);
    assert_eq!(wait(&mut world, bob, 1), [1, 2]);
    world.ack(bob, 2, &[]);
    assert_eq!(delivered(&mut world, bob), [3]);
}

#[test]
fn another_door_settles_and_offers_too() {
    let mut world = world(4);
    let bob = world.join(false, 2);
    world.settle();
    world.settled_elsewhere(&[1, 2]);
    assert_eq!(world.machine.in_flight(bob).0, 0);
    world.settle();
    world.feed(None, Event::Elsewhere(Elsewhere::Offered(4)));
    world.feed(
        Some(bob),
        Event::Said {
            session: bob,
            frame: Said::Ack {
                epoch: EPOCH.to_owned(),
                upto: 2,
                also: vec![],
            },
        },
    );
    assert_eq!(
        (&world.side_ref(bob).acked[..], world.side_ref(bob).refused),
        (&[2][..], 0)
    );
}
