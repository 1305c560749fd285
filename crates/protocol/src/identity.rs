//! Identity: a signed, hash-chained history of operations, and what follows from it (§3).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{ErrorCode, Refusal};
use crate::json::Json;
use crate::limits::KEY_GRACE_SECS;
use crate::multikey::{SealingKey, VerifyingKey};
use crate::name::Did;
use crate::time::Timestamp;

mod draft;
mod operation;

pub use draft::OperationDraft;
pub(crate) use operation::multihash;
pub use operation::{EndpointPolicy, Keys, Operation, RouteMode};

/// A history that was replayed and found good. Cheap to clone; `apply` gives a new one.
#[derive(Debug, Clone)]
pub struct Identity(Arc<Replay>);

#[derive(Debug, Clone)]
struct Replay {
    head: Arc<Operation>,
    /// Hash of every operation, by `seq`.
    hashes: Vec<Arc<str>>,
    /// Every signing key there ever was, by Multikey.
    signing: BTreeMap<Arc<str>, KeyLife>,
    /// Keys called compromised, and when that was first said.
    revoked: BTreeMap<String, Timestamp>,
}

#[derive(Debug, Clone)]
struct KeyLife {
    key: VerifyingKey,
    listed: Vec<Listed>,
}

/// One stretch of operations that list a key: from the first one until the grace after the one
/// that drops it has run out.
#[derive(Debug, Clone, Copy)]
struct Listed {
    from: Timestamp,
    until: Option<Timestamp>,
}

impl Listed {
    fn holds(&self, at: Timestamp) -> bool {
        self.from <= at && self.until.is_none_or(|until| at <= until)
    }
}

impl Identity {
    /// The identity that operation 0 creates.
    ///
    /// It is signed by one of its own rotation keys. Refuses with `history_conflict` (another
    /// `seq`), `rotation_key_unknown`, `signature_invalid`.
    pub fn genesis(operation: Operation) -> Result<Self, Refusal> {
        Self::start(operation, check_signature)
    }

    fn start(operation: Operation, check: SignerCheck) -> Result<Self, Refusal> {
        if operation.seq != 0 {
            return Err(Refusal::new(
                ErrorCode::HistoryConflict,
                "a history starts at seq 0",
            ));
        }
        check(&operation, &operation.keys.rotation)?;
        let head = Arc::new(operation);
        let mut replay = Replay {
            head: Arc::clone(&head),
            hashes: Vec::new(),
            signing: BTreeMap::new(),
            revoked: BTreeMap::new(),
        };
        replay.record(head);
        Ok(Self(Arc::new(replay)))
    }

    /// The identity after one more operation.
    ///
    /// Refuses with `agent_deactivated`, `operation_invalid` (another DID, or a revoked key listed
    /// again), `history_conflict` (with the members `head` and `seq`), `created_at_goes_back`,
    /// `rotation_key_unknown`, `signature_invalid`.
    pub fn apply(&self, operation: Operation) -> Result<Self, Refusal> {
        self.0.check_next(&operation, check_signature)?;
        let mut replay = Replay::clone(&self.0);
        replay.record(Arc::new(operation));
        Ok(Self(Arc::new(replay)))
    }

    /// Replays a whole history, oldest first. A refusal carries the `index` of the operation at
    /// fault.
    pub fn replay(operations: impl IntoIterator<Item = Operation>) -> Result<Self, Refusal> {
        Self::replay_with(operations, check_signature)
    }

    /// Replays a history out of one's own store, whose signatures were verified when it was admitted.
    ///
    /// `head` is the hash of the newest operation, kept apart from the history. Every operation is
    /// chained to it by hashes, so that one that was changed, lost or added since is noticed; then
    /// the refusal is `history_conflict`. All else is checked as in [`Identity::replay`]. For a
    /// history that anybody else hands over this is not enough.
    pub fn replay_admitted(
        operations: impl IntoIterator<Item = Operation>,
        head: &str,
    ) -> Result<Self, Refusal> {
        let identity = Self::replay_with(operations, check_listed)?;
        if identity.head_hash() == head {
            return Ok(identity);
        }
        let detail = "the history does not end with the operation that was admitted last";
        Err(Refusal::new(ErrorCode::HistoryConflict, detail))
    }

