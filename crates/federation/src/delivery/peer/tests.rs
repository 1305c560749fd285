//! What is known of one peer, as attempts succeed and fail.

use std::time::Duration;

use super::super::answer::{Failure, FailureKind};
use super::*;
use crate::breaker::BreakerState;

fn at(secs: u64) -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_000) + Duration::from_secs(secs)
}

fn peer() -> Peer {
    let mut peer = Peer::new(&DeliveryConfig::new("here"), &Arc::default());
    peer.mail_came();
    peer
}

fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, "peer_failed", "HTTP 502")
}

/// One attempt that fails, with the longest pause there may be.
fn fail(peer: &mut Peer, kind: FailureKind, now: Timestamp) {
    peer.begin(now);
    let round = peer.push_begins();
    peer.push_ended();
    peer.failed(&failure(kind), 64, round, now, u32::MAX);
}

fn next(peer: &Peer, now: Timestamp) -> Timestamp {
    peer.next_at(now).expect("an attempt").0
}

#[test]
fn a_new_peer_is_asked_at_once_with_one_batch_and_more_when_it_answers() {
    let mut peer = peer();
    assert!(next(&peer, at(0)) <= at(0));
    let mut windows = Vec::new();
    for _ in 0..6 {
        peer.begin(at(0));
        assert_eq!(peer.next_at(at(0)), None, "one looks at the outbox at a time");
        peer.push_begins();
        windows.push(peer.window());
        peer.push_ended();
        peer.succeeded(at(0));
    }
    assert_eq!(windows, [1, 2, 3, 4, 4, 4]);
}

#[test]
fn no_more_batches_are_on_their_way_than_the_window_allows() {
    let mut peer = peer();
    for _ in 0..3 {
        peer.succeeded(at(0));
    }
    for _ in 0..4 {
        peer.begin(at(0));
        peer.push_begins();
    }
    assert_eq!(peer.next_at(at(0)), None);
    peer.push_ended();
    assert!(peer.next_at(at(0)).is_some());
}

#[test]
fn row_51_pauses_double_and_the_breaker_takes_over() {
    let mut peer = peer();
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        fail(&mut peer, FailureKind::Away, now);
        let due = next(&peer, now);
        pauses.push(due.millis_since(now) / 1_000);
        now = due;
    }
    // The fifth failure opens the breaker, whose probes are the attempts from then on.
    assert_eq!(pauses, [2, 4, 8, 16, 10, 20, 40, 80, 160, 320, 640, 900]);
    assert!(peer.succeeded(now));
    assert!(next(&peer, now) <= now, "a success of our own ends every pause");
    fail(&mut peer, FailureKind::Away, now);
    assert_eq!(next(&peer, now), now + Duration::from_secs(2));
}

#[test]
fn failures_of_batches_that_were_on_their_way_together_double_the_pause_once() {
    let mut peer = peer();
    for _ in 0..3 {
        peer.succeeded(at(0));
    }
    let rounds: Vec<u64> = (0..4)
        .map(|_| {
            peer.begin(at(0));
            peer.push_begins()
        })
        .collect();
    for round in rounds {
        peer.push_ended();
        peer.failed(&failure(FailureKind::Away), 64, round, at(1), u32::MAX);
    }
    assert_eq!(next(&peer, at(1)), at(3));
    assert_eq!(peer.breaker.failures(), 4);
    assert_eq!(peer.window(), 1);
}

#[test]
fn a_peer_is_what_its_last_answer_was() {
    let mut peer = peer();
    let class = |peer: &Peer| peer.next_at(at(0)).map(|(_, class)| class);
    peer.pace = Pace::Slow;
    assert_eq!(
        class(&peer),
        Some(Class::Fresh),
        "one that takes long is no answer"
    );
    peer.succeeded(at(0));
    assert_eq!(class(&peer), Some(Class::Slow));
    peer.pace = Pace::Prompt;
    assert_eq!(class(&peer), Some(Class::Well));
    peer.begin(at(0));
    let round = peer.push_begins();
    assert_eq!(class(&peer), Some(Class::More));
    peer.push_ended();
    peer.failed(&failure(FailureKind::Slow), 64, round, at(0), 0);
    assert_eq!(
        class(&peer),
        Some(Class::Failing),
        "after the first that took too long"
    );
}

#[test]
fn an_inbound_request_brings_a_probe_and_nothing_more() {
    let mut peer = peer();
    for _ in 0..5 {
        fail(&mut peer, FailureKind::Away, at(0));
    }
    assert_eq!(next(&peer, at(12)), at(16));
    peer.probe_soon(at(12));
    assert_eq!(next(&peer, at(12)), at(12));
    assert_eq!(peer.breaker.state(at(12)), BreakerState::HalfOpen, "not closed");
    fail(&mut peer, FailureKind::Away, at(12));
    assert_eq!(next(&peer, at(12)), at(32));
    peer.probe_soon(at(17));
    assert_eq!(next(&peer, at(17)), at(32), "it was asked five seconds ago");
    peer.probe_soon(at(22));
    assert_eq!(next(&peer, at(22)), at(22));
}

