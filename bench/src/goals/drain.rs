//! An agent comes back to a mailbox of 10,000 messages (P7).

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{KEY, Options};
use crate::agents::{Crowd, posts};
use crate::hub::Hub;
use crate::load::{self, Pace, Requests};
use crate::report::{Bound, Row};
use crate::socket::Socket;
use crate::yardstick::jetstream::JetStream;

/// Messages in the mailbox.
const MESSAGES: usize = 10_000;

/// Messages in flight, and messages per ack.
const CREDIT: u32 = 1_024;
const ACK_EVERY: u64 = 256;

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let hub = Hub::start(&scratch.path().join("hub"))?;
    let mut rounds = Vec::new();
    let mut figures = String::new();
    for round in 0..options.rounds() {
        let mut crowd = Crowd::register(hub.port, &hub.domain, &format!("drain{round}x"), 2, &KEY).await?;
        let envelopes = crowd.envelopes_to_last(MESSAGES);
        let requests = Requests::once(posts("/api/v1/messages", &envelopes));
        load::run(hub.port, 64, Duration::from_mins(2), Pace::Closed, &requests).await?;
        let ours = drain(&hub, &crowd).await?;
        let bodies: Vec<Bytes> = envelopes.into_iter().map(Bytes::from).collect();
        let nats = JetStream::start(false).await?;
        let theirs = nats.drain(&bodies).await?;
        rounds.push(ours / theirs);
        figures = format!("{ours:.0}/s, {theirs:.0}/s");
    }
    Ok(vec![Row {
        id: "P7",
        what: "drain of 10,000 over WebSocket / JetStream pull + ack",
        bound: Bound::AtLeast(0.25),
        rounds,
        figures,
    }])
}

/// Messages per second from the connection to the last durable ack.
#[expect(clippy::cast_precision_loss, reason = "ten thousand messages")]
async fn drain(hub: &Hub, crowd: &Crowd) -> anyhow::Result<f64> {
    let Some(reader) = crowd.agents.last() else {
        return Ok(f64::NAN);
    };
    let started = Instant::now();
    let (mut socket, ready) = Socket::agent(hub.port, &hub.domain, reader, CREDIT).await?;
    let epoch = ready.get("epoch").cloned().unwrap_or_default();
    let mut got = 0;
    let mut floor = 0;
    while floor < MESSAGES as u64 {
        let text = socket.text().await?;
        if text.contains("\"t\":\"msg\"") {
            got += 1;
            if got % ACK_EVERY == 0 || got == MESSAGES as u64 {
                socket
                    .send(&json!({"t": "ack", "epoch": epoch, "upto": got, "also": []}))
                    .await?;
            }
        } else {
            let frame: Value = serde_json::from_str(&text)?;
            anyhow::ensure!(frame.get("t").and_then(Value::as_str) != Some("error"), "{text}");
            floor = frame.get("floor").and_then(Value::as_u64).unwrap_or(floor);
        }
    }
    Ok(MESSAGES as f64 / started.elapsed().as_secs_f64())
}
