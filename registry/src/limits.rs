//! Every bound of this room, with its name.

/// Bytes of an identity operation as it arrives, blanks included. Its canonical bytes are bounded
/// by the protocol ([`aip_protocol::limits::OPERATION_BYTES_MAX`]).
pub const OPERATION_WIRE_BYTES_MAX: usize = 4 * aip_protocol::limits::OPERATION_BYTES_MAX;
/// Operations in one history. The last one that is let in beyond is a deactivation.
pub const OPERATIONS_PER_AGENT_MAX: u64 = 1_024;
/// Bytes of all operations of one history, in their canonical form; a deactivation is let in beyond.
pub const HISTORY_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of a stored history that is replayed where it was asked for; a longer one has a thread of its own.
pub const REPLAYED_AT_ONCE_BYTES_MAX: u64 = 32 * 1024;
/// Longer histories that are replayed at the same time: each occupies a core.
pub const LONG_REPLAYS_MAX: usize = 1;
/// Operations in one page of a history.
pub const HISTORY_PAGE_OPERATIONS_MAX: u32 = 100;
/// Agents or invites in one page of an operator's list.
pub const LIST_PAGE_MAX: u32 = 1_000;
/// Live tokens of one agent; a further one displaces its oldest.
pub const TOKENS_PER_AGENT_MAX: u32 = 64;
/// Characters of a token, a challenge or an invite code; longer text is refused unread.
pub const SECRET_CHARS_MAX: usize = 128;
/// Characters of a `kid`, which holds a DID and a Multikey.
pub const KID_CHARS_MAX: usize = 512;
/// Times that one invite can be used.
pub const INVITE_USES_MAX: u32 = 1_000_000;
/// Bytes of an invite's note.
pub const INVITE_NOTE_BYTES_MAX: usize = 200;
/// A spent challenge is remembered for this long after its end, in seconds, in case a clock goes back.
pub const SPENT_CHALLENGE_KEEP_SECS: u64 = 300;
/// How long a resolved agent, or the absence of one, is believed without asking the store, in
/// seconds. Changes made through the same [`crate::Registry`] are seen at once.
pub const CACHE_SECS: u64 = 60;
/// Bytes of operations that count as one agent in the cache's size.
pub const CACHED_AGENT_BYTES: u64 = 2 * 1024;
/// Times that an operation is applied anew because another one came first.
pub const APPEND_ATTEMPTS_MAX: u32 = 3;
/// Changes that wait for the writer of an SQL store.
pub const WRITE_QUEUE_MAX: usize = 4_096;
/// Changes in one transaction.
pub const WRITES_PER_TRANSACTION_MAX: usize = 256;
/// Registrations in one statement.
pub const REGISTRATIONS_PER_STATEMENT_MAX: usize = 32;
/// Changes that can break one batch and be left out, before the whole batch fails.
pub const CULPRITS_PER_BATCH_MAX: usize = 4;
/// Connections that read from an SQL store.
pub const READ_CONNECTIONS_MAX: u32 = 4;
/// How long a reader waits for one of them, in seconds.
pub const READ_WAIT_SECS: u64 = 5;
/// How long SQLite waits for another process's lock, in milliseconds.
pub const SQLITE_BUSY_MS: u64 = 5_000;
/// Times that a transaction is begun anew when the database stays locked for that long.
pub const BUSY_ATTEMPTS_MAX: u32 = 3;
/// Times that opening is tried when another process opens or migrates the same file.
pub const OPEN_ATTEMPTS_MAX: u32 = 100;
/// Pause between two of them, in milliseconds.
pub const OPEN_PAUSE_MS: u64 = 50;
/// Rows that one sweep transaction removes.
pub const SWEEP_ROWS_MAX: u32 = 1_000;
/// Problems that a check of a store lists.
pub const INTEGRITY_PROBLEMS_MAX: usize = 100;
