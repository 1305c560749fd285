//! Sockets over real connections, with a client that knows nothing of this crate.

use std::time::Duration;

use actix_web::HttpServer;
use actix_web::dev::ServerHandle;
use aip_relay::mailbox::MailboxId;
use aip_relay::presence::CloseReason;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameHeader};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::config::Settings;
use crate::server;
use crate::testing::{TestAgent, TestHub};

const PATIENCE: Duration = Duration::from_secs(20);

/// A hub that listens.
struct Bed {
    hub: TestHub,
    port: u16,
    server: ServerHandle,
}

impl Bed {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let hub = TestHub::with(change);
        let app = hub.hub.app.clone();
        let server = HttpServer::new(move || server::application(app.clone(), server::public));
        let server = server
            .workers(1)
            .disable_signals()
            .bind(("127.0.0.1", 0))
            .unwrap();
        let port = server.addrs()[0].port();
        let server = server.run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        Self {
            hub,
            port,
            server: handle,
        }
    }

    async fn open(&self) -> Client {
        let mut request = format!("ws://127.0.0.1:{}/api/v1/agents/connect", self.port)
            .into_client_request()
            .unwrap();
        request
            .headers_mut()
            .insert("sec-websocket-protocol", "aip.v1".parse().unwrap());
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let (socket, answer) = client_async(request, stream).await.unwrap();
        assert_eq!(answer.headers()["sec-websocket-protocol"], "aip.v1");
        let mut client = Client {
            socket,
            hello: Value::Null,
        };
        client.hello = client.frame().await;
        assert_eq!(
            (&client.hello["t"], &client.hello["domain"]),
            (&json!("challenge"), &json!("hub.example"))
        );
        client
    }

    async fn connect(&self, agent: &TestAgent) -> (Client, Value) {
        self.connect_with(agent, json!({})).await
    }

    async fn connect_with(&self, agent: &TestAgent, members: Value) -> (Client, Value) {
        let mut client = self.open().await;
        let mut auth = client.auth(agent);
        auth.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        client.say(auth).await;
        let ready = client.frame().await;
        assert_eq!(ready["t"], "ready", "{ready}");
        (client, ready)
    }

    /// The status line of an attempt to connect with these headers.
    async fn attempt(&self, headers: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let head = format!("GET /api/v1/agents/connect HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = vec![0; 4_096];
        let length = stream.read(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

struct Client {
    socket: WebSocketStream<TcpStream>,
    hello: Value,
}

impl Client {
    fn auth(&self, agent: &TestAgent) -> Value {
        let sig = agent.answer(self.hello["challenge"].as_str().unwrap());
        json!({ "t": "auth", "did": agent.did, "kid": agent.kid(), "sig": sig, "credit": 64 })
    }

    async fn say(&mut self, frame: Value) {
        self.put(Message::text(frame.to_string())).await;
    }

    async fn put(&mut self, message: Message) {
        // The hub may close while a client still writes.
        let _sent = self.socket.send(message).await;
    }

    async fn message(&mut self) -> Option<Result<Message, Error>> {
        tokio::time::timeout(PATIENCE, self.socket.next())
            .await
            .expect("something within the time")
    }

    /// The next text frame.
    async fn frame(&mut self) -> Value {
        loop {
            match self.message().await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(text.as_str()).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?} instead of a frame"),
            }
        }
    }

    async fn frame_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.frame().await;
            if frame["t"] == kind {
                return frame;
            }
        }
    }

    async fn ack(&mut self, epoch: &Value, upto: u64) -> Value {
        self.say(json!({ "t": "ack", "epoch": epoch, "upto": upto, "also": [] }))
            .await;
        self.frame_of("acked").await
    }

    /// The code of the close frame; frames before it are passed over.
    async fn closes(&mut self) -> u16 {
        loop {
            match self.message().await {
                Some(Ok(Message::Close(Some(reason)))) => return reason.code.into(),
                Some(Ok(_)) => {}
                other => panic!("{other:?} instead of a close frame"),
            }
        }
    }
}

