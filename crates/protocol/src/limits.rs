//! Every bound of the protocol, with its name. Section numbers are those of the specification.

/// Size of an envelope on the wire, in bytes, when the operator sets no other limit (§4).
pub const ENVELOPE_BYTES_MAX: usize = 256 * 1024;
/// Size of the canonical bytes of an identity operation (§3).
pub const OPERATION_BYTES_MAX: usize = 16 * 1024;
/// Nested arrays and objects in a signed object; the outermost one is level 1 (§2).
pub const JSON_LEVELS_MAX: usize = 32;
/// Largest magnitude of an integer in a signed object, 2^53-1 (§2).
pub const JSON_INT_MAX: i64 = 9_007_199_254_740_991;
/// Bytes of a name (§1).
pub const NAME_BYTES_MAX: usize = 63;
/// Bytes of a domain in A-label form, without the port (RFC 1035).
pub const DOMAIN_BYTES_MAX: usize = 253;
/// Longest text that is looked at as a domain, in bytes; longer input is refused unread.
pub const DOMAIN_INPUT_BYTES_MAX: usize = 1024;
/// Keys in each list of an operation (§3).
pub const KEYS_PER_LIST_MAX: usize = 8;
/// A dropped key stays valid for messages in flight, in seconds (§3).
pub const KEY_GRACE_SECS: u64 = 900;
/// Bytes of an envelope's `type` (§4).
pub const TYPE_BYTES_MAX: usize = 128;
/// Bytes of `thread` and `reply_to` (§4).
pub const CORRELATION_BYTES_MAX: usize = 128;
/// W of §5: how old an envelope may be, in seconds, on top of the tolerance.
pub const WINDOW_SECS: u64 = 600;
/// S of §5: how far two clocks may lie apart, in seconds.
pub const TOLERANCE_SECS: u64 = 300;
/// An operation's `created_at` lies this close to the hub's clock when admitted, in seconds (§3).
pub const OPERATION_CLOCK_SECS: u64 = 300;
/// Items of one push between hubs (§8).
pub const BATCH_ITEMS_MAX: usize = 64;
/// Bytes of one push between hubs (§8).
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// How long an item may be on its way between hubs, in seconds: five days (§8).
pub const TRANSIT_SECS_MAX: u64 = 5 * 86_400;
/// How long a signed request between hubs may be good, in seconds (§8).
pub const REQUEST_LIFE_SECS_MAX: u64 = 60;
/// Characters of a Multikey; both kinds have 48, the range only guards the decoder.
pub(crate) const MULTIKEY_CHARS_MAX: usize = 60;
/// Characters of a signature's text form.
pub(crate) const SIGNATURE_CHARS_MAX: usize = 110;
/// Bytes of one JSON text of AIMarket: a manifest of a large market, never an answer to an invocation.
pub const MARKET_JSON_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Nested arrays and objects in a JSON text of AIMarket; the outermost one is level 1.
pub const MARKET_JSON_LEVELS_MAX: usize = 64;
/// Characters of a header of x402; what is longer is refused undecoded.
pub const X402_HEADER_CHARS_MAX: usize = 8 * 1024;
/// Characters of a key or a signature in base64; what is longer is refused undecoded.
pub(crate) const BASE64_CHARS_MAX: usize = 100;
/// Keys that an object of AIMarket is verified against.
pub(crate) const PINNED_KEYS_MAX: usize = 16;
/// Bytes of a `source_hub`; what is longer is refused unread.
pub(crate) const ORIGIN_BYTES_MAX: usize = 1024;
/// Origins whose keys are remembered, and whose failed look-ups are.
pub const ORIGINS_REMEMBERED_MAX: usize = 1024;
/// A look-up of an origin's key that failed is made again after so many seconds.
pub const ORIGIN_RETRY_SECS: u64 = 60;