    fn replay_with(
        operations: impl IntoIterator<Item = Operation>,
        check: SignerCheck,
    ) -> Result<Self, Refusal> {
        let mut operations = operations.into_iter();
        let genesis = operations.next();
        let genesis = genesis.ok_or_else(|| Refusal::new(ErrorCode::OperationInvalid, "an empty history"))?;
        let mut identity = Self::start(genesis, check).map_err(|refusal| refusal.with("index", 0))?;
        let replay = Arc::make_mut(&mut identity.0);
        for operation in operations {
            let index = replay.hashes.len();
            replay
                .check_next(&operation, check)
                .map_err(|refusal| refusal.with("index", index))?;
            replay.record(Arc::new(operation));
        }
        Ok(identity)
    }

    /// The DID.
    pub fn did(&self) -> &Did {
        &self.0.head.did
    }

    /// The newest operation.
    pub fn head(&self) -> &Operation {
        &self.0.head
    }

    /// The newest operation, shared.
    pub fn head_shared(&self) -> Arc<Operation> {
        Arc::clone(&self.0.head)
    }

    /// The hash of the newest operation: the next one's `prev`.
    pub fn head_hash(&self) -> &str {
        self.0.head.hash()
    }

    /// The hash of operation 0.
    pub fn genesis_hash(&self) -> &str {
        self.0.hashes.first().map_or("", AsRef::as_ref)
    }

    /// `seq` of the newest operation.
    pub fn seq(&self) -> u64 {
        self.0.head.seq
    }

    /// Whether the history has ended.
    pub fn is_deactivated(&self) -> bool {
        self.0.head.deactivated
    }

    /// `{"seq", "genesis", "head"}`, as the resolve answer carries it.
    pub fn summary(&self) -> Json {
        let seq = i64::try_from(self.seq()).unwrap_or(i64::MAX);
        Json::from([
            ("seq", Json::Int(seq)),
            ("genesis", Json::from(self.genesis_hash())),
            ("head", Json::from(self.head_hash())),
        ])
    }

    /// The signing key that `kid` names and that is good for something created at `at`, as the
    /// first hub judges it: a key that is known to be revoked is never good, whatever `at` says.
    pub fn signing_key(&self, kid: &str, at: Timestamp) -> Option<&VerifyingKey> {
        let (fragment, key) = self.0.listed_key(kid, at)?;
        if self.0.revoked.contains_key(fragment) {
            None
        } else {
            Some(key)
        }
    }

    /// The same as a later hop judges it: something that a first hub accepted at `accepted_at`
    /// stays good when its key is revoked afterwards.
    pub fn signing_key_accepted(
        &self,
        kid: &str,
        created_at: Timestamp,
        accepted_at: Timestamp,
    ) -> Option<&VerifyingKey> {
        let (fragment, key) = self.0.listed_key(kid, created_at)?;
        let is_revoked = self
            .0
            .revoked
            .get(fragment)
            .is_some_and(|revoked_at| *revoked_at <= accepted_at);
        if is_revoked { None } else { Some(key) }
    }

    /// The signing key that `kid` names, when the newest operation lists it.
    pub fn current_signing(&self, kid: &str) -> Option<&VerifyingKey> {
        let fragment = self.0.fragment(kid)?;
        self.0
            .head
            .keys
            .signing
            .iter()
            .find(|key| key.as_str() == fragment)
    }

    /// The newest sealing key: what to seal for.
    pub fn sealing_key(&self) -> Option<&SealingKey> {
        self.0.head.keys.sealing.first()
    }

