//! Which messages may go out beside which.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::limits::{QUEUE_ITEMS_MAX, WAITING_MAX};

const ALL: Room = Room {
    items: 64,
    bytes: 1 << 20,
};

fn at(secs: u64) -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_000) + Duration::from_secs(secs)
}

fn item(seq: u64, sender: &str, recipient: &str) -> OutboxItem {
    OutboxItem {
        peer_seq: seq,
        accepted_at: at(seq),
        sender: Did::parse(&format!("did:aip:alpha.example:{sender}")).unwrap(),
        recipient: Did::parse(&format!("did:aip:beta.example:{recipient}")).unwrap(),
        id: Uuid::from_u128(u128::from(seq)),
        wire: Bytes::from(vec![b'x'; 100]),
    }
}

/// The messages of these pairs, from 1.
fn items(pairs: &[(&str, &str)]) -> Vec<OutboxItem> {
    let numbered = (1..).zip(pairs);
    numbered.map(|(seq, (from, to))| item(seq, from, to)).collect()
}

/// A ledger that has looked at messages, and the messages.
struct Looked {
    ledger: Ledger,
    items: Vec<OutboxItem>,
}

impl Looked {
    fn at(pairs: &[(&str, &str)]) -> Self {
        let (mut ledger, items) = (Ledger::new(&Arc::default()), items(pairs));
        ledger.look_at(&items);
        Self { ledger, items }
    }

    fn take(&mut self, seqs: &[u64]) {
        let taken = self.items.iter().filter(|item| seqs.contains(&item.peer_seq));
        self.ledger.take(taken);
    }

    fn choose(&self, now: Timestamp, at_hand: &[u64]) -> Vec<u64> {
        let at_hand = self.items.iter().filter(|item| at_hand.contains(&item.peer_seq));
        let at_hand = at_hand.map(|item| (item.peer_seq, item.clone())).collect();
        self.ledger.choose(now, ALL, &at_hand)
    }

    fn ready(&self, now: Timestamp) -> Vec<u64> {
        ready(&self.ledger, now, ALL)
    }
}

fn ready(ledger: &Ledger, now: Timestamp, room: Room) -> Vec<u64> {
    let ready = ledger.ready(now, room, false);
    ready.into_iter().map(|due| due.seq).collect()
}

#[test]
fn a_pair_goes_together_or_waits_for_what_is_on_its_way() {
    let mut looked = Looked::at(&[("a", "x"), ("b", "x"), ("a", "x"), ("a", "y"), ("b", "x")]);
    assert_eq!(looked.ready(at(9)), [1, 2, 3, 4, 5]);
    looked.take(&[1]);
    assert_eq!(looked.ready(at(9)), [2, 4, 5], "3 waits for 1, nobody else does");
    looked.take(&[2, 4, 5]);
    assert_eq!(looked.ready(at(9)), [0_u64; 0]);
    assert_eq!(
        looked.ledger.next_due(),
        None,
        "nothing happens until an answer comes"
    );
    looked.ledger.left([1]);
    assert_eq!(looked.ready(at(9)), [3]);
}

#[test]
fn a_message_that_waits_for_a_retry_holds_its_pair_and_nobody_else() {
    let mut looked = Looked::at(&[("a", "x"), ("a", "x"), ("b", "x")]);
    looked.take(&[1]);
    looked.ledger.defer(&[(1, at(100), Some(ErrorCode::MailboxFull))]);
    assert_eq!(looked.ready(at(99)), [3]);
    let code = looked.ledger.last_code(&looked.items[1]);
    assert_eq!(code, Some(ErrorCode::MailboxFull), "that of its pair");
    looked.take(&[3]);
    assert_eq!(looked.ledger.next_due(), Some(at(100)), "2 waits for 1");
    assert_eq!(looked.ready(at(100)), [1, 2]);
    looked.ledger.forget_pauses();
    assert_eq!(looked.ready(at(0)), [1, 2]);
}