#[test]
fn retry_after_is_honoured_and_no_inbound_request_shortens_it() {
    let mut peer = peer();
    peer.begin(at(0));
    let round = peer.push_begins();
    peer.push_ended();
    let told = Failure {
        retry_after: Some(Duration::from_mins(2)),
        ..failure(FailureKind::Busy)
    };
    peer.failed(&told, 64, round, at(0), 0);
    assert_eq!(next(&peer, at(0)), at(120));
    peer.probe_soon(at(30));
    assert_eq!(next(&peer, at(30)), at(120));
    assert_eq!(peer.breaker.failures(), 0, "a peer that wants less is not away");
    peer.forget_pauses(at(31));
    assert_eq!(next(&peer, at(31)), at(31), "the operator wants it now");
}

#[test]
fn who_wants_none_of_it_is_asked_again_after_long() {
    let mut peer = peer();
    peer.begin(at(0));
    let round = peer.push_begins();
    peer.push_ended();
    let blocked = Failure::new(FailureKind::Policy, "peer_blocked", "HTTP 403");
    peer.failed(&blocked, 64, round, at(0), 0);
    assert_eq!(next(&peer, at(0)), at(1_800));
    assert_eq!(peer.breaker.failures(), 0);
    assert_eq!(
        peer.last_error.as_ref().map(|error| error.code.as_str()),
        Some("peer_blocked")
    );
}

#[test]
fn a_fresh_document_is_asked_for_once_when_our_signature_is_not_taken() {
    let mut peer = peer();
    fail(&mut peer, FailureKind::Unauthentic, at(0));
    assert!(peer.takes_fresh());
    assert!(!peer.takes_fresh());
    fail(&mut peer, FailureKind::Unauthentic, at(2));
    assert!(!peer.takes_fresh());
    peer.succeeded(at(3));
    fail(&mut peer, FailureKind::Unauthentic, at(4));
    assert!(peer.takes_fresh());
}

#[test]
fn what_fails_here_says_nothing_about_the_peer() {
    let mut peer = peer();
    peer.begin(at(0));
    peer.gathered_nothing();
    peer.failed(&Failure::own("the store"), 0, u64::MAX, at(0), 7);
    assert_eq!(next(&peer, at(0)), at(2));
    assert_eq!((peer.failures, peer.breaker.failures()), (0, 0));
}

#[test]
fn batches_shrink_after_what_was_too_much_and_grow_again() {
    let mut peer = peer();
    let items = |peer: &Peer| peer.errand(at(0)).room.items;
    peer.unfit(64);
    assert_eq!(items(&peer), 32);
    peer.unfit(3);
    assert_eq!(items(&peer), 1);
    peer.unfit(1);
    assert_eq!(items(&peer), 1);
    peer.succeeded(at(0));
    peer.succeeded(at(0));
    assert_eq!(items(&peer), 4);
    fail(&mut peer, FailureKind::Slow, at(0));
    assert_eq!(items(&peer), 4, "it was not the size: 64 were on their way");
    peer.begin(at(0));
    let round = peer.push_begins();
    peer.push_ended();
    peer.failed(&failure(FailureKind::Slow), 4, round, at(0), 0);
    assert_eq!(items(&peer), 2);
}

#[test]
fn mail_that_comes_during_a_look_is_looked_for_again() {
    let mut peer = peer();
    peer.begin(at(0));
    let errand = peer.errand(at(0));
    peer.mail_came();
    peer.reached_end(&errand);
    peer.gathered_nothing();
    assert!(next(&peer, at(0)) <= at(0));
    peer.begin(at(0));
    let errand = peer.errand(at(0));
    peer.reached_end(&errand);
    peer.gathered_nothing();
    assert!(peer.is_idle());
    assert_eq!(peer.next_at(at(0)), None);
}

#[test]
fn a_lease_is_kept_for_a_while_after_the_outbox_ran_empty() {
    let poll = Some(Duration::from_millis(250));
    let mut peer = peer();
    peer.begin(at(0));
    assert!(peer.needs_lease(at(0)));
    assert!(peer.leased(at(10)));
    peer.push_begins();
    peer.push_ended();
    peer.succeeded(at(0));
    peer.seen = peer.news;
    assert!(!peer.ran_empty(at(1), poll));
    assert!(!peer.is_idle());
    assert_eq!(next(&peer, at(1)), at(1) + Duration::from_millis(250));
    peer.begin(at(3));
    assert_eq!(peer.errand(at(3)).new_max, 256, "looks although there is no news");
    let errand = peer.errand(at(3));
    peer.reached_end(&errand);
    assert!(!peer.ran_empty(at(3), poll), "until 6");
    assert!(peer.ran_empty(at(6), poll), "now it is given back");
    peer.gathered_nothing();
    assert!(peer.is_idle());
}

#[test]
fn who_has_not_the_lease_tries_again_later_from_the_beginning() {
    let mut peer = peer();
    peer.begin(at(0));
    peer.not_ours(at(0), u32::MAX);
    peer.gathered_nothing();
    assert_eq!(next(&peer, at(0)), at(10));
    assert_eq!(peer.errand(at(10)).cursor, 0);
}

#[test]
fn a_peer_that_does_not_answer_costs_little() {
    assert!(size_of::<Peer>() <= 640, "{}", size_of::<Peer>());
}
