//! The checker against good histories and against one bad history for each thing that must not be.

use super::*;

fn send_of(id: &str, digest: &str, outcome: Outcome, seq: Option<u64>) -> Event {
    Event::Send {
        to: "bob".into(),
        id: id.into(),
        digest: digest.into(),
        outcome,
        seq,
    }
}

fn send(id: &str, outcome: Outcome) -> Event {
    send_of(id, &format!("digest of {id}"), outcome, None)
}

fn offer(id: &str, seq: u64, attempt: u32) -> Event {
    let digest = format!("digest of {id}");
    Event::Deliver {
        to: "bob".into(),
        id: id.into(),
        digest,
        epoch: "e".into(),
        seq,
        attempt,
    }
}

fn apply(id: &str, seq: u64) -> Event {
    Event::Apply {
        to: "bob".into(),
        id: id.into(),
        epoch: "e".into(),
        seq,
    }
}

fn keep(id: &str) -> Event {
    Event::Keep {
        to: "bob".into(),
        id: id.into(),
    }
}

/// Everything that may happen.
fn good() -> Vec<Event> {
    vec![
        send_of("a", "digest of a", Outcome::Ok, Some(1)),
        // Its answer was lost; the retry tells.
        send("b", Outcome::Unknown),
        send_of("b", "digest of b", Outcome::Duplicate, Some(2)),
        offer("a", 1, 1),
        apply("a", 1),
        // The recipient dies before the effect, and gets it again after a later one.
        offer("b", 2, 1),
        send("c", Outcome::Ok),
        offer("c", 3, 1),
        apply("c", 3),
        offer("b", 2, 2),
        apply("b", 2),
        // Nobody knows, and it is there; nobody knows, and it is not.
        send("d", Outcome::Unknown),
        offer("d", 4, 1),
        apply("d", 4),
        send("e", Outcome::Unknown),
        // Refused, and a refused reuse of an id.
        send("f", Outcome::Refused),
        send_of("a", "other digest", Outcome::Refused, None),
        send("g", Outcome::Ok),
        keep("g"),
    ]
}

#[test]
fn a_good_history_is_good() {
    assert_eq!(check(&good()), []);
    assert_eq!(check(&[]), []);
}

/// Without the events that `lost` picks.
fn without(lost: impl Fn(&Event) -> bool) -> Vec<Event> {
    good().into_iter().filter(|event| !lost(event)).collect()
}

fn with(more: impl IntoIterator<Item = Event>) -> Vec<Violation> {
    check(&good().into_iter().chain(more).collect::<Vec<_>>())
}

#[test]
fn a_lost_message_is_found() {
    let gone =
        without(|event| matches!(event, Event::Deliver { id, .. } | Event::Apply { id, .. } if id == "a"));
    assert_eq!(check(&gone), [Violation::Lost("a".into())]);
    let gone = without(|event| matches!(event, Event::Keep { .. }));
    assert_eq!(check(&gone), [Violation::Lost("g".into())]);
    // A duplicate is as good a promise as the first answer.
    let gone =
        without(|event| matches!(event, Event::Deliver { id, .. } | Event::Apply { id, .. } if id == "b"));
    assert_eq!(check(&gone), [Violation::Lost("b".into())]);
}

#[test]
fn a_message_that_was_taken_twice_is_found() {
    assert_eq!(
        with([send("a", Outcome::Ok)]),
        [Violation::TakenTwice("a".into())]
    );
}

#[test]
fn a_second_effect_is_found() {
    assert_eq!(with([apply("d", 4)])[0], Violation::AppliedTwice("d".into()));
    assert_eq!(
        with([offer("d", 4, 2)]),
        [Violation::DeliveredAfterEffect("d".into())]
    );
}

#[test]
fn a_missing_effect_is_found() {
    let missing = without(|event| matches!(event, Event::Apply { id, .. } if id == "d"));
    assert_eq!(check(&missing), [Violation::NeverApplied("d".into())]);
}

#[test]
fn a_wrong_order_is_found() {
    let swapped = [
        send("x", Outcome::Ok),
        send("y", Outcome::Ok),
        offer("y", 2, 1),
        offer("x", 1, 1),
        apply("y", 2),
        apply("x", 1),
    ];
    let wrong = [
        Violation::DeliveredOutOfOrder("x".into()),
        Violation::AppliedOutOfOrder("x".into()),
    ];
    assert_eq!(check(&swapped), wrong);
    let effects = [
        send("x", Outcome::Ok),
        send("y", Outcome::Ok),
        offer("x", 1, 1),
        offer("y", 2, 1),
        apply("y", 2),
        apply("x", 1),
    ];
    assert_eq!(check(&effects), [Violation::AppliedOutOfOrder("x".into())]);
}

