//! Every bound of this room.

use std::time::Duration;

/// Rows that one page holds at most.
pub const PAGE_MAX: u32 = 500;

/// Calls that are given up, or channels that end, in one step of a sweep: it takes about six statements for each, all changes
/// of the market wait for it meanwhile, and a database on another machine gives a step a few seconds.
pub const SWEEP_ROWS: u32 = 50;

/// Keys of one account.
pub const KEYS_PER_ACCOUNT_MAX: u32 = 20;

/// Channels that are open at once.
pub const OPEN_CHANNELS_MAX: u64 = 10_000;

/// Of them, those of one account: a few cents are enough for all of them.
pub const OPEN_CHANNELS_OF_ACCOUNT_MAX: u64 = 100;

/// How long the answer of an invocation is kept for who asks the same again.
pub const ANSWERS_KEPT: Duration = Duration::from_hours(24);

/// The largest answer that is kept of a call that cost nothing, in bytes.
pub const FREE_ANSWER_BYTES_MAX: usize = 16 * 1024;

/// The largest input of an invocation, as JSON, in bytes.
pub const INPUT_BYTES_MAX: usize = 64 * 1024;

/// The largest word that a provider says while it works, as JSON, in bytes.
pub const WORD_BYTES_MAX: usize = 16 * 1024;

/// Words of one call; further ones are not passed on.
pub const PROGRESS_WORDS_MAX: u64 = 10_000;

/// Bytes of the words of one call; further ones are not passed on.
pub const PROGRESS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The last words of a call that are kept for who follows it slowly, or comes back to it.
pub const PROGRESS_WINDOW_WORDS: usize = 256;

/// The same, in bytes: [`UNDER_WAY_MAX`] times this is what they may take.
pub const PROGRESS_WINDOW_BYTES: usize = 128 * 1024;

/// How long a followed call that has ended is kept in memory, for who comes back to it: its words, and an answer that is too
/// large to be kept elsewhere.
pub const ENDED_CALLS_KEPT: Duration = Duration::from_mins(10);

/// Bytes of all of them; the oldest go first.
pub const ENDED_CALLS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What one of them takes beside its words and its answer, in bytes, as an estimate.
pub const ENDED_CALL_BYTES: usize = 1024;

/// What a word takes beside its letters, in bytes, as an estimate.
pub const TOLD_WORD_BYTES: usize = 128;

/// Streams of events of calls that are open at once in one process.
pub const FOLLOWERS_MAX: usize = 2 * UNDER_WAY_MAX;

/// Time between two looks at a call that another process makes, or ends.
pub const JOB_LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Time between two looks whether a call of this process was cancelled at another one.
pub const CANCEL_LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Seconds after which it makes sense to ask for a job again: the header `Retry-After`.
pub const JOB_RETRY_SECS: u64 = 2;

/// What the client of a provider may take to tell it that its work is not wanted any more.
pub const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// The largest result of a provider, as JSON, in bytes.
pub const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// How long a provider may take, unless the operator says otherwise.
pub const PROVIDER_TIMEOUT: Duration = Duration::from_mins(1);

/// What an invocation may take beside its provider: after it anybody may give it up.
pub const INVOKE_MARGIN: Duration = Duration::from_secs(30);

/// The longest time that a listing may name for its provider, in seconds.
pub const PROVIDER_TIMEOUT_SECS_MAX: u64 = 300;

/// The longest address of a provider.
pub const PROVIDER_URL_BYTES_MAX: usize = 2048;

/// The longest path of a free tier.
pub const FREE_TIER_FIELD_BYTES_MAX: usize = 200;

/// The longest secret that is looked at.
pub const SECRET_CHARS_MAX: usize = 128;

/// Invocations that are under way at once in one process.
pub const UNDER_WAY_MAX: usize = 1_000;

/// Of them, those of one provider: one that does not answer, called for nothing, must not take the places of all.
pub const UNDER_WAY_PER_AGENT_MAX: usize = UNDER_WAY_MAX / 4;

/// Calls of other hubs that are under way in one process, of all of them together: they may cost nobody anything, and hubs
/// that do not answer leave places to the agents of this one.
pub const UNDER_WAY_ELSEWHERE_MAX: usize = UNDER_WAY_MAX / 2;

/// The largest schema, as JSON, in bytes.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Values in a schema with every `$ref` followed: what one check may come to.
pub const SCHEMA_VALUES_MAX: u64 = 5_000;

