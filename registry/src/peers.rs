//! What stores of peers have in common ([`aip_federation::peers`]): windows, the hashes under which strangers' texts are
//! kept, and what a failure is for that room.
//!
//! **Windows and backups.** An item of a peer is stored in a mailbox first and noted in a window afterwards, so that at any
//! moment whatever is noted is stored. The two lie in different stores. A backup keeps that only if its windows are *older*
//! than its mailboxes: what they know is in the mailboxes then, or was taken out of them by its recipient; what was stored
//! meanwhile is in the mailboxes and not in the windows, and should its peer offer it again, the mailboxes' own dedup, or the
//! recipient's, drops it. Once too often is harmless, never is not. The registry as a whole has to be *newer* than the
//! mailboxes, so that none of them waits for whoever registers its name next. So a backup of the embedded stores takes the
//! windows first ([`SqlStore::begin_backup`]), then the mailboxes, then the registry, into which the older windows go
//! ([`Backup::write_to`]).
//!
//! After a restore, what a peer was told about since the backup is lost like all other mail since: it does not offer that
//! again. What it was not told about it offers again, and that is new. So nothing is lost that anybody still has. The
//! windows are behind their peers now, and items that never come again are missing in them: whoever receives learns from
//! the peer where its outbox begins ([`ReceivedStore::pass_over`]).
//!
//! The engines are backed up by their own tools. Where NATS alone is restored, the windows in PostgreSQL are newer than the
//! mailboxes: an item that was noted since and whose peer has not heard of it is then lost too. That takes a peer whose
//! answer went missing in the same moments as the servers.
//!
//! [`SqlStore::begin_backup`]: crate::SqlStore::begin_backup
//! [`Backup::write_to`]: crate::Backup::write_to
//! [`ReceivedStore::pass_over`]: aip_federation::peers::ReceivedStore::pass_over

mod window;

use aip_federation::limits::PEERS_PAGE_MAX;
use aip_federation::peers;
use aip_protocol::json::Json;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use sha2::{Digest, Sha256};

use crate::error::StoreError;

pub(crate) use window::Window;

/// Who decides by himself, so that no stranger causes his lines of the audit log.
pub(crate) const OPERATOR: &str = "operator";

impl From<StoreError> for peers::StoreError {
    fn from(error: StoreError) -> Self {
        Self(Box::new(error))
    }
}

/// As many as a page may have.
pub(crate) fn page(limit: u32) -> u32 {
    limit.min(PEERS_PAGE_MAX)
}

/// To the whole millisecond, as every store keeps times.
pub(crate) fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_unix_millis(at.unix_millis())
}

/// Without NUL, which no engine of ours needs to keep.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// As many items as one change can count: no sum of them gets beyond 2^63.
pub(crate) fn step(good_items: u64) -> u64 {
    good_items.min(u32::MAX.into())
}

/// Under what a peer's epoch is kept: it may be any text.
pub(crate) fn epoch_key(epoch: &str) -> String {
    hash(&[epoch])
}

/// Under what a peer's nonce is kept.
pub(crate) fn nonce_key(peer: &Domain, nonce: &str) -> String {
    hash(&[peer.as_str(), nonce])
}

/// What tells one piece of a peer's evidence from another.
pub(crate) fn evidence_key(code: &str, subject: &str, objects: &str) -> String {
    hash(&[code, subject, objects])
}

/// A list as JSON text.
pub(crate) fn list_text(list: &[Json]) -> String {
    Json::Array(list.to_vec()).to_string()
}

/// The lengths are in it, so that no two lists of texts are the same one.
fn hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hex::encode(hash.finalize())
}
