//! The named bounds of this room.

use std::time::Duration;

/// Orders that wait to be sent to Redis; what comes beyond is dropped and counted.
pub const POST_QUEUE_MAX: usize = 8_192;
/// Orders that are sent in one go.
pub const POST_BATCH_MAX: usize = 256;
/// Channels in one command that subscribes or unsubscribes.
pub const SUBSCRIBE_BATCH_MAX: usize = 512;
/// Bytes of a signal as it is sent; a longer one is dropped here and ignored there.
pub const LETTER_BYTES_MAX: usize = 192 * 1024;
/// Sequence numbers in one signal.
pub const LETTER_SEQS_MAX: usize = 8_192;
/// Bytes of a status's code in a signal.
pub const LETTER_CODE_BYTES_MAX: usize = 256;
/// Agents that are to be read anew and wait for it; beyond, all are.
pub const FORGET_QUEUE_MAX: usize = 1_024;
/// How often the connection is looked at, and how long an agent in the registry's cache is believed while it is down.
pub const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// How long Redis may take to answer such a look, or to a subscription, before it counts as gone.
pub const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before the first attempt to connect again; it doubles.
pub const RECONNECT_PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause before an attempt to connect again.
pub const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long an entry says in which process an agent's session is, unless it is renewed.
pub const AT_LIFE: Duration = Duration::from_mins(10);
/// How often such entries are renewed.
pub const AT_RENEW_PAUSE: Duration = Duration::from_secs(200);
/// A generation so far in the future is somebody's mistake and starts over.
pub const GENERATION_AHEAD_MAX: Duration = Duration::from_hours(1);
/// The longest life of anything that is put into Redis.
pub const LIFE_MAX: Duration = Duration::from_hours(24);
/// The oldest Redis that this room was written for (or a Valkey that says it is as new).
pub const REDIS_VERSION_MIN: (u32, u32) = (6, 2);
