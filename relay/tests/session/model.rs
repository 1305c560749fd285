//! Every order of events: random joins, takeovers, answers, failures and pauses against the promises of spec §6.

use std::time::Duration;

use aip_relay::session::SessionId;
use proptest::prelude::*;

use crate::world::{State, World};

#[derive(Debug, Clone)]
enum Step {
    Store { kib: u64 },
    Tell { index: usize },
    Join { share: bool, credit: u32 },
    Leave { who: usize },
    Work { who: usize, fail: bool },
    Poll { who: usize },
    AckUpto { who: usize, which: usize },
    AckAlso { who: usize, which: usize },
    AckBeyond { who: usize },
    Nak { who: usize, which: usize, secs: u64 },
    Reject { who: usize, which: usize },
    Wait { secs: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let (who, which) = (0..4_usize, 0..32_usize);
    prop_oneof![
        4 => prop_oneof![8 => 1..20_u64, 1 => 200..600_u64].prop_map(|kib| Step::Store { kib }),
        4 => (0..8_usize).prop_map(|index| Step::Tell { index }),
        2 => (any::<bool>(), 1..6_u32).prop_map(|(share, credit)| Step::Join { share, credit }),
        1 => who.clone().prop_map(|who| Step::Leave { who }),
        14 => (who.clone(), prop::bool::weighted(0.15)).prop_map(|(who, fail)| Step::Work { who, fail }),
        4 => who.clone().prop_map(|who| Step::Poll { who }),
        2 => (who.clone(), which.clone()).prop_map(|(who, which)| Step::AckUpto { who, which }),
        3 => (who.clone(), which.clone()).prop_map(|(who, which)| Step::AckAlso { who, which }),
        1 => who.clone().prop_map(|who| Step::AckBeyond { who }),
        2 => (who.clone(), which.clone(), 0..90_u64).prop_map(|(who, which, secs)| Step::Nak { who, which, secs }),
        1 => (who, which).prop_map(|(who, which)| Step::Reject { who, which }),
        3 => prop_oneof![3 => 0..5_u64, 2 => 25..70_u64, 1 => 200..400_u64].prop_map(|secs| Step::Wait { secs }),
    ]
}

fn pick(world: &World, who: usize) -> Option<SessionId> {
    world.sides.keys().nth(who % world.sides.len().max(1)).copied()
}

fn pick_held(world: &World, who: usize, which: usize) -> Option<(SessionId, u64)> {
    let session = pick(world, who)?;
    let held = &world.side_ref(session).held;
    Some((session, *held.keys().nth(which % held.len().max(1))?))
}

/// Whether the step was one that can be taken.
fn take(world: &mut World, step: &Step) -> Option<()> {
    match *step {
        Step::Store { kib } => drop(world.store(kib * 1024)),
        Step::Tell { index } => world.tell(index),
        Step::Join { share, credit } => {
            if world.sides.len() < 4 {
                world.join(share, credit);
            }
        }
        Step::Leave { who } => world.leave(pick(world, who)?),
        Step::Work { who, fail } => drop(world.work(pick(world, who)?, fail)),
        Step::Poll { who } => world.poll(pick(world, who)?),
        Step::AckUpto { who, which } => {
            let (session, seq) = pick_held(world, who, which)?;
            world.ack(session, seq, &[]);
        }
        Step::AckAlso { who, which } => {
            let (session, seq) = pick_held(world, who, which)?;
            world.ack(session, 0, &[seq]);
        }
        Step::AckBeyond { who } => {
            let session = pick(world, who)?;
            world.ack(session, 1_000_000, &[]);
        }
        Step::Nak { who, which, secs } => {
            let (session, seq) = pick_held(world, who, which)?;
            world.nak(session, seq, Duration::from_secs(secs));
        }
        Step::Reject { who, which } => {
            let (session, seq) = pick_held(world, who, which)?;
            world.reject(session, seq, "unreadable");
        }
        Step::Wait { secs } => world.advance(Duration::from_secs(secs)),
    }
    Some(())
}

/// From here on nothing fails and every client acks what it holds: everything is settled, without a new session if one
/// is left, and every ack is told.
fn drain(world: &mut World) {
    world.tell_all();
    if !world.sides.keys().any(|session| world.machine.has(*session)) {
        world.join(false, 3);
    }
    for _ in 0..10_000 {
        world.settle();
        world.check_credit();
        if world.count(State::Stored) == 0 {
            // What had failed is tried again.
            world.advance(Duration::from_secs(1));
            poll_all(world);
            world.settle();
            return world.check_acks_are_told();
        }
        if !ack_all_held(world) {
            wait_for_next(world);
        }
    }
    panic!("messages are left: {}", world.count(State::Stored));
}

fn live(world: &World) -> Vec<SessionId> {
    world
        .sides
        .keys()
        .copied()
        .filter(|session| world.machine.has(*session))
        .collect()
}

fn poll_all(world: &mut World) {
    for session in live(world) {
        world.poll(session);
    }
}

fn ack_all_held(world: &mut World) -> bool {
    let mut some = false;
    for session in live(world) {
        let held: Vec<u64> = world.side_ref(session).held.keys().copied().collect();
        if !held.is_empty() {
            world.ack(session, 0, &held);
            some = true;
        }
    }
    some
}

fn wait_for_next(world: &mut World) {
    let now = world.now();
    let sessions = live(world);
    let dues = sessions
        .iter()
        .filter_map(|session| world.machine.next_due(now, *session));
    let due = dues.min().expect("something is left, and nothing will happen");
    world.advance(due);
    poll_all(world);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_no_promise_broken(steps in prop::collection::vec(step(), 0..160)) {
        let mut world = World::default();
        for step in &steps {
            take(&mut world, step);
            world.check_credit();
        }
        drain(&mut world);
        world.store(1024);
        drain(&mut world);
    }
}
