//! The log of failures: each once, with its cause and the request's id, and never more lines than a disk can bear.
//!
//! When a store is down every request fails for the same reason. The first lines tell it; the rest are counted.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::limits::FAILURE_LINES_PER_SEC;
use crate::request_id::RequestId;

/// Writes failures to the log.
#[derive(Debug)]
pub struct Failures {
    lines: DefaultDirectRateLimiter,
    held_back: AtomicU64,
}

impl Default for Failures {
    fn default() -> Self {
        let lines = NonZeroU32::new(FAILURE_LINES_PER_SEC).unwrap_or(NonZeroU32::MIN);
        Self {
            lines: RateLimiter::direct(Quota::per_second(lines)),
            held_back: AtomicU64::new(0),
        }
    }
}

impl Failures {
    /// Failures that were counted since the last line.
    #[cfg(test)]
    pub(crate) fn held_back(&self) -> u64 {
        self.held_back.load(Ordering::Relaxed)
    }

    /// Logs a failure, or counts it when there were too many just now.
    pub(crate) fn log(&self, id: RequestId, code: &str, cause: &(dyn Error + Send + Sync + 'static)) {
        if self.lines.check().is_err() {
            self.held_back.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let held_back = self.held_back.swap(0, Ordering::Relaxed);
        tracing::error!(request.id = %id, code, cause = %Chain(cause), held_back, "A request failed");
    }
}

/// An error with everything that caused it, for one line of log.
struct Chain<'a>(&'a (dyn Error + Send + Sync + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
