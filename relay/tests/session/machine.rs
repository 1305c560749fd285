//! The machine, one promise at a time.

use std::time::Duration;

use aip_relay::limits::{ACK_ALSO_MAX, CREDIT_MAX, NAK_SECS_MAX, PARKED_MAX};
use aip_relay::session::{Event, Said, SessionId};

use crate::world::{State, World};

pub(crate) const NONE: [u64; 0] = [];

/// A world with so many messages of one KiB, all told.
pub(crate) fn world(messages: u64) -> World {
    let mut world = World::default();
    (0..messages).for_each(|_| _ = world.store(1024));
    world.tell_all();
    world
}

pub(crate) fn delivered(world: &mut World, session: SessionId) -> Vec<u64> {
    world.settle();
    std::mem::take(&mut world.side(session).delivered)
}

pub(crate) fn wait(world: &mut World, session: SessionId, secs: u64) -> Vec<u64> {
    world.advance(Duration::from_secs(secs));
    world.poll(session);
    delivered(world, session)
}

#[test]
fn messages_come_in_order_and_within_credit() {
    let mut world = world(5);
    let bob = world.join(false, 2);
    assert_eq!(delivered(&mut world, bob), [1, 2]);
    world.ack(bob, 2, &[]);
    assert_eq!(delivered(&mut world, bob), [3, 4]);
    world.ack(bob, 0, &[4]);
    assert_eq!(delivered(&mut world, bob), [5]);
    assert_eq!(world.side(bob).acked, [2, 2]);
    world.check_credit();
}

#[test]
fn credit_can_be_changed_and_has_a_limit() {
    let mut world = world(1_200);
    let bob = world.join(false, 0);
    assert_eq!(delivered(&mut world, bob), NONE);
    world.credit(bob, 3);
    assert_eq!(delivered(&mut world, bob), [1, 2, 3]);
    world.credit(bob, 1);
    world.ack(bob, 2, &[]);
    assert_eq!(delivered(&mut world, bob), NONE);
    world.credit(bob, u32::MAX);
    // The bytes are the limit here: 1 MiB of 1 KiB messages.
    assert_eq!(
        delivered(&mut world, bob).last(),
        Some(&(2 + u64::from(CREDIT_MAX)))
    );
}

#[test]
fn at_most_one_mebibyte_is_in_flight_but_one_message_always() {
    let mut world = World::default();
    for kib in [400, 400, 400, 2_000, 10] {
        world.store(kib * 1024);
    }
    world.tell_all();
    let bob = world.join(false, 64);
    assert_eq!(delivered(&mut world, bob), [1, 2]);
    world.ack(bob, 1, &[]);
    assert_eq!(delivered(&mut world, bob), [3]);
    world.ack(bob, 2, &[]);
    assert_eq!(
        delivered(&mut world, bob),
        NONE,
        "the large one waits until it is alone"
    );
    world.ack(bob, 3, &[]);
    assert_eq!(delivered(&mut world, bob), [4]);
    world.ack(bob, 4, &[]);
    assert_eq!(delivered(&mut world, bob), [5]);
}

#[test]
fn without_an_ack_a_message_comes_again_after_30_60_120_300_seconds() {
    let mut world = world(1);
    let bob = world.join(false, 64);
    assert_eq!(delivered(&mut world, bob), [1]);
    for secs in [30, 60, 120, 300, 300, 300, 300, 300, 300] {
        assert_eq!(wait(&mut world, bob, secs - 1), NONE, "before {secs} s");
        assert_eq!(wait(&mut world, bob, 1), [1], "after {secs} s");
    }
    // Never given up within one session.
    assert_eq!((world.state(1), world.attempts(1)), (State::Stored, 10));
}

#[test]
fn what_is_not_acked_stays_in_flight() {
    let mut world = world(3);
    let bob = world.join(false, 2);
    assert_eq!(delivered(&mut world, bob), [1, 2]);
    assert_eq!(
        wait(&mut world, bob, 30),
        [1, 2],
        "not the third: the client still holds two"
    );
}

#[test]
fn row_28_an_unacked_message_comes_again_at_once_on_a_new_session() {
    let mut world = world(2);
    let first = world.join(false, 64);
    assert_eq!(delivered(&mut world, first), [1, 2]);
    world.ack(first, 1, &[]);
    world.settle();
    world.leave(first);
    let second = world.join(false, 64);
    assert_eq!(delivered(&mut world, second), [2]);
    assert_eq!(world.attempts(2), 2);
}

