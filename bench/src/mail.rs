//! The store of mailboxes itself, without a hub: to fill very many of them, and to measure its reads alone.

use std::sync::Arc;
use std::time::Duration;

use aip_jetstream::{Fresh, JetStreamMailboxes, Options, Parts};
use aip_protocol::name::{Did, Domain, Handle, Name};
use aip_protocol::time::Timestamp;
use aip_relay::dedup::Unshared;
use aip_relay::limits::{DEDUP_LIFE_SECS, DELIVERY_BYTES_MAX, DELIVERY_MESSAGES_MAX, RETENTION_SECS};
use aip_relay::mailbox::memory::MemoryMailboxes;
use aip_relay::mailbox::{
    AckOutcome, Append, AppendOutcome, Epoch, Fetch, MailboxId, Mailboxes, Quota, Route, Select, Statuses,
};
use anyhow::{anyhow, ensure};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use rand::RngExt;
use rand::rngs::StdRng;
use sha2::{Digest, Sha256};

use crate::agents::{ENVELOPE_BYTES, now, seeded};

/// Mailboxes that are filled at the same time.
const FILLING: usize = 64;

/// No quota that matters.
const QUOTA: Quota = Quota {
    mailbox_messages: u32::MAX,
    mailbox_bytes: u64::MAX,
    sender_messages: u32::MAX,
};

/// Opens the store as a process that has just started does: nothing is remembered.
pub(crate) async fn open(urls: &str) -> anyhow::Result<Arc<JetStreamMailboxes>> {
    let mut rng = seeded("store");
    let options = Options {
        urls: urls.split(',').map(str::to_owned).collect(),
        ..Options::default()
    };
    let parts = Parts {
        window: Arc::new(MemoryMailboxes::new(Epoch::from_random(rng.random()))),
        shared: Arc::new(Unshared),
        fresh: Fresh {
            epoch_bits: rng.random(),
            secret: rng.random(),
        },
        seed: rng.random(),
        wake: Arc::new(|_, _| {}),
    };
    Ok(Arc::new(JetStreamMailboxes::open(options, parts, now()).await?))
}

/// Puts `each` messages of [`ENVELOPE_BYTES`] into the mailbox of every owner. The statuses are written too.
pub(crate) async fn fill(store: &JetStreamMailboxes, owners: &[Did], each: usize) -> anyhow::Result<()> {
    stream::iter(owners)
        .map(|owner| fill_one(store, owner, each))
        .buffer_unordered(FILLING)
        .try_collect()
        .await
}

async fn fill_one(store: &JetStreamMailboxes, owner: &Did, each: usize) -> anyhow::Result<()> {
    let mut rng = seeded(owner.as_str());
    let mut last = None;
    for _ in 0..each {
        let append = message(owner, &mut rng);
        last = Some(append.id);
        let outcome = store.append(append).await?;
        ensure!(
            matches!(outcome, AppendOutcome::Stored { .. }),
            "the store answered {outcome:?}"
        );
    }
    if let Some(id) = last {
        // A look-up waits for the records that are on their way: none is dropped, however fast we are.
        let found = store.status(owner, id, Some(owner)).await?;
        ensure!(found.len() == 1, "the status of a message is missing");
    }
    Ok(())
}

fn message(owner: &Did, rng: &mut StdRng) -> Append {
    let at = now();
    let mut wire = vec![0; ENVELOPE_BYTES];
    rng.fill(&mut wire[..]);
    // The store does not look into it; a hub passes it on as a text.
    for byte in &mut wire {
        *byte = b'a' + (*byte & 15);
    }
    let text = format!(
        "\"{}\"",
        String::from_utf8_lossy(wire.get(2..).unwrap_or_default())
    );
    Append {
        recipient: owner.clone(),
        sender: owner.clone(),
        id: uuid::Builder::from_random_bytes(rng.random()).into_uuid(),
        dedup_key: rng.random(),
        digest: Sha256::digest(&text).into(),
        remember_until: at + Duration::from_secs(DEDUP_LIFE_SECS),
        accepted_at: at,
        expires_at: at + Duration::from_secs(RETENTION_SECS),
        wire: Bytes::from(text),
        route: Route::Mailbox,
        quota: QUOTA,
    }
}

/// Reads what is pending, as a session that has just begun does; how many messages came.
pub(crate) async fn read(store: &JetStreamMailboxes, owner: &Did, at: Timestamp) -> anyhow::Result<usize> {
    let fetch = Fetch {
        select: Select::After(0),
        max_messages: DELIVERY_MESSAGES_MAX,
        max_bytes: usize::try_from(DELIVERY_BYTES_MAX)?,
        now: at,
    };
    Ok(store.fetch(&MailboxId::of(owner), fetch).await?.len())
}

/// Acks the first message of every owner.
pub(crate) async fn ack_first(store: &JetStreamMailboxes, owners: &[Did]) -> anyhow::Result<()> {
    stream::iter(owners)
        .map(|owner| async move {
            let acked = store.ack(&MailboxId::of(owner), 1, &[], now()).await?;
            ensure!(
                matches!(acked, AckOutcome::Acked(_)),
                "the store answered {acked:?}"
            );
            Ok(())
        })
        .buffer_unordered(FILLING)
        .try_collect()
        .await
}

/// `count` agents of `domain`, by their DIDs: `prefix` and a number.
pub(crate) fn owners(domain: &Domain, prefix: &str, count: usize) -> anyhow::Result<Vec<Did>> {
    (0..count)
        .map(|index| {
            let name = Name::parse(&format!("{prefix}{index}")).map_err(|refusal| anyhow!("{refusal}"))?;
            let domain = domain.clone();
            Ok(Handle { name, domain }.did())
        })
        .collect()
}
