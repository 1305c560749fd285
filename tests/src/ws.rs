//! A WebSocket in the hands of a test: it says what it likes, also what is no frame at all.

use std::fmt;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::TestHub;
use crate::keyed::TestAgent;
use crate::raw::DEADLINE;

/// What the hub said.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A text frame.
    Frame(Value),
    /// A close frame with this code, or (0) the end of the connection without one.
    Closed(u16),
}

/// An open socket.
pub struct Socket(WebSocketStream<TcpStream>);

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Socket")
    }
}

impl Socket {
    /// Shakes hands with further header fields.
    ///
    /// # Errors
    /// The status that the hub answered instead of 101.
    ///
    /// # Panics
    /// When the hub cannot be reached.
    pub async fn try_open(hub: &TestHub, fields: &[(&'static str, &str)]) -> Result<Self, u16> {
        let address = hub.url().trim_start_matches("http://");
        let url = format!("ws://{address}/api/v1/agents/connect");
        let (Ok(mut request), Ok(stream)) = (url.into_client_request(), TcpStream::connect(address).await)
        else {
            panic!("{address} cannot be reached");
        };
        for (name, value) in fields {
            let Ok(value) = HeaderValue::from_str(value) else {
                panic!("{value:?} is no header value");
            };
            request.headers_mut().append(*name, value);
        }
        match timeout(DEADLINE, client_async(request, stream)).await {
            Ok(Ok((socket, _))) => Ok(Self(socket)),
            Ok(Err(Error::Http(response))) => Err(response.status().as_u16()),
            other => panic!("no handshake: {other:?}"),
        }
    }

    /// Shakes hands as the protocol wants it, and hears the challenge.
    ///
    /// # Panics
    /// When the hub does not greet.
    pub async fn open(hub: &TestHub) -> (Self, String) {
        let mut socket = match Self::try_open(hub, &[("sec-websocket-protocol", "aip.v1")]).await {
            Ok(socket) => socket,
            Err(status) => panic!("the hub answered {status}"),
        };
        let greeting = socket.frame("challenge").await;
        let challenge = greeting
            .get("challenge")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        (socket, challenge)
    }

    /// A socket that has signed in, and its `ready` frame. `more` are further members of `auth`.
    ///
    /// # Panics
    /// When the hub does not let it in.
    pub async fn signed_in(hub: &TestHub, agent: &TestAgent, more: Value) -> (Self, Value) {
        let (mut socket, challenge) = Self::open(hub).await;
        socket.say(&agent.auth_frame(hub, &challenge, more)).await;
        let ready = socket.frame("ready").await;
        (socket, ready)
    }

    /// Says a text frame; whether the hub still listens is told by what is heard next.
    pub async fn say(&mut self, frame: &Value) {
        self.send(Message::text(frame.to_string())).await;
    }

    /// Sends a message as it is.
    pub async fn send(&mut self, message: Message) {
        // A hub that has heard enough may be gone already.
        let _sent = self.0.send(message).await;
    }

    /// Writes bytes past the framing; whether the connection still took them.
    pub async fn raw(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).await.is_ok()
    }

    /// The next text frame or the end.
    ///
    /// # Panics
    /// When nothing comes within [`DEADLINE`].
    pub async fn hear(&mut self) -> Heard {
        let Ok(heard) = timeout(DEADLINE, self.listen()).await else {
            panic!("the hub keeps silent");
        };
        heard
    }

    async fn listen(&mut self) -> Heard {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => {
                    return Heard::Frame(serde_json::from_str(&text).unwrap_or_default());
                }
                Some(Ok(Message::Close(frame))) => {
                    return Heard::Closed(frame.map_or(0, |frame| frame.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Heard::Closed(0),
            }
        }
    }

    /// The next frame with this `t`; others are passed over.
    ///
    /// # Panics
    /// When the socket ends before.
    pub async fn frame(&mut self, t: &str) -> Value {
        loop {
            match self.hear().await {
                Heard::Frame(frame) if frame.get("t").and_then(Value::as_str) == Some(t) => return frame,
                Heard::Frame(_) => {}
                Heard::Closed(code) => panic!("closed with {code} instead of `{t}`"),
            }
        }
    }

    /// Passes over all frames; the code that the hub closes with.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            if let Heard::Closed(code) = self.hear().await {
                return code;
            }
        }
    }
}

/// A frame of RFC 6455 as a client writes it: `head` is FIN, the reserved bits and the opcode; the key is zero, so the
/// payload stands there as it is. `length` is what the header says, whatever the payload is.
#[must_use]
pub fn ws_frame(head: u8, length: u64, payload: &[u8]) -> Vec<u8> {
    const MASKED: u8 = 0x80;
    const TWO_BYTES: u8 = 126;
    const EIGHT_BYTES: u8 = 127;
    let mut frame = vec![head];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(small @ 0..=125), _) => frame.push(MASKED | small),
        (_, Ok(middle)) => {
            frame.push(MASKED | TWO_BYTES);
            frame.extend_from_slice(&middle.to_be_bytes());
        }
        _ => {
            frame.push(MASKED | EIGHT_BYTES);
            frame.extend_from_slice(&length.to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}
