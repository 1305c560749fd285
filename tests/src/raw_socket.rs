//! A socket that does what no client would: it shows every frame and the close code, and it may stop reading.

use aip_client::Client;
use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;

use crate::TestHub;

/// What came.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// A frame of the protocol.
    Frame(Value),
    /// The end, with its code; `None` where the line just broke.
    Closed(Option<u16>),
}

/// How to open a [`RawSocket`].
#[derive(Debug, Clone, Copy)]
pub struct RawOptions {
    /// Messages in flight.
    pub credit: u32,
    /// Share the mailbox.
    pub share: bool,
    /// Bytes of the system's receive buffer; 0 leaves it as it is.
    pub receive_buffer: u32,
}

impl Default for RawOptions {
    fn default() -> Self {
        Self {
            credit: 64,
            share: false,
            receive_buffer: 0,
        }
    }
}

/// A socket of an agent that is signed in.
#[derive(Debug)]
pub struct RawSocket {
    stream: WebSocketStream<TcpStream>,
}

impl RawSocket {
    /// Connects and signs in with the agent's token; returns the socket and its `ready` frame.
    ///
    /// # Errors
    /// Whatever does not go as the specification says.
    pub async fn open(hub: &TestHub, client: &Client, options: RawOptions) -> Result<(Self, Value)> {
        let token = client.token().await?;
        let mut socket = Self::connect(hub, options.receive_buffer).await?;
        socket.expect("challenge").await?;
        let auth =
            json!({"t": "auth", "token": token.as_str(), "credit": options.credit, "share": options.share});
        socket.send(&auth).await?;
        let ready = socket.expect("ready").await?;
        Ok((socket, ready))
    }

    async fn connect(hub: &TestHub, receive_buffer: u32) -> Result<Self> {
        let address = hub.url().strip_prefix("http://").context("an http URL")?;
        let tcp = TcpSocket::new_v4()?;
        if receive_buffer > 0 {
            tcp.set_recv_buffer_size(receive_buffer)?;
        }
        let stream = tcp.connect(address.parse()?).await?;
        let mut request = format!("ws://{address}/api/v1/agents/connect").into_client_request()?;
        let protocol = HeaderValue::from_static("aip.v1");
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        let (stream, _answer) = tokio_tungstenite::client_async(request, stream).await?;
        Ok(Self { stream })
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The line is broken.
    pub async fn send(&mut self, frame: &Value) -> Result<()> {
        Ok(self.stream.send(Message::text(frame.to_string())).await?)
    }

    /// The next frame, or the end.
    pub async fn next(&mut self) -> Seen {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    return Seen::Frame(serde_json::from_str(&text).unwrap_or(Value::Null));
                }
                Some(Ok(Message::Close(frame))) => return Seen::Closed(frame.map(|frame| frame.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Seen::Closed(None),
            }
        }
    }

    /// The next frame, which has to be of this kind.
    ///
    /// # Errors
    /// Another frame or the end came instead.
    pub async fn expect(&mut self, t: &str) -> Result<Value> {
        match self.next().await {
            Seen::Frame(frame) => {
                let found = frame.get("t").and_then(Value::as_str).unwrap_or_default();
                ensure!(found == t, "{frame} came instead of `{t}`");
                Ok(frame)
            }
            Seen::Closed(code) => bail!("the socket was closed with {code:?} instead of `{t}`"),
        }
    }

    /// The close code, after whatever comes before it.
    pub async fn closed(mut self) -> Option<u16> {
        loop {
            if let Seen::Closed(code) = self.next().await {
                return code;
            }
        }
    }

    /// Says goodbye and waits for the answer.
    pub async fn close(mut self) {
        // A hub that is gone needs no goodbye.
        drop(self.stream.close(None).await);
        self.closed().await;
    }
}
