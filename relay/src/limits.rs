//! The named bounds of this room.

// --- the mailbox store ---

/// Pending messages in one mailbox (spec §6), by default.
pub const MAILBOX_MESSAGES_MAX: u32 = 1_000;
/// Bytes of pending envelopes in one mailbox (spec §6), by default.
pub const MAILBOX_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Pending messages of one sender in one mailbox (spec §6), by default.
pub const SENDER_MESSAGES_MAX: u32 = 100;
/// How long a mailbox keeps a message (spec §6), by default.
pub const RETENTION_SECS: u64 = 7 * 86_400;
/// Dead letters kept in one mailbox; the oldest go first.
pub const DEAD_LETTERS_MAX: u64 = 1_000;
/// How long a dead letter is kept, from its burial.
pub const DEAD_LETTER_SECS: u64 = 14 * 86_400;
/// How long a status is kept, from the message's acceptance (spec §5).
pub const STATUS_SECS: u64 = 14 * 86_400;
/// The longest life of a dedup record: `W + 2S` of spec §5.
pub const DEDUP_LIFE_SECS: u64 = 1_200;
/// How far apart the times of concurrent calls may lie: a dedup bucket is kept so much longer than its time.
pub const CLOCK_SLACK_SECS: u64 = 60;
/// Single sequence numbers in one ack.
pub const ACK_ALSO_MAX: usize = 1_024;
/// Messages in one fetch, whatever was asked.
pub const FETCH_MESSAGES_MAX: usize = 1_000;
/// Bytes of a refusal's or dead letter's code that are kept.
pub const CODE_BYTES_MAX: usize = 128;
/// Different sessions remembered per message; more are not counted.
pub const SESSIONS_COUNTED_MAX: usize = 4;
/// Messages whose attempts are kept in memory (twice so many at most); older ones are read from the store.
pub const ATTEMPTS_CACHED_MAX: usize = 32_768;
/// Index entries that one sweep handles.
pub const SWEEP_ENTRIES_MAX: usize = 1_000;
/// Operations in one batch of the store's writer.
pub const BATCH_OPS_MAX: usize = 1_024;
/// Bytes of envelopes in one batch of the store's writer (one operation more may pass it).
pub const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Operations waiting for the store's writer; further callers wait for a place.
pub const WRITER_QUEUE_MAX: usize = 1_024;
/// Reads of the store at the same time; each occupies one blocking thread.
pub const READERS_MAX: usize = 16;
/// Small records (counters of mailboxes and senders) that the writer keeps in memory (twice so many at most).
pub const WRITER_CACHE_MAX: usize = 131_072;
/// Appends are refused when so many hundredths of the disk are used; 0 switches the check off.
pub const DISK_USED_PERCENT_MAX: u8 = 90;
/// Appends are refused when less is free; 0 switches the check off.
pub const DISK_FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;