#[test]
fn the_more_often_a_pair_is_held_up_the_fewer_of_it_go() {
    let mut looked = Looked::at(&[("a", "x"); 200]);
    let mut went = Vec::new();
    for tries in 0..9 {
        let seqs = looked.ready(at(tries));
        went.push(seqs.len());
        looked.take(&seqs);
        assert_eq!(looked.ledger.tries(1), u32::try_from(tries).unwrap());
        let again: Vec<_> = seqs.iter().map(|seq| (*seq, at(tries + 1), None)).collect();
        looked.ledger.defer(&again);
    }
    assert_eq!(went, [64, 32, 16, 8, 4, 2, 1, 1, 1]);
    looked.take(&[1]);
    looked.ledger.got_through([1], at(10));
    assert_eq!(looked.ready(at(10)), (2..=65).collect::<Vec<u64>>(), "it is free");
}

#[test]
fn those_that_were_held_up_leave_half_of_a_batch_to_others_and_take_turns() {
    let mut pairs = vec![("a", "x"); 100];
    pairs.extend([("b", "x"); 100]);
    let mut looked = Looked::at(&pairs);
    for seq in [1, 101] {
        looked.take(&[seq]);
        looked.ledger.defer(&[(seq, at(seq), None)]);
        looked.take(&[seq]);
        looked.ledger.got_through([seq], at(seq));
    }
    assert_eq!(looked.ready(at(200)), (2..=65).collect::<Vec<u64>>());
    let others: Vec<OutboxItem> = (201..=300).map(|seq| item(seq, "c", "x")).collect();
    looked.ledger.look_at(&others);
    looked.items.extend(others);
    let shared: Vec<u64> = (2..=33).chain(201..=232).collect();
    assert_eq!(looked.ready(at(200)), shared);
    assert_eq!(looked.choose(at(200), &(1..=300).collect::<Vec<u64>>()), shared);
    let with_others = looked.ledger.ready(at(200), ALL, true);
    assert_eq!(with_others.len(), 64, "there are others already");
    looked.take(&shared);
    looked.ledger.got_through(shared, at(200));
    let next: Vec<u64> = (102..=133).chain(233..=264).collect();
    assert_eq!(looked.ready(at(200)), next, "the one that has waited longer");
}

#[test]
fn what_holds_up_the_others_is_tried_once_in_a_while() {
    let mut looked = Looked::at(&[("a", "x"), ("b", "x"), ("c", "x")]);
    looked.take(&[1, 2, 3]);
    let [full, ahead] = [ErrorCode::MailboxFull, ErrorCode::FutureCursor].map(Some);
    let ledger = &mut looked.ledger;
    ledger.defer(&[(1, at(900), full), (2, at(5), full), (3, at(900), ahead)]);
    ledger.hurry(at(1));
    assert_eq!(looked.ready(at(1)), [1, 2], "3 waits for those");
    looked.take(&[1]);
    looked.ledger.defer(&[(1, at(900), full)]);
    looked.ledger.hurry(at(10));
    assert_eq!(looked.ready(at(10)), [2], "not again so soon");
    looked.ledger.hurry(at(11));
    assert_eq!(looked.ready(at(11)), [1, 2]);
}

#[test]
fn the_lowest_are_tried_first() {
    let names: Vec<String> = (0..3 * HURRIED_MAX).map(|number| format!("n{number}")).collect();
    let pairs: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let mut looked = Looked::at(&pairs);
    let all: Vec<u64> = looked.items.iter().map(|item| item.peer_seq).collect();
    looked.take(&all);
    let held_up: Vec<_> = all
        .iter()
        .rev()
        .map(|seq| (*seq, at(1_000 - seq), None))
        .collect();
    looked.ledger.defer(&held_up);
    looked.ledger.hurry(at(1));
    assert_eq!(looked.ready(at(1)), all[..HURRIED_MAX]);
}

#[test]
fn what_is_not_at_hand_holds_its_pair() {
    let looked = Looked::at(&[("a", "x"), ("a", "x"), ("b", "x")]);
    assert_eq!(looked.choose(at(9), &[2, 3]), [3]);
    assert_eq!(looked.choose(at(9), &[1, 3]), [1, 3]);
}

