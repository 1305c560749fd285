//! What is purged, and when.

use super::*;

fn place(name: &str) -> Place {
    let layout = crate::streams::Layout::new(crate::streams::Names::new("aip"), [1; 32], &[0; 256]);
    let mut id = [0; 16];
    id[..name.len()].copy_from_slice(name.as_bytes());
    layout.mailbox_place(&aip_relay::mailbox::MailboxId::from_bytes(id))
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_unix_secs(1_000_000_000 + secs)
}

const WAIT: i64 = (limits::PURGE_DELAY_SECS + limits::PURGE_STEP_SECS).cast_signed();

fn taken(queue: &mut Queue, secs: i64) -> Option<u64> {
    queue.take(at(secs)).map(|due| due.step.keep_from)
}

#[test]
fn nothing_goes_while_its_id_must_be_known() {
    let mut queue = Queue::default();
    assert!(queue.add(&place("a"), 7, at(0)));
    assert_eq!(taken(&mut queue, WAIT - 1), None);
    assert_eq!(taken(&mut queue, WAIT), Some(7));
    assert_eq!(taken(&mut queue, WAIT), None);
    assert!(queue.mailboxes.is_empty() && queue.order.is_empty());
    // The wait counts from the last of what goes together.
    assert!(limits::PURGE_DELAY_SECS >= limits::DUPLICATE_WINDOW.as_secs());
}

#[test]
fn what_is_settled_within_a_minute_goes_together_and_the_rest_in_its_time() {
    let mut queue = Queue::default();
    for (secs, keep_from) in [(0, 1), (10, 2), (60, 3), (61, 4), (200, 5)] {
        assert!(queue.add(&place("a"), keep_from, at(secs)));
    }
    assert_eq!(taken(&mut queue, WAIT), Some(3));
    assert_eq!(taken(&mut queue, WAIT), None);
    assert_eq!(taken(&mut queue, WAIT + 61), Some(4));
    assert_eq!(taken(&mut queue, WAIT + 1_000), Some(5));
}

#[test]
fn a_busy_mailbox_does_not_put_off_its_purge() {
    let mut queue = Queue::default();
    let mut purged = 0;
    for secs in 0..10_000_u64 {
        let now = secs.cast_signed();
        assert!(queue.add(&place("a"), secs + 1, at(now)));
        if let Some(keep_from) = taken(&mut queue, now) {
            purged = keep_from;
        }
        assert!(
            queue
                .mailboxes
                .values()
                .all(|one| one.steps.len() <= limits::PURGE_STEPS_MAX)
        );
        let late = secs.saturating_sub(purged);
        assert!(
            late <= limits::PURGE_DELAY_SECS + 2 * limits::PURGE_STEP_SECS + 2,
            "{late}"
        );
    }
}

#[test]
fn older_news_change_nothing() {
    let mut queue = Queue::default();
    assert!(queue.add(&place("a"), 9, at(0)));
    assert!(queue.add(&place("a"), 3, at(500)));
    assert_eq!(taken(&mut queue, WAIT + 500), Some(9));
    assert_eq!(taken(&mut queue, WAIT + 500), None);
}

#[test]
fn a_failed_purge_comes_again_before_the_next() {
    let mut queue = Queue::default();
    assert!(queue.add(&place("a"), 1, at(0)));
    assert!(queue.add(&place("a"), 2, at(100)));
    let due = queue.take(at(WAIT)).expect("due");
    queue.put(due);
    assert_eq!(taken(&mut queue, WAIT), Some(1));
    assert_eq!(taken(&mut queue, WAIT + 100), Some(2));
}

#[test]
fn what_waits_for_a_mailbox_that_moves_is_forgotten() {
    let here = place("a");
    let moved = Place {
        era: 1,
        stream: "elsewhere".into(),
        ..here.clone()
    };
    let mut queue = Queue::default();
    assert!(queue.add(&here, 100, at(0)));
    let tried = queue.take(at(WAIT)).expect("due");
    assert!(queue.add(&here, 200, at(WAIT)));
    assert!(queue.add(&moved, 3, at(WAIT)));
    // A purge that failed, and a process that is late, do not bring places of the old stream back.
    queue.put(tried);
    assert!(queue.add(&here, 300, at(WAIT)));
    let due = queue.take(at(3 * WAIT)).expect("due");
    assert_eq!((&*due.stream, due.step.keep_from), ("elsewhere", 3));
    assert!(queue.mailboxes.is_empty() && queue.order.is_empty());
}