#[test]
fn row_30_a_message_that_arrives_while_connecting_is_delivered_once() {
    // Told before, between, and after each step of the connection.
    for told_at in 0..6 {
        let mut world = world(1);
        world.store(1024);
        let tell = |world: &mut World, step| {
            if step == told_at {
                world.tell_all();
            }
        };
        tell(&mut world, 0);
        let bob = world.join(false, 64);
        for step in 1..5 {
            tell(&mut world, step);
            world.work(bob, false);
        }
        tell(&mut world, 5);
        assert_eq!(delivered(&mut world, bob), [1, 2], "told at step {told_at}");
    }
}

#[test]
fn row_31_the_late_end_of_a_replaced_session_leaves_its_successor_alone() {
    let mut world = world(2);
    let old = world.join(false, 1);
    world.settle();
    let new = world.join(false, 1);
    assert!(world.side(old).replaced && !world.side(new).replaced);
    world.ack(old, 1, &[]);
    world.leave(old);
    assert_eq!(
        delivered(&mut world, new),
        [1],
        "the old one's ack does not count"
    );
    world.ack(new, 1, &[]);
    assert_eq!(delivered(&mut world, new), [2]);
    assert!(world.machine.has(new));
}

#[test]
fn row_32_two_clients_that_evict_each_other_are_damped() {
    let mut world = world(0);
    let now = world.now();
    assert_eq!(world.machine.takeover_pause(now), None);
    world.join(false, 1);
    assert_eq!(
        world.machine.takeover_pause(now),
        None,
        "the first connection waits for nobody"
    );
    world.join(false, 1);
    assert_eq!(world.machine.takeover_pause(now), Some(Duration::from_secs(1)));
    world.advance(Duration::from_secs(1));
    let later = world.now();
    assert_eq!(world.machine.takeover_pause(later), None);
}

#[test]
fn row_37_a_poison_message_goes_to_the_dead_letters_and_blocks_nobody() {
    let mut world = world(3);
    for attempt in 1..=8 {
        let bob = world.join(false, 2);
        // It crashes on the first message each time, and gets through the others.
        let got = delivered(&mut world, bob);
        assert!(got.contains(&1), "attempt {attempt}: {got:?}");
        let others: Vec<u64> = got.into_iter().filter(|seq| *seq != 1).collect();
        world.ack(bob, 0, &others);
        world.settle();
        world.leave(bob);
    }
    assert_eq!(world.state(1), State::Stored);
    let bob = world.join(false, 2);
    assert_eq!(delivered(&mut world, bob), NONE);
    assert_eq!(
        [1, 2, 3].map(|seq| world.state(seq)),
        [State::Dead, State::Acked, State::Acked]
    );
}

#[test]
fn row_37_a_nak_without_a_pause_does_not_starve_the_others() {
    let mut world = world(3);
    let bob = world.join(false, 1);
    assert_eq!(delivered(&mut world, bob), [1]);
    let mut got = Vec::new();
    for _ in 0..6 {
        world.nak(bob, 1, Duration::ZERO);
        got.extend(delivered(&mut world, bob));
        let others: Vec<u64> = world
            .side(bob)
            .held
            .keys()
            .copied()
            .filter(|seq| *seq != 1)
            .collect();
        world.ack(bob, 0, &others);
        got.extend(delivered(&mut world, bob));
    }
    assert!(got.contains(&2) && got.contains(&3), "{got:?}");
}

#[test]
fn row_41_ack_twice_unknown_or_after_death_is_idempotent() {
    let mut world = world(3);
    let bob = world.join(false, 64);
    world.settle();
    world.ack(bob, 1, &[]);
    world.settle();
    world.ack(bob, 1, &[]);
    world.settle();
    assert_eq!(world.side(bob).acked, [1, 1]);
    world.reject(bob, 2, "unreadable");
    world.settle();
    assert_eq!(world.state(2), State::Dead);
    world.ack(bob, 0, &[2]);
    world.settle();
    world.reject(bob, 2, "unreadable");
    world.ack(bob, 3, &[1, 2]);
    world.settle();
    assert_eq!(world.side(bob).acked, [1, 1, 2, 3]);
    assert_eq!(world.side(bob).refused, 0);
    assert_eq!((world.state(2), world.floor()), (State::Dead, 3));
}