    /// Whether this history extends the one that was seen before, kept as its summary.
    ///
    /// Else `history_forked`: both are kept as evidence, only the operator decides.
    pub fn check_extends(&self, seq: u64, genesis: &str, head: &str) -> Result<(), Refusal> {
        let at_seq = usize::try_from(seq).ok().and_then(|seq| self.0.hashes.get(seq));
        if self.genesis_hash() == genesis && at_seq.is_some_and(|hash| **hash == *head) {
            return Ok(());
        }
        let detail = "the history does not extend the one known before; both are kept as evidence";
        Err(Refusal::new(ErrorCode::HistoryForked, detail))
    }
}

impl Replay {
    fn check_next(&self, operation: &Operation, check: SignerCheck) -> Result<(), Refusal> {
        let head = &self.head;
        if head.deactivated {
            return Err(Refusal::new(
                ErrorCode::AgentDeactivated,
                "the history has ended, nothing follows",
            ));
        }
        if operation.did != head.did {
            return Err(Refusal::new(
                ErrorCode::OperationInvalid,
                "a history belongs to one did",
            ));
        }
        if operation.seq != head.seq + 1 || operation.prev.as_deref() != Some(head.hash()) {
            let detail = "seq or prev does not follow the head; fetch the head and build on it";
            return Err(Refusal::new(ErrorCode::HistoryConflict, detail)
                .with("head", head.hash())
                .with("seq", head.seq));
        }
        if operation.created_at < head.created_at {
            let detail = format!(
                "created_at is before {}, that of the operation before",
                head.created_at
            );
            return Err(Refusal::new(ErrorCode::CreatedAtGoesBack, detail));
        }
        if let Some(key) = operation.keys.texts().find(|key| self.revoked.contains_key(*key)) {
            let detail = "a revoked key is never listed again";
            return Err(Refusal::new(ErrorCode::OperationInvalid, detail).with("key", key));
        }
        check(operation, &head.keys.rotation)
    }

    /// Takes over a checked operation.
    fn record(&mut self, operation: Arc<Operation>) {
        let at = operation.created_at;
        for key in &operation.revoked {
            self.revoked.entry(key.clone()).or_insert(at);
        }
        for life in self.signing.values_mut() {
            let is_dropped = !operation.keys.signing.contains(&life.key);
            if let Some(Listed {
                until: until @ None, ..
            }) = life.listed.last_mut().filter(|_| is_dropped)
            {
                *until = Some(at + Duration::from_secs(KEY_GRACE_SECS));
            }
        }
        for key in &operation.keys.signing {
            let fresh = || KeyLife {
                key: key.clone(),
                listed: Vec::new(),
            };
            let life = self.signing.entry(key.as_str().into()).or_insert_with(fresh);
            if life.listed.last().is_none_or(|listed| listed.until.is_some()) {
                life.listed.push(Listed {
                    from: at,
                    until: None,
                });
            }
        }
        self.hashes.push(operation.hash().into());
        self.head = operation;
    }

    /// The part of `kid` after this DID and `#`.
    fn fragment<'a>(&self, kid: &'a str) -> Option<&'a str> {
        kid.strip_prefix(self.head.did.as_str())?.strip_prefix('#')
    }

    fn listed_key<'a>(&self, kid: &'a str, at: Timestamp) -> Option<(&'a str, &VerifyingKey)> {
        let fragment = self.fragment(kid)?;
        let life = self.signing.get(fragment)?;
        life.listed
            .iter()
            .any(|listed| listed.holds(at))
            .then_some((fragment, &life.key))
    }
}

/// How the signer of an operation is judged, given the rotation keys that may sign it.
type SignerCheck = fn(&Operation, &[VerifyingKey]) -> Result<(), Refusal>;

fn check_listed(operation: &Operation, rotation: &[VerifyingKey]) -> Result<(), Refusal> {
    if rotation.contains(operation.signer()) {
        return Ok(());
    }
    let detail = "kid is not a rotation key that may sign this operation";
    Err(Refusal::new(ErrorCode::RotationKeyUnknown, detail))
}

fn check_signature(operation: &Operation, rotation: &[VerifyingKey]) -> Result<(), Refusal> {
    check_listed(operation, rotation)?;
    if operation.verify() {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::SignatureInvalid,
        "the operation's signature does not verify",
    ))
}

#[cfg(test)]
mod tests;
