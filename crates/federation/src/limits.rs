//! The named bounds of this room.

use std::time::Duration;

/// Largest answer body that is read, in bytes (spec §8). A longer one is a failure.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Longest time for one whole exchange: look-up, connection, TLS, request, answer (spec §8).
pub const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time for one connection, TLS included, unless the operator sets another.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest URL that is called, in bytes.
pub const URL_BYTES_MAX: usize = 2048;

/// Most addresses that a name may have; the rest of a longer answer is not looked at, and the name
/// is refused, since an unchecked address must not be reachable.
pub const ADDRESSES_MAX: usize = 64;

/// Name look-ups that may run at the same time. The operating system's resolver cannot be
/// interrupted, so this bounds the threads that slow name servers can hold.
pub const LOOKUPS_MAX: usize = 32;

/// Entries in one page of what is kept of peers.
pub const PEERS_PAGE_MAX: u32 = 500;

/// Items of one peer and epoch that may be settled above the contiguous part. A peer that leaves more gaps is asked to come
/// again with what is missing.
pub const ABOVE_MAX: u64 = 4_096;

/// Refusals that are remembered with their codes of one peer and epoch: those of the highest numbers. An older one that is
/// asked for again is a duplicate.
pub const REFUSALS_PER_EPOCH_MAX: u64 = 10_000;

/// Epochs of one peer whose items are remembered: the last ones that began.
pub const EPOCHS_PER_PEER_MAX: u64 = 16;

/// Lines of the audit log that are kept of one peer and of one actor other than the operator: the newest ones.
pub const AUDIT_LINES_MAX: u64 = 1_000;

/// Pieces of evidence that are kept of one peer.
pub const EVIDENCE_PER_PEER_MAX: u32 = 100;