/// Patterns in a schema: compiled, each takes memory that its text does not show.
pub const SCHEMA_PATTERNS_MAX: usize = 64;

/// Levels of a schema with every `$ref` followed, the outermost as 1.
pub const SCHEMA_LEVELS_MAX: usize = 32;

/// Bytes of a value times values of a schema: what is not checked because it would take too long.
pub const CHECK_WORK_MAX: u64 = 512 * 1024 * 1024;

/// What is checked without going to another thread.
pub const CHECK_WORK_INLINE_MAX: u64 = 4 * 1024 * 1024;

/// Faults of an input that are told at once.
pub const FAULTS_MAX: usize = 10;

/// Words of a provider or of a fault that are passed on, in bytes.
pub const TOLD_BYTES_MAX: usize = 300;

/// How long a buyer has from the terms of a payment until its request is here.
pub const BUYER_TIME: Duration = Duration::from_mins(1);

/// How far ahead a payment may be good.
pub const PAYMENT_AHEAD_MAX: Duration = Duration::from_hours(24);

/// How long an attempt to have a payment made waits before it, the first one too.
pub const SETTLE_PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

/// How often a facilitator is asked about one payment in a row: whether it is good, and to make it.
pub const FACILITATOR_ASKED_MAX: u32 = 4;

/// How long a facilitator is asked again about a payment that it says nothing of.
pub const UNSETTLED_ASKED: Duration = Duration::from_hours(24);

/// Payments of a lost process that are asked about at once.
pub const SETTLING_AT_ONCE: u32 = 8;

/// How often in a row so many are taken up.
pub const SETTLING_ROUNDS: u32 = 8;

/// Wallets that the local facilitator knows.
pub const LOCAL_WALLETS_MAX: usize = 10_000;

/// Payments that the local facilitator makes.
pub const LOCAL_NONCES_MAX: usize = 100_000;

/// The longest name of a transaction that a facilitator tells, in bytes.
pub const TRANSACTION_BYTES_MAX: usize = 200;

/// The shortest and the longest id of a product or a capability.
pub const ID_CHARS_MIN: usize = 2;

/// See [`ID_CHARS_MIN`].
pub const ID_CHARS_MAX: usize = 80;

/// The longest `source_hub`.
pub const SOURCE_HUB_CHARS_MAX: usize = 256;

/// The longest `publisher_id`, in bytes: that of a DID.
pub const PUBLISHER_ID_BYTES_MAX: usize = 512;

/// The largest `max_price_usd`, in dollars.
pub const MAX_PRICE_USD_MAX: f64 = 1_000_000.0;

/// The shortest and the longest `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_CHARS_MIN: usize = 8;

/// See [`IDEMPOTENCY_KEY_CHARS_MIN`].
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 128;

/// The shortest and the longest `X-AIMarket-Sandbox-Visitor`.
pub const VISITOR_CHARS_MIN: usize = 8;

/// See [`VISITOR_CHARS_MIN`].
pub const VISITOR_CHARS_MAX: usize = 64;

/// Visitors of one network that have trials of their own; more share them. What a visitor says of itself costs it nothing to
/// change, so that a network has this many times the trials of one visitor, and no more.
pub const VISITORS_PER_NETWORK_MAX: u8 = 64;

/// What the names of visitors at other hubs begin with, and how many hexadecimal digits follow.
pub const ROUTED_VISITOR_PREFIX: &str = "hub-fed-";

/// See [`ROUTED_VISITOR_PREFIX`].
pub const ROUTED_VISITOR_CHARS: usize = 32;

/// How long a step of money waits before it is tried again; together well below [`INVOKE_MARGIN`].
pub const STORE_PAUSES: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// The longest address of a peer.
pub const PEER_URL_CHARS_MAX: usize = 256;

/// Peers that are pending at once: anybody can name any number of hubs.
pub const PENDING_PEERS_MAX: u64 = 2_000;

/// How long what a peer offers is sold without a good answer of it.
pub const PEER_FRESH: Duration = Duration::from_hours(6);

/// How long before its end what a peer offers is renewed, where nothing else has changed.
pub const PEER_RENEWED_BEFORE: Duration = Duration::from_hours(4);

/// Capabilities in the preview of a pending peer.
pub const PREVIEW_ROWS_MAX: usize = 25;

/// For how long buyers are told that a description or a schema has become another one.
pub const CHANGE_TOLD: Duration = Duration::from_hours(14 * 24);