#[test]
fn an_ack_beyond_what_was_offered_changes_nothing() {
    let mut world = world(5);
    let bob = world.join(false, 2);
    assert_eq!(delivered(&mut world, bob), [1, 2]);
    for (upto, also) in [(3, vec![]), (1, vec![4]), (u64::MAX, vec![]), (0, vec![u64::MAX])] {
        world.ack(bob, upto, &also);
    }
    world.settle();
    assert_eq!((world.side(bob).refused, world.floor()), (4, 0));
    assert_eq!(world.machine.in_flight(bob).0, 2);
}

#[test]
fn an_ack_with_too_many_numbers_changes_nothing() {
    let mut world = world(2);
    let bob = world.join(false, 64);
    world.settle();
    world.ack(bob, 0, &vec![1; ACK_ALSO_MAX + 1]);
    assert_eq!(world.side(bob).refused, 1);
    assert_eq!(world.machine.in_flight(bob).0, 2);
}

#[test]
fn another_epoch_changes_nothing() {
    let mut world = world(1);
    let bob = world.join(false, 64);
    world.settle();
    let epoch = || "e2".to_owned();
    let pause = Duration::ZERO;
    world.feed(
        Some(bob),
        Event::Said {
            session: bob,
            frame: Said::Ack {
                epoch: epoch(),
                upto: 1,
                also: vec![],
            },
        },
    );
    world.feed(
        Some(bob),
        Event::Said {
            session: bob,
            frame: Said::Nak {
                epoch: epoch(),
                seq: 1,
                retry_after: pause,
            },
        },
    );
    world.feed(
        Some(bob),
        Event::Said {
            session: bob,
            frame: Said::Reject {
                epoch: epoch(),
                seq: 1,
                code: "x".to_owned(),
            },
        },
    );
    world.settle();
    assert_eq!((world.side(bob).refused, world.state(1)), (3, State::Stored));
}

#[test]
fn a_nak_comes_back_when_it_asked_to() {
    let mut world = world(1);
    let bob = world.join(false, 1);
    world.settle();
    world.side(bob).delivered.clear();
    world.nak(bob, 1, Duration::from_secs(10));
    assert_eq!(wait(&mut world, bob, 9), NONE);
    assert_eq!(wait(&mut world, bob, 1), [1]);
    world.nak(bob, 1, Duration::from_secs(1_000_000));
    assert_eq!(wait(&mut world, bob, NAK_SECS_MAX - 1), NONE);
    assert_eq!(wait(&mut world, bob, 1), [1], "at most an hour");
    world.nak(bob, 7, Duration::ZERO);
    assert_eq!(world.side(bob).refused, 1, "never offered");
}

#[test]
fn a_nak_gives_its_place_to_the_next_message() {
    let mut world = world(2);
    let bob = world.join(false, 1);
    assert_eq!(delivered(&mut world, bob), [1]);
    world.nak(bob, 1, Duration::from_mins(10));
    assert_eq!(delivered(&mut world, bob), [2]);
}

#[test]
fn postponed_messages_are_bounded() {
    let mut world = World::default();
    (0..PARKED_MAX as u64 + 10).for_each(|_| _ = world.store(10));
    world.tell_all();
    let bob = world.join(false, 4);
    for _ in 0..PARKED_MAX {
        world.settle();
        let held: Vec<u64> = world.side(bob).held.keys().copied().collect();
        for seq in held {
            world.nak(bob, seq, Duration::from_hours(1));
        }
    }
    world.settle();
    assert!(world.side(bob).delivered.len() <= PARKED_MAX + 4);
}

#[test]
fn a_reject_needs_a_plain_code() {
    let mut world = world(1);
    let bob = world.join(false, 64);
    world.settle();
    world.reject(bob, 1, "Not plain");
    world.reject(bob, 9, "unreadable");
    world.settle();
    assert_eq!((world.side(bob).refused, world.state(1)), (2, State::Stored));
    world.reject(bob, 1, "schema_mismatch");
    world.settle();
    assert_eq!(world.state(1), State::Dead);
}