#[test]
fn a_crash_lets_a_mailbox_begin_again_once() {
    let mut history = ["1", "2", "3", "4", "5"].map(|id| send(id, Outcome::Ok)).to_vec();
    let come = |id: &str, seq| [offer(id, seq, 1), apply(id, seq)];
    history.extend(come("4", 4));
    history.push(Event::Crash);
    history.extend(come("2", 2).into_iter().chain(come("3", 3)));
    assert_eq!(
        check(&[history.clone(), come("1", 5).to_vec(), come("5", 6).to_vec()].concat()),
        []
    );
    // Not twice.
    history.extend(come("1", 1).into_iter().chain(come("5", 5)));
    assert_eq!(
        check(&history),
        [
            Violation::DeliveredOutOfOrder("1".into()),
            Violation::AppliedOutOfOrder("1".into())
        ]
    );
    // And not before the crash.
    history.retain(|event| *event != Event::Crash);
    assert!(check(&history).contains(&Violation::DeliveredOutOfOrder("2".into())));
}

#[test]
fn another_mailbox_has_another_order() {
    let mut other = [offer("x", 1, 1), apply("x", 1)];
    for event in &mut other {
        let (Event::Deliver { to, .. } | Event::Apply { to, .. }) = event else {
            unreachable!()
        };
        *to = "carol".into();
    }
    assert_eq!(with(other.into_iter().chain([send("x", Outcome::Ok)])), []);
}

#[test]
fn a_place_that_is_given_out_twice_is_found() {
    let twice = with([send("x", Outcome::Ok), offer("x", 4, 2), apply("x", 4)]);
    assert_eq!(twice, [Violation::PlaceReused("bob e:4".into())]);
    let moved = [
        send("x", Outcome::Ok),
        offer("x", 7, 1),
        offer("x", 8, 2),
        apply("x", 8),
    ];
    assert_eq!(with(moved), [Violation::Moved("x".into())]);
    let told = [
        send_of("x", "digest of x", Outcome::Ok, Some(9)),
        offer("x", 7, 1),
        apply("x", 7),
    ];
    assert_eq!(with(told), [Violation::Moved("x".into())]);
}

#[test]
fn a_refused_message_that_arrives_is_found() {
    assert_eq!(
        with([offer("f", 9, 1), apply("f", 9)]),
        [Violation::RefusedDelivered("f".into())]
    );
    // Refused once nobody knew what became of it: it may be there.
    let open = [
        send("x", Outcome::Unknown),
        send("x", Outcome::Refused),
        offer("x", 9, 1),
        apply("x", 9),
    ];
    assert_eq!(with(open), []);
}

#[test]
fn a_message_from_nowhere_is_found() {
    assert_eq!(
        with([offer("x", 9, 1), apply("x", 9)]),
        [Violation::NeverSent("x".into())]
    );
}

#[test]
fn changed_bytes_are_found() {
    let changed = [
        send_of("x", "other", Outcome::Ok, None),
        offer("x", 9, 1),
        apply("x", 9),
    ];
    assert_eq!(with(changed), [Violation::Changed("x".into())]);
    // Two bodies under one id: whichever the hub took, never both.
    let both = [
        send_of("x", "other", Outcome::Unknown, None),
        send("x", Outcome::Unknown),
        offer("x", 9, 1),
        Event::Deliver {
            to: "bob".into(),
            id: "x".into(),
            digest: "other".into(),
            epoch: "e".into(),
            seq: 9,
            attempt: 2,
        },
        apply("x", 9),
    ];
    assert_eq!(with(both), [Violation::Changed("x".into())]);
}

#[test]
fn what_the_recorder_counts() {
    let history = History::default();
    assert!(history.is_empty());
    for event in good() {
        history.push(event);
    }
    assert_eq!(
        (
            history.len(),
            history.count(Outcome::Unknown),
            history.redelivered()
        ),
        (19, 3, 1)
    );
    assert_eq!(history.unsettled(), 0, "g is kept");
    history.push(send("x", Outcome::Duplicate));
    assert_eq!(history.unsettled(), 1);
}

#[test]
fn a_history_is_saved_line_by_line() {
    let history = History::default();
    for event in good() {
        history.push(event);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    history.save(&path).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let read: Vec<Event> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(read, good());
    assert!(
        text.starts_with(
            r#"{"op":"send","to":"bob","id":"a","digest":"digest of a","outcome":"ok","seq":1}"#
        )
    );
}