#[actix_web::test]
async fn a_message_travels_and_is_acked() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    bed.hub.send(&alice, &bob, 1).await;
    let (mut client, ready) = bed.connect(&bob).await;
    assert_eq!((&ready["floor"], &ready["pending"]), (&json!(0), &json!(1)));
    let message = client.frame().await;
    let sent: Value = serde_json::from_slice(&bed.hub.envelope(&alice, &bob, 1).to_wire()).unwrap();
    assert_eq!(
        (&message["t"], &message["seq"], &message["attempt"]),
        (&json!("msg"), &json!(1), &json!(1))
    );
    assert_eq!(
        (&message["epoch"], &message["envelope"]),
        (&ready["epoch"], &sent)
    );
    assert_eq!(client.ack(&ready["epoch"], 1).await["floor"], 1);
    bed.hub.send(&alice, &bob, 2).await;
    assert_eq!(client.frame().await["seq"], 2);
}

#[actix_web::test]
async fn a_token_opens_a_session_too() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let mut client = bed.open().await;
    client
        .say(json!({ "t": "auth", "token": bed.hub.token(&bob).await }))
        .await;
    assert_eq!(client.frame().await["t"], "ready");
}

#[actix_web::test]
async fn who_does_not_sign_in_is_told_why() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let good = bed.open().await.auth(&bob);
    let without = |member: &str| {
        let mut auth = good.clone();
        auth.as_object_mut().unwrap().remove(member);
        auth
    };
    for (frame, code) in [
        // The challenge was another socket's.
        (good.clone(), "signature_invalid"),
        (without("did"), "member_missing"),
        (without("kid"), "member_missing"),
        (without("sig"), "member_missing"),
        (json!({ "t": "auth", "token": "nonsense" }), "token_invalid"),
        (json!({ "t": "credit", "n": 1 }), "token_invalid"),
        (
            json!({ "t": "auth", "did": "did:aip:hub.example:nobody", "kid": "x", "sig": good["sig"] }),
            "sender_unknown",
        ),
    ] {
        let mut client = bed.open().await;
        client.say(frame.clone()).await;
        let error = client.frame().await;
        assert_eq!(
            (&error["t"], &error["code"]),
            (&json!("error"), &json!(code)),
            "{frame}"
        );
        assert_eq!(client.closes().await, 4401);
    }
}

#[actix_web::test]
async fn row_26_a_captured_auth_frame_is_worth_nothing() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let mut first = bed.open().await;
    let auth = first.auth(&bob);
    first.say(auth.clone()).await;
    assert_eq!(first.frame().await["t"], "ready");
    let mut replay = bed.open().await;
    replay.say(auth).await;
    assert_eq!(replay.closes().await, 4401);
}

#[actix_web::test]
async fn who_says_nothing_is_closed() {
    let bed = Bed::with(|settings| settings.receive.auth_timeout_secs = 1);
    let mut client = bed.open().await;
    assert_eq!(client.closes().await, 4408);
}

#[actix_web::test]
async fn row_42_a_silent_socket_is_pinged_and_then_closed() {
    let bed = Bed::with(|settings| settings.receive.silence_timeout_secs = 2);
    let bob = bed.hub.registered("bob").await;
    // This client answers pings only when it reads, so it is silent while nobody reads.
    let (mut client, _) = bed.connect(&bob).await;
    let mailbox = MailboxId::of(&bob.did);
    while bed.hub.hub.app.presence.is_connected(&mailbox) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(matches!(client.message().await, Some(Ok(Message::Ping(_)))));
    assert_eq!(client.closes().await, 1008);
}

#[actix_web::test]
async fn a_socket_that_answers_pings_stays() {
    let bed = Bed::with(|settings| settings.receive.silence_timeout_secs = 2);
    let bob = bed.hub.registered("bob").await;
    let (mut client, ready) = bed.connect(&bob).await;
    for _ in 0..3 {
        assert!(matches!(client.message().await, Some(Ok(Message::Ping(_)))));
    }
    client.put(Message::Ping(b"here".as_slice().into())).await;
    assert!(
        matches!(client.message().await, Some(Ok(Message::Pong(payload))) if payload.as_ref() == b"here")
    );
    assert_eq!(client.ack(&ready["epoch"], 0).await["floor"], 0);
}

