//! One WebSocket connection: opened, authenticated, and then frame by frame.

use std::time::Duration;

use aip_protocol::challenge::challenge_object;
use aip_protocol::signature::{Tag, sign};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Bytes, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use super::frame::{AgentFrame, HubFrame};
use crate::error::{Error, Problem, Result};
use crate::inbox::Cursor;
use crate::keys::AgentKeys;
use crate::limits::{FRAME_BYTES_MAX, SESSION_OPEN_TIMEOUT, SOCKET_WRITE_TIMEOUT};
use crate::transport::Transport;

const DOING: &str = "opening the session";
const SUBPROTOCOL: &str = "aip.v1";

/// An open and authenticated session.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub(crate) epoch: String,
    pub(crate) floor: u64,
    pub(crate) pending: u64,
}

/// What a session is opened with.
#[derive(Debug)]
pub(crate) struct Auth<'a> {
    pub(crate) keys: &'a AgentKeys,
    pub(crate) credit: u32,
    pub(crate) share: bool,
    pub(crate) cursor: Option<Cursor>,
}

/// What came in.
#[derive(Debug)]
pub(crate) enum Received {
    Frame(HubFrame),
    /// Ping, pong, or a frame of a kind that is not used: a sign of life.
    Alive,
    /// The hub closed, with this code (1005 where it gave none).
    Closed(u16),
    /// The connection broke.
    Broken(String),
}

impl Connection {
    /// Connects, answers the challenge and waits for `ready`.
    pub(crate) async fn open(transport: &Transport, auth: Auth<'_>) -> Result<Self> {
        let opening = async {
            let socket = connect(transport).await?;
            let mut connection = Self {
                socket,
                epoch: String::new(),
                floor: 0,
                pending: 0,
            };
            connection.authenticate(auth).await?;
            Ok(connection)
        };
        match timeout(SESSION_OPEN_TIMEOUT, opening).await {
            Ok(opened) => opened,
            Err(elapsed) => Err(Error::unreachable(DOING, elapsed)),
        }
    }

