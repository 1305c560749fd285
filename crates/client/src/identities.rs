//! Verified identities: replayed, pinned, remembered (spec §3).
//!
//! The first history of an agent that is seen is pinned, whole. A later one must extend it; one that does not is refused,
//! and both are kept as evidence, until the operator says otherwise ([`crate::Client::repin`]).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_protocol::json::Json;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files;
use crate::limits::{IDENTITIES_MAX, IDENTITY_FRESH, IDENTITY_REFRESH_MIN, LOOKUP_PAUSE};

/// How fresh an identity has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// What is remembered will do, for a while.
    Remembered,
    /// Ask again.
    Asked,
}

#[derive(Debug, Clone)]
struct Known {
    identity: Identity,
    asked_at: Timestamp,
    /// When something that did not check last made us ask again.
    doubted_at: Option<Timestamp>,
}

/// What is known of other agents.
#[derive(Debug)]
pub(crate) struct Identities {
    known: Mutex<HashMap<Did, Known>>,
    folder: Option<PathBuf>,
}

/// A pin as it lies on disk.
#[derive(Serialize, Deserialize)]
struct Pin {
    did: Did,
    operations: Vec<Json>,
}

/// A history that an agent's hub gave out, replayed.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) identity: Identity,
    pub(crate) operations: Vec<Operation>,
}

impl History {
    /// Replays operations, oldest first.
    pub(crate) fn replay(did: &Did, operations: Vec<Operation>) -> Result<Self> {
        let unverified = |why: String| Error::Unverified {
            did: did.clone(),
            why,
        };
        let identity = Identity::replay(operations.iter().cloned());
        let identity = identity.map_err(|refusal| unverified(refusal.to_string()))?;
        if identity.did() != did {
            return Err(unverified(format!(
                "the hub gave the history of {}",
                identity.did()
            )));
        }
        Ok(Self { identity, operations })
    }
}

impl Identities {
    /// With a folder, pins outlive the process.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            known: Mutex::default(),
            folder,
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Did, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered, if it is fresh enough.
    pub(crate) fn recall(&self, did: &Did, freshness: Freshness, now: Timestamp) -> Option<Identity> {
        if freshness == Freshness::Asked {
            return None;
        }
        let known = self.known();
        let known = known.get(did)?;
        let age_ms = u128::try_from(now.millis_since(known.asked_at)).ok()?;
        (age_ms < IDENTITY_FRESH.as_millis()).then(|| known.identity.clone())
    }

    /// Something of this agent did not check. Whether that is reason to ask again now; too often it is not.
    pub(crate) fn may_doubt(&self, did: &Did, now: Timestamp) -> bool {
        let mut known = self.known();
        let Some(known) = known.get_mut(did) else {
            return true;
        };
        let soon = known
            .doubted_at
            .is_some_and(|at| now < at + IDENTITY_REFRESH_MIN && at <= now);
        if !soon {
            known.doubted_at = Some(now);
        }
        !soon
    }

    /// What is pinned, however old.
    pub(crate) fn pinned(&self, did: &Did) -> Result<Option<Identity>> {
        if let Some(known) = self.known().get(did) {
            return Ok(Some(known.identity.clone()));
        }
        let Some(path) = self.pin_path(did) else {
            return Ok(None);
        };
        let Some(operations) = read_pin(&path, did)? else {
            return Ok(None);
        };
        History::replay(did, operations).map(|history| Some(history.identity))
    }

    /// Takes a history that was just given out, if it extends the one that is pinned.
    pub(crate) fn admit(&self, did: &Did, history: &History, now: Timestamp) -> Result<Identity> {
        let pinned = self.pinned(did)?;
        if let Some(pinned) = &pinned {
            let extends =
                history
                    .identity
                    .check_extends(pinned.seq(), pinned.genesis_hash(), pinned.head_hash());
            if extends.is_err() {
                return Err(Error::Forked {
                    did: did.clone(),
                    evidence: self.keep_evidence(did, history)?,
                });
            }
        }
        let changed = pinned.is_none_or(|pinned| pinned.head_hash() != history.identity.head_hash());
        self.remember(did, history, now, changed)
    }