#[test]
fn batches_are_bounded_but_one_message_always_goes() {
    let looked = Looked::at(&[("a", "x"), ("b", "x"), ("c", "x")]);
    let two = Room { items: 2, ..ALL };
    assert_eq!(ready(&looked.ledger, at(9), two), [1, 2]);
    let small = Room { bytes: 1, ..ALL };
    assert_eq!(ready(&looked.ledger, at(9), small), [1]);
    let bytes = Room {
        bytes: 2 * (100 + ITEM_BYTES),
        ..ALL
    };
    assert_eq!(ready(&looked.ledger, at(9), bytes), [1, 2]);
}

#[test]
fn beginning_again_does_not_send_what_is_on_its_way() {
    let mut looked = Looked::at(&[("a", "x"), ("a", "x"), ("b", "x")]);
    looked.take(&[1]);
    looked.ledger.restart();
    let Looked { ledger, items } = &mut looked;
    assert_eq!(
        (ledger.cursor(), ledger.waiting_count(), ledger.away()),
        (0, 0, 1)
    );
    ledger.look_at(items);
    assert_eq!(looked.ready(at(9)), [3]);
    looked.ledger.back(&[1]);
    assert_eq!(looked.ready(at(9)), [1, 2, 3]);
}

#[test]
fn what_somebody_else_settled_is_forgotten() {
    let mut looked = Looked::at(&[("a", "x"), ("b", "x")]);
    let due = looked.ledger.ready(at(9), ALL, false);
    looked.ledger.forget_missing(&due, &[item(2, "b", "x")]);
    assert_eq!(looked.ready(at(9)), [2]);
}

#[test]
fn nothing_is_held_of_what_has_left() {
    let mut looked = Looked::at(&[("a", "x"), ("a", "x"), ("b", "x")]);
    looked.take(&[1, 3]);
    looked.ledger.defer(&[(3, at(3), None)]);
    looked.ledger.got_through([1], at(2));
    assert_eq!((looked.ledger.waiting_count(), looked.ledger.lanes.len()), (2, 2));
    looked.take(&[2, 3]);
    looked.ledger.left([2, 3]);
    assert!(looked.ledger.is_empty() && looked.ledger.ranks.is_empty());
    assert_eq!((looked.ledger.waiting_count(), looked.ledger.away()), (0, 0));
}

#[test]
fn there_are_places_for_all_that_an_outbox_holds() {
    assert!(size_of::<Place>() <= 16 && size_of::<Lane>() + size_of::<Rank>() <= 160);
    assert!(WAITING_MAX > usize::try_from(QUEUE_ITEMS_MAX).unwrap());
}

/// What one step of a random life does with the batch that it names.
#[derive(Debug, Clone)]
enum Step {
    Send,
    Back(usize),
    Settle(usize),
    Defer(usize, u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Send),
        2 => (0..4_usize).prop_map(Step::Back),
        3 => (0..4_usize).prop_map(Step::Settle),
        2 => (0..4_usize, 0..50_u64).prop_map(|(batch, pause)| Step::Defer(batch, pause)),
        1 => Just(Step::Restart),
    ]
}

/// The life of a ledger, and what is true of the outbox whatever it believes.
struct Life {
    items: Vec<OutboxItem>,
    ledger: Ledger,
    waits: BTreeSet<u64>,
    batches: Vec<Vec<u64>>,
}

impl Life {
    fn new(items: Vec<OutboxItem>) -> Self {
        Self {
            ledger: Ledger::new(&Arc::default()),
            waits: items.iter().map(|item| item.peer_seq).collect(),
            batches: Vec::new(),
            items,
        }
    }

    fn of(&self, seqs: impl Fn(u64) -> bool) -> Vec<OutboxItem> {
        let items = self.items.iter();
        let items = items.filter(|item| self.waits.contains(&item.peer_seq) && seqs(item.peer_seq));
        items.cloned().collect()
    }

    fn pair(&self, seq: u64) -> Pair {
        Pair::of(&self.items[usize::try_from(seq).unwrap() - 1])
    }

