//! The named bounds of this room.

use std::time::Duration;

use crate::budgets::Rate;

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
pub const ABOVE_MAX: u64 = 8_192;

/// Of these, items at most so far above the contiguous part: they are taken in any case.
pub const ABOVE_NEAR_MAX: u64 = ABOVE_MAX / 2;

/// Items further above are taken while fewer are settled above the contiguous part: a peer with much mail that waits for
/// full mailboxes has other mail behind it. What its requests at once may add is left for them.
pub const ABOVE_FAR_MAX: u64 =
    ABOVE_MAX - ABOVE_NEAR_MAX - (PER_PEER_AT_ONCE * aip_protocol::limits::BATCH_ITEMS_MAX) as u64;

/// Refusals that are remembered with their codes of one peer and epoch: those of the highest numbers. An older one that is
/// asked for again is a duplicate.
pub const REFUSALS_PER_EPOCH_MAX: u64 = 10_000;

/// Epochs of one peer whose items are remembered: the last ones that began.
pub const EPOCHS_PER_PEER_MAX: u64 = 16;

/// Lines of the audit log that are kept of one peer and of one actor other than the operator: the newest ones.
pub const AUDIT_LINES_MAX: u64 = 1_000;

/// Peers that are kept although no mail ever went through and nothing was decided about them: those last heard of. One
/// may have a document of 64 KiB; and in one look through all peers, fewer new ones are looked up than one page holds.
pub const STRANGERS_KEPT_MAX: u32 = 10_000;

/// Pieces of evidence that are kept of one peer.
pub const EVIDENCE_PER_PEER_MAX: u32 = 100;

/// Histories of agents of one peer that are kept: those fetched last.
pub const HISTORIES_PER_PEER_MAX: u64 = 4_096;

/// Bytes of them, as JSON text.
pub const HISTORY_BYTES_PER_PEER_MAX: u64 = 32 * 1024 * 1024;

/// Histories of agents elsewhere that are kept.
pub const HISTORIES_MAX: u64 = 131_072;

/// Bytes of them, as JSON text.
pub const HISTORIES_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The part of the room for all histories that is made free when they have no room any more.
pub const CLEARED_PART: u64 = 64;

/// Bytes of one push to a peer (spec §8).
pub const BATCH_BYTES_MAX: usize = aip_protocol::limits::BATCH_BYTES_MAX;

/// Bytes of envelopes in one push to a peer that has not answered lately, unless a single envelope is longer.
pub const PROBE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that such a push holds in memory at most: one envelope of the largest size, and what is around it.
pub const BATCH_BYTES_HELD_MAX: usize = aip_protocol::limits::ENVELOPE_BYTES_MAX + 8 * 1024;

/// Pushes on their way at the same time, to all peers.
pub const PUSHES_MAX: usize = 256;

/// Pushes on their way to one peer (spec §8).
pub const PUSHES_PER_PEER_MAX: usize = 4;

/// Bytes of bodies on their way at the same time.
pub const PUSHES_BYTES_MAX: usize = 96 * 1024 * 1024;

/// Bytes, beside those, of bodies on their way to peers that answered before and now take longer than [`PUSH_PROMPT`].
pub const LATE_BYTES_MAX: usize = PUSHES_BYTES_MAX / 3;

/// A peer whose answer takes longer is slow: its next requests wait for those of others.
pub const PUSH_PROMPT: Duration = Duration::from_secs(3);

/// Longest time for one push. A peer may have to look up the senders of a whole batch.
pub const PUSH_TIMEOUT: Duration = Duration::from_secs(15);

/// How much longer than its limit a push is waited for.
pub const PUSH_SLACK: Duration = Duration::from_secs(1);

/// Peers with mail that are looked after at the same time by one process; those above it wait for the next look through all
/// outboxes.
pub const HOT_PEERS_MAX: usize = 65_536;

/// Messages of one peer that were looked at and wait, for a retry or for an earlier one of their pair: more than its outbox
/// holds ([`QUEUE_ITEMS_MAX`], unless the operator sets more), so that those that wait never hide others behind them. One
/// takes some 20 bytes, and each pair some 200.
pub const WAITING_MAX: usize = 131_072;

/// So many of them of each peer, however many wait for others.
pub const WAITING_OWN: usize = 4_096;

/// Messages beyond [`WAITING_OWN`] that wait, of all peers together.
pub const WAITING_SHARED_MAX: usize = 4 * WAITING_MAX;

/// When a peer takes no more numbers until lower ones are settled, so many pairs that it held up are tried at once: those
/// with the lowest numbers.
pub const HURRIED_MAX: usize = aip_protocol::limits::BATCH_ITEMS_MAX;

/// How often that is done.
pub const HURRY_EVERY: Duration = Duration::from_secs(10);

