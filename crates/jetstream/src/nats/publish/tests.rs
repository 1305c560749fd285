//! What the answers to a publish mean.

use super::*;

fn judged(err_code: u64, description: &str) -> Try {
    let answer = serde_json::json!({
        "error": { "code": 400, "err_code": err_code, "description": description },
        "stream": "S",
        "seq": 0,
    });
    judge(serde_json::from_value(answer).expect("an answer"))
}

#[test]
fn a_wrong_last_sequence_tells_the_right_one_and_the_stream() {
    let Try::Overtaken { stream, last } = judged(10071, "wrong last sequence: 17") else {
        panic!("not overtaken");
    };
    assert_eq!((stream.as_str(), last), ("S", Some(17)));
    assert!(matches!(
        judged(10164, "wrong last sequence"),
        Try::Overtaken { last: None, .. }
    ));
}

#[test]
fn a_full_subject_is_not_a_full_stream() {
    let subject = judged(10077, "maximum messages per subject exceeded");
    assert!(matches!(subject, Try::Known(Published::Full)));
    assert!(matches!(judged(10077, "maximum bytes exceeded"), Try::Refused(_)));
}

#[test]
fn a_store_closed_under_the_message_leaves_the_outcome_open() {
    assert!(matches!(judged(10077, "store is closed"), Try::Unknown));
    assert!(matches!(judged(0, "raft: not leader"), Try::Unknown));
}

#[test]
fn a_twin_in_process_is_waited_for() {
    assert!(matches!(
        judged(10158, "duplicate message id is in process"),
        Try::Again
    ));
}

#[test]
fn an_answer_without_a_place_confirms_nothing() {
    let judged = |text: &str| judge(serde_json::from_str(text).expect("an answer"));
    assert!(matches!(judged("{}"), Try::Unknown));
    let stored = judged(r#"{"stream":"S","seq":3}"#);
    assert!(matches!(stored, Try::Known(Published::Stored { stream_seq: 3 })));
    let twin = judged(r#"{"stream":"S","seq":3,"duplicate":true}"#);
    assert!(matches!(twin, Try::Known(Published::Duplicate { stream_seq: 3 })));
}