    /// Takes a history in place of the one that is pinned: the operator's word.
    pub(crate) fn repin(&self, did: &Did, history: &History, now: Timestamp) -> Result<Identity> {
        self.remember(did, history, now, true)
    }

    fn remember(&self, did: &Did, history: &History, now: Timestamp, write: bool) -> Result<Identity> {
        if let Some(path) = self.pin_path(did).filter(|_| write) {
            write_pin(&path, did, history)?;
        }
        let mut known = self.known();
        make_room(&mut known, did);
        let doubted_at = known.get(did).and_then(|known| known.doubted_at);
        let identity = history.identity.clone();
        known.insert(
            did.clone(),
            Known {
                identity,
                asked_at: now,
                doubted_at,
            },
        );
        Ok(history.identity.clone())
    }

    /// The agent's hub did not answer: what is pinned will do a little longer before it is asked again.
    pub(crate) fn bridge(&self, did: &Did, pinned: &Identity, now: Timestamp) {
        let mut known = self.known();
        make_room(&mut known, did);
        let asked_at = now + LOOKUP_PAUSE - IDENTITY_FRESH;
        let known = known.entry(did.clone()).or_insert_with(|| Known {
            identity: pinned.clone(),
            asked_at,
            doubted_at: None,
        });
        known.asked_at = known.asked_at.max(asked_at);
    }

    /// A DID may be longer than a file name may be, so files are named by its hash.
    fn pin_path(&self, did: &Did) -> Option<PathBuf> {
        let digest = Sha256::digest(did.as_str());
        let name = digest
            .first_chunk()
            .map_or(0, |start| u128::from_be_bytes(*start));
        self.folder
            .as_ref()
            .map(|folder| folder.join(format!("{name:032x}.json")))
    }

    /// Writes the history that does not fit beside the pin. One file per head, so repeating it adds nothing.
    fn keep_evidence(&self, did: &Did, history: &History) -> Result<Option<PathBuf>> {
        let Some(path) = self.pin_path(did) else {
            return Ok(None);
        };
        let path = path.with_extension(format!("fork-{}.json", history.identity.head_hash()));
        write_pin(&path, did, history)?;
        Ok(path.parent().map(Path::to_owned))
    }
}

/// Forgets what was asked for longest ago, where there is no room for another one.
fn make_room(known: &mut HashMap<Did, Known>, did: &Did) {
    if known.len() >= IDENTITIES_MAX && !known.contains_key(did) {
        let oldest = known
            .iter()
            .min_by_key(|(_, known)| known.asked_at)
            .map(|(did, _)| did.clone());
        oldest.and_then(|did| known.remove(&did));
    }
}

fn read_pin(path: &Path, did: &Did) -> Result<Option<Vec<Operation>>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file(path)(error)),
    };
    let pin: Pin = serde_json::from_slice(&bytes).map_err(|error| Error::file(path)(error.into()))?;
    let unverified = |why: String| Error::Unverified {
        did: did.clone(),
        why,
    };
    if pin.did != *did {
        return Err(unverified(format!(
            "{} is the pin of {}",
            path.display(),
            pin.did
        )));
    }
    let operations = pin
        .operations
        .into_iter()
        .map(|json| Operation::from_json(json, ANY_ENDPOINT));
    operations
        .collect::<Result<_, _>>()
        .map(Some)
        .map_err(|refusal| unverified(refusal.to_string()))
}

fn write_pin(path: &Path, did: &Did, history: &History) -> Result<()> {
    if let Some(folder) = path.parent() {
        files::create_private_folder(folder).map_err(Error::file(folder))?;
    }
    let operations = history
        .operations
        .iter()
        .map(|operation| operation.json.clone())
        .collect();
    let bytes = serde_json::to_vec(&Pin {
        did: did.clone(),
        operations,
    });
    let bytes = bytes.map_err(|error| Error::file(path)(error.into()))?;
    files::write_atomic(path, &bytes).map_err(Error::file(path))
}

/// Whether an endpoint may be http is the hub's decision, made when it admitted the operation.
pub(crate) const ANY_ENDPOINT: EndpointPolicy = EndpointPolicy { allow_http: true };

#[cfg(test)]
mod tests;
