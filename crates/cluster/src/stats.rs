//! What this room counts, and how it is.

use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the processes hear of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// They do.
    Connected,
    /// They do not: each decides alone, no message is at risk.
    Degraded {
        /// What the last attempt said, for the operator.
        reason: String,
    },
}

/// Counts since the start, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commands sent.
    pub commands: u64,
    /// Commands without an answer in time.
    pub timeouts: u64,
    /// Commands that failed otherwise.
    pub failures: u64,
    /// Rate decisions made in this process alone.
    pub rate_fallbacks: u64,
    /// Questions about the dedup window or a challenge that nobody answered.
    pub unanswered: u64,
    /// Signals handed to Redis.
    pub signals_sent: u64,
    /// Signals of other processes that were heard.
    pub signals_received: u64,
    /// Signals that were not sent: Redis was away, or too much waited.
    pub signals_dropped: u64,
    /// Values from Redis that this room did not write, or not like this.
    pub bad_values: u64,
    /// Connections made after the first.
    pub reconnects: u64,
    /// Agents whose signals this process is to hear, now.
    pub subscribed: u64,
    /// 1 while connected.
    pub connected: u64,
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: usize) {
        self.0
            .fetch_add(u64::try_from(number).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commands: Count,
    pub(crate) timeouts: Count,
    pub(crate) failures: Count,
    pub(crate) rate_fallbacks: Count,
    pub(crate) unanswered: Count,
    pub(crate) signals_sent: Count,
    pub(crate) signals_received: Count,
    pub(crate) signals_dropped: Count,
    pub(crate) bad_values: Count,
    pub(crate) connections: Count,
}

impl Counters {
    pub(crate) fn read(&self, subscribed: usize, is_connected: bool) -> Stats {
        Stats {
            commands: self.commands.read(),
            timeouts: self.timeouts.read(),
            failures: self.failures.read(),
            rate_fallbacks: self.rate_fallbacks.read(),
            unanswered: self.unanswered.read(),
            signals_sent: self.signals_sent.read(),
            signals_received: self.signals_received.read(),
            signals_dropped: self.signals_dropped.read(),
            bad_values: self.bad_values.read(),
            reconnects: self.connections.read().saturating_sub(1),
            subscribed: u64::try_from(subscribed).unwrap_or(u64::MAX),
            connected: is_connected.into(),
        }
    }
}
