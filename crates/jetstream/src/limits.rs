//! The named bounds of this room.

use std::time::Duration;

// --- the connection ---

/// How long one attempt to reach a server may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pings to the server; after two without an answer the connection is given up.
pub const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The longest pause between two attempts to reconnect; three quarters of it at least, once it has grown so far.
pub const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(4);
/// The first pause between two attempts to reconnect.
pub const RECONNECT_PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Requests that wait to be written to the socket; further callers wait for a place, within their own time-outs.
pub const SEND_QUEUE_MAX: usize = 4_096;
/// Messages that wait for one subscription of this process; the server's next one is dropped, which is noticed.
pub const SUBSCRIPTION_QUEUE_MAX: usize = 65_536;

// --- requests ---

/// How long one try of a publish may take, by default.
pub const PUBLISH_TRY: Duration = Duration::from_secs(2);
/// How long a publish may take with all its tries, by default.
pub const PUBLISH_DEADLINE: Duration = Duration::from_secs(8);
/// How long a read may take, by default.
pub const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause before a publish whose twin is just being stored is sent again.
pub const IN_PROCESS_PAUSE: Duration = Duration::from_millis(250);
/// The pause before a publish of unknown outcome is sent again.
pub const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Messages in one batch of a Direct Get, whatever was asked.
pub const BATCH_MESSAGES_MAX: usize = 1_024;
/// Bytes in one batch of a Direct Get, whatever was asked.
pub const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Batches of Direct Gets that are being read at the same time; further callers wait, within their time-outs.
pub const BATCHES_MAX: usize = 128;
/// Times that a compare-and-set of this room's own records is tried.
pub const CAS_TRIES_MAX: usize = 16;

/// How long a start waits for streams that have no leader yet.
pub const START_PATIENCE: Duration = Duration::from_secs(45);
/// The pause between two looks at them.
pub const START_PAUSE: Duration = Duration::from_millis(500);

// --- streams ---

/// Shards of mailboxes: the first byte of the mailbox's token.
pub const SHARDS: usize = 256;
/// Streams of mailboxes, by default.
pub const STREAMS_DEFAULT: u16 = 16;
/// Messages of one mailbox that a stream holds, settled ones of the last minutes included: a backstop, far above
/// the quota.
pub const SUBJECT_MESSAGES_MAX: i64 = 500_000;
/// How long a stream knows the ids of what was published: the longest life of a dedup record, and a minute.
pub const DUPLICATE_WINDOW: Duration = Duration::from_secs(aip_relay::limits::DEDUP_LIFE_SECS + 60);
/// Consumers of one stream. This room has none; it leaves a few for an operator who looks.
pub const STREAM_CONSUMERS_MAX: i32 = 16;
/// What a record and its headers may add to an envelope.
pub const RECORD_OVERHEAD_BYTES_MAX: usize = 64 * 1024;
/// How much longer than the retention a stream keeps a message: the time in which a sweep has to come by. What ends
/// unswept leaves no trace of its sequence number, so a store that nobody has swept for as long has a new epoch.
pub const RETENTION_SLACK: Duration = Duration::from_hours(30 * 24);
/// How often it is written down that somebody sweeps.
pub const ATTENDED_EVERY: Duration = Duration::from_hours(1);
/// How long statuses and dead letters are kept by their streams: 14 days, and one for the sweep.
pub const RECORDS_AGE_MAX: Duration = Duration::from_hours(15 * 24);

// --- mailboxes in memory ---

/// Messages of one mailbox whose attempts are counted in memory.
pub const ATTEMPTS_KEPT_MAX: usize = 4_096;
/// Messages of one mailbox whose attempts are written down, those with the most: more than one session has in hand.
pub const ATTEMPTS_WRITTEN_MAX: usize = 2_048;
/// Mailboxes that are remembered (twice so many at most, besides those in use).
pub const MAILBOXES_KEPT_MAX: usize = 65_536;
/// Pending messages of one mailbox whose heads are remembered; others are read again when they are settled. An outbox may
/// hold many.
pub const HEADS_KEPT_MAX: usize = 65_536;
/// Heads that are remembered of all mailboxes together.
pub const HEADS_KEPT_TOTAL_MAX: usize = 500_000;
/// Changes of one mailbox's cursor that wait to be written; further ones are refused.
pub const CHANGES_QUEUED_MAX: usize = 1_024;
/// Races for one cursor that a change may lose, or writes whose outcome it may have to ask for.
pub const CHANGE_TRIES_MAX: u32 = 32;
/// Races for the end of one mailbox that an append may lose.
pub const APPEND_TRIES_MAX: u32 = 64;
/// The pause after a lost race doubles so often, from a millisecond.
pub const RACE_PAUSE_DOUBLINGS: u32 = 5;
/// How often one id may have been used again within the time that a stream knows ids.
pub const REUSES_MAX: u32 = 256;
/// Messages that one read of a mailbox brings, when heads are looked for.
pub const HEADS_BATCH_MESSAGES: usize = 512;
/// Bytes that a batch is allowed for a message besides its envelope.
pub const ENTRY_BYTES: usize = 512;
/// Single messages that are read at the same time.
pub const READS_AT_ONCE: usize = 16;
/// Accepted envelopes that wait to be noted in the dedup window of this process; further ones are not noted there.
pub const NOTES_QUEUED_MAX: usize = 4_096;
/// Accepted envelopes that are noted there together.
pub const NOTES_AT_ONCE: usize = 512;
/// How long a store that is closed waits for records of its own that are on their way.
pub const CLOSE_FLUSH: Duration = Duration::from_secs(5);
/// Bytes of a page of a server's monitoring that are read.
pub const MONITORING_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How long a change of a stream may take.
pub const ADMIN_TIMEOUT: Duration = Duration::from_secs(15);

