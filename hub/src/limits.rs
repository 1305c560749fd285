//! The bounds of this room that are not settings. Everything an operator can choose is in [`crate::config`].

/// Bytes of a refused body that are still read and thrown away, so that the caller gets to read the answer.
pub const DRAINED_BYTES_MAX: usize = 8 * 1024 * 1024;

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