#[actix_web::test]
async fn bad_frames_close_with_4400() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let auth_again = json!({ "t": "auth", "token": "x" }).to_string();
    for message in [
        Message::text("this is not JSON"),
        Message::text("{\"t\":\"hello\"}"),
        Message::text("{\"t\":\"ack\"}"),
        Message::text(auth_again),
        Message::binary(b"{\"t\":\"credit\",\"n\":1}".to_vec()),
    ] {
        let (mut client, _) = bed.connect(&bob).await;
        client.put(message.clone()).await;
        assert_eq!(client.closes().await, 4400, "{message:?}");
    }
}

#[actix_web::test]
async fn a_frame_above_the_limit_closes_with_4413() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let (mut client, _) = bed.connect(&bob).await;
    client.put(Message::text("x".repeat(1_500_000))).await;
    assert_eq!(client.closes().await, 4413);
}

/// Sends a text in so many pieces.
async fn in_pieces(client: &mut Client, text: &str, pieces: usize) {
    let size = text.len().div_ceil(pieces);
    let mut chunks = text.as_bytes().chunks(size).peekable();
    let mut code = OpCode::Data(Data::Text);
    while let Some(chunk) = chunks.next() {
        let header = FrameHeader {
            is_final: chunks.peek().is_none(),
            opcode: code,
            ..FrameHeader::default()
        };
        client
            .put(Message::Frame(Frame::from_payload(header, chunk.to_vec().into())))
            .await;
        code = OpCode::Data(Data::Continue);
    }
}

#[actix_web::test]
async fn a_frame_in_pieces_is_put_together_up_to_the_limit() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let (mut client, ready) = bed.connect(&bob).await;
    let ack = json!({ "t": "ack", "epoch": ready["epoch"], "upto": 0 }).to_string();
    in_pieces(&mut client, &ack, 7).await;
    assert_eq!(client.frame_of("acked").await["floor"], 0);
    in_pieces(&mut client, &"x".repeat(1_500_000), 8).await;
    assert_eq!(client.closes().await, 4413);
}

#[actix_web::test]
async fn too_many_frames_close_with_4429() {
    let bed = Bed::with(|settings| settings.receive.frames_per_sec_max = 1);
    let bob = bed.hub.registered("bob").await;
    let (mut client, _) = bed.connect(&bob).await;
    for _ in 0..20 {
        client.say(json!({ "t": "credit", "n": 1 })).await;
    }
    assert_eq!(client.closes().await, 4429);
}

#[actix_web::test]
async fn row_32_the_second_connection_replaces_the_first() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let (mut first, _) = bed.connect(&bob).await;
    let (mut second, _) = bed.connect(&bob).await;
    assert_eq!(first.closes().await, 4409);
    bed.hub.send(&alice, &bob, 1).await;
    assert_eq!(second.frame().await["seq"], 1);
}

#[actix_web::test]
async fn connections_that_share_stay_both() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let share = json!({ "share": true, "credit": 1 });
    let (mut first, _) = bed.connect_with(&bob, share.clone()).await;
    let (mut second, _) = bed.connect_with(&bob, share).await;
    bed.hub.send(&alice, &bob, 1).await;
    bed.hub.send(&alice, &bob, 2).await;
    let mut got = [
        first.frame().await["seq"].clone(),
        second.frame().await["seq"].clone(),
    ];
    got.sort_by_key(Value::as_u64);
    assert_eq!(got, [json!(1), json!(2)]);
}

