//! Frames to the byte.

use aip_protocol::name::Did;
use aip_relay::mailbox::Status;
use aip_relay::session::SessionId;
use uuid::Uuid;

use super::*;

fn parse(text: &str) -> Result<Frame, Unreadable> {
    Frame::parse(&Bytes::copy_from_slice(text.as_bytes()))
}

fn at() -> Timestamp {
    Timestamp::parse("2026-11-29T20:15:30.123Z").unwrap()
}

#[test]
fn frames_of_an_agent_are_read() {
    let Ok(Frame::Ack { epoch, upto, also }) = parse(r#"{"t":"ack","epoch":"e","upto":17,"also":[19,20]}"#)
    else {
        panic!("no ack")
    };
    assert_eq!((epoch.as_str(), upto, also), ("e", 17, vec![19, 20]));
    assert!(matches!(
        parse(r#"{"t":"ack","epoch":"e","upto":0}"#),
        Ok(Frame::Ack { .. })
    ));
    let nak = parse(r#"{"t":"nak","epoch":"e","seq":1,"retry_after_s":5}"#);
    assert!(matches!(
        nak,
        Ok(Frame::Nak {
            seq: 1,
            retry_after_secs: 5,
            ..
        })
    ));
    assert!(matches!(
        parse(r#"{"t":"reject","epoch":"e","seq":1,"code":"x"}"#),
        Ok(Frame::Reject { .. })
    ));
    assert!(matches!(
        parse(r#"{"t":"credit","n":99999999999}"#),
        Ok(Frame::Credit { messages: u32::MAX })
    ));
    let auth = parse(r#"{"t":"auth","token":"x","credit":8,"cursor":{"epoch":"e","seq":1},"new":[]}"#);
    let Ok(Frame::Auth(auth)) = auth else {
        panic!("no auth")
    };
    assert_eq!(
        (auth.token.as_deref(), auth.credit, auth.share),
        (Some("x"), Some(8), false)
    );
}

#[test]
fn an_envelope_is_cut_out_as_it_is() {
    let text = "{\"envelope\" : { \"b\":1,\n \"a\" :\"\\u00e9\"} ,\"ref\":\"r\",\"t\":\"send\"}";
    let Ok(Frame::Send { reference, envelope }) = parse(text) else {
        panic!("no send")
    };
    assert_eq!(
        (reference.as_str(), &envelope[..]),
        ("r", &b"{ \"b\":1,\n \"a\" :\"\\u00e9\"}"[..])
    );
}

#[test]
fn anything_else_is_unreadable() {
    let long = format!(
        r#"{{"t":"send","ref":"{}","envelope":{{}}}}"#,
        "r".repeat(REF_BYTES_MAX + 1)
    );
    let deep = format!(r#"{{"t":"credit","n":1,"x":{}}}"#, "[".repeat(100_000));
    for text in [
        "",
        "this is not JSON",
        "[]",
        "{}",
        r#"{"t":"hello"}"#,
        r#"{"t":7}"#,
        r#"{"t":"ack","upto":1}"#,
        r#"{"t":"ack","epoch":"e"}"#,
        r#"{"t":"ack","epoch":"e","upto":-1}"#,
        r#"{"t":"ack","epoch":"e","upto":1.0}"#,
        r#"{"t":"ack","epoch":"e","upto":1,"also":["2"]}"#,
        r#"{"t":"ack","epoch":"e","upto":1,"upto":2}"#,
        r#"{"t":"nak","epoch":"e","seq":1}"#,
        r#"{"t":"reject","epoch":"e","seq":1}"#,
        r#"{"t":"credit"}"#,
        r#"{"t":"send","ref":"1"}"#,
        r#"{"t":"send","envelope":{}}"#,
        &long,
        &deep,
    ] {
        assert_eq!(parse(text).err(), Some(Unreadable), "{text:.80}");
    }
}

#[test]
fn a_message_frame_holds_the_envelope_byte_for_byte() {
    let wire = Bytes::from_static(b"{\"z\": 1,\n\"a\": \"\xc3\xa9\"}");
    let item = Item {
        seq: 17,
        attempt: 2,
        accepted_at: at(),
        wire,
    };
    assert_eq!(
        message(&Epoch::parse("e1").unwrap(), &item),
        "{\"t\":\"msg\",\"epoch\":\"e1\",\"seq\":17,\"attempt\":2,\"accepted_at\":\"2026-11-29T20:15:30.123Z\",\
         \"envelope\":{\"z\": 1,\n\"a\": \"é\"}}"
    );
}

#[test]
fn frames_of_the_hub_have_their_members() {
    let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let domain = Domain::parse("hub.example").unwrap();
    assert_eq!(
        read(challenge("c", &domain, at())),
        json!({ "t": "challenge", "challenge": "c", "domain": "hub.example", "server_time": "2026-11-29T20:15:30.123Z" })
    );
    let epoch = Epoch::parse("e1").unwrap();
    let hello = Ready {
        session: SessionId::from_random(255),
        epoch: epoch.clone(),
        floor: 3,
        pending: 4,
    };
    assert_eq!(
        read(ready(&hello)),
        json!({ "t": "ready", "session": "00000000000000ff", "epoch": "e1", "floor": 3, "pending": 4 })
    );
    assert_eq!(
        read(acked(&epoch, 9)),
        json!({ "t": "acked", "epoch": "e1", "floor": 9 })
    );
    assert_eq!(
        read(error(ErrorCode::CursorInvalid, "Sorry.")),
        json!({ "t": "error", "code": "cursor_invalid", "detail": "Sorry." })
    );
    let mut update = StatusUpdate {
        id: Uuid::nil(),
        to: Did::parse("did:aip:hub.example:bob").unwrap(),
        status: Status::Acked,
        code: None,
        at: at(),
    };
    let mut expected = json!({
        "t": "status",
        "id": "00000000-0000-0000-0000-000000000000",
        "to": "did:aip:hub.example:bob",
        "status": "acked",
        "at": "2026-11-29T20:15:30.123Z",
    });
    assert_eq!(read(status(&update)), expected);
    (update.status, update.code) = (Status::Dead, Some("unreadable".to_owned()));
    (expected["status"], expected["code"]) = ("dead".into(), "unreadable".into());
    assert_eq!(read(status(&update)), expected);
}

#[test]
fn a_refused_send_keeps_its_reference() {
    let text = refusal(
        "r-1",
        &Refusal::new(ErrorCode::RateLimited, "Wait.").retry_after(2),
    );
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({ "t": "sent", "ref": "r-1", "status": "refused", "code": "rate_limited", "detail": "Wait.",
                "retry_after_s": 2 })
    );
}
