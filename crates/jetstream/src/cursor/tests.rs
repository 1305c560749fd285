//! The cursor against a model that keeps every sequence number for itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aip_protocol::name::Did;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Settle(u64),
    SettleUnseen(u64),
    SettleUpto(u64),
    Raise(u64, u64),
    Bury(u64),
    Unbury(u64),
    DropDead(i64),
    /// Through its bytes and back.
    Write,
}

fn step() -> impl Strategy<Value = Step> {
    let seq = 0..40_u64;
    prop_oneof![
        6 => seq.clone().prop_map(Step::Settle),
        1 => seq.clone().prop_map(Step::SettleUnseen),
        2 => seq.clone().prop_map(Step::SettleUpto),
        4 => (seq.clone(), 0..6_u64).prop_map(|(seq, session)| Step::Raise(seq, session)),
        2 => seq.clone().prop_map(Step::Bury),
        1 => seq.prop_map(Step::Unbury),
        1 => (0..60_i64).prop_map(Step::DropDead),
        2 => Just(Step::Write),
    ]
}

#[derive(Debug, Default)]
struct Model {
    settled: BTreeSet<u64>,
    unseen: BTreeSet<u64>,
    attempts: HashMap<u64, (u32, BTreeSet<u64>)>,
    dead: BTreeMap<u64, DeadPlace>,
}

impl Model {
    fn floor(&self) -> u64 {
        (1..=u64::MAX)
            .find(|seq| !self.settled.contains(seq))
            .unwrap_or(1)
            - 1
    }

    fn settle(&mut self, seq: u64) -> bool {
        self.attempts.remove(&seq);
        seq > 0 && self.settled.insert(seq)
    }
}

fn head(seq: u64) -> Head {
    Head {
        seq,
        stream_seq: seq * 10,
        accepted_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::UNIX_EPOCH,
        id: Uuid::from_u64_pair(4, seq),
        sender: Did::parse("did:aip:example.org:alice").unwrap(),
        recipient: Did::parse("did:aip:example.org:bob").unwrap(),
        wire_bytes: seq * 100,
    }
}

fn place(seq: u64) -> DeadPlace {
    DeadPlace {
        stream_seq: seq * 7,
        until: Timestamp::from_unix_secs(i64::try_from(seq).unwrap()),
    }
}

fn apply(cursor: &mut Cursor, model: &mut Model, step: &Step) {
    match *step {
        Step::Settle(seq) => assert_eq!(cursor.settle(&head(seq), 0), model.settle(seq)),
        Step::SettleUnseen(seq) => {
            let fresh = model.settle(seq);
            assert_eq!(cursor.settle_unseen(seq), fresh);
            if fresh {
                model.unseen.insert(seq);
            }
        }
        Step::SettleUpto(upto) => {
            let due: Vec<u64> = cursor.unsettled(upto).collect();
            let expected = (1..=upto).filter(|seq| !model.settled.contains(seq));
            assert_eq!(due, expected.collect::<Vec<_>>());
            for seq in due {
                assert!(cursor.settle(&head(seq), 0) && model.settle(seq));
            }
        }
        Step::Raise(seq, session) => raise(cursor, model, seq, session),
        Step::Bury(seq) => {
            cursor.bury(seq, place(seq));
            model.dead.insert(seq, place(seq));
        }
        Step::Unbury(seq) => {
            assert!(!cursor.unbury(seq, place(seq + 1)), "another dead letter");
            assert_eq!(cursor.unbury(seq, place(seq)), model.dead.remove(&seq).is_some());
        }
        Step::DropDead(secs) => {
            let (now, before) = (Timestamp::from_unix_secs(secs), model.dead.len());
            let seqs: Vec<u64> = (0..40).filter(|seq| seq % 3 > 0).collect();
            model
                .dead
                .retain(|seq, dead| dead.until > now || !seqs.contains(seq));
            assert_eq!(cursor.drop_dead(&seqs, now), (before - model.dead.len()) as u64);
        }
        Step::Write => *cursor = Cursor::decode(&cursor.encode()).unwrap(),
    }
}

fn raise(cursor: &mut Cursor, model: &mut Model, seq: u64, session: u64) {
    let told = cursor.raise(seq, session);
    if seq == 0 || model.settled.contains(&seq) {
        assert_eq!((told.count(), told.sessions()), (1, 1));
        return;
    }
    let (count, sessions) = model.attempts.entry(seq).or_default();
    *count += 1;
    if sessions.len() < aip_relay::limits::SESSIONS_COUNTED_MAX {
        sessions.insert(session);
    }
    assert_eq!((told.count(), told.sessions() as usize), (*count, sessions.len()));
}

