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
/// Registrations in one statement; calls that store listings in the statements of one.
pub const CHANGES_TOGETHER_MAX: usize = 32;
/// Changes that can break one batch and be left out, before the whole batch fails.
pub const CULPRITS_PER_BATCH_MAX: usize = 4;
/// Times that other transactions can be in the way of one batch, before each of its changes gets a
/// transaction of its own.
pub const CONFLICTS_PER_BATCH_MAX: usize = 3;
/// How long changes that changed nothing yet are tried again, from the first attempt on, in seconds.
pub const WRITE_RETRY_SECS: u64 = 10;
/// Pause before a new attempt on a new connection, in milliseconds.
pub const RETRY_PAUSE_MS: u64 = 50;
/// Connections that read from a SQLite file.
pub const READ_CONNECTIONS_MAX: u32 = 4;
/// How long a reader waits for a connection, in seconds; a default on PostgreSQL.
pub const READ_WAIT_SECS: u64 = 5;
/// Connections to PostgreSQL, the writer's included; a default.
pub const POSTGRES_CONNECTIONS_MAX: u32 = 16;
/// How long a connection to PostgreSQL may take to be made, in seconds; a default.
pub const POSTGRES_CONNECT_SECS: u64 = 5;
/// How long one statement, one change or one commit may take on PostgreSQL, in seconds; a default.
pub const POSTGRES_STATEMENT_SECS: u64 = 10;
/// How long a statement waits for a lock on PostgreSQL, in seconds; a default.
pub const POSTGRES_LOCK_SECS: u64 = 5;
/// How long PostgreSQL bears silence within a transaction, in seconds; a default.
pub const IDLE_IN_TRANSACTION_SECS: u64 = 15;
/// How much longer than PostgreSQL we wait for its answer, in seconds: it can say why it takes so long.
pub const ANSWER_GRACE_SECS: u64 = 1;
/// After so long a rest a connection to PostgreSQL is replaced instead of trusted, in seconds.
pub const IDLE_CONNECTION_SECS: u64 = 60;
/// How long a migration or a copy waits for another one on PostgreSQL, in seconds.
pub const MIGRATION_WAIT_SECS: u64 = 600;
/// How long a migration waits for the hubs at work to let go of a table on PostgreSQL, in seconds.
pub const MIGRATION_LOCK_SECS: u64 = 5;
/// How long SQLite waits for another process's lock, in milliseconds.
pub const SQLITE_BUSY_MS: u64 = 5_000;
/// How long opening is tried when another process opens or migrates the same database, or when the
/// server is not there yet, in seconds.
pub const OPEN_WAIT_SECS: u64 = 30;
/// Pause between two attempts to open, in milliseconds.
pub const OPEN_PAUSE_MS: u64 = 50;
/// Rows that one sweep transaction removes.
pub const SWEEP_ROWS_MAX: u32 = 1_000;
/// Rows of one page, and of one transaction, when a registry is copied from one database to another.
pub const COPY_PAGE_ROWS: usize = 200;
/// Problems that a check of a store lists.
pub const INTEGRITY_PROBLEMS_MAX: usize = 100;
/// Listings or providers in one page.
pub const LISTINGS_PAGE_MAX: u32 = 1_000;
/// Versions of listings in one transaction.
pub const LISTINGS_PER_TRANSACTION_MAX: usize = 500;
/// Listings in one statement.
pub const LISTINGS_PER_STATEMENT_MAX: usize = 32;
/// Bytes of versions of listings in one transaction, unless one of them alone is larger.
pub const PUT_BYTES_PER_TRANSACTION: usize = 4 * 1024 * 1024;
/// Tombstones that are remembered of an agent for each listing that it may have.
pub const DELETED_PER_LISTING: u32 = 4;
/// A provider's use is noted again after so many seconds.
pub const PROVIDER_USE_SECS: u64 = 60;
/// Numbers of a peer's items in one statement: those of a batch.
pub const SEQS_PER_STATEMENT_MAX: usize = aip_protocol::limits::BATCH_ITEMS_MAX;
/// Nonces that are over and go with each use of a new one.
pub const NONCES_DROPPED_PER_USE: u32 = 8;
/// Rows of one page when tables are copied whose rows can hold a document, or what was shown as evidence.
pub const COPY_PAGE_LARGE_ROWS: usize = 20;
