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
