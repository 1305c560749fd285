//! Three hubs, run by people who have never met: what federation promises, played against real processes.
//!
//! `make demo-federation` prints it; the integration tests run it.

use std::sync::Arc;
use std::time::Duration;

use aip_client::inbox::FileInbox;
use aip_client::protocol::multikey::SigningKey;
use aip_client::{Client, Draft, Incoming, ListenOptions, Rotation, Sent, SentStatus};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::clients::{agent, folder, handle};
use crate::peer::signed_push;
use crate::raw::{Request, ask};
use crate::{HubOptions, TestHub};

/// Ends what would hang; nothing here is about time.
const DEADLINE: Duration = Duration::from_mins(2);

/// Messages that wait while a hub is down.
const WAITING: usize = 20;

/// Plays the story and hands every line of the transcript to `say`.
///
/// # Errors
/// The first thing that is not as it should be.
pub async fn play(say: impl Fn(&str)) -> Result<()> {
    let [alpha, beta, mut gamma] = [(); 3].map(|()| TestHub::start_with(HubOptions::default()));
    for (name, hub) in [("alpha", &alpha), ("beta", &beta), ("gamma", &gamma)] {
        let pid = hub.pid().unwrap_or_default();
        say(&format!(
            "{name} serves {} (process {pid}, a data folder of its own).",
            hub.domain()
        ));
    }
    let alice = agent(&alpha, "alice").await?;
    let bob = agent(&beta, "bob").await?;
    let carol = agent(&gamma, "carol").await?;
    say("alice is at alpha, bob at beta, carol at gamma. Nobody told the hubs of each other.");

    resolve(&alpha, (&beta, &bob), &say).await?;
    offline(&alice, (&beta, &bob), &say).await?;
    outage(&alice, (&mut gamma, &carol), (&beta, &bob), &say).await?;
    rotation(&alice, (&beta, &bob), &say).await?;
    spoofed(&alpha, &beta, &say).await?;
    for agent in [&bob, &carol] {
        let page = agent.fetch_inbox(None, 100, Duration::ZERO).await?;
        let more = page.items.len() + page.unreadable.len();
        ensure!(more == 0, "{more} more messages came to {:?}", agent.did());
    }
    say("Nothing acknowledged was lost, nothing was delivered twice, and nobody spoke for another domain.");
    Ok(())
}

async fn resolve(alpha: &TestHub, (beta, bob): (&TestHub, &Client), say: &impl Fn(&str)) -> Result<()> {
    let whom = handle(beta, "bob");
    let target = format!("/api/v1/resolve/{}", whom.replace('#', "%23"));
    let answer = ask(alpha.url(), &Request::get(target)).await;
    ensure!(
        answer.status == 200,
        "alpha does not resolve {whom}: {}",
        answer.text()
    );
    let found = answer.json();
    let did = bob.did().context("bob has a DID")?.to_string();
    ensure!(
        found.get("did").and_then(Value::as_str) == Some(did.as_str()),
        "alpha says {found}"
    );
    let path = format!("/admin/peers/{}", beta.domain());
    let peer = alpha.operate(Request::get(path)).await.json();
    let pinned = peer.get("pinned").and_then(Value::as_array);
    ensure!(
        pinned.is_some_and(|keys| keys.len() == 1),
        "alpha pinned no key of beta: {peer}"
    );
    say(&format!(
        "alpha is asked for {whom}: it finds beta by its domain, pins its key, fetches bob's history, checks it, and answers {did}."
    ));
    Ok(())
}

async fn offline(alice: &Client, (beta, bob): (&TestHub, &Client), say: &impl Fn(&str)) -> Result<()> {
    let to = handle(beta, "bob");
    let mut sent = Vec::new();
    for number in 1..=5 {
        sent.push(queued(alice, &to, &format!("letter {number}")).await?);
    }
    say("bob is offline. alice hands 5 letters to alpha: each is answered `queued`, durably.");
    for letter in &sent {
        await_status(alice, letter, "delivered").await?;
    }
    say("alpha delivers them to beta by signed requests; alice's status is `delivered`.");
    let messages = receive((beta, "bob"), bob, 5).await?;
    check_texts(&messages, (1..=5).map(|number| format!("letter {number}")))?;
    let did = alice.did();
    ensure!(
        messages.iter().all(|message| did.as_ref() == Some(&message.from)),
        "not all are alice's: {messages:?}"
    );
    say("bob comes back and gets all 5, once, in order, signed by alice's own key.");
    for letter in &sent {
        await_status(alice, letter, "acked").await?;
    }
    say("alice asks again: beta reports `acked`.");
    Ok(())
}

