//! An agent's WebSocket, as plain as the protocol allows.

use aip_protocol::name::Domain;
use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::agents::Agent;

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Connects without saying who it is.
    pub(crate) async fn open(port: u16, path: &str, protocol: Option<&'static str>) -> anyhow::Result<Self> {
        let mut request = format!("ws://127.0.0.1:{port}{path}").into_client_request()?;
        if let Some(protocol) = protocol {
            request
                .headers_mut()
                .insert("Sec-WebSocket-Protocol", protocol.parse()?);
        }
        Ok(Self(connect_async(request).await?.0))
    }

    /// Connects and authenticates; returns the socket and the `ready` frame.
    pub(crate) async fn agent(
        port: u16,
        domain: &Domain,
        agent: &Agent,
        credit: u32,
    ) -> anyhow::Result<(Self, Value)> {
        let mut socket = Self::open(port, "/api/v1/agents/connect", Some("aip.v1")).await?;
        let hello = socket.frame("challenge").await?;
        let challenge = hello
            .get("challenge")
            .and_then(Value::as_str)
            .context("no challenge")?;
        let (kid, sig) = agent.answer(domain.as_str(), challenge);
        let auth = json!({"t": "auth", "did": agent.did.as_str(), "kid": kid, "sig": sig, "credit": credit});
        socket.send(&auth).await?;
        let ready = socket.frame("ready").await?;
        Ok((socket, ready))
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: &Value) -> anyhow::Result<()> {
        self.0.send(Message::text(frame.to_string())).await?;
        Ok(())
    }

    /// The next text frame.
    pub(crate) async fn text(&mut self) -> anyhow::Result<String> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.to_string()),
                Some(Ok(_)) => {}
                other => bail!("the socket ended: {other:?}"),
            }
        }
    }

    /// The next frame of this kind; others are passed over.
    pub(crate) async fn frame(&mut self, kind: &str) -> anyhow::Result<Value> {
        loop {
            let value: Value = serde_json::from_str(&self.text().await?)?;
            match value.get("t").and_then(Value::as_str) {
                Some(found) if found == kind => return Ok(value),
                Some("error") => bail!("error frame: {value}"),
                _ => {}
            }
        }
    }
}
