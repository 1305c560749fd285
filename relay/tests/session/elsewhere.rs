//! The machine, and sessions of other processes.

use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::limits::CLAIM_LEAD_MILLIS;
use aip_relay::mailbox::Epoch;
use aip_relay::session::{
    Delivery, Done, Effect, Elsewhere, Event, Found, Position, Said, SessionId, Wanted,
};

const SECOND: Duration = Duration::from_secs(1);

/// One session that shares, with messages 1 to 3 in its mailbox.
struct Side {
    machine: Delivery,
    id: SessionId,
    now: Timestamp,
}

impl Side {
    fn new() -> (Self, Vec<Effect>) {
        let mut side = Self {
            machine: Delivery::new(),
            id: SessionId::from_random(1),
            now: Timestamp::from_unix_millis(1_900_000_000_000),
        };
        let position = Position {
            epoch: Epoch::parse("e1").unwrap(),
            floor: 0,
            next_seq: 4,
        };
        let effects = side.feed(Event::Join {
            session: side.id,
            share: true,
            credit: 10,
            position,
        });
        (side, effects)
    }

    fn feed(&mut self, event: Event) -> Vec<Effect> {
        self.machine.handle(self.now, event)
    }

    fn done(&mut self, work: Done) -> Vec<Effect> {
        let session = self.id;
        self.feed(Event::Done { session, work })
    }

    fn found(&mut self, seqs: &[u64]) -> Vec<Effect> {
        let found = |seq: &u64| Found {
            seq: *seq,
            attempts: 0,
            sessions: 0,
            bytes: 100,
        };
        self.done(Done::Fetched(seqs.iter().map(found).collect()))
    }

    fn poll(&mut self) -> Vec<Effect> {
        let session = self.id;
        self.feed(Event::Poll { session })
    }

    fn wait(&mut self, time: Duration) -> Vec<Effect> {
        self.now = self.now + time;
        self.poll()
    }

    /// Messages 1 to 3 were read and are being claimed.
    fn moving() -> Self {
        let (mut side, effects) = Self::new();
        assert!(matches!(effects[..], [Effect::Fetch { .. }]), "{effects:?}");
        let effects = side.found(&[1, 2, 3]);
        assert_eq!(effects, [deliver(&[1, 2, 3])]);
        side
    }
}

fn deliver(seqs: &[u64]) -> Effect {
    Effect::Deliver { seqs: seqs.to_vec() }
}

fn release(seqs: &[u64], after: Duration) -> Effect {
    let seqs = seqs.to_vec();
    Effect::Release { seqs, after }
}

fn again(seqs: &[u64]) -> Effect {
    Effect::Fetch {
        wanted: Wanted::Seqs(seqs.to_vec()),
        max_messages: seqs.len(),
        max_bytes: u64::MAX,
    }
}

#[test]
fn what_is_sent_is_kept_almost_until_it_is_offered_again() {
    let mut side = Side::moving();
    let kept = Duration::from_millis(30_000 - CLAIM_LEAD_MILLIS);
    let effects = side.done(Done::Sent(vec![1, 2, 3]));
    assert_eq!(effects, [release(&[1, 2, 3], kept)]);
    assert_eq!(side.wait(29 * SECOND), []);
    assert_eq!(side.wait(SECOND), [again(&[1, 2, 3])]);
}

#[test]
fn what_is_taken_occupies_nobody_and_is_asked_for_when_its_time_is_over() {
    let mut side = Side::moving();
    assert_eq!(side.machine.in_flight(side.id), (3, 300));
    assert_eq!(side.done(Done::Taken(vec![(1, 5 * SECOND), (3, 9 * SECOND)])), []);
    assert_eq!(side.machine.in_flight(side.id), (1, 100));
    assert_eq!(side.wait(4 * SECOND), []);
    assert_eq!(side.wait(SECOND), [again(&[1])]);
    assert_eq!(side.found(&[1]), [deliver(&[1])]);
    assert_eq!(side.wait(4 * SECOND), [again(&[3])]);
    // Settled by the other in the meantime.
    assert_eq!(side.found(&[]), []);
    assert_eq!(side.wait(60 * SECOND), []);
}

#[test]
fn what_is_given_back_is_asked_for_at_once() {
    let mut side = Side::moving();
    side.done(Done::Taken(vec![(1, 30 * SECOND), (2, 30 * SECOND)]));
    let released = Event::Elsewhere(Elsewhere::Released(vec![2, 3, 9]));
    assert_eq!(side.feed(released), [Effect::Wake(side.id)]);
    assert_eq!(side.poll(), [again(&[2])]);
}