#[actix_web::test]
async fn envelopes_are_sent_over_the_socket_and_refusals_come_back() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let (mut client, _) = bed.connect(&alice).await;
    let read = |from, to, number| {
        serde_json::from_slice::<Value>(&bed.hub.envelope(from, to, number).to_wire()).unwrap()
    };
    let good = read(&alice, &bob, 1);
    for (reference, status) in [("r-1", "stored"), ("r-2", "duplicate")] {
        client
            .say(json!({ "t": "send", "ref": reference, "envelope": good }))
            .await;
        let sent = client.frame_of("sent").await;
        assert_eq!(
            (&sent["ref"], &sent["status"], &sent["seq"]),
            (&json!(reference), &json!(status), &json!(1))
        );
        assert_eq!(sent["id"], good["id"]);
    }
    // Row 29: the socket is alice's, the envelope bob's.
    client
        .say(json!({ "t": "send", "ref": "r-3", "envelope": read(&bob, &alice, 2) }))
        .await;
    let refused = client.frame_of("sent").await;
    assert_eq!(
        (&refused["ref"], &refused["status"]),
        (&json!("r-3"), &json!("refused"))
    );
    assert!(
        refused["code"].is_string() && refused["detail"].is_string(),
        "{refused}"
    );
    client
        .say(json!({ "t": "send", "ref": "r-4", "envelope": [1] }))
        .await;
    assert_eq!(client.frame_of("sent").await["status"], "refused");
}

#[actix_web::test]
async fn sends_are_answered_and_stored_in_order() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let (mut client, _) = bed.connect(&alice).await;
    for number in 1..=50 {
        let envelope: Value =
            serde_json::from_slice(&bed.hub.envelope(&alice, &bob, number).to_wire()).unwrap();
        client
            .say(json!({ "t": "send", "ref": number.to_string(), "envelope": envelope }))
            .await;
    }
    for number in 1..=50 {
        let sent = client.frame_of("sent").await;
        assert_eq!(
            (&sent["ref"], &sent["seq"]),
            (&json!(number.to_string()), &json!(number)),
            "{sent}"
        );
    }
}

#[actix_web::test]
async fn an_agent_that_is_no_longer_good_is_closed() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let (mut client, _) = bed.connect(&bob).await;
    bed.hub
        .hub
        .app
        .presence
        .close_agent(&MailboxId::of(&bob.did), CloseReason::Unauthenticated);
    assert_eq!(client.closes().await, 4401);
}

#[actix_web::test]
async fn a_deactivated_agent_is_closed_at_once() {
    let bed = Bed::new();
    let mut bob = bed.hub.registered("bob").await;
    let (mut client, _) = bed.connect(&bob).await;
    let at = bed.hub.hub.app.clock.now();
    let end = bob.next(at, |draft| draft.deactivated = true);
    assert_eq!(
        bed.hub.post("/api/v1/agents/bob/operations", end).await.status,
        201
    );
    assert_eq!(client.closes().await, 4401);
}

#[actix_web::test]
async fn row_80_a_stopping_hub_closes_with_1001_and_finishes_acks() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    bed.hub.send(&alice, &bob, 1).await;
    let mut idle = Vec::new();
    for number in 0..20 {
        let agent = bed.hub.registered(&format!("agent{number}")).await;
        idle.push(bed.connect(&agent).await.0);
    }
    let mut newcomer = bed.open().await;
    let (mut client, ready) = bed.connect(&bob).await;
    client.frame_of("msg").await;
    client
        .say(json!({ "t": "ack", "epoch": ready["epoch"], "upto": 1 }))
        .await;
    client.frame_of("acked").await;
    bed.hub.hub.begin_to_close();
    for client in idle.iter_mut().chain([&mut newcomer, &mut client]) {
        assert_eq!(client.closes().await, 1001);
    }
    drop((idle, newcomer, client));
    tokio::time::timeout(PATIENCE, bed.server.stop(true))
        .await
        .expect("the listener stops");
    let state = bed
        .hub
        .hub
        .app
        .store
        .state(&MailboxId::of(&bob.did))
        .await
        .unwrap();
    assert_eq!((state.floor, state.pending), (1, 0));
    assert_eq!(bed.hub.hub.app.presence.counts().sessions, 0);
}

