//! The bounds of the hub's side of the market that are not settings.

use std::time::Duration;

/// Offers that are held in memory; further ones are not sold.
pub const OFFERS_MAX: usize = 100_000;

/// What the offers of one agent may weigh in memory, in bytes; further ones are not sold. So nobody fills the shelf alone.
pub const OFFER_BYTES_PER_AGENT_MAX: usize = 32 * 1_024 * 1_024;

/// What all offers may weigh in memory, in bytes; further ones are not sold.
pub const OFFER_BYTES_MAX: usize = 512 * 1_024 * 1_024;

/// What one value of a schema weighs at most: as an object, a node of a map.
pub const SCHEMA_VALUE_BYTES: usize = 640;

/// The largest answer of a facilitator, in bytes.
pub const FACILITATOR_ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// The longest text of a facilitator that goes on to buyers and logs, in characters: transactions and reasons.
pub const FACILITATOR_TEXT_CHARS_MAX: usize = 200;

/// What everybody has on the chain in memory, in dollars that are worth nothing.
pub const LOCAL_GRANT_USD: u32 = 100;

/// Changes of listings that are read at once.
pub const CHANGES_AT_ONCE_MAX: u32 = 500;

/// Time between two looks at the log of listings, if nothing says that it has changed.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two tries to read the log, while that fails.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Capabilities in the manifest and in the list of prices: those that were listed first. Readers take no more (AIMarket's
/// index rules).
pub const TOOLS_MAX: usize = 1_000;

/// Bytes of the manifest. Readers take no more than 2 MiB; this leaves room for the rest of it.
pub const TOOLS_BYTES_MAX: usize = 1_900 * 1_024;

/// Time for which a signed document is good, unless what it says changes.
pub const DOCUMENT_FRESH: Duration = Duration::from_hours(1);

/// Time between two signatures of a document that has changed.
pub const DOCUMENT_PAUSE: Duration = Duration::from_secs(1);

/// Time that a reader may keep a document without asking again, in seconds.
pub const DOCUMENT_MAX_AGE_SECS: u64 = 60;

/// Time between two sweeps: calls that were lost, channels whose time is over, answers that are old.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Capabilities that have a line of their own in the metrics; the others share one.
pub const METRIC_CAPABILITIES_MAX: usize = 100;

/// The longest time that a caller waits for a job to end (`Prefer: wait=`).
pub const JOB_WAIT_MAX: Duration = Duration::from_secs(30);

/// Bytes of a JSON body of the market that is no invocation.
pub const BODY_BYTES_MAX: usize = 16 * 1_024;

/// Bytes of the body of a request to check a receipt.
pub const RECEIPT_BODY_BYTES_MAX: usize = 128 * 1_024;

/// Bytes of the label of an account or a key.
pub const LABEL_BYTES_MAX: usize = 200;

/// Bytes of the reference of a payment.
pub const REFERENCE_BYTES_MAX: usize = 200;

/// Bytes of what marks a secret, `aimk_…` among them; longer ones are not looked at.
pub const SECRET_BYTES_MAX: usize = 256;

/// Hubs that are named to who asks for a capability at another one than those that sell it.
pub const HUBS_TOLD_MAX: usize = 16;

/// Listings of the peers at one host together. A peer has [`TOOLS_MAX`] at a time; one that names others at every look has
/// no more than a few times this many remembered.
pub const LISTINGS_PER_HOST_MAX: u32 = 16_000;

/// Bytes of a document of another hub; more is cut off while it comes.
pub const PEER_DOCUMENT_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// Time that another hub has to give a document.
pub const PEER_DOCUMENT_TIMEOUT: Duration = Duration::from_secs(15);

/// How old a signed document of another hub may be.
pub const DOCUMENT_AGE_MAX: Duration = Duration::from_hours(7 * 24);

/// How far ahead of this hub's clock it may be dated.
pub const DOCUMENT_AHEAD_MAX: Duration = Duration::from_hours(1);