    async fn authenticate(&mut self, auth: Auth<'_>) -> Result<()> {
        let (challenge, domain) = match self.expect_frame().await? {
            HubFrame::Challenge { challenge, domain } => (challenge, domain),
            other => return Err(unexpected(&other)),
        };
        let own = auth.keys.did().domain().to_string();
        // A signature names the hub it is for. Another name here would let this hub log in at that one as the agent.
        if domain != own {
            return Err(Error::Unverified {
                did: auth.keys.did().clone(),
                why: format!("the hub speaks for {domain}, the agent lives at {own}"),
            });
        }
        self.write(auth_frame(&auth, &domain, &challenge)).await?;
        match self.expect_frame().await? {
            HubFrame::Ready {
                epoch,
                floor,
                pending,
            } => {
                (self.epoch, self.floor, self.pending) = (epoch, floor, pending);
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The next frame of the handshake.
    async fn expect_frame(&mut self) -> Result<HubFrame> {
        loop {
            match self.receive().await {
                Received::Frame(HubFrame::Error(problem)) => return Err(Error::Refused(Box::new(problem))),
                Received::Frame(HubFrame::Unknown) | Received::Alive => {}
                Received::Frame(frame) => return Ok(frame),
                Received::Closed(4409) => return Err(Error::Replaced),
                Received::Closed(code) => return Err(closed(code)),
                Received::Broken(why) => return Err(Error::unreachable(DOING, why)),
            }
        }
    }

    /// Whatever comes next. Safe to abandon while waiting.
    pub(crate) async fn receive(&mut self) -> Received {
        match self.socket.next().await {
            Some(Ok(Message::Text(text))) => match HubFrame::parse(&text) {
                Ok(frame) => Received::Frame(frame),
                Err(error) => Received::Broken(format!("a frame that cannot be read: {error}")),
            },
            Some(Ok(Message::Close(frame))) => {
                Received::Closed(frame.map_or(1005, |frame| frame.code.into()))
            }
            Some(Ok(_)) => Received::Alive,
            Some(Err(error)) => Received::Broken(error.to_string()),
            None => Received::Closed(1006),
        }
    }

    /// Says something to the hub.
    pub(crate) async fn say(&mut self, frame: &AgentFrame) -> Result<()> {
        self.write(frame.encode()).await
    }

    /// Shows that this side is alive, and asks for the same.
    pub(crate) async fn ping(&mut self) -> Result<()> {
        self.write_message(Message::Ping(Bytes::new())).await
    }

    /// Says goodbye and waits a little for the answer, so that what was written before is read.
    pub(crate) async fn close(mut self, wait: Duration) {
        let farewell = async {
            self.socket.close(None).await?;
            // The hub's own goodbye is enough; it may keep the line open for a while after.
            while let Some(message) = self.socket.next().await.transpose()? {
                if message.is_close() {
                    break;
                }
            }
            Ok::<(), tungstenite::Error>(())
        };
        // A peer that is gone already needs no goodbye.
        drop(timeout(wait, farewell).await);
    }

    async fn write(&mut self, text: String) -> Result<()> {
        self.write_message(Message::text(text)).await
    }

    async fn write_message(&mut self, message: Message) -> Result<()> {
        const DOING: &str = "writing to the session";
        match timeout(SOCKET_WRITE_TIMEOUT, self.socket.send(message)).await {
            Ok(written) => written.map_err(|error| Error::unreachable(DOING, error)),
            Err(elapsed) => Err(Error::unreachable(DOING, elapsed)),
        }
    }
}

async fn connect(transport: &Transport) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>> {
    let request = transport.socket_url().into_client_request();
    let mut request = request.map_err(|error| Error::unreachable(DOING, error))?;
    request
        .headers_mut()
        .insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    let config = WebSocketConfig::default()
        .max_message_size(Some(FRAME_BYTES_MAX))
        .max_frame_size(Some(FRAME_BYTES_MAX))
        .read_buffer_size(16 * 1024);
    let connector = Connector::Rustls(transport.tls());
    match connect_async_tls_with_config(request, Some(config), true, Some(connector)).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => Err(refused_upgrade(&response)),
        Err(error) => Err(Error::unreachable(DOING, error)),
    }
}

/// The hub answered the upgrade with a problem document, or something before it did.
fn refused_upgrade(response: &tungstenite::http::Response<Option<Vec<u8>>>) -> Error {
    let status = response.status().as_u16();
    let body = response.body().as_deref().unwrap_or_default();
    let members: Option<Map<String, Value>> = serde_json::from_slice(body).ok();
    let problem = members.and_then(Problem::from_members);
    let mut problem = problem
        .unwrap_or_else(|| Problem::new(format!("http_{status}"), "the upgrade to WebSocket was refused"));
    problem.status = status;
    let retry_after = response
        .headers()
        .get("retry-after")
        .and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|text| text.trim().parse().ok());
    problem.retry_after_secs = retry_after.or(problem.retry_after_secs);
    Error::Refused(Box::new(problem))
}

fn auth_frame(auth: &Auth<'_>, domain: &str, challenge: &str) -> String {
    let did = auth.keys.did();
    let sig = sign(
        &auth.keys.signing,
        Tag::Challenge,
        &challenge_object(domain, challenge, did),
    );
    let mut frame = json!({
        "t": "auth",
        "did": did,
        "kid": auth.keys.kid(),
        "sig": sig,
        "credit": auth.credit,
    });
    if let Some(members) = frame.as_object_mut() {
        if auth.share {
            members.insert("share".to_owned(), true.into());
        }
        if let Some(cursor) = &auth.cursor {
            members.insert(
                "cursor".to_owned(),
                json!({"epoch": cursor.epoch, "seq": cursor.seq}),
            );
        }
    }
    frame.to_string()
}

fn unexpected(frame: &HubFrame) -> Error {
    let kind = match frame {
        HubFrame::Challenge { .. } => "challenge",
        HubFrame::Ready { .. } => "ready",
        _ => "another frame",
    };
    Error::answer(DOING, format_args!("{kind} came out of turn"))
}

/// A close before `ready`, as a refusal with a code of its own.
fn closed(code: u16) -> Error {
    match code {
        4401 => Error::Refused(Box::new(Problem::new(
            "token_invalid",
            "the hub did not take the authentication",
        ))),
        4429 => Error::Refused(Box::new(Problem::new(
            "rate_limited",
            "the hub asks to connect less often",
        ))),
        _ => Error::unreachable(DOING, format!("closed with {code}")),
    }
}
