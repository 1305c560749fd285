//! The store's own record: what all processes must agree on before the first message.
//!
//! It is written once, by whichever process is first (compare-and-set on an empty subject); all others read it.

use std::fmt;

use aip_relay::mailbox::{Epoch, StoreError};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::nats::{Nats, Published, Stored, expecting, named};
use crate::streams::Names;

/// The layout that this code reads and writes.
const SCHEMA: u32 = 1;
/// The record's name among those of the store.
const STORE: &str = "store";

/// Chance for a store that is made now; drawn by the caller, unused when the store exists.
#[derive(Clone)]
pub struct Fresh {
    /// Names the life of the store: its epoch.
    pub epoch_bits: u64,
    /// Hides whose mailbox is whose on the servers.
    pub secret: [u8; 32],
}

impl fmt::Debug for Fresh {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").finish_non_exhaustive()
    }
}

/// What is written.
#[derive(Clone, Serialize, Deserialize)]
struct Written {
    schema: u32,
    epoch: String,
    secret: String,
    retention_secs: u64,
    /// The number of the stream of each shard.
    shards: Vec<u16>,
}

/// What is the same for all processes of a store.
#[derive(Clone)]
pub(crate) struct StoreRecord {
    pub(crate) epoch: Epoch,
    pub(crate) secret: [u8; 32],
    /// What the store was made with, seconds.
    pub(crate) retention_secs: u64,
    /// The number of the stream of each of the 256 shards.
    pub(crate) shards: Vec<u16>,
}

impl fmt::Debug for StoreRecord {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreRecord")
            .field("epoch", &self.epoch)
            .field("retention_secs", &self.retention_secs)
            .finish_non_exhaustive()
    }
}

/// Reads the store's record, or makes it. The stream of records exists.
pub(crate) async fn open(nats: &Nats, names: &Names, fresh: &Fresh) -> Result<StoreRecord, StoreError> {
    let (stream, subject) = (names.meta(), names.meta_subject(STORE));
    for _ in 0..limits::CAS_TRIES_MAX {
        if let Some(stored) = nats.last_of(&stream, &subject).await? {
            return read(&stored);
        }
        let new = made(nats, fresh);
        let body = serde_json::to_vec(&new).map_err(|error| {
            StoreError::Corrupt(format!("the store's record cannot be written: {error}").into())
        })?;
        let headers = named(expecting(0), &format!("store.{}", new.epoch));
        match nats.publish(&subject, headers, body.into()).await? {
            Published::Stored { .. } | Published::Duplicate { .. } | Published::WrongLast { .. } => {}
            Published::Full => return Err(StoreError::Unavailable("the stream of records is full".into())),
        }
    }
    Err(StoreError::Unavailable(
        "the store's record cannot be read back".into(),
    ))
}

fn made(nats: &Nats, fresh: &Fresh) -> Written {
    let options = nats.options();
    Written {
        schema: SCHEMA,
        epoch: Epoch::from_random(fresh.epoch_bits).as_str().to_owned(),
        secret: URL_SAFE_NO_PAD.encode(fresh.secret),
        retention_secs: options.retention_secs,
        shards: (0_u16..256).map(|shard| shard % options.streams.max(1)).collect(),
    }
}

fn read(stored: &Stored) -> Result<StoreRecord, StoreError> {
    let unreadable = || StoreError::Corrupt("the store's record is unreadable".into());
    let written: Written = serde_json::from_slice(&stored.payload).map_err(|_| unreadable())?;
    if written.schema != SCHEMA {
        let found = written.schema;
        return Err(StoreError::Corrupt(
            format!("the store has layout {found}, this program reads {SCHEMA}").into(),
        ));
    }
    let secret = URL_SAFE_NO_PAD
        .decode(&written.secret)
        .map_err(|_| unreadable())?;
    if written.shards.len() != limits::SHARDS {
        return Err(unreadable());
    }
    Ok(StoreRecord {
        epoch: Epoch::parse(&written.epoch).ok_or_else(unreadable)?,
        secret: secret.try_into().map_err(|_| unreadable())?,
        retention_secs: written.retention_secs,
        shards: written.shards,
    })
}
