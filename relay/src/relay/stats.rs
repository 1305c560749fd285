//! Counts for the operator: of what was committed and answered, never of what merely arrived. Items of peers are counted by
//! reception.

use std::sync::atomic::{AtomicU64, Ordering};

use aip_protocol::error::ErrorCode;

use super::outcome::{SendError, Sent, Submission};

/// Counts since the start. Cheap to update from every thread.
#[derive(Debug)]
pub struct RelayStats {
    stored: AtomicU64,
    delivered: AtomicU64,
    queued: AtomicU64,
    duplicates: AtomicU64,
    failed: AtomicU64,
    direct_failed: AtomicU64,
    direct_skipped: AtomicU64,
    refused: Vec<AtomicU64>,
}

impl Default for RelayStats {
    fn default() -> Self {
        Self {
            stored: AtomicU64::default(),
            delivered: AtomicU64::default(),
            queued: AtomicU64::default(),
            duplicates: AtomicU64::default(),
            failed: AtomicU64::default(),
            direct_failed: AtomicU64::default(),
            direct_skipped: AtomicU64::default(),
            refused: ErrorCode::ALL.iter().map(|_| AtomicU64::default()).collect(),
        }
    }
}

impl RelayStats {
    /// Messages stored in a mailbox.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Messages that a direct endpoint took and that are recorded as such.
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Messages queued for hubs of other domains.
    pub fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Retries that were recognised.
    pub fn duplicates(&self) -> u64 {
        self.duplicates.load(Ordering::Relaxed)
    }

    /// Envelopes that were not answered with a verdict because something of ours failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Calls to direct endpoints that did not bring a 2xx.
    pub fn direct_failed(&self) -> u64 {
        self.direct_failed.load(Ordering::Relaxed)
    }

    /// Messages for direct endpoints that were not called, by breaker or bound.
    pub fn direct_skipped(&self) -> u64 {
        self.direct_skipped.load(Ordering::Relaxed)
    }

    /// Refusals by code; codes that never occurred are left out.
    pub fn refused(&self) -> impl Iterator<Item = (ErrorCode, u64)> + '_ {
        let counts = self.refused.iter().map(|count| count.load(Ordering::Relaxed));
        ErrorCode::ALL
            .iter()
            .copied()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
    }

    pub(super) fn count(&self, result: &Result<Submission, SendError>) {
        match result {
            Ok(submission) => {
                let counter = match submission.status {
                    Sent::Stored => &self.stored,
                    Sent::Delivered => &self.delivered,
                    Sent::Queued => &self.queued,
                    Sent::Duplicate => &self.duplicates,
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => self.count_error(error),
        }
    }

    pub(super) fn count_error(&self, error: &SendError) {
        let SendError::Refused(refusal) = error else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let known = ErrorCode::ALL.iter().position(|code| *code == refusal.code);
        if let Some(count) = known.and_then(|index| self.refused.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_direct_failed(&self) {
        self.direct_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_direct_skipped(&self) {
        self.direct_skipped.fetch_add(1, Ordering::Relaxed);
    }
}
