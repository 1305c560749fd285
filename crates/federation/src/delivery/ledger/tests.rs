//! Which messages may go out beside which.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

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

fn ledger(pairs: &[(&str, &str)]) -> Ledger {
    let items: Vec<OutboxItem> = (1..)
        .zip(pairs)
        .map(|(seq, (from, to))| item(seq, from, to))
        .collect();
    let mut ledger = Ledger::default();
    ledger.look_at(&items);
    ledger
}

fn ready(ledger: &Ledger, now: Timestamp) -> Vec<u64> {
    ledger.ready(now, ALL, |_| true)
}

#[test]
fn a_pair_goes_together_or_waits_for_what_is_on_its_way() {
    let mut ledger = ledger(&[("a", "x"), ("b", "x"), ("a", "x"), ("a", "y"), ("b", "x")]);
    assert_eq!(ready(&ledger, at(9)), [1, 2, 3, 4, 5]);
    ledger.take(&[1]);
    assert_eq!(
        ready(&ledger, at(9)),
        [2, 4, 5],
        "3 waits for 1, nobody else does"
    );
    ledger.take(&[2, 4, 5]);
    assert_eq!(ready(&ledger, at(9)), [0_u64; 0]);
    assert_eq!(ledger.next_due(), None, "nothing happens until an answer comes");
    ledger.left([1]);
    assert_eq!(ready(&ledger, at(9)), [3]);
}

#[test]
fn a_message_that_waits_for_a_retry_holds_its_pair_and_nobody_else() {
    let mut ledger = ledger(&[("a", "x"), ("a", "x"), ("b", "x")]);
    ledger.take(&[1]);
    ledger.defer(&[(1, at(100), Some(ErrorCode::MailboxFull))]);
    assert_eq!(ready(&ledger, at(99)), [3]);
    assert_eq!(ledger.tried(1), (1, Some(ErrorCode::MailboxFull)));
    ledger.take(&[3]);
    assert_eq!(ledger.next_due(), Some(at(100)), "2 waits for 1");
    assert_eq!(ready(&ledger, at(100)), [1, 2]);
    ledger.forget_pauses();
    assert_eq!(ready(&ledger, at(0)), [1, 2]);
}

#[test]
fn what_is_not_at_hand_holds_its_pair() {
    let ledger = ledger(&[("a", "x"), ("a", "x"), ("b", "x")]);
    assert_eq!(ledger.ready(at(9), ALL, |seq| seq != 1), [3]);
}

#[test]
fn batches_are_bounded_but_one_message_always_goes() {
    let ledger = ledger(&[("a", "x"), ("b", "x"), ("c", "x")]);
    let two = Room { items: 2, ..ALL };
    assert_eq!(ledger.ready(at(9), two, |_| true), [1, 2]);
    let small = Room { bytes: 1, ..ALL };
    assert_eq!(ledger.ready(at(9), small, |_| true), [1]);
    let bytes = Room {
        bytes: 2 * (100 + ITEM_BYTES),
        ..ALL
    };
    assert_eq!(ledger.ready(at(9), bytes, |_| true), [1, 2]);
}

#[test]
fn beginning_again_does_not_send_what_is_on_its_way() {
    let mut ledger = ledger(&[("a", "x"), ("a", "x"), ("b", "x")]);
    ledger.take(&[1]);
    ledger.restart();
    assert_eq!((ledger.cursor(), ledger.waiting.len(), ledger.away()), (0, 0, 1));
    ledger.look_at(&[item(1, "a", "x"), item(2, "a", "x"), item(3, "b", "x")]);
    assert_eq!(ready(&ledger, at(9)), [3]);
    ledger.back(&[1]);
    assert_eq!(ready(&ledger, at(9)), [1, 2, 3]);
}

#[test]
fn what_somebody_else_settled_is_forgotten() {
    let mut ledger = ledger(&[("a", "x"), ("b", "x")]);
    let missing = ledger.missing(&[1, 2], &[item(2, "b", "x")]);
    assert_eq!(missing, [1]);
    ledger.left(missing);
    assert_eq!(ready(&ledger, at(9)), [2]);
}

#[test]
fn a_message_that_waits_is_small() {
    assert!(size_of::<Entry>() <= 64, "{}", size_of::<Entry>());
    let mut ledger = Ledger::default();
    for seq in 1..=u64::try_from(WAITING_MAX).unwrap() {
        assert!(ledger.room() > 0);
        ledger.waiting.insert(seq, ledger_entry(seq));
    }
    assert_eq!(ledger.room(), 0);
}

fn ledger_entry(seq: u64) -> Entry {
    Entry {
        pair: Pair(seq),
        due: at(0),
        bytes: 1,
        tries: 0,
        code: None,
    }
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

proptest! {
    /// However batches fail, come back and are deferred, no message goes out while an earlier one of its pair has not left,
    /// unless both are in the same batch.
    #[test]
    fn pairs_are_never_reordered(pairs in prop::collection::vec((0..3_u8, 0..3_u8), 1..40), steps in prop::collection::vec(step(), 1..120)) {
        let names = ["a", "b", "c"];
        let items: Vec<OutboxItem> = (1..).zip(&pairs).map(|(seq, (from, to))| item(seq, names[usize::from(*from)], names[usize::from(*to)])).collect();
        let mut ledger = Ledger::default();
        let mut waits: BTreeSet<u64> = (1..=items.len() as u64).collect();
        let mut batches: Vec<Vec<u64>> = Vec::new();
        let pair = |seq: u64| pairs[usize::try_from(seq).unwrap() - 1];
        for (now, step) in (0..).zip(steps) {
            let looked: Vec<OutboxItem> = items.iter().filter(|item| waits.contains(&item.peer_seq) && item.peer_seq > ledger.cursor()).cloned().collect();
            ledger.look_at(&looked);
            match step {
                Step::Send => {
                    let room = Room { items: 5, bytes: 1 << 20 };
                    let batch = ledger.ready(at(now), room, |_| true);
                    ledger.take(&batch);
                    for seq in &batch {
                        let earlier: Vec<u64> = waits.iter().copied().filter(|other| other < seq && pair(*other) == pair(*seq)).collect();
                        prop_assert!(earlier.iter().all(|other| batch.contains(other)), "{seq} overtakes one of {earlier:?}");
                        prop_assert!(batches.iter().all(|other| !other.contains(seq)), "{seq} twice");
                    }
                    if !batch.is_empty() { batches.push(batch); }
                }
                Step::Restart => ledger.restart(),
                Step::Back(index) | Step::Settle(index) | Step::Defer(index, _) if index >= batches.len() => {}
                Step::Back(index) => ledger.back(&batches.remove(index)),
                Step::Settle(index) => {
                    let batch = batches.remove(index);
                    for seq in &batch { waits.remove(seq); }
                    ledger.left(batch);
                }
                Step::Defer(index, pause) => {
                    let deferred: Vec<_> = batches.remove(index).into_iter().map(|seq| (seq, at(now + pause), None)).collect();
                    ledger.defer(&deferred);
                }
            }
            let can_send = !ledger.ready(at(now), ALL, |_| true).is_empty();
            prop_assert_eq!(can_send, ledger.next_due().is_some_and(|due| due <= at(now)));
        }
    }
}
