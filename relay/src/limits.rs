//! The named bounds of this room.

use std::time::Duration;

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
/// The longest time that a message waits for a peer: a day more than the five after which the sending side gives it up by
/// itself (spec §8).
pub const OUTBOX_RETENTION_SECS: u64 = 6 * 86_400;
/// Messages that leave an outbox in one step.
pub const OUTBOX_SETTLED_AT_ONCE: usize = 1_024;
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
/// Messages whose attempts are raised in memory and not written down yet; no more than those kept there.
pub const ATTEMPTS_UNWRITTEN_MAX: usize = ATTEMPTS_CACHED_MAX;
/// Messages whose attempts are written down in one operation of the store's writer.
pub const ATTEMPTS_WRITTEN_AT_ONCE: usize = 256;
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

// --- admission and direct delivery ---

/// Envelopes in one request that sends an array (spec §5), by default.
pub const SEND_ENVELOPES_MAX: usize = 100;
/// Bytes of a request that sends an array (spec §5), by default.
pub const SEND_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Messages a second that a sender may send in the long run (spec §6), by default.
pub const SENDER_MESSAGES_PER_SEC: u32 = 20;
/// Messages that a sender may send at once after a pause (spec §6), by default.
pub const SENDER_BURST_MESSAGES: u32 = 200;
/// After so many rate checks the full buckets are forgotten: what bounds their memory.
pub const RATE_SWEEP_CHECKS: u64 = 65_536;
/// `Retry-After` of a full mailbox: its owner has to come and fetch first.
pub const FULL_RETRY_SECS: u64 = 60;
/// When a peer may come again with what could not be stored for now.
pub const UNAVAILABLE_RETRY_SECS: u64 = 5;
/// How long a direct endpoint may take to answer (spec §5), by default.
pub const DIRECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Calls to direct endpoints at the same time; a message above that goes to the mailbox at once.
pub const DIRECT_CALLS_MAX: usize = 64;
/// Calls to one direct endpoint at the same time; a message above that goes to the mailbox at once.
pub const DIRECT_CALLS_PER_ENDPOINT_MAX: usize = 8;
/// How long a failed endpoint is skipped the first time, at most; half of it at least.
pub const BREAKER_PAUSE_FIRST: Duration = Duration::from_secs(30);
/// How long a failed endpoint is skipped at most.
pub const BREAKER_PAUSE_MAX: Duration = Duration::from_mins(15);
/// Endpoints that are remembered as failed or are being called; the one due first is forgotten for a new one.
pub const BREAKER_ENDPOINTS_MAX: usize = 10_000;

// --- sessions ---

/// Messages in flight to one session, when the agent names no number (spec §6).
pub const CREDIT_DEFAULT: u32 = 64;
/// Messages in flight to one session, whatever it asks for.
pub const CREDIT_MAX: u32 = 1_024;
/// Bytes of envelopes in flight to one session (spec §6); one message alone may be larger.
pub const IN_FLIGHT_BYTES_MAX: u64 = 1024 * 1024;
/// Messages that one read for a session brings.
pub const DELIVERY_MESSAGES_MAX: usize = 256;
/// Bytes of envelopes that one read for a session brings (one message alone may be larger).
pub const DELIVERY_BYTES_MAX: u64 = 256 * 1024;
/// Sessions of one agent that share its mailbox; one more replaces the oldest.
pub const SHARED_SESSIONS_MAX: usize = 16;
/// Offers before a message is given up, once they were made in [`SESSIONS_BEFORE_DEAD`] sessions (spec §6).
pub const ATTEMPTS_MAX: u32 = 8;
/// Sessions that must have had a message before it is given up (spec §6).
pub const SESSIONS_BEFORE_DEAD: u32 = 2;
/// Pauses before a message without an ack is offered again: after the first offer, the second, … (spec §6).
pub const REDELIVERY_SECS: [u64; 4] = [30, 60, 120, 300];
/// The longest pause that a `nak` can ask for; a longer one is cut to it.
pub const NAK_SECS_MAX: u64 = 3_600;
/// The shortest pause for a message that has had [`ATTEMPTS_MAX`] offers, whatever its `nak` asks for.
pub const NAK_EXHAUSTED_SECS_MIN: u64 = 30;
/// Offered messages of one agent that wait for their next offer in no session's hands; beyond, they stay in hand.
pub const PARKED_MAX: usize = 4_096;
/// Single sequence numbers in acks that are not durable yet; beyond, a session is not read.
pub const ACK_BACKLOG_MAX: usize = 4_096;
/// Messages on their way to the dead letters; beyond, a session is not read.
pub const BURIALS_MAX: usize = 64;
/// The pause after the store failed a session.
pub const STORE_PAUSE_SECS: u64 = 1;
/// Bytes of a reject's code.
pub const REJECT_CODE_BYTES_MAX: usize = 64;
/// The shortest time between two takeovers of one agent's mailbox: two clients that evict each other are damped.
pub const TAKEOVER_PAUSE_MILLIS: u64 = 1_000;
/// How long a message that was read for a session that shares its mailbox is kept from other processes, until it was
/// sent.
pub const CLAIM_SECS: u64 = 30;
/// So much before a message is offered again to the session that did not answer, other processes may have it.
pub const CLAIM_LEAD_MILLIS: u64 = 250;
/// The shortest pause before a message that another process has in hand is asked for again.
pub const CLAIM_RETRY_MILLIS_MIN: u64 = 100;
/// Pauses that a newcomer makes since its mailbox changed hands in another process; then it is told to come back.
pub const ENTRY_WAITS_MAX: u32 = 30;
/// Agents that are told of again at the same time, after signals may have been lost.
pub const REUNITE_AT_ONCE_MAX: usize = 64;
/// Status frames that wait for one session; a full queue drops status frames, never messages.
pub const STATUS_QUEUE_MAX: usize = 64;
/// Long polls and event streams of one agent at a time.
pub const READERS_PER_AGENT_MAX: usize = 16;
/// Bytes of envelopes in one answer to a long poll or one read of an event stream (one message alone may be larger).
pub const READER_BYTES_MAX: usize = 1024 * 1024;
/// When a redrive into a full mailbox may be tried again.
pub const REDRIVE_RETRY_SECS: u64 = 30;
