//! What this room counts, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// One number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The counters while they count.
        #[derive(Debug, Default)]
        pub(crate) struct Stats { $($(#[$doc])* pub(crate) $name: Count),+ }

        /// All counts at one moment, since the start of the process.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts { $($(#[$doc])* pub $name: u64),+ }

        impl Stats {
            /// All counts now.
            pub(crate) fn counts(&self) -> Counts {
                Counts { $($name: self.$name.get()),+ }
            }
        }

        impl Counts {
            /// Every count with its name, in a fixed order.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),+]
            }
        }
    };
}

counters! {
    /// Publishes that the server confirmed as stored.
    publishes,
    /// Publishes that were sent again, because the outcome of a try was not known or its twin was in process.
    publish_retries,
    /// Requests (of any kind) that were not answered in time.
    timeouts,
    /// Requests (of any kind) that brought no answer: none in time, or nobody is there to answer for the stream.
    unanswered,
    /// Publishes that ended without their outcome being known.
    unknown_outcomes,
    /// Publishes that the stream had already.
    duplicates,
    /// Compare-and-sets that another writer was ahead of.
    cas_conflicts,
    /// Publishes refused for the backstop of messages per mailbox.
    full,
    /// Publishes that another stream refused, because their shard has moved.
    elsewhere,
    /// Direct Gets of single messages.
    direct_gets,
    /// Direct Gets of batches.
    batch_gets,
    /// Reads from the leader of a stream.
    leader_gets,
    /// Messages purged.
    purged,
    /// Times that the connection came back.
    reconnects,
    /// Times that a subscription of this process was too slow and lost something.
    slow_subscriptions,
    /// Hints of new mail.
    hints,
    /// Times that a hint showed that an earlier one had been missed.
    missed_hints,
    /// Records written in the background (statuses, expiries) that were dropped: their queue was full, or the servers
    /// did not take them for long.
    records_dropped,
    /// Mailboxes whose settled messages were not queued for purging, because the queue was full.
    purges_dropped,
    /// Accepted envelopes that were not noted in the dedup window of this process, because it was too slow.
    notes_dropped,
}