/// Pages of an outbox that one attempt looks at.
pub const PAGES_PER_ATTEMPT: u32 = 8;

/// The most to wait after a first failure (spec §8).
pub const BACKOFF_FIRST: Duration = Duration::from_secs(2);

/// The most to wait after any failure, and the longest `Retry-After` that is honoured (spec §8).
pub const BACKOFF_MAX: Duration = Duration::from_hours(1);

/// Failures in a row that open a breaker (spec §8).
pub const BREAKER_FAILURES: u32 = 5;

/// Attempts of which half failed, which opens a breaker (spec §8).
pub const BREAKER_ATTEMPTS: usize = 20;

/// The time within which those attempts were made (spec §8).
pub const BREAKER_WITHIN: Duration = Duration::from_secs(30);

/// From a breaker's opening to its first probe: short, so that what waited during a short cut is on its way again soon.
pub const BREAKER_PAUSE_FIRST: Duration = Duration::from_secs(10);

/// The longest time between two probes.
pub const BREAKER_PAUSE_MAX: Duration = Duration::from_mins(15);

/// A peer that talks to us is tried again for that at most this often.
pub const PROBE_EVERY: Duration = Duration::from_secs(10);

/// The pause after this hub's own stores failed.
pub const OWN_FAILURE_PAUSE: Duration = Duration::from_secs(2);

/// How long a peer's lease is taken for.
pub const LEASE: Duration = Duration::from_secs(10);

/// A lease with less than this left is lengthened before the next batch.
pub const LEASE_RENEW: Duration = Duration::from_secs(5);

/// How long a lease is kept after the outbox ran empty.
pub const LINGER: Duration = Duration::from_secs(5);

/// How often an empty outbox is looked at while its lease is kept.
pub const LINGER_POLL: Duration = Duration::from_millis(250);

/// How often the outboxes of all known peers are looked through.
pub const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// The pause between two pages of such a look.
pub const SWEEP_PAGE_PAUSE: Duration = Duration::from_millis(50);

/// How long requests on their way are waited for when the process ends.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// Peers that were dead for so long are forgotten.
pub const FORGET_AFTER: Duration = Duration::from_hours(30 * 24);

/// How often it is looked for such peers.
pub const FORGET_EVERY: Duration = Duration::from_hours(1);

/// How often it is noted of a busy peer that it answered.
pub const NOTE_ANSWER_EVERY: Duration = Duration::from_mins(1);

/// Peers in one view of all peers with mail; each costs two looks at its outbox.
pub const VIEWS_MAX: usize = 50;

/// Longest code that is taken over from a peer, in bytes.
pub const PEER_CODE_BYTES_MAX: usize = 64;

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
/// Those of domains that are not known yet.
pub const STRANGER_FLIGHTS_MAX: usize = FLIGHTS_MAX / 2;
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

/// Requests that were not authentic, from one network. A hub that is set up wrongly makes some; a flood ends here, before any
/// signature is checked.
pub const FAILURES: Rate = Rate::per_sec(5, 60);

/// Networks whose failures are counted apart; the rest shares one count.
pub const ADDRESSES_TRACKED_MAX: usize = 10_000;

/// Look-ups of domains that were never met, for requests from one network.
pub const LOOKUPS_PER_NETWORK: Rate = Rate::per_sec(2, 20);

/// Look-ups of domains that were never met, for all requests: a flood of invented domains makes no more outgoing requests.
pub const LOOKUPS_ALL: Rate = Rate::per_sec(10, 50);

/// Requests of hubs of which this process has verified nothing yet, all together. After a restart that is everybody.
pub const STRANGERS: Rate = Rate::per_sec(200, 1_000);

/// Requests in the name of a peer from other addresses than it came from before. A peer that moves needs a few.
pub const CLAIMS: Rate = Rate::per_sec(10, 40);

/// Requests of one peer.
pub const REQUESTS: Rate = Rate::per_sec(100, 400);

/// New epochs of one peer. An epoch is a window in the store, and a peer's old items are forgotten with its old epochs, so
/// there may not be any number of them; a restored store is one, a day of tests some dozens.
pub const EPOCHS: Rate = Rate::one_in(900, 128);

/// Requests of strangers that are worked on, or whose bodies are read, at once.
pub const STRANGERS_AT_ONCE: usize = 32;

/// Those of strangers from one network: whoever lets its bodies drip leaves places to others.
pub const STRANGERS_PER_NETWORK_AT_ONCE: usize = 8;

/// Requests of known peers at once. Each may hold a body of 1 MiB, and some times that while it is read.
pub const KNOWN_AT_ONCE: usize = 64;

/// Those from one network, however many names come from there.
pub const KNOWN_PER_NETWORK_AT_ONCE: usize = KNOWN_AT_ONCE / 2;

