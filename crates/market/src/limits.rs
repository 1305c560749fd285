//! Every bound of this room.

use std::time::Duration;

/// Rows that one page holds at most.
pub const PAGE_MAX: u32 = 500;

/// Keys of one account.
pub const KEYS_PER_ACCOUNT_MAX: u32 = 20;

/// Channels that are open at once.
pub const OPEN_CHANNELS_MAX: u64 = 10_000;

/// How long the answer of an invocation is kept for who asks the same again.
pub const ANSWERS_KEPT: Duration = Duration::from_hours(24);

/// The largest input of an invocation, as JSON, in bytes.
pub const INPUT_BYTES_MAX: usize = 64 * 1024;

/// The largest result of a provider, as JSON, in bytes.
pub const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// How long a provider may take, unless the operator says otherwise.
pub const PROVIDER_TIMEOUT: Duration = Duration::from_mins(1);

/// What an invocation may take beside its provider: after it anybody may give it up.
pub const INVOKE_MARGIN: Duration = Duration::from_secs(30);