/// Subjects in one stream above which an operator is told: the servers keep all of them in memory.
pub const STREAM_SUBJECTS_HIGH: u64 = 1_000_000;
/// Bytes in one stream above which an operator is told: a lost copy takes long to make again.
pub const STREAM_BYTES_HIGH: u64 = 20 * 1024 * 1024 * 1024;

// --- records in the background ---

/// Records that wait to be written in the background; further ones are dropped.
pub const BACKGROUND_QUEUE_MAX: usize = 16_384;
/// Records that are being written in the background at the same time.
pub const BACKGROUND_AT_ONCE: usize = 64;
/// Times that a record is tried before it is dropped.
pub const BACKGROUND_TRIES_MAX: usize = 60;
/// The pause between two of them.
pub const BACKGROUND_PAUSE: Duration = Duration::from_secs(1);
/// How long a look-up or a sweep waits for records of this process that are on their way.
pub const BACKGROUND_FLUSH: Duration = Duration::from_secs(2);

// --- statuses ---

/// Bits of a status bucket's number: a million buckets at most.
pub const STATUS_BUCKET_BITS: u32 = 20;
/// Records that one look-up reads, whatever lies in the bucket.
pub const STATUS_RECORDS_MAX: usize = 65_536;
/// Bytes that one read of a look-up brings.
pub const STATUS_BATCH_BYTES: usize = 1024 * 1024;

// --- sweep ---

/// How long a process may sweep without saying so again; another one takes over after it, seconds.
pub const LEASE_SECS: u64 = 60;
/// Messages that one read of a sweep brings.
pub const SWEEP_BATCH_MESSAGES: usize = 256;
/// Bytes that one read of a sweep brings.
pub const SWEEP_BATCH_BYTES: usize = 1024 * 1024;
/// Subjects that one listing of the expiry index brings: minutes, so more than two months of them.
pub const SUBJECTS_MAX: usize = 100_000;

// --- purge ---

/// How long a settled message stays: longer than the stream knows its id, so that a restarted server finds the id
/// again among what is stored.
pub const PURGE_DELAY_SECS: u64 = DUPLICATE_WINDOW.as_secs() + 60;
/// What is settled within so many seconds is purged together.
pub const PURGE_STEP_SECS: u64 = 60;
/// Purges of one mailbox that wait at the same time.
pub const PURGE_STEPS_MAX: usize = 32;
/// Mailboxes that wait to be purged; further ones wait for their next settled message.
pub const PURGE_QUEUE_MAX: usize = 200_000;
/// Purges of one stream in a second.
pub const PURGES_PER_SEC: u32 = 200;

// --- shards ---

/// How often a process looks whether shards have moved; it looks at once when something hints at it.
pub const FOLLOW_EVERY: Duration = Duration::from_secs(5);
/// The pause after such a look.
pub const FOLLOW_PAUSE: Duration = Duration::from_millis(100);
/// How long a stream that a shard has left stays as it was: until all processes have looked.
pub const MOVE_LINGER: Duration = FOLLOW_EVERY.saturating_add(Duration::from_secs(1));
/// Numbers of streams of mailboxes are below this one.
pub const STREAM_NUMBERS_MAX: u16 = 1_024;
/// How often a mover looks at what it waits for.
pub const MOVE_POLL: Duration = Duration::from_millis(20);
/// Looks in vain, a minute of them at least, after which a mover gives up.
pub const MOVE_POLLS_MAX: u32 = 3_000;
/// Times that a mover catches up with a shard that takes mail, before it closes it all the same.
pub const MOVE_ROUNDS_MAX: usize = 20;
/// When no more than so many messages were left to copy, the shard is closed.
pub const MOVE_TAIL: u64 = 256;
/// Times that a mover tries to bind a shard that somebody else binds elsewhere.
pub const MOVE_OPENS_MAX: usize = 5;
/// How much longer than a stream knows ids a shard does not come back to it: for clocks that are apart.
pub const MOVE_BACK_SLACK: Duration = Duration::from_mins(1);

// --- live ---

/// A watched mailbox is looked at so often even if no hint comes.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long a new subscription may take to be known to the server.
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(2);
