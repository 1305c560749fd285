//! The bounds of this room that are not settings. Everything an operator can choose is in [`crate::config`].

use std::time::Duration;

/// Bytes of a refused body that are still read and thrown away, so that the caller gets to read the answer.
pub const DRAINED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of the bodies of all requests together, or four of the largest body, if that is more.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Parts of the room for bodies of which one network address may hold one, or two of the largest body, if that is more.
pub const BODIES_PARTS: usize = 8;

/// Bytes of each body that do not count towards [`BODIES_BYTES_MAX`].
pub const BODY_FREE_BYTES: usize = 16 * 1024;

/// Time for the body of a push of another hub, whatever its pace: it holds one of few places. A hub like this one waits no
/// longer for the whole answer (`federation.push_timeout_secs`).
pub const PUSH_BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of a JSON body that is no envelope and no operation (authentication, administration).
pub const SMALL_BODY_BYTES_MAX: usize = 16 * 1024;

/// Buckets that network addresses share in a [`crate::throttle::Throttle`]: its memory has this bound.
pub const THROTTLE_BUCKETS: u64 = 65_536;

/// Lines of log that failed requests write in one second; further ones are counted only.
pub const FAILURE_LINES_PER_SEC: u32 = 20;

/// Seconds after which a caller tries again where the hub cannot say better (503).
pub const UNAVAILABLE_RETRY_SECS: u64 = 2;

/// Time a resolve answer may be kept by its reader, in seconds.
pub const RESOLVE_FRESH_SECS: u64 = 60;

/// Time the discovery document may be kept by its reader, in seconds. The specification allows a day.
pub const DISCOVERY_FRESH_SECS: u64 = 3_600;

/// Bytes of a reply to one request that wait for a slow reader, per connection.
pub const WRITE_BUFFER_BYTES: usize = 64 * 1024;

// --- sockets and the inbox ---

/// Sockets that have not signed in yet, at a time; further ones are refused.
pub const NEWCOMERS_MAX: usize = 1_024;

/// Of them, those of one network address.
pub const NEWCOMERS_PER_NETWORK_MAX: usize = 128;

/// Bytes that a socket may send before it has signed in: an `auth` frame, and what an eager agent sends right after.
pub const NEWCOMER_BYTES_MAX: u64 = 128 * 1024;

/// Bytes of the `ref` of a `send` frame.
pub const REF_BYTES_MAX: usize = 128;

/// `send` frames of one socket that wait to be stored; beyond, the socket is not read.
pub const SENDS_MAX: usize = 32;

/// Bytes of envelopes in them (one frame more may pass it).
pub const SENDS_BYTES_MAX: usize = 1024 * 1024;

/// How many seconds' worth of frames a socket may send at once.
pub const FRAME_BURST_SECS: u32 = 10;

/// Time in which an agent must take something of what is written to it, in seconds; then its socket is given up.
pub const WRITE_STALL_SECS: u32 = 30;

/// Time that an ending socket has to make acks durable and to answer sends, in seconds.
pub const SETTLE_SECS: u64 = 5;

/// Time after which it is looked at again whether a signed-in agent is still good, in seconds.
pub const PROOF_RECHECK_SECS: u64 = 60;

/// Time between two rounds in which sockets are pinged and looked at, in milliseconds.
pub const ROUND_MILLIS: u64 = 250;

/// Time between two comments that keep an event stream open, in seconds.
pub const STREAM_KEEPALIVE_SECS: u64 = 15;

/// Messages that one look into the mailbox brings to an event stream.
pub const STREAM_MESSAGES_MAX: usize = 16;

// --- listings and search ---

/// Results of a page where the caller names no number (spec §9).
pub const SEARCH_LIMIT_DEFAULT: u32 = 20;

/// Attributes that a search can ask for.
pub const SEARCH_ATTRIBUTES_MAX: usize = 16;

/// Bytes of a category or a brand that is asked for.
pub const SEARCH_WORD_BYTES_MAX: usize = 256;

/// Bytes of a cursor of a search; those that the hub hands out are shorter.
pub const SEARCH_CURSOR_BYTES_MAX: usize = 2 * 1024;

/// Bytes of the body of a search: the largest text, every character escaped.
pub const SEARCH_BODY_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a provider's name.
pub const PROVIDER_NAME_BYTES_MAX: usize = 128;

/// Days that a signed listing can be published for, from its `created_at` on; and as long a deleted one is remembered, so
/// that nobody else brings it back.
pub const LISTING_AGE_DAYS: u32 = 365;

/// How far `created_at` of a listing may lie ahead of this hub's clock, in seconds.
pub const LISTING_AHEAD_SECS: u32 = 300;

/// Deleted listings that are forgotten in one step.
pub const FORGET_LISTINGS_MAX: u32 = 1_000;

/// Time between two rounds in which deleted listings are forgotten, in seconds.
pub const FORGET_EVERY_SECS: u64 = 600;

/// Results that the market's form of a search can step over; further ones need the other form's cursor.
pub const MARKET_OFFSET_MAX: u64 = 1_000;

/// Pages of the catalog that one search of the market looks through: it also holds what is not sold.
pub const MARKET_PAGES_MAX: u32 = 40;

/// Bytes of the body of an ack: a thousand numbers and their members.
pub const ACK_BODY_BYTES_MAX: usize = 32 * 1024;

/// The longest lease of a pause, in seconds: how long a hub stands still for a move that has died.
pub const PAUSE_LEASE_SECS_MAX: u64 = 600;

/// Time in which names must be readable for the hub to be ready, in seconds.
pub const READY_WAIT_SECS: u64 = 2;

/// The pause between two looks whether the catalog has caught up, before suspect listings are looked at anew.
pub const LOOK_ANEW_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