    fn send(&mut self, now: u64) {
        let room = Room {
            items: 5,
            bytes: 1 << 20,
        };
        let due = self.ledger.ready(at(now), room, true);
        let new = self.of(|seq| seq > self.ledger.cursor());
        let new: Vec<OutboxItem> = new.into_iter().take(7).collect();
        self.ledger.look_at(&new);
        let at_hand = self.of(|seq| due.iter().any(|due| due.seq == seq));
        let at_hand = at_hand.into_iter().chain(new);
        let at_hand = at_hand.map(|item| (item.peer_seq, item)).collect();
        let batch = self.ledger.choose(at(now), room, &at_hand);
        self.ledger.take(batch.iter().filter_map(|seq| at_hand.get(seq)));
        for seq in &batch {
            let is_earlier = |other: &u64| other < seq && self.pair(*other) == self.pair(*seq);
            let mut earlier = self.waits.iter().filter(|other| is_earlier(other));
            assert!(earlier.all(|other| batch.contains(other)), "{seq} overtakes");
            assert!(
                self.batches.iter().all(|other| !other.contains(seq)),
                "{seq} twice"
            );
        }
        if !batch.is_empty() {
            self.batches.push(batch);
        }
    }

    fn step(&mut self, now: u64, step: &Step) {
        match step {
            Step::Send => self.send(now),
            Step::Restart => self.ledger.restart(),
            Step::Back(index) | Step::Settle(index) | Step::Defer(index, _)
                if *index >= self.batches.len() => {}
            Step::Back(index) => self.ledger.back(&self.batches.remove(*index)),
            Step::Settle(index) => {
                let batch = self.batches.remove(*index);
                self.waits.retain(|seq| !batch.contains(seq));
                self.ledger.got_through(batch, at(now));
            }
            Step::Defer(index, pause) => {
                let batch = self.batches.remove(*index).into_iter();
                let deferred: Vec<_> = batch.map(|seq| (seq, at(now + pause), None)).collect();
                self.ledger.defer(&deferred);
            }
        }
    }

    /// What the ledger keeps beside its lanes follows from them.
    fn check(&self, now: u64) {
        let can_send = !self.ledger.ready(at(now), ALL, false).is_empty();
        assert_eq!(can_send, self.ledger.next_due().is_some_and(|due| due <= at(now)));
        let lanes = &self.ledger.lanes;
        let ranks = lanes.iter().filter_map(|(pair, lane)| lane.rank(*pair));
        assert_eq!(ranks.collect::<BTreeSet<Rank>>(), self.ledger.ranks);
        let waiting: usize = lanes.values().map(|lane| lane.waiting.len()).sum();
        assert_eq!(waiting, self.ledger.waiting_count());
        let away: usize = lanes.values().map(|lane| lane.away).sum();
        assert_eq!(away, self.ledger.away());
        assert!(lanes.values().all(|lane| !lane.is_empty()));
    }

    /// Whatever happened: when nothing holds it up any more, all of it goes.
    fn end(&mut self, now: u64) {
        while let Some(batch) = self.batches.pop() {
            self.ledger.back(&batch);
        }
        self.ledger.forget_pauses();
        // Two for what is left, since new ones may be looked at without any going.
        for _ in 0..self.items.len() * 2 {
            self.send(now);
            self.step(now, &Step::Settle(0));
        }
        assert!(self.waits.is_empty() && self.ledger.is_empty());
    }
}

proptest! {
    /// However batches fail, come back and are deferred, no message goes out while an earlier one of its pair has not left,
    /// unless both are in the same batch; and none is forgotten.
    #[test]
    fn pairs_are_never_reordered_and_nothing_is_stranded(
        pairs in prop::collection::vec((0..3_usize, 0..3_usize), 1..40),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let names = ["a", "b", "c"];
        let pairs: Vec<_> = pairs.into_iter().map(|(from, to)| (names[from], names[to])).collect();
        let mut life = Life::new(items(&pairs));
        let mut last = 0;
        for (now, step) in (0..).zip(&steps) {
            life.step(now, step);
            life.check(now);
            last = now;
        }
        life.end(last);
    }
}
