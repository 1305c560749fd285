//! Who is next, and for whom a place is kept.

use std::time::Duration;

use super::*;

fn at(secs: u64) -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_000) + Duration::from_secs(secs)
}

#[test]
fn the_first_due_is_first_and_nobody_goes_early() {
    let mut schedule = Schedule::new(8);
    schedule.set(&"late", at(9), Class::Well);
    schedule.set(&"second", at(2), Class::Well);
    schedule.set(&"first", at(1), Class::Well);
    assert!(schedule.take(at(0)).is_none());
    assert_eq!(schedule.next(), Some(at(1)));
    assert_eq!(schedule.take(at(5)).unwrap().0, "first");
    assert_eq!(schedule.take(at(5)).unwrap().0, "second");
    assert!(schedule.take(at(5)).is_none());
    assert_eq!(schedule.next(), Some(at(9)));
}

#[test]
fn a_peer_has_one_place() {
    let mut schedule = Schedule::new(8);
    schedule.set(&1, at(1), Class::Fresh);
    schedule.set(&1, at(3), Class::Failing);
    assert!(schedule.take(at(2)).is_none());
    assert_eq!(schedule.at(&1), Some(at(3)));
    schedule.unset(&1);
    assert!(schedule.take(at(9)).is_none());
    assert!(schedule.places.is_empty() && schedule.last_failing().is_none());
}

#[test]
fn those_who_answer_do_not_wait_for_those_who_do_not() {
    let mut schedule = Schedule::new(16);
    for peer in 0..1_000 {
        schedule.set(
            &peer,
            at(0),
            if peer % 2 == 0 {
                Class::Failing
            } else {
                Class::Fresh
            },
        );
    }
    let mut held = Vec::new();
    while let Some((_, slot)) = schedule.take(at(1)) {
        held.push(slot);
    }
    assert_eq!(held.len(), 12, "three quarters of the slots");
    assert!(
        held.iter()
            .filter(|slot| slot.count == Count::Of(Class::Failing))
            .count()
            <= 4
    );
    assert_eq!(
        schedule.next(),
        None,
        "nobody is worth waking up for until a slot is free"
    );
    schedule.set(&5_000, at(1), Class::Well);
    let (peer, slot) = schedule.take(at(1)).expect("a slot for one who answers");
    assert_eq!((peer, schedule.in_flight()), (5_000, 13));
    schedule.free(slot);
    schedule.free(held.pop().unwrap());
    assert!(schedule.take(at(1)).is_some());
}

#[test]
fn the_failing_ones_hold_a_quarter() {
    let mut schedule = Schedule::new(16);
    for peer in 0..100 {
        schedule.set(&peer, at(0), Class::Failing);
    }
    let slots: Vec<Slot> = std::iter::from_fn(|| schedule.take(at(1)))
        .map(|(_, slot)| slot)
        .collect();
    assert_eq!(slots.len(), 4);
}

#[test]
fn requests_and_their_memory_are_bounded() {
    let mut schedule = Schedule::new(1_000);
    for peer in 0..1_000 {
        schedule.set(&peer, at(0), Class::Well);
    }
    let mut slots: Vec<Slot> = std::iter::from_fn(|| schedule.take(at(1)))
        .map(|(_, slot)| slot)
        .collect();
    assert_eq!(slots.len(), PUSHES_BYTES_MAX / BATCH_BYTES_MAX);
    for slot in &mut slots {
        schedule.shrink(slot, 1_000);
    }
    assert_eq!(schedule.used(|_| true).bytes, slots.len() * 1_000);
    assert!(schedule.take(at(1)).is_some());
    for slot in slots {
        schedule.free(slot);
    }
    assert_eq!(schedule.in_flight(), 1);
}

#[test]
fn one_slot_is_enough_for_everybody_in_turn() {
    let mut schedule = Schedule::new(1);
    schedule.set(&1, at(0), Class::Failing);
    let (_, slot) = schedule.take(at(1)).unwrap();
    schedule.set(&2, at(0), Class::Well);
    assert!(schedule.take(at(1)).is_none());
    schedule.free(slot);
    assert!(schedule.take(at(1)).is_some());
}

/// Takes all slots that there are for those who wait.
fn take_all(schedule: &mut Schedule<usize>) -> Vec<Slot> {
    let taken = std::iter::from_fn(|| schedule.take(at(1)));
    taken.map(|(_, slot)| slot).collect()
}

#[test]
fn more_at_a_time_and_those_who_answer_slowly_leave_slots_to_others() {
    let mut schedule = Schedule::new(16);
    for peer in 0..100 {
        let class = if peer % 2 == 0 { Class::More } else { Class::Slow };
        schedule.set(&peer, at(0), class);
    }
    let held = take_all(&mut schedule);
    let of = |class| held.iter().filter(|slot| slot.count == Count::Of(class)).count();
    assert_eq!((of(Class::More), of(Class::Slow)), (8, 4));
    schedule.set(&1_000, at(0), Class::Fresh);
    schedule.set(&1_001, at(0), Class::Well);
    assert_eq!(take_all(&mut schedule).len(), 2);
}

#[test]
fn requests_that_take_long_leave_their_slots_to_others_but_not_for_ever() {
    let mut schedule = Schedule::new(4);
    let mut late = Vec::new();
    for round in 1..=3 {
        for peer in 0..10 {
            schedule.set(&peer, at(0), Class::Well);
        }
        let mut held = take_all(&mut schedule);
        assert_eq!(held.len(), 4, "round {round}");
        for slot in &mut held {
            schedule.shrink(slot, 1_000);
            schedule.late(slot);
        }
        late.append(&mut held);
    }
    assert_eq!((schedule.in_flight(), take_all(&mut schedule).len()), (12, 0));
    for slot in late {
        schedule.free(slot);
    }
    assert_eq!((schedule.in_flight(), schedule.used(|_| true).bytes), (0, 0));
}

#[test]
fn late_requests_hold_so_much_memory() {
    let mut schedule = Schedule::new(1_000);
    for peer in 0..1_000 {
        schedule.set(&peer, at(0), Class::Well);
    }
    let mut held = take_all(&mut schedule);
    for slot in &mut held {
        schedule.late(slot);
    }
    let late = schedule.used(|count| count == Count::Late);
    assert_eq!(
        (late.requests, late.bytes),
        (LATE_BYTES_MAX / BATCH_BYTES_MAX, LATE_BYTES_MAX)
    );
    assert_eq!(take_all(&mut schedule).len(), late.requests);
}

#[test]
fn who_failed_stays_in_its_share_however_long_it_takes() {
    let mut schedule = Schedule::new(16);
    for peer in 0..100 {
        schedule.set(&peer, at(0), Class::Failing);
    }
    for slot in &mut take_all(&mut schedule) {
        schedule.late(slot);
    }
    assert_eq!(take_all(&mut schedule).len(), 0);
}
