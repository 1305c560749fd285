//! Bodies of pushes, in every shape.

use super::*;

fn push(body: &str) -> Result<Push, ErrorCode> {
    let domain = Domain::parse("peer.example").unwrap();
    read(body.as_bytes(), &domain).map_err(|refusal| refusal.code)
}

fn body(rest: &str) -> String {
    format!(r#"{{"aip":"1","domain":"peer.example",{rest}}}"#)
}

#[test]
fn envelopes_keep_their_bytes() {
    let items = r#"[{"peer_seq":7,"envelope": {"b" : 1,  "a":"\u00e4"} },{"peer_seq":5}]"#;
    let push = push(&body(&format!(r#""epoch":"e","floor":4,"items":{items}"#))).unwrap();
    assert_eq!((push.epoch.as_str(), push.floor), ("e", Some(4)));
    let [first, second] = &push.items[..] else {
        panic!()
    };
    assert_eq!(
        (first.seq, &first.wire[..]),
        (7, &br#"{"b" : 1,  "a":"\u00e4"}"#[..])
    );
    assert_eq!((second.seq, second.wire.len()), (5, 0));
}

#[test]
fn an_envelope_that_is_no_strict_json_is_its_items_fault() {
    let deep = format!("{}{}", "[".repeat(31), "]".repeat(31));
    let deeper = format!("[{deep}]");
    let item = |seq: u32, envelope: &str| format!(r#"{{"peer_seq":{seq},"envelope":{envelope}}}"#);
    let items = [
        item(1, &format!(r#"{{"x":{deep}}}"#)),
        item(2, &format!(r#"{{"x":{deeper}}}"#)),
        item(3, r#"{"a":1,"a":2}"#),
        item(4, r#"{"a":1.5}"#),
    ];
    let push = push(&body(&format!(r#""epoch":"e","items":[{}]"#, items.join(",")))).unwrap();
    let codes: Vec<_> = push
        .items
        .iter()
        .map(|item| item.item.as_ref().err().copied())
        .collect();
    let bad = Some(ErrorCode::JsonInvalid);
    assert_eq!(
        codes,
        [None, bad, bad, bad],
        "32 levels are as many as an envelope may have"
    );
}

#[test]
fn what_is_no_batch() {
    for (rest, code) in [
        (r#""epoch":"e""#, ErrorCode::MemberMissing),
        (r#""epoch":"","items":[]"#, ErrorCode::MemberInvalid),
        (r#""epoch":"e","items":{}"#, ErrorCode::MemberInvalid),
        (r#""epoch":"e","items":[],"floor":-1"#, ErrorCode::MemberInvalid),
        (r#""epoch":"e","items":[],"items":[]"#, ErrorCode::JsonInvalid),
        (r#""epoch":"e","items":[],"n":1.5"#, ErrorCode::JsonInvalid),
        (
            r#""epoch":"e","items":[{"peer_seq":0}]"#,
            ErrorCode::MemberInvalid,
        ),
        (
            r#""epoch":"e","items":[{"envelope":{}}]"#,
            ErrorCode::MemberInvalid,
        ),
        (r#""epoch":"e","items":[7]"#, ErrorCode::JsonInvalid),
        (
            r#""epoch":"e","items":[{"peer_seq":2},{"peer_seq":2}]"#,
            ErrorCode::MemberInvalid,
        ),
    ] {
        assert_eq!(push(&body(rest)).unwrap_err(), code, "{rest}");
    }
    let long = "e".repeat(EPOCH_BYTES_MAX + 1);
    let rest = format!(r#""epoch":"{long}","items":[]"#);
    assert_eq!(push(&body(&rest)).unwrap_err(), ErrorCode::MemberInvalid);
    let many = vec![r#"{"peer_seq":1}"#; BATCH_ITEMS_MAX + 1].join(",");
    let rest = format!(r#""epoch":"e","items":[{many}]"#);
    assert_eq!(push(&body(&rest)).unwrap_err(), ErrorCode::BodyTooLarge);
    let other = r#"{"aip":"1","domain":"other.example","epoch":"e","items":[]}"#;
    assert_eq!(push(other).unwrap_err(), ErrorCode::FromDomainMismatch);
    assert_eq!(push("[]").unwrap_err(), ErrorCode::JsonInvalid);
    assert_eq!(
        push(&format!("{} ,", body(r#""epoch":"e","items":[]"#))).unwrap_err(),
        ErrorCode::JsonInvalid
    );
}