#[test]
fn what_is_given_back_before_it_is_known_to_be_taken_is_asked_for_at_once() {
    let mut side = Side::moving();
    assert_eq!(side.feed(Event::Elsewhere(Elsewhere::Released(vec![1, 2]))), []);
    assert_eq!(side.done(Done::Taken(vec![(1, 30 * SECOND)])), [again(&[1])]);
    // The other one was this session's all along.
    assert_eq!(side.done(Done::Sent(vec![2, 3])).len(), 1);
    assert_eq!(side.found(&[1]), [deliver(&[1])]);
    assert_eq!(side.done(Done::Taken(vec![(1, 30 * SECOND)])), []);
    assert_eq!(side.wait(20 * SECOND), []);
}

#[test]
fn what_is_settled_elsewhere_is_not_asked_for() {
    let mut side = Side::moving();
    side.done(Done::Taken(vec![
        (1, 5 * SECOND),
        (2, 5 * SECOND),
        (3, 5 * SECOND),
    ]));
    let settled = Elsewhere::Settled {
        upto: 1,
        also: vec![3],
        floor: 1,
    };
    side.feed(Event::Elsewhere(settled));
    side.feed(Event::Elsewhere(Elsewhere::Buried(2)));
    assert_eq!(side.wait(60 * SECOND), []);
}

#[test]
fn a_nak_and_a_leave_give_back() {
    let mut side = Side::moving();
    side.done(Done::Sent(vec![1, 2, 3]));
    let session = side.id;
    let nak = |seq, retry_after| Event::Said {
        session,
        frame: Said::Nak {
            epoch: "e1".to_owned(),
            seq,
            retry_after,
        },
    };
    assert_eq!(side.feed(nak(1, 7 * SECOND)), [release(&[1], 7 * SECOND)]);
    let effects = side.feed(nak(2, Duration::ZERO));
    assert_eq!(effects, [again(&[2]), release(&[2], Duration::ZERO)]);
    let effects = side.feed(Event::Leave { session });
    assert_eq!(effects, [release(&[3, 1], Duration::ZERO)]);
}

#[test]
fn an_ack_gives_nothing_back() {
    let mut side = Side::moving();
    side.done(Done::Sent(vec![1, 2, 3]));
    let session = side.id;
    let frame = Said::Ack {
        epoch: "e1".to_owned(),
        upto: 3,
        also: vec![],
    };
    side.feed(Event::Said { session, frame });
    let effects = side.done(Done::Acked(3));
    assert_eq!(effects, [Effect::Acked { floor: 3 }]);
    assert_eq!(side.feed(Event::Leave { session }), []);
}

#[test]
fn a_takeover_elsewhere_ends_the_sessions_it_names() {
    let mut side = Side::moving();
    side.done(Done::Sent(vec![1, 2, 3]));
    let (own, stranger) = (side.id, SessionId::from_random(9));
    let nobody = Event::Elsewhere(Elsewhere::TakenOver(vec![stranger]));
    assert_eq!(side.feed(nobody), []);
    assert!(side.machine.has(own));
    let effects = side.feed(Event::Elsewhere(Elsewhere::TakenOver(vec![own])));
    let all = release(&[1, 2, 3], Duration::ZERO);
    assert_eq!(effects, [Effect::Replaced(own), all]);
    assert!(!side.machine.has(own));
    let now = side.now;
    assert_eq!(side.machine.takeover_pause(now), Some(SECOND));
}

#[test]
fn a_hint_that_names_nothing_is_followed_to_the_end() {
    let mut side = Side::moving();
    side.done(Done::Sent(vec![1, 2, 3]));
    let hint = || Event::Elsewhere(Elsewhere::Unsure);
    assert_eq!(side.feed(hint()), [Effect::Wake(side.id)]);
    let wanted = |effects: &[Effect]| match effects {
        [Effect::Fetch { wanted, .. }] => wanted.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(wanted(&side.poll()), Wanted::After(3));
    // Another one while it looks.
    side.feed(hint());
    let effects = side.found(&[4, 5]);
    assert_eq!(effects[0], deliver(&[4, 5]));
    assert_eq!(wanted(&effects[1..]), Wanted::After(5));
    assert_eq!(side.found(&[]), []);
    assert_eq!(side.poll(), []);
    // A failed look is made again.
    side.feed(hint());
    assert_eq!(wanted(&side.poll()), Wanted::After(5));
    side.done(Done::FetchFailed);
    assert_eq!(wanted(&side.wait(SECOND)), Wanted::After(5));
    assert_eq!(side.found(&[]), []);
    assert_eq!(side.wait(SECOND), []);
}