/// Characters of the name of another hub or of what it sells.
pub const PEER_NAME_CHARS_MAX: usize = 120;

/// Characters of what another hub says about what it sells.
pub const PEER_TEXT_CHARS_MAX: usize = 600;

/// Characters of what another hub says about itself.
pub const PEER_DESCRIPTION_CHARS_MAX: usize = 300;

/// Characters of the version of its software.
pub const PEER_VERSION_CHARS_MAX: usize = 40;

/// Characters of a category.
pub const PEER_WORD_CHARS_MAX: usize = 60;

/// Categories of another hub.
pub const PEER_CATEGORIES_MAX: usize = 20;

/// Hubs that another one can name at once.
pub const PEERS_NAMED_MAX: usize = 50;

/// Hubs that one hub has named and that wait for the operator: it does not take the places of all.
pub const PEERS_NAMED_PENDING_MAX: usize = 200;

/// How many hubs may be between one and those that the operator named.
pub const PEER_DEPTH_MAX: u32 = 3;

/// The highest price that is taken up, in dollars.
pub const PEER_PRICE_USD_MAX: f64 = 1_000.0;

/// Levels of a schema of another hub.
pub const PEER_SCHEMA_LEVELS_MAX: usize = 32;

/// Hubs that are crawled at once.
pub const CRAWLS_AT_ONCE_MAX: usize = 4;

/// Hubs that are taken for crawling at once.
pub const CRAWLS_TAKEN_MAX: u32 = 16;

/// Time between two looks whether a hub is due.
pub const CRAWL_TICK: Duration = Duration::from_secs(5);

/// After this time a hub that was taken is due again, whatever became of the process that took it.
pub const CRAWL_TAKEN: Duration = Duration::from_mins(5);

/// The pause after the first failure; each further one doubles it, up to the interval.
pub const CRAWL_RETRY: Duration = Duration::from_mins(1);

/// The longest pause before a hub is crawled that nobody has decided about.
pub const PENDING_CRAWL_PAUSE_MAX: Duration = Duration::from_hours(24);

/// Time between two crawls of a hub that announces itself again and again.
pub const EARLY_CRAWL_PAUSE: Duration = Duration::from_mins(1);

/// A hub that a stranger named and that never answered is forgotten after so long.
pub const SILENT_PEER_KEPT: Duration = Duration::from_hours(7 * 24);

/// Hubs that are forgotten in one step.
pub const SILENT_PEERS_FORGOTTEN_MAX: u32 = 100;

/// Time between two rounds of forgetting.
pub const FORGET_PEERS_INTERVAL: Duration = Duration::from_hours(1);

/// Time between two looks at the peers in the store, which other processes change, too.
pub const PEERS_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Bytes of an announcement.
pub const ANNOUNCE_BYTES_MAX: usize = 16 * 1_024;

/// Hubs that this one announces itself to.
pub const ANNOUNCED_TO_MAX: usize = 200;

/// Time that a hub has to answer an announcement.
pub const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of the answer to an announcement.
pub const ANNOUNCE_ANSWER_BYTES_MAX: usize = 16 * 1_024;

/// Time between two looks whether what is sold here has changed.
pub const ANNOUNCE_TICK: Duration = Duration::from_secs(15);

/// Time between two rounds of announcing.
pub const ANNOUNCE_PAUSE: Duration = Duration::from_mins(5);

/// Bytes of the file with the keys at other hubs.
pub const PEER_KEYS_FILE_BYTES_MAX: u64 = 256 * 1_024;

/// Hubs that a document or an answer names.
pub const PEERS_TOLD_MAX: usize = 200;

/// Streams of events of calls that one network address has open at once, of those of all: one stranger leaves places to others.
pub const STREAMS_PER_NETWORK_MAX: usize = aip_market::limits::FOLLOWERS_MAX / 8;