/// Requests of one peer at once: its four batches in flight (spec §8), and the same again for their retries and for backfill.
pub const PER_PEER_AT_ONCE: usize = 8;

/// Peers whose budgets are kept in memory.
pub const PEERS_TRACKED_MAX: usize = 20_000;

/// So many of them that were not heard of for the longest time make room for others.
pub const PEERS_FORGOTTEN_AT_ONCE: usize = PEERS_TRACKED_MAX / 10;

/// Addresses of one peer that are remembered as its own.
pub const PROVEN_ADDRESSES_MAX: usize = 8;

/// For how many seconds an address counts as a peer's own after a verified request.
pub const PROVEN_SECS: i64 = 3_600;

/// Within how many seconds the distinct senders of a new peer are counted.
pub const SENDERS_WINDOW_SECS: i64 = 900;

/// When the mail of a sender above that number is to come again, in seconds.
pub const SENDERS_RETRY_SECS: u64 = 300;

/// Items a second of a peer that was never met: enough for people, not for a flood.
pub const RAMP_ITEMS_PER_SEC: u64 = 10;

/// Bytes a second of such a peer.
pub const RAMP_BYTES_PER_SEC: u64 = 1024 * 1024;

/// Distinct senders of such a peer, in a window of [`SENDERS_WINDOW_SECS`].
pub const RAMP_SENDERS: usize = 100;

/// The age that each stage of the ramp takes, in seconds. Six stages lead to the 500 items a second of the settings: a day and
/// a half.
pub const RAMP_STAGE_SECS: i64 = 6 * 3_600;

/// Good items that the first stage takes; each further one takes twice as many more.
pub const RAMP_GOOD_ITEMS: u64 = 100;

/// Stages after which doubling ends.
pub const RAMP_STAGES_MAX: u32 = 30;

/// A burst of items lasts so many seconds of the rate, …
pub const ITEMS_BURST_SECS: u64 = 10;

/// … and holds at least the four batches that a peer has in flight.
pub const ITEMS_BURST_MIN: u64 = 4 * aip_protocol::limits::BATCH_ITEMS_MAX as u64;

/// A burst of bytes holds at least as much.
pub const BYTES_BURST_MIN: u64 = 4 * BATCH_BYTES_MAX as u64;

/// Messages that may wait for one peer.
pub const QUEUE_ITEMS_MAX: u32 = 100_000;

/// Bytes that may wait for one peer.
pub const QUEUE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Messages of one sender that may wait for one peer.
pub const QUEUE_ITEMS_PER_SENDER_MAX: u32 = 1_000;

/// Requests that wait for a turn to be verified, or are being verified. Above it peers are told to come again.
pub const VERIFY_QUEUE_MAX: usize = 256;

/// Look-ups of senders that one push makes at once.
pub const SENDER_LOOKUPS_AT_ONCE: usize = 8;

/// Longest nonce, in bytes.
pub const NONCE_BYTES_MAX: usize = 128;

/// Longest `Signature-Input`, in bytes.
pub const SIGNATURE_INPUT_BYTES_MAX: usize = 4_096;

/// Longest name of an epoch, in bytes.
pub const EPOCH_BYTES_MAX: usize = 128;

/// How often it is noted that a grown peer came in, in seconds. One that still grows is noted each time.
pub const NOTE_CAME_IN_SECS: i64 = 60;

/// When to come again after this hub could not do it, in seconds.
pub const UNAVAILABLE_RETRY_SECS: u64 = 5;

/// When an item too far above the window is to come again, in seconds.
pub const WINDOW_RETRY_SECS: u64 = 10;

/// Items settled above the contiguous part from where on an item below them that its recipient has no room for, or whose
/// sender cannot be looked up, is refused instead of waited for: else one full mailbox would in the end hold up all mail of
/// the peer.
pub const ABOVE_PRESSURE: u64 = ABOVE_FAR_MAX / 2;

/// After this long no further message of a pair is handed to its recipient in the same push. Each may take as long as its
/// endpoint, so that a push ends within some twice that: sooner than peers give up.
pub const PAIR_TIME: Duration = Duration::from_secs(5);

/// When those that are left are to come again, in seconds.
pub const PAIR_RETRY_SECS: u64 = 1;

/// Items of one page of backfill.
pub const BACKFILL_ITEMS_MAX: usize = 256;

/// Peers in a view of who hands in how much.
pub const LOADS_MAX: usize = 100;

/// Fields of answers that are kept beside those that have a place of their own: those about payment, and a provider's
/// signature.
pub const FIELDS_KEPT: [&str; 6] = [
    "payment-required",
    "payment-response",
    "x-payment-response",
    "x-payment-nonce",
    "x-provider-signature",
    "etag",
];

/// The longest value of one of them, in bytes.
pub const FIELD_BYTES_MAX: usize = 16 * 1024;
