//! The store's own record: what all processes must agree on before the first message.
//!
//! It is written once, by whichever process is first (compare-and-set on an empty subject); all others read it.

use std::fmt;

use aip_relay::mailbox::{Epoch, StoreError};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::nats::{Nats, Published, Stored, expecting, named};
use crate::shards::Moves;
use crate::streams::Names;

/// The layout that this code reads and writes.
const SCHEMA: u32 = 1;
/// The record's name among those of the store.
const STORE: &str = "store";

/// Chance for a store that is made now, or that has to have a new epoch; drawn by the caller at every start.
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
    /// All streams have been made: one that is missing from now on is lost.
    complete: bool,
    /// Why the epoch is not the store's first one.
    #[serde(default)]
    renewed: String,
    /// What became of the shards since.
    #[serde(default)]
    moves: Moves,
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
    pub(crate) moves: Moves,
    /// All streams have been made.
    pub(crate) complete: bool,
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

/// Reads the store's record, if there is one. The stream of records exists.
pub(crate) async fn find(nats: &Nats, names: &Names) -> Result<Option<StoreRecord>, StoreError> {
    let stored = nats.last_of(&names.meta(), &names.meta_subject(STORE)).await?;
    stored.as_ref().map(read).transpose()
}

/// The number of the stream of each shard in a new store.
pub(crate) fn spread(streams: u16) -> Vec<u16> {
    (0..limits::SHARDS)
        .filter_map(|shard| u16::try_from(shard).ok()?.checked_rem(streams))
        .collect()
}

/// Reads the store's record, or makes it. The stream of records exists.
pub(crate) async fn open(nats: &Nats, names: &Names, fresh: &Fresh) -> Result<StoreRecord, StoreError> {
    for _ in 0..limits::CAS_TRIES_MAX {
        if let Some(record) = find(nats, names).await? {
            return Ok(record);
        }
        let new = made(nats, fresh);
        let body = encode(&new)?;
        let headers = named(expecting(0), &format!("store.{}", new.epoch));
        let subject = names.meta_subject(STORE);
        match nats.publish(&subject, headers, body).await? {
            Published::Stored { .. } | Published::Duplicate { .. } | Published::WrongLast { .. } => {}
            Published::Full | Published::Elsewhere => {
                return Err(StoreError::Unavailable("the stream of records is full".into()));
            }
        }
    }
    Err(StoreError::Unavailable(
        "the store's record cannot be read back".into(),
    ))
}

/// Notes that all streams have been made.
pub(crate) async fn complete(nats: &Nats, names: &Names) -> Result<(), StoreError> {
    let (stream, subject) = (names.meta(), names.meta_subject(STORE));
    for _ in 0..limits::CAS_TRIES_MAX {
        let Some(stored) = nats.last_of(&stream, &subject).await? else {
            break;
        };
        let mut written = parse(&stored)?;
        if written.complete {
            return Ok(());
        }
        written.complete = true;
        let headers = named(
            expecting(stored.stream_seq),
            &format!("complete.{}", written.epoch),
        );
        nats.publish(&subject, headers, encode(&written)?).await?;
    }
    Err(StoreError::Unavailable(
        "the store's record cannot be read back".into(),
    ))
}

/// Gives the store a new epoch, once for each `cause`, whichever process is first.
pub(crate) async fn renew(
    nats: &Nats,
    names: &Names,
    fresh: &Fresh,
    cause: &str,
) -> Result<StoreRecord, StoreError> {
    let (stream, subject) = (names.meta(), names.meta_subject(STORE));
    for _ in 0..limits::CAS_TRIES_MAX {
        let Some(stored) = nats.last_of(&stream, &subject).await? else {
            break;
        };
        let mut written = parse(&stored)?;
        if written.renewed == cause {
            return read(&stored);
        }
        cause.clone_into(&mut written.renewed);
        Epoch::from_random(fresh.epoch_bits)
            .as_str()
            .clone_into(&mut written.epoch);
        let headers = named(
            expecting(stored.stream_seq),
            &format!("renew.{}.{cause}", stored.stream_seq),
        );
        nats.publish(&subject, headers, encode(&written)?).await?;
    }
    Err(StoreError::Unavailable(
        "the store's record cannot be read back".into(),
    ))
}

/// Changes what is written about shards, whatever else is changed at the same time; tells the record as it is then.
/// `name` is another one for each call; an error of `edit` leaves everything as it was.
pub(crate) async fn edit_shards<E: From<StoreError>>(
    nats: &Nats,
    names: &Names,
    name: &str,
    mut edit: impl FnMut(&mut Vec<u16>, &mut Moves) -> Result<(), E>,
) -> Result<StoreRecord, E> {
    let (stream, subject) = (names.meta(), names.meta_subject(STORE));
    for _ in 0..limits::CAS_TRIES_MAX {
        let Some(stored) = nats.last_of(&stream, &subject).await? else {
            break;
        };
        let mut written = parse(&stored)?;
        edit(&mut written.shards, &mut written.moves)?;
        let headers = named(
            expecting(stored.stream_seq),
            &format!("shards.{}.{name}", stored.stream_seq),
        );
        if let Published::Stored { .. } | Published::Duplicate { .. } =
            nats.publish(&subject, headers, encode(&written)?).await?
        {
            return Ok(understood(written)?);
        }
    }
    Err(StoreError::Unavailable("the store's record cannot be changed".into()).into())
}

fn made(nats: &Nats, fresh: &Fresh) -> Written {
    let options = nats.options();
    Written {
        schema: SCHEMA,
        epoch: Epoch::from_random(fresh.epoch_bits).as_str().to_owned(),
        secret: URL_SAFE_NO_PAD.encode(fresh.secret),
        retention_secs: options.retention_secs,
        shards: spread(options.streams),
        complete: false,
        renewed: String::new(),
        moves: Moves::default(),
    }
}

fn encode(record: &Written) -> Result<Bytes, StoreError> {
    serde_json::to_vec(record)
        .map(Bytes::from)
        .map_err(|error| StoreError::Corrupt(format!("the store's record cannot be written: {error}").into()))
}

fn parse(stored: &Stored) -> Result<Written, StoreError> {
    let written: Written =
        serde_json::from_slice(&stored.payload).map_err(|error| unreadable(&error.to_string()))?;
    if written.schema != SCHEMA {
        return Err(unreadable(&format!(
            "it has layout {}, this program knows {SCHEMA}",
            written.schema
        )));
    }
    Ok(written)
}

fn unreadable(why: &str) -> StoreError {
    StoreError::Corrupt(format!("the store's record is unreadable: {why}").into())
}

fn read(stored: &Stored) -> Result<StoreRecord, StoreError> {
    understood(parse(stored)?)
}

fn understood(written: Written) -> Result<StoreRecord, StoreError> {
    let secret = URL_SAFE_NO_PAD.decode(&written.secret).unwrap_or_default();
    let secret = <[u8; 32]>::try_from(secret).map_err(|_odd| unreadable("its secret has another length"))?;
    if written.shards.len() != limits::SHARDS {
        return Err(unreadable("it has another number of shards"));
    }
    Ok(StoreRecord {
        epoch: Epoch::parse(&written.epoch).ok_or_else(|| unreadable("its epoch has another form"))?,
        secret,
        retention_secs: written.retention_secs,
        shards: written.shards,
        moves: written.moves,
        complete: written.complete,
    })
}
