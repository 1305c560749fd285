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

mod delivery;
mod frames;
mod signing_in;

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
