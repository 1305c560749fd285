//! The whole story in one go: two agents, one of them offline, a crash in the middle, nothing lost, nothing twice.
//!
//! `make demo` prints it; the integration tests run it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aip_client::inbox::FileInbox;
use aip_client::{
    Client, Content, Draft, Incoming, KeyFile, ListenOptions, Registration, Rotation, SealedEnvelope,
    SentStatus,
};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::TestHub;

/// Bytes of the large message.
const LARGE_BYTES: usize = 150 * 1024;

/// The hub is killed once this many messages are acknowledged.
const KILL_AFTER: usize = 20;

/// Plays the story and hands every line of the transcript to `say`.
///
/// # Errors
/// The first thing that is not as it should be.
pub async fn play(say: impl Fn(&str)) -> Result<()> {
    let mut hub = TestHub::start();
    say(&format!(
        "A hub serves {} at {} (process {}).",
        hub.domain(),
        hub.url(),
        hub.pid().unwrap_or_default()
    ));

    let alice = agent(&hub, "alice").await?;
    let bob = agent(&hub, "bob").await?;
    let bob_handle = format!("bob#{}", hub.domain());
    say(&format!(
        "alice and bob are registered: {} and {}.",
        did(&alice),
        did(&bob)
    ));
    say("bob goes offline.");

    let bodies = bodies()?;
    let sealed = seal_all(&alice, &bob_handle, &bodies, &say).await?;
    send_through_a_crash(&mut hub, &alice, &sealed, &say).await?;
    receive_all(&hub, &bob, &bodies, &say).await?;

    for envelope in &sealed {
        let again = alice.submit(envelope).await?;
        ensure!(
            again.status == SentStatus::Duplicate,
            "a retry was answered {:?}",
            again.status
        );
    }
    say(&format!(
        "alice sends the same {} envelopes again: every one is answered `duplicate`.",
        sealed.len()
    ));

    rotate_and_receive(&hub, &alice, &bob, &say).await?;
    say("Nothing acknowledged was lost, nothing was delivered twice.");
    Ok(())
}

async fn seal_all(
    alice: &Client,
    to: &str,
    bodies: &[Content],
    say: &impl Fn(&str),
) -> Result<Vec<SealedEnvelope>> {
    let mut sealed = Vec::new();
    for body in bodies {
        let draft = Draft::new(to, body.clone()).kind("aip.commerce.offer.response");
        sealed.push(alice.seal(&draft).await?);
    }
    say(&format!(
        "alice seals {} capability records, one message each, and one of {} KiB: {} bytes on the wire.",
        bodies.len() - 1,
        LARGE_BYTES / 1024,
        sealed.iter().map(|s| s.wire().len()).sum::<usize>()
    ));
    Ok(sealed)
}

async fn rotate_and_receive(hub: &TestHub, alice: &Client, bob: &Client, say: &impl Fn(&str)) -> Result<()> {
    bob.rotate(Rotation {
        rotation_key: true,
        ..Rotation::default()
    })
    .await?;
    say("bob rotates all his keys.");
    alice.send(&Draft::text(did(bob), "Still you, bob?")).await?;
    let message = receive(hub, bob, 1).await?.pop().context("nothing arrived")?;
    ensure!(
        message.content.as_text() == Some("Still you, bob?"),
        "another message arrived"
    );
    say(&format!(
        "The next message arrives as number {}, and opens: {:?}",
        message.seq, "Still you, bob?"
    ));
    Ok(())
}

async fn send_through_a_crash(
    hub: &mut TestHub,
    alice: &Client,
    sealed: &[SealedEnvelope],
    say: &impl Fn(&str),
) -> Result<()> {
    let (acknowledged, mut progress) = mpsc::channel(sealed.len());
    let (sender, outbox) = (alice.clone(), sealed.to_vec());
    let sending = tokio::spawn(async move {
        for envelope in &outbox {
            // The library retries the same bytes until the hub has answered.
            acknowledged.send(sender.submit(envelope).await?).await?;
        }
        anyhow::Ok(())
    });
    for _ in 0..KILL_AFTER {
        progress.recv().await.context("the sender gave up")?;
    }
    let killed = hub.pid().unwrap_or_default();
    tokio::task::block_in_place(|| hub.restart());
    say(&format!(
        "After {KILL_AFTER} acknowledgements process {killed} is killed with SIGKILL; process {} takes over the folder.",
        hub.pid().unwrap_or_default()
    ));
    sending.await??;
    say(&format!(
        "alice's client went on by itself: all {} messages are acknowledged.",
        sealed.len()
    ));
    Ok(())
}

async fn receive_all(hub: &TestHub, bob: &Client, bodies: &[Content], say: &impl Fn(&str)) -> Result<()> {
    let messages = receive(hub, bob, bodies.len()).await?;
    say(&format!(
        "bob comes back by WebSocket and gets {} messages.",
        messages.len()
    ));
    for (index, (message, body)) in messages.iter().zip(bodies).enumerate() {
        ensure!(
            message.seq == index as u64 + 1,
            "message {} came as number {}",
            index + 1,
            message.seq
        );
        ensure!(
            message.content.to_bytes() == body.to_bytes(),
            "message {} is not what was sent",
            message.seq
        );
    }
    say("Each came once, in order, from alice's key, and opens to the very bytes that she sealed.");
    Ok(())
}

/// Listens until `count` messages are processed and acknowledged, then closes.
async fn receive(hub: &TestHub, bob: &Client, count: usize) -> Result<Vec<Incoming>> {
    let inbox = Arc::new(FileInbox::open(folder(hub, "bob").join("inbox"))?);
    let mut listener = bob.listen(inbox, ListenOptions::default());
    let mut messages = Vec::new();
    while messages.len() < count {
        let message = listener.next().await?;
        listener.ack(&message).await?;
        messages.push(message);
    }
    listener.close().await;
    Ok(messages)
}

/// The records of `tests/data/live_manifest.json`, and a large body.
fn bodies() -> Result<Vec<Content>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/live_manifest.json");
    let manifest: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let records = manifest
        .get("tools")
        .and_then(Value::as_array)
        .context("no records")?;
    let mut bodies: Vec<Content> = records
        .iter()
        .map(|record| Content::json(record.clone()))
        .collect();
    ensure!(bodies.len() == 47, "{} records instead of 47", bodies.len());
    bodies.push(Content::text("x".repeat(LARGE_BYTES)));
    Ok(bodies)
}

fn folder(hub: &TestHub, name: &str) -> PathBuf {
    hub.folder().join(name)
}

async fn agent(hub: &TestHub, name: &str) -> Result<Client> {
    std::fs::create_dir_all(folder(hub, name))?;
    let client = Client::builder(hub.url())
        .key_file(KeyFile::at(folder(hub, name).join("agent.key")))?
        .build()?;
    client.register(name, Registration::default()).await?;
    Ok(client)
}

fn did(client: &Client) -> String {
    client.did().map(|did| did.to_string()).unwrap_or_default()
}
