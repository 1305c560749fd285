//! Receipts: what was asked for one, and those that came. One small file each, or memory.
//!
//! Who sends a message and asks for a receipt writes down first what the receipt will have to prove: whose it is, and the
//! digest of the very bytes. A receipt is kept only where it says just that. Several processes may share the folder: a
//! lock is held over each change, and a file is replaced as a whole.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::json::Json;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::files;
use crate::limits::{RECEIPT_DIGESTS_MAX, RECEIPTS_KEPT_MAX, RECEIPTS_PRUNE_EVERY};

/// What a receipt says of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// The recipient's program has processed it.
    Delivered,
    /// Somebody has read it.
    Read,
}

/// The recipient's own word that it has a message, verified: it signed the digest of the very bytes that were sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Receipt {
    /// The message that it is for.
    #[serde(with = "crate::wire::uuid_text")]
    pub id: Uuid,
    /// Its recipient, who signed.
    pub from: Did,
    /// The `sha2-256` multihash (multibase) of the message's envelope.
    pub digest: String,
    /// What the recipient did with it.
    pub state: ReceiptState,
    /// When, by the recipient's clock.
    pub at: Timestamp,
    /// When a hub took the receipt.
    pub accepted_at: Timestamp,
    /// The envelope of the receipt, with the recipient's signature.
    pub envelope: Json,
}

/// A message whose receipt is waited for, or has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    /// Of its envelope, oldest first: a message that was sealed twice has two.
    digests: Vec<String>,
    since: Timestamp,
    receipt: Option<Receipt>,
}

/// What became of a receipt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is kept.
    Now,
    /// One that says as much was kept before.
    Before,
    /// It is for nothing that was asked for here.
    Unasked,
    /// It names other bytes than those that were sent.
    OtherDigest,
}

/// By the recipient of the message and its id. A receipt of anybody else is for nothing that was asked for.
pub(crate) type AskedKey = [u8; 16];

/// The store.
#[derive(Debug)]
pub(crate) struct Receipts {
    folder: Option<PathBuf>,
    memory: Mutex<HashMap<AskedKey, Asked>>,
    asked: AtomicU64,
    kept_max: usize,
}

impl Receipts {
    /// With a folder, receipts outlive the process.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            memory: Mutex::default(),
            asked: AtomicU64::new(0),
            kept_max: RECEIPTS_KEPT_MAX,
        }
    }

    /// A message goes out that asks for a receipt.
    pub(crate) fn ask(&self, key: AskedKey, digest: String, now: Timestamp) -> Result<()> {
        self.change(key, |asked| {
            let mut asked = asked.unwrap_or(Asked {
                digests: Vec::new(),
                since: now,
                receipt: None,
            });
            if !asked.digests.contains(&digest) {
                asked.digests.push(digest);
            }
            if asked.digests.len() > RECEIPT_DIGESTS_MAX {
                asked.digests.remove(0);
            }
            (Some(asked), ())
        })?;
        if self
            .asked
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(RECEIPTS_PRUNE_EVERY)
        {
            self.prune()?;
        }
        Ok(())
    }

    /// A receipt came. It is kept where it is for what was sent; a later one only where it says more.
    pub(crate) fn keep(&self, key: AskedKey, receipt: Receipt) -> Result<Kept> {
        self.change(key, |asked| {
            let Some(mut asked) = asked else {
                return (None, Kept::Unasked);
            };
            if !asked.digests.contains(&receipt.digest) {
                return (None, Kept::OtherDigest);
            }
            if asked
                .receipt
                .as_ref()
                .is_some_and(|kept| kept.state >= receipt.state)
            {
                return (None, Kept::Before);
            }
            asked.receipt = Some(receipt);
            (Some(asked), Kept::Now)
        })
    }

    /// Every receipt, in the order in which they were given.
    pub(crate) fn list(&self) -> Result<Vec<Receipt>> {
        let mut receipts: Vec<Receipt> = match &self.folder {
            None => self
                .memory()
                .values()
                .filter_map(|asked| asked.receipt.clone())
                .collect(),
            Some(folder) => {
                let paths = entries(folder).map_err(Error::file(folder))?;
                let asked = paths.iter().filter_map(|path| read(path).transpose());
                asked
                    .filter_map(|asked| asked.map(|asked| asked.receipt).transpose())
                    .collect::<Result<_>>()?
            }
        };
        receipts.sort_by_key(|receipt| (receipt.accepted_at, receipt.id));
        Ok(receipts)
    }

    fn memory(&self) -> MutexGuard<'_, HashMap<AskedKey, Asked>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads, changes and writes one entry; no other change comes in between.
    fn change<T>(
        &self,
        key: AskedKey,
        change: impl FnOnce(Option<Asked>) -> (Option<Asked>, T),
    ) -> Result<T> {
        let Some(folder) = &self.folder else {
            let mut memory = self.memory();
            let (changed, outcome) = change(memory.get(&key).cloned());
            if let Some(changed) = changed {
                memory.insert(key, changed);
            }
            return Ok(outcome);
        };
        let path = folder.join(format!("{:032x}.json", u128::from_be_bytes(key)));
        let _lock = lock(folder).map_err(Error::file(folder))?;
        let (changed, outcome) = change(read(&path)?);
        if let Some(changed) = changed {
            let bytes = serde_json::to_vec(&changed).map_err(io::Error::from);
            let written = bytes.and_then(|bytes| files::write_atomic(&path, &bytes));
            written.map_err(Error::file(&path))?;
        }
        Ok(outcome)
    }

    /// Forgets the oldest beyond the bound.
    fn prune(&self) -> Result<()> {
        let Some(folder) = &self.folder else {
            let mut memory = self.memory();
            let mut ages: Vec<_> = memory.iter().map(|(key, asked)| (asked.since, *key)).collect();
            ages.sort_unstable();
            for (_, key) in ages.iter().take(ages.len().saturating_sub(self.kept_max)) {
                memory.remove(key);
            }
            return Ok(());
        };
        let _lock = lock(folder).map_err(Error::file(folder))?;
        let paths = entries(folder).map_err(Error::file(folder))?;
        let excess = paths.len().saturating_sub(self.kept_max);
        if excess == 0 {
            return Ok(());
        }
        let changed_at = |path: &PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let mut ages: Vec<_> = paths.iter().map(|path| (changed_at(path), path)).collect();
        ages.sort_unstable();
        for (_, path) in ages.iter().take(excess) {
            fs::remove_file(path).map_err(Error::file(*path))?;
        }
        Ok(())
    }
}

/// Held until it is dropped. Never long: one small file is read and written.
fn lock(folder: &Path) -> io::Result<File> {
    files::create_private_folder(folder)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(folder.join("lock"))?;
    file.lock()?;
    Ok(file)
}

fn read(path: &Path) -> Result<Option<Asked>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file(path)(error)),
    };
    let asked = serde_json::from_slice(&bytes);
    asked.map(Some).map_err(|error| Error::file(path)(error.into()))
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in listing {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    Ok(paths)
}