#[actix_web::test]
async fn a_handshake_needs_the_subprotocol_and_a_listed_origin() {
    let bed = Bed::with(|settings| settings.http.allowed_origins = vec!["https://app.example".to_owned()]);
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n";
    let protocol = "Sec-WebSocket-Protocol: other, aip.v1\r\n";
    for (headers, expected) in [
        (format!("{upgrade}{protocol}"), "101"),
        (
            format!("{upgrade}{protocol}Origin: https://app.example\r\n"),
            "101",
        ),
        (
            format!("{upgrade}{protocol}Origin: https://evil.example\r\n"),
            "403",
        ),
        (format!("{upgrade}{protocol}Origin: null\r\n"), "403"),
        (upgrade.to_owned(), "400"),
        (format!("{upgrade}Sec-WebSocket-Protocol: other\r\n"), "400"),
        (protocol.to_owned(), "400"),
    ] {
        let answer = bed.attempt(&headers).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected}")),
            "{headers}: {answer}"
        );
    }
}

#[actix_web::test]
async fn sockets_that_have_not_signed_in_are_bounded() {
    let sockets = super::Sockets::new(1);
    let held: Vec<_> = (0..crate::limits::NEWCOMERS_MAX)
        .map(|_| sockets.newcomer().unwrap())
        .collect();
    assert_eq!(sockets.newcomer().unwrap_err().status(), 503);
    drop(held);
    assert!(sockets.newcomer().is_ok());
}

#[actix_web::test]
async fn rows_35_and_36_a_client_that_never_reads_holds_nobody_up() {
    let bed = Bed::with(|settings| {
        settings.relay.mailbox_messages_per_sender_max = 1_000;
        settings.relay.sender_burst_messages = 1_000;
    });
    let (alice, bob, carol) = (
        bed.hub.registered("alice").await,
        bed.hub.registered("bob").await,
        bed.hub.registered("carol").await,
    );
    // A window far larger than what the system buffers for a socket.
    let (stalled, _) = bed.connect_with(&bob, json!({ "credit": 1_000 })).await;
    let (mut live, ready) = bed.connect(&carol).await;
    for number in 1..=300 {
        bed.hub.send(&alice, &bob, number).await;
    }
    for number in 1..=50 {
        bed.hub.send(&alice, &carol, 1_000 + number).await;
        assert_eq!(live.frame_of("msg").await["seq"], number);
        live.ack(&ready["epoch"], number).await;
    }
    drop(stalled);
    let (mut again, ready) = bed.connect(&bob).await;
    assert_eq!(ready["pending"], 300, "nothing was dropped");
    assert_eq!(again.frame_of("msg").await["seq"], 1);
}

#[actix_web::test]
async fn row_48_an_event_stream_goes_on_after_its_last_event() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let token = bed.hub.token(&bob).await;
    for number in 1..=3 {
        bed.hub.send(&alice, &bob, number).await;
    }
    let stream = async |more: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", bed.port)).await.unwrap();
        let head = format!(
            "GET /api/v1/inbox/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let mut first = stream("").await;
    let text = read_until(&mut first, ":3\n").await;
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap()
        .to_owned();
    assert!(id.ends_with(":1"), "{id}");
    drop(first);
    let mut second = stream(&format!("Last-Event-ID: {id}\r\n")).await;
    let text = read_until(&mut second, ":3\n").await;
    let ids: Vec<&str> = text.lines().filter(|line| line.starts_with("id: ")).collect();
    assert_eq!(ids.len(), 2, "{text}");
    bed.hub.send(&alice, &bob, 4).await;
    read_until(&mut second, ":4\n").await;
    bed.hub.hub.begin_to_close();
    read_until(&mut second, "0\r\n\r\n").await;
}

async fn read_until(stream: &mut TcpStream, mark: &str) -> String {
    let mut text = String::new();
    let mut bytes = vec![0; 65_536];
    while !text.contains(mark) {
        let length = tokio::time::timeout(PATIENCE, stream.read(&mut bytes))
            .await
            .expect("bytes in time")
            .unwrap();
        assert!(length > 0, "the stream ended before {mark:?}: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    text
}
