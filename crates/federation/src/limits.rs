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

/// How long a connection to another hub stays open without a request. Shorter than what servers commonly wait (5 s and more),
/// so that it is this side that closes it.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Connections to one hub that stay open without a request: as many as there are batches in flight.
pub const IDLE_CONNECTIONS_PER_HOST_MAX: usize = 4;

/// Hubs to which connections stay open at the same time; the others get a connection for each request.
pub const IDLE_HOSTS_MAX: usize = 256;

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

/// How long a discovery document is good whose hub does not say, and the bounds of what it may say. With
/// [`DISCOVERY_STALE`] the longest makes the day of spec §8.
pub const DISCOVERY_FRESH_DEFAULT: Duration = Duration::from_hours(1);
/// Shortest time that a document is good, `no-store` or not: a hub is not hammered.
pub const DISCOVERY_FRESH_MIN: Duration = Duration::from_mins(1);
/// Longest time that a document is good.
pub const DISCOVERY_FRESH_MAX: Duration = Duration::from_hours(23);
/// How long a document is used beyond that while its domain cannot be reached.
pub const DISCOVERY_STALE: Duration = Duration::from_hours(1);

/// How long a peer is held in memory without a look into the store: how soon an operator's decision is seen by a process that
/// it was not made in.
pub const PEER_RECHECK: Duration = Duration::from_secs(5);
/// How long a domain that has no hub, or shows nonsense, is not asked again (spec §8).
pub const PEER_NEGATIVE: Duration = Duration::from_mins(1);
/// Pause before a domain that could not be reached is asked again: at least this, at most [`PEER_TRANSIENT_MAX`], at random.
pub const PEER_TRANSIENT_MIN: Duration = Duration::from_secs(2);
/// See [`PEER_TRANSIENT_MIN`].
pub const PEER_TRANSIENT_MAX: Duration = Duration::from_secs(4);
/// Peers held in memory.
pub const PEERS_IN_MEMORY_MAX: u64 = 4_096;
/// What nobody asks for leaves the memory after this long.
pub const IDLE_IN_MEMORY: Duration = Duration::from_mins(10);

/// Time between two look-ups of the same thing that pass every cache.
pub const FRESH_LOOKS_EVERY: Duration = Duration::from_secs(5);
/// Look-ups under way, of peers and of remote identities each.
pub const FLIGHTS_MAX: usize = 256;
/// Those at one domain.
pub const FLIGHTS_PER_DOMAIN_MAX: usize = 32;

/// How long a remote identity is given without asking its hub.
pub const IDENTITY_FRESH: Duration = Duration::from_mins(1);
/// How long what was verified is used while its hub cannot be reached.
pub const IDENTITY_STALE: Duration = Duration::from_hours(1);
/// How long it is believed that an agent does not exist, or has no sound history (spec §8: at most 60 s).
pub const IDENTITY_NEGATIVE: Duration = Duration::from_secs(30);
/// How long a failure to reach a hub stands for all its agents' look-ups.
pub const IDENTITY_TRANSIENT: Duration = Duration::from_secs(1);
/// A history that did not change is written anew after this long, so that the store knows how new it is.
pub const IDENTITY_REWRITE: Duration = Duration::from_mins(10);
/// Bytes of remote identities held in memory, as an estimate.
pub const IDENTITIES_IN_MEMORY_BYTES: u64 = 16 * 1024 * 1024;
/// Operations of a remote history; a hub of ours lets in half of that.
pub const HISTORY_OPERATIONS_MAX: usize = 2_048;
/// Bytes of a remote history on the wire, all pages together; a hub of ours lets in half of that.
pub const HISTORY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Pages of a remote history.
pub const HISTORY_PAGES_MAX: usize = 64;
/// Operations that we ask for in one page.
pub const HISTORY_PAGE_OPERATIONS: usize = 100;
/// Longest time for all pages of a history.
pub const HISTORY_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of a cursor that a hub gives us.
pub const CURSOR_BYTES_MAX: usize = 512;
/// A history with more operations is replayed on a thread of its own.
pub const LONG_HISTORY_OPERATIONS: usize = 16;
/// Those that are replayed at the same time: each occupies a core.
pub const LONG_REPLAYS_MAX: usize = 1;
