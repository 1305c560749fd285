use super::*;

fn judged(err_code: u64, description: &str) -> Try {
    judge(&ApiError {
        code: 400,
        err_code,
        description: description.to_owned(),
    })
}

#[test]
fn a_wrong_last_sequence_tells_the_right_one() {
    let Try::Known(published) = judged(10071, "wrong last sequence: 17") else {
        panic!("not known");
    };
    assert_eq!(published, Published::WrongLast { last: Some(17) });
    let Try::Known(published) = judged(10164, "wrong last sequence") else {
        panic!("not known");
    };
    assert_eq!(published, Published::WrongLast { last: None });
}

#[test]
fn a_full_subject_is_not_a_full_stream() {
    assert!(matches!(
        judged(10077, "maximum messages per subject exceeded"),
        Try::Known(Published::Full)
    ));
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
