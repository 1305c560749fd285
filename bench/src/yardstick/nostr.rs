//! `nostr-rs-relay`, the closest Rust relay: verifies a Schnorr signature, stores in SQLite, answers `OK`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use rand::RngExt;
use secp256k1::{Keypair, Secp256k1};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use crate::agents::{ENVELOPE_BYTES, now, seeded};
use crate::process::{Running, free_port, usage, wait_for_port};

/// A relay process.
#[derive(Debug)]
pub(crate) struct Nostr {
    process: Running,
    port: u16,
}

/// Rate and cost of stored and acknowledged events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    /// Events per second.
    pub(crate) rate: f64,
    /// CPU of the relay per event, in microseconds.
    pub(crate) cpu_us: f64,
}

impl Nostr {
    /// Starts the relay with an empty database.
    pub(crate) fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let port = free_port()?;
        std::fs::create_dir_all(folder)?;
        let config = folder.join("relay.toml");
        std::fs::write(
            &config,
            format!(
                "[network]\nport = {port}\naddress = \"127.0.0.1\"\n[options]\nreject_future_seconds = 3600\n\
                 [limits]\nmax_event_bytes = 131072\n"
            ),
        )?;
        let process = Running::start(
            Command::new(program)
                .arg("--config")
                .arg(&config)
                .arg("--db")
                .arg(folder)
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )?;
        wait_for_port(port)?;
        Ok(Self { process, port })
    }

    /// Sends prepared events with `width` in flight; every one must be stored.
    #[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
    pub(crate) async fn store(&self, events: Vec<String>, width: usize) -> anyhow::Result<Stored> {
        let count = events.len();
        let (socket, _) = connect_async(format!("ws://127.0.0.1:{}", self.port)).await?;
        let (mut outgoing, mut incoming) = socket.split();
        let before = usage(self.process.pid());
        let started = Instant::now();
        let mut events = events.into_iter();
        for event in events.by_ref().take(width) {
            outgoing.feed(Message::text(event)).await?;
        }
        outgoing.flush().await?;
        let mut stored = 0;
        while stored < count {
            let Message::Text(text) = incoming.next().await.context("the relay closed")?? else {
                continue;
            };
            let answer: Value = serde_json::from_str(&text)?;
            if answer.get(2) != Some(&Value::Bool(true)) {
                bail!("the relay answered {text}");
            }
            stored += 1;
            if let Some(event) = events.next() {
                outgoing.send(Message::text(event)).await?;
            }
        }
        let cpu = usage(self.process.pid()).cpu_secs - before.cpu_secs;
        Ok(Stored {
            rate: count as f64 / started.elapsed().as_secs_f64(),
            cpu_us: cpu * 1e6 / count as f64,
        })
    }
}

/// Signed events of about the size of our envelopes.
pub(crate) fn events(count: usize) -> anyhow::Result<Vec<String>> {
    let mut rng = seeded("nostr");
    let secp = Secp256k1::new();
    let secret: [u8; 32] = rng.random();
    let pair = Keypair::from_seckey_byte_array(&secp, secret)?;
    let author = hex::encode(pair.x_only_public_key().0.serialize());
    let recipient = hex::encode(rng.random::<[u8; 32]>());
    let created_at = now().unix_millis() / 1_000;
    let mut events = Vec::with_capacity(count);
    for _ in 0..count {
        let mut noise = vec![0_u8; (ENVELOPE_BYTES - 424) / 2];
        rng.fill(&mut noise[..]);
        let content = hex::encode(&noise);
        let tags = json!([["p", recipient]]);
        let canonical = json!([0, author, created_at, 4, tags, content]).to_string();
        let id = Sha256::digest(canonical.as_bytes());
        let sig = secp.sign_schnorr_no_aux_rand(&id, &pair);
        let event = json!({
            "id": hex::encode(id), "pubkey": author, "created_at": created_at, "kind": 4, "tags": tags,
            "content": content, "sig": hex::encode(sig.to_byte_array()),
        });
        events.push(json!(["EVENT", event]).to_string());
    }
    Ok(events)
}