async fn outage(
    alice: &Client,
    (gamma, carol): (&mut TestHub, &Client),
    (beta, bob): (&TestHub, &Client),
    say: &impl Fn(&str),
) -> Result<()> {
    let to = handle(&*gamma, "carol");
    alice.identity(&to).await?;
    tokio::task::block_in_place(|| gamma.kill());
    say("gamma is killed.");
    for number in 1..=WAITING {
        queued(alice, &to, &format!("while you were away {number}")).await?;
    }
    queued(alice, &handle(beta, "bob"), "does gamma keep you from your mail?").await?;
    let messages = receive((beta, "bob"), bob, 1).await?;
    check_texts(&messages, ["does gamma keep you from your mail?".to_owned()])?;
    say(&format!(
        "{WAITING} letters to carol wait at alpha; one to bob passes at once: a dead peer holds up no other."
    ));
    tokio::task::block_in_place(|| gamma.restart());
    say("gamma comes back.");
    let messages = receive((gamma, "carol"), carol, WAITING).await?;
    check_texts(
        &messages,
        (1..=WAITING).map(|number| format!("while you were away {number}")),
    )?;
    say(&format!(
        "alpha tries again by itself: carol gets all {WAITING}, once, in order."
    ));
    Ok(())
}

async fn rotation(alice: &Client, (beta, bob): (&TestHub, &Client), say: &impl Fn(&str)) -> Result<()> {
    let rotated = alice
        .rotate(Rotation {
            rotation_key: true,
            ..Rotation::default()
        })
        .await?;
    queued(alice, &handle(beta, "bob"), "signed with a new key").await?;
    let messages = receive((beta, "bob"), bob, 1).await?;
    check_texts(&messages, ["signed with a new key".to_owned()])?;
    let kid = messages.first().map(|message| message.envelope.kid.as_str());
    ensure!(
        kid.is_some_and(|kid| rotated.current_signing(kid).is_some()),
        "signed by {kid:?}"
    );
    say(
        "alice rotates all her keys at alpha. Her next letter is signed by one that beta never met; it looks again, and takes it.",
    );
    Ok(())
}

/// Somebody with a key of their own says to be beta.
async fn spoofed(alpha: &TestHub, beta: &TestHub, say: &impl Fn(&str)) -> Result<()> {
    let key = SigningKey::from_seed([7; 32]);
    let body = json!({ "aip": "1", "domain": beta.domain(), "epoch": "e", "items": [] }).to_string();
    let answer = ask(alpha.url(), &signed_push(alpha, &key, &beta.domain(), body)).await;
    ensure!(
        answer.status == 401,
        "a spoofed hub was answered {}: {}",
        answer.status,
        answer.text()
    );
    let code = answer.code();
    ensure!(code == "hub_key_unknown", "a spoofed hub was told {code}");
    say(&format!(
        "Somebody with a key of their own says to be beta: alpha answers 401 `{code}`."
    ));
    Ok(())
}

/// Sends a text that goes to another hub.
async fn queued(client: &Client, to: &str, text: &str) -> Result<Sent> {
    let sent = client.send(&Draft::text(to, text)).await?;
    ensure!(
        sent.status == SentStatus::Queued,
        "answered {:?} instead of queued",
        sent.status
    );
    Ok(sent)
}

async fn await_status(client: &Client, sent: &Sent, wanted: &str) -> Result<()> {
    let until = Instant::now() + DEADLINE;
    loop {
        let found = client.status(sent.id, None).await?;
        if found.status == wanted {
            return Ok(());
        }
        let (status, code) = (found.status, found.code);
        ensure!(
            Instant::now() < until,
            "the status stays {status} ({code:?}), not {wanted}"
        );
        sleep(Duration::from_millis(100)).await;
    }
}

/// Listens until `count` messages are processed and acknowledged, then closes.
async fn receive((hub, name): (&TestHub, &str), client: &Client, count: usize) -> Result<Vec<Incoming>> {
    let inbox = Arc::new(FileInbox::open(folder(hub, name).join("inbox"))?);
    let mut listener = client.listen(inbox, ListenOptions::default());
    let mut messages = Vec::new();
    while messages.len() < count {
        let message = timeout(DEADLINE, listener.next())
            .await
            .context("nothing arrives")??;
        listener.ack(&message).await?;
        messages.push(message);
    }
    listener.close().await;
    Ok(messages)
}

fn check_texts(messages: &[Incoming], wanted: impl IntoIterator<Item = String>) -> Result<()> {
    let came: Vec<&str> = messages
        .iter()
        .filter_map(|message| message.content.as_text())
        .collect();
    let wanted: Vec<String> = wanted.into_iter().collect();
    ensure!(came == wanted, "came {came:?} instead of {wanted:?}");
    Ok(())
}