fn compare(cursor: &Cursor, model: &Model) {
    assert_eq!(cursor.floor(), model.floor());
    assert_eq!(cursor.dead(), &model.dead);
    let pending: Vec<u64> = (1..60).filter(|seq| !model.settled.contains(seq)).collect();
    assert_eq!(cursor.unsettled(59).collect::<Vec<_>>(), pending);
    assert_eq!(cursor.pending(60), pending.len() as u64);
    for seq in 1..60 {
        assert_eq!(cursor.is_settled(seq), model.settled.contains(&seq));
        let count = model.attempts.get(&seq).map_or(0, |(count, _)| *count);
        assert_eq!(cursor.attempts(seq).count(), count);
    }
    let bytes: u64 = model.settled.difference(&model.unseen).map(|seq| seq * 100).sum();
    assert_eq!(cursor.settled_bytes(), bytes);
    let highest = model.settled.last().copied().unwrap_or(0);
    assert_eq!(cursor.next_seq(), highest + 1);
    let lowest_pending = model.floor() + 1;
    assert!(
        cursor.read_from(0) <= lowest_pending * 10,
        "nothing pending is skipped"
    );
}

proptest! {
    #[test]
    fn the_cursor_is_as_the_model(steps in prop::collection::vec(step(), 0..80)) {
        let (mut cursor, mut model) = (Cursor::EMPTY, Model::default());
        for step in &steps {
            apply(&mut cursor, &mut model, step);
            compare(&cursor, &model);
        }
    }

    /// Whoever holds an older record takes too much for pending, never too little.
    #[test]
    fn what_is_settled_stays_settled(steps in prop::collection::vec(step(), 0..60)) {
        let (mut cursor, mut model) = (Cursor::EMPTY, Model::default());
        for step in &steps {
            let before = cursor.clone();
            apply(&mut cursor, &mut model, step);
            prop_assert!(cursor.floor() >= before.floor());
            prop_assert!(cursor.settled_bytes() >= before.settled_bytes());
            prop_assert!(cursor.next_seq() >= before.next_seq());
            prop_assert!(cursor.read_from(0) >= before.read_from(0));
            prop_assert!((1..60).all(|seq| cursor.is_settled(seq) || !before.is_settled(seq)));
        }
    }

    #[test]
    fn nothing_else_is_a_cursor(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(cursor) = Cursor::decode(&bytes) {
            prop_assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
        }
    }
}

#[test]
fn the_floor_lies_below_the_lowest_pending_one() {
    let mut cursor = Cursor::EMPTY;
    for seq in [5, 3, 1] {
        assert!(cursor.settle(&head(seq), 0));
    }
    assert_eq!((cursor.floor(), cursor.pending(7)), (1, 3));
    assert!(cursor.settle(&head(2), 0));
    assert_eq!((cursor.floor(), cursor.read_from(0)), (3, 21));
    assert!(cursor.settle(&head(4), 0));
    assert_eq!((cursor.floor(), cursor.pending(7), cursor.next_seq()), (5, 1, 6));
}

#[test]
fn bytes_of_lost_entries_are_given_back_once_nothing_is_pending() {
    let mut cursor = Cursor::EMPTY;
    cursor.settle_unseen(1);
    cursor.given_out(3);
    cursor.all_settled(3, 300);
    assert_eq!(cursor.settled_bytes(), 0, "one is still pending");
    cursor.settle(&head(2), 0);
    cursor.all_settled(2, 100);
    assert_eq!(
        cursor.settled_bytes(),
        200,
        "told by who does not know the last one"
    );
    cursor.all_settled(3, 300);
    assert_eq!(cursor.settled_bytes(), 300);
}

#[test]
fn attempts_and_dead_letters_are_bounded() {
    let mut cursor = Cursor::EMPTY;
    for seq in 1..=limits::ATTEMPTS_KEPT_MAX as u64 + 10 {
        cursor.raise(seq, 1);
    }
    cursor.raise(7, 2);
    assert_eq!(cursor.attempts.len(), limits::ATTEMPTS_KEPT_MAX);
    let read = Cursor::decode(&cursor.encode()).unwrap();
    assert_eq!(read.attempts.len(), limits::ATTEMPTS_WRITTEN_MAX);
    assert_eq!(
        read.attempts(7),
        cursor.attempts(7),
        "who has had the most is kept"
    );
    for seq in 1..=DEAD_LETTERS_MAX + 2 {
        cursor.bury(seq, place(seq));
    }
    assert_eq!(cursor.dead().len() as u64, DEAD_LETTERS_MAX);
    assert_eq!(cursor.dead().keys().next(), Some(&3));
}

/// A mailbox at its worst still has a record that a stream takes.
#[test]
fn the_largest_record_is_small_enough() {
    let mut cursor = Cursor::EMPTY;
    let far = 1_000_000_000_000;
    cursor.floor = far;
    for seq in (far + 2..).step_by(2).take(10_000) {
        cursor.above.insert(seq);
    }
    for seq in 0..limits::ATTEMPTS_KEPT_MAX as u64 {
        for session in 0..4 {
            cursor.raise(far + 1 + 2 * seq, session);
        }
    }
    for seq in 1..=DEAD_LETTERS_MAX {
        let stream_seq = far + seq;
        cursor.bury(
            seq * 1_000,
            DeadPlace {
                stream_seq,
                ..place(seq)
            },
        );
    }
    assert!(cursor.encode().len() < limits::RECORD_OVERHEAD_BYTES_MAX);
    assert_eq!(Cursor::decode(&cursor.encode()).unwrap().above, cursor.above);
}
