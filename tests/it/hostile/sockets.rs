//! The WebSocket: bad handshakes, bad frames, frames of others, and too much of everything.

use aip_tests::raw::{Request, Wire};
use aip_tests::ws::{Heard, Socket, ws_frame};
use aip_tests::{TestAgent, Vitals};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{House, assert_refused};

/// FIN and the opcodes of RFC 6455.
const FIN: u8 = 0x80;
const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;

const PATH: &str = "/api/v1/agents/connect";

fn handshake() -> Request {
    Request::get(PATH)
        .field("connection", "Upgrade")
        .field("upgrade", "websocket")
        .field("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

#[tokio::test]
async fn a_bad_handshake_is_refused() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let version = |request: Request, version: &str| request.field("sec-websocket-version", version);
    let protocol = |request: Request, name: &str| request.field("sec-websocket-protocol", name);
    let bad = [
        ("no upgrade", Request::get(PATH)),
        ("no version", protocol(handshake(), "aip.v1")),
        ("an old version", protocol(version(handshake(), "8"), "aip.v1")),
        ("no subprotocol", version(handshake(), "13")),
        (
            "another subprotocol",
            protocol(version(handshake(), "13"), "aip.v2"),
        ),
        (
            "a subprotocol in capitals",
            protocol(version(handshake(), "13"), "AIP.V1"),
        ),
        (
            "a subprotocol that is longer",
            protocol(version(handshake(), "13"), "aip.v1x"),
        ),
        ("an empty subprotocol", protocol(version(handshake(), "13"), "")),
        (
            "a foreign page",
            protocol(version(handshake(), "13"), "aip.v1").field("origin", "https://evil.example"),
        ),
        (
            "a page of nowhere",
            protocol(version(handshake(), "13"), "aip.v1").field("origin", "null"),
        ),
        (
            "this hub's own page",
            protocol(version(handshake(), "13"), "aip.v1").field("origin", house.hub.url()),
        ),
    ];
    for (what, request) in bad {
        let answer = house.ask(&request).await;
        let code = assert_refused(&answer, what);
        if what.contains("page") {
            assert_eq!((answer.status, code.as_str()), (403, "not_yours"), "{what}");
        }
    }
    let mut wire = Wire::open(house.hub.url()).await.unwrap();
    let good = protocol(version(handshake(), "13"), "chat, aip.v1");
    wire.send(&good.to_bytes()).await.unwrap();
    let answer = wire.answer().await.unwrap();
    assert_eq!(
        (answer.status, answer.header("sec-websocket-protocol")),
        (101, "aip.v1")
    );
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// Text frames that are none of the protocol: 4400.
const BAD_TEXTS: &[&str] = &[
    "hello",
    "",
    "[]",
    "null",
    "{\"t\":\"hello\"}",
    "{\"t\":\"ready\"}",
    "{\"t\":\"credit\",\"n\":1,\"n\":2}",
    "{\"t\":\"nak\",\"epoch\":\"\\ud800\",\"seq\":1,\"retry_after_s\":1}",
    "{\"t\":\"credit\",\"n\":1.0}",
    "{\"t\":\"credit\",\"n\":1e400}",
    "{\"t\":\"credit\",\"n\":-1}",
    "{\"t\":\"ack\",\"epoch\":\"x\",\"upto\":1,\"also\":[[]]}",
];

/// What is no frame of the protocol, and the codes that the socket may be closed with (0: without one).
fn bad_frames() -> Vec<(&'static str, Vec<u8>, &'static [u16])> {
    const BROKEN: &[u16] = &[4400, 1002, 0];
    const TOO_LARGE: &[u16] = &[4413];
    let text = |body: &str| ws_frame(FIN | TEXT, body.len() as u64, body.as_bytes());
    let deep = format!("{{\"t\":{}", "[".repeat(100_000));
    let half = ws_frame(CONTINUATION, 1 << 19, &vec![b' '; 1 << 19]);
    let endless = [ws_frame(TEXT, 1, b" "), half.repeat(4)].concat();
    let nested = [ws_frame(TEXT, 1, b"{"), ws_frame(FIN | TEXT, 1, b"}")].concat();
    let large = ws_frame(FIN | TEXT, (1 << 20) + 1, &vec![b' '; (1 << 20) + 1]);
    let mut frames: Vec<(&str, Vec<u8>, &[u16])> = vec![
        ("deep nesting", text(&deep), &[4400]),
        ("no UTF-8", ws_frame(FIN | TEXT, 2, b"\xff\xfe"), BROKEN),
        ("binary", ws_frame(FIN | BINARY, 2, b"{}"), &[4400]),
        (
            "a continuation of nothing",
            ws_frame(FIN | CONTINUATION, 2, b"{}"),
            BROKEN,
        ),
        ("a fragment in a fragment", nested, BROKEN),
        ("a reserved bit", ws_frame(FIN | 0x40 | TEXT, 2, b"{}"), BROKEN),
        ("an unknown opcode", ws_frame(FIN | 0x3, 2, b"{}"), BROKEN),
        ("an unmasked frame", vec![FIN | TEXT, 2, b'{', b'}'], BROKEN),
        ("a long ping", ws_frame(FIN | PING, 200, &[0; 200]), BROKEN),
        ("a fragmented ping", ws_frame(PING, 1, b"x"), BROKEN),
        ("a close of one byte", ws_frame(FIN | CLOSE, 1, b"x"), BROKEN),
        ("a length of 2^63", ws_frame(FIN | TEXT, 1 << 63, b""), TOO_LARGE),
        ("a frame too large", large, TOO_LARGE),
        ("an endless fragment", endless, TOO_LARGE),
        (
            "HTTP again",
            b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
            BROKEN,
        ),
    ];
    frames.extend(
        BAD_TEXTS
            .iter()
            .map(|body| (*body, text(body), &[4400_u16] as &[u16])),
    );
    frames
}

#[tokio::test]
async fn bad_frames_end_the_socket_that_sent_them_and_no_other() {
    let house = House::open().await;
    let (mut witness, _ready) = Socket::signed_in(&house.hub, &house.alice, json!({})).await;
    let before = Vitals::of(&house.hub).await;
    for (what, bytes, codes) in bad_frames() {
        // Before and after signing in.
        let (mut stranger, _challenge) = Socket::open(&house.hub).await;
        stranger.raw(&bytes).await;
        let code = stranger.close_code().await;
        assert!(
            codes.contains(&code) || code == 4401,
            "{what} of a stranger: {code}"
        );
        let (mut agent, _ready) = Socket::signed_in(&house.hub, &house.bob, json!({})).await;
        agent.raw(&bytes).await;
        let code = agent.close_code().await;
        assert!(codes.contains(&code), "{what}: {code}");
    }
    witness.say(&json!({ "t": "ack", "epoch": "x", "upto": 1 })).await;
    assert!(
        matches!(witness.hear().await, Heard::Frame(_)),
        "somebody else's frame ended the witness"
    );
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// A frame that announces a terabyte is refused for what it announces; nobody collects it first.
#[tokio::test]
async fn a_giant_frame_is_refused_when_it_begins() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let giant = ws_frame(FIN | TEXT, 1 << 40, b"");
    let (mut stranger, _challenge) = Socket::open(&house.hub).await;
    stranger.raw(&giant).await;
    assert_eq!(stranger.close_code().await, 4413);
    let (mut agent, _ready) = Socket::signed_in(&house.hub, &house.bob, json!({})).await;
    // In the middle of other frames, and cut in two.
    agent
        .raw(&[ws_frame(FIN | PING, 2, b"hi"), giant[..3].to_vec()].concat())
        .await;
    agent.raw(&giant[3..]).await;
    assert_eq!(agent.close_code().await, 4413);
    let (mut flood, _challenge) = Socket::open(&house.hub).await;
    flood.raw(&giant).await;
    let mebibyte = vec![0; 1 << 20];
    let mut sent_mib = 0;
    while sent_mib < 512 && flood.raw(&mebibyte).await {
        sent_mib += 1;
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// One good frame in fragments, with pings in between, is one good frame.
#[tokio::test]
async fn fragments_are_put_together() {
    let house = House::open().await;
    let (mut socket, challenge) = Socket::open(&house.hub).await;
    let auth = house
        .bob
        .auth_frame(&house.hub, &challenge, json!({}))
        .to_string();
    let (start, rest) = auth.as_bytes().split_at(20);
    let (middle, end) = rest.split_at(20);
    let mut bytes = ws_frame(TEXT, start.len() as u64, start);
    bytes.extend(ws_frame(FIN | PING, 2, b"hi"));
    bytes.extend(ws_frame(CONTINUATION, middle.len() as u64, middle));
    bytes.extend(ws_frame(CONTINUATION, 0, b""));
    bytes.extend(ws_frame(FIN | CONTINUATION, end.len() as u64, end));
    socket.raw(&bytes).await;
    assert_eq!(socket.frame("ready").await["floor"], 0);
}

/// First frames that sign nobody in, for a socket's challenge; `other` is a challenge of the HTTP door.
fn wrong_first_frames(house: &House, challenge: &str, other: &str) -> Vec<Value> {
    let good = |challenge: &str| house.bob.auth_frame(&house.hub, challenge, json!({}));
    let with = |member: &str, value: Value| {
        let mut frame = good(challenge);
        frame[member] = value;
        frame
    };
    let elsewhere = house.bob.sign_challenge(challenge, "elsewhere.example");
    vec![
        good(""),
        good(other),
        with("did", json!(house.alice.did)),
        with("did", json!("did:aip:localhost:nobody")),
        with("kid", json!(house.alice.kid())),
        with("kid", json!("k".repeat(10_000))),
        with("sig", json!(format!("ed25519:z{}", "1".repeat(88)))),
        with("sig", json!("s".repeat(10_000))),
        with("sig", elsewhere["sig"].clone()),
        json!({ "t": "auth" }),
        json!({ "t": "auth", "token": "" }),
        json!({ "t": "auth", "token": "x".repeat(10_000) }),
        json!({ "t": "credit", "n": 1 }),
        json!({ "t": "ack", "epoch": "x", "upto": 1 }),
        json!({ "t": "send", "ref": "1", "envelope": {} }),
    ]
}

/// Signing in with anything but one's own fresh signature.
#[tokio::test]
async fn only_the_challenges_own_answer_signs_in() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let other = house.bob.answered_challenge(&house.hub).await["challenge"].clone();
    let other = other.as_str().unwrap();
    for number in 0..wrong_first_frames(&house, "", other).len() {
        let (mut socket, challenge) = Socket::open(&house.hub).await;
        let frame = wrong_first_frames(&house, &challenge, other).swap_remove(number);
        socket.say(&frame).await;
        let Heard::Frame(error) = socket.hear().await else {
            panic!("not told why: {frame}");
        };
        assert_eq!(error["t"], "error", "{frame} was answered {error}");
        assert!(
            error["code"].is_string() && error["detail"].is_string(),
            "{error}"
        );
        assert_eq!(socket.close_code().await, 4401, "{frame}");
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

#[tokio::test]
async fn row_26_a_captured_auth_frame_is_worth_nothing_on_another_socket() {
    let house = House::open().await;
    let (mut socket, challenge) = Socket::open(&house.hub).await;
    let captured = house.bob.auth_frame(&house.hub, &challenge, json!({}));
    socket.say(&captured).await;
    socket.frame("ready").await;
    let (mut thief, _other_challenge) = Socket::open(&house.hub).await;
    thief.say(&captured).await;
    assert_eq!(thief.frame("error").await["code"], "signature_invalid");
    assert_eq!(thief.close_code().await, 4401);
    // And the same door's answer over HTTP is spent by its first use.
    let answered = house.bob.answered_challenge(&house.hub).await.to_string();
    let exchange = Request::post("/api/v1/auth/token", answered);
    assert_eq!(house.ask(&exchange).await.status, 200);
    assert_eq!(house.ask(&exchange).await.code(), "challenge_invalid");
}

#[tokio::test]
async fn row_29_nobody_acks_or_sends_for_somebody_else() {
    let house = House::open().await;
    let carol = TestAgent::registered(&house.hub, "carol").await;
    assert_eq!(house.alice.send(&house.hub, &house.bob).await.status, 202);
    let (mut socket, ready) = Socket::signed_in(&house.hub, &carol, json!({})).await;
    // bob's message has the number that the next one of carol's would have: an ack of it is an ack beyond her own.
    socket
        .say(&json!({ "t": "ack", "epoch": ready["epoch"], "upto": 1 }))
        .await;
    assert_eq!(socket.frame("error").await["code"], "cursor_invalid");
    for frame in [
        json!({ "t": "nak", "epoch": ready["epoch"], "seq": 1, "retry_after_s": 3_600 }),
        json!({ "t": "reject", "epoch": ready["epoch"], "seq": 1, "code": "unwanted" }),
    ] {
        socket.say(&frame).await;
    }
    let forged: Value = serde_json::from_slice(&house.alice.envelope(&house.bob).to_wire()).unwrap();
    socket
        .say(&json!({ "t": "send", "ref": "1", "envelope": forged }))
        .await;
    let sent = socket.frame("sent").await;
    assert_eq!(
        (&sent["code"], &sent["ref"]),
        (&json!("not_yours"), &json!("1")),
        "{sent}"
    );
    let token = carol.token(&house.hub).await;
    let ack = json!({ "epoch": ready["epoch"], "upto": 1 }).to_string();
    let answer = house
        .ask(&Request::post("/api/v1/inbox/ack", ack).bearer(&token))
        .await;
    assert_eq!(answer.code(), "cursor_invalid");
    // The message is still there, for bob, at its first attempt.
    let inbox = house
        .ask(&Request::get("/api/v1/inbox").bearer(&house.token))
        .await
        .json();
    assert_eq!(
        (&inbox["items"][0]["seq"], &inbox["items"][0]["attempt"]),
        (&json!(1), &json!(1)),
        "{inbox}"
    );
}

/// An ack of what was never offered changes nothing, and the socket goes on.
#[tokio::test]
async fn an_ack_beyond_what_was_offered_changes_nothing() {
    let house = House::open().await;
    house.alice.send(&house.hub, &house.bob).await;
    let (mut socket, ready) = Socket::signed_in(&house.hub, &house.bob, json!({})).await;
    let epoch = &ready["epoch"];
    let message = socket.frame("msg").await;
    assert_eq!(message["seq"], 1);
    let cases = [
        (json!({ "t": "ack", "epoch": epoch, "upto": 2 }), "cursor_invalid"),
        (
            json!({ "t": "ack", "epoch": epoch, "upto": 9_007_199_254_740_991_u64 }),
            "cursor_invalid",
        ),
        (
            json!({ "t": "ack", "epoch": epoch, "upto": u64::MAX }),
            "cursor_invalid",
        ),
        (
            json!({ "t": "ack", "epoch": epoch, "upto": 0, "also": [7] }),
            "cursor_invalid",
        ),
        (
            json!({ "t": "ack", "epoch": "elsewhere", "upto": 1 }),
            "epoch_changed",
        ),
        (
            json!({ "t": "nak", "epoch": "elsewhere", "seq": 1, "retry_after_s": 1 }),
            "epoch_changed",
        ),
        (
            json!({ "t": "reject", "epoch": "elsewhere", "seq": 1, "code": "x" }),
            "epoch_changed",
        ),
    ];
    for (frame, code) in cases {
        socket.say(&frame).await;
        assert_eq!(socket.frame("error").await["code"], code, "{frame}");
    }
    socket
        .say(&json!({ "t": "ack", "epoch": epoch, "upto": 1 }))
        .await;
    assert_eq!(socket.frame("acked").await["floor"], 1);
}

/// Faster than the rate, with frames that cost the hub next to nothing: closed, and told why.
#[tokio::test]
async fn floods_of_frames_are_ended() {
    let house = House::with("[receive]\nframes_per_sec_max = 5").await;
    let before = Vitals::of(&house.hub).await;
    let floods: [(&str, Message); 4] = [
        (
            "acks",
            Message::text(json!({ "t": "ack", "epoch": "x", "upto": 1 }).to_string()),
        ),
        (
            "credit",
            Message::text(json!({ "t": "credit", "n": 1 }).to_string()),
        ),
        ("pings", Message::Ping(b"x".to_vec().into())),
        ("pongs", Message::Pong(b"x".to_vec().into())),
    ];
    for (what, message) in floods {
        let (mut socket, _ready) = Socket::signed_in(&house.hub, &house.bob, json!({})).await;
        for _ in 0..500 {
            socket.send(message.clone()).await;
        }
        assert_eq!(socket.close_code().await, 4429, "{what}");
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}
