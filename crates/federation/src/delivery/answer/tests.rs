//! Answers of peers, good, bad and odd.

use bytes::Bytes;

use super::*;

fn now() -> Timestamp {
    Timestamp::parse("2026-11-30T12:00:00Z").unwrap()
}

fn response(status: u16, content_type: &str, body: &str) -> Response {
    Response {
        status,
        content_type: Some(content_type.to_owned()),
        body: Bytes::copy_from_slice(body.as_bytes()),
        ..Response::default()
    }
}

fn results_of(body: &str) -> HashMap<u64, ItemResult> {
    match judge(Ok(response(200, "application/json", body)), now()) {
        Judgement::Results(results) => results,
        other => panic!("{other:?}"),
    }
}

fn failure(answer: Result<Response, EgressError>) -> Failure {
    match judge(answer, now()) {
        Judgement::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_item_is_told_apart() {
    let body = r#"{"results":[{"peer_seq":1,"status":"stored"},{"peer_seq":2,"status":"duplicate","more":1.5},
        {"peer_seq":3,"status":"refused","code":"recipient_unknown"},{"peer_seq":4,"status":"retry","code":"mailbox_full","retry_after_s":30},
        {"peer_seq":5,"status":"what"},{"peer_seq":6,"status":"refused","code":"<b>x</b>"},
        {"peer_seq":7,"status":"retry","retry_after_s":999999999}],"acked_through":9}"#;
    let retry = |code, secs: Option<u64>| ItemResult::Retry {
        code,
        after: secs.map(Duration::from_secs),
    };
    let expected = [
        (1, ItemResult::Delivered),
        (2, ItemResult::Delivered),
        (3, ItemResult::Refused("recipient_unknown".to_owned())),
        (4, retry(Some(ErrorCode::MailboxFull), Some(30))),
        (5, retry(None, None)),
        (6, ItemResult::Refused("peer_failed".to_owned())),
        (7, retry(None, Some(3_600))),
    ];
    assert_eq!(results_of(body), HashMap::from(expected));
}

#[test]
fn row_51_a_page_of_a_proxy_is_no_answer() {
    let page = "<html>Bad gateway</html>";
    for status in [200, 400, 404, 410, 502] {
        let failure = failure(Ok(response(status, "text/html", page)));
        assert_eq!(
            (failure.kind, failure.code.as_str()),
            (FailureKind::Away, "peer_failed"),
            "{status}"
        );
    }
    for body in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"results":[{"peer_seq":-1,"status":"stored"}]}"#,
        page,
    ] {
        assert_eq!(
            failure(Ok(response(200, "application/json", body))).kind,
            FailureKind::Away,
            "{body}"
        );
    }
    let stored = r#"{"results":[{"peer_seq":1,"status":"stored"}]}"#;
    assert_eq!(
        failure(Ok(response(200, "text/html", stored))).kind,
        FailureKind::Away
    );
}

#[test]
fn a_status_that_settles_nothing_is_a_failure_of_the_moment() {
    for (status, kind) in [
        (201, FailureKind::Away),
        (204, FailureKind::Away),
        (301, FailureKind::Away),
        (307, FailureKind::Away),
        (401, FailureKind::Unauthentic),
        (403, FailureKind::Policy),
        (404, FailureKind::Away),
        (409, FailureKind::Away),
        (410, FailureKind::Away),
        (422, FailureKind::Away),
        (429, FailureKind::Busy),
        (500, FailureKind::Away),
        (503, FailureKind::Away),
    ] {
        let failure = failure(Ok(response(
            status,
            "application/problem+json",
            r#"{"code":"peer_blocked"}"#,
        )));
        assert_eq!(
            (failure.kind, failure.code.as_str()),
            (kind, "peer_blocked"),
            "{status}"
        );
    }
}

#[test]
fn only_the_peer_itself_calls_a_batch_unfit() {
    let problem = r#"{"code":"body_too_large"}"#;
    let judged = judge(Ok(response(413, "application/problem+json", problem)), now());
    assert!(matches!(judged, Judgement::Unfit { code: Some(code), .. } if code == "body_too_large"));
    let judged = judge(
        Ok(response(400, "application/json", r#"{"code":"member_invalid"}"#)),
        now(),
    );
    assert!(matches!(judged, Judgement::Unfit { code: Some(code), .. } if code == "member_invalid"));
    // A proxy with a smaller limit: smaller batches help, but it refuses nothing for good.
    let judged = judge(Ok(response(413, "text/html", "<html>")), now());
    assert!(matches!(judged, Judgement::Unfit { code: None, .. }));
    let changed = failure(Ok(response(
        400,
        "application/problem+json",
        r#"{"code":"digest_mismatch"}"#,
    )));
    assert_eq!(changed.kind, FailureKind::Away);
}

#[test]
fn retry_after_is_seconds_or_a_date_and_an_hour_at_most() {
    let pause = |text: &str| {
        let answer = Response {
            retry_after: Some(text.to_owned()),
            ..response(429, "text/plain", "")
        };
        failure(Ok(answer)).retry_after.map(|pause| pause.as_secs())
    };
    assert_eq!(pause("120"), Some(120));
    assert_eq!(pause("86400"), Some(3_600));
    assert_eq!(pause("Mon, 30 Nov 2026 12:05:00 GMT"), Some(300));
    assert_eq!(pause("Mon, 30 Nov 2026 11:05:00 GMT"), Some(0));
    assert_eq!(pause("Mon, 30 Nov 2037 11:05:00 GMT"), Some(3_600));
    assert_eq!(pause("soon"), None);
    assert_eq!(pause("-1"), None);
}

#[test]
fn no_answer_is_a_failure() {
    for (error, kind) in [
        (EgressError::TimedOut, FailureKind::Slow),
        (EgressError::NameUnresolved(None), FailureKind::Away),
        (EgressError::AnswerTooLarge { bytes_max: 1 }, FailureKind::Away),
        (EgressError::ConnectFailed("x".into()), FailureKind::Away),
        (
            EgressError::AddressRefused([127, 0, 0, 1].into()),
            FailureKind::Away,
        ),
    ] {
        let told = error.kind();
        let failure = failure(Err(error));
        assert_eq!((failure.kind, failure.detail.as_str()), (kind, told));
    }
}
