//! Counts for the operator: of what was committed and answered, never of what merely arrived.

use std::sync::atomic::{AtomicU64, Ordering};

use aip_federation::inbound::Reception;
use aip_protocol::error::ErrorCode;

use super::outcome::{SendError, Sent, Submission};

/// Counts since the start. Cheap to update from every thread.
#[derive(Debug, Default)]
pub struct RelayStats {
    stored: AtomicU64,
    delivered: AtomicU64,
    queued: AtomicU64,
    duplicates: AtomicU64,
    failed: AtomicU64,
    direct_failed: AtomicU64,
    direct_skipped: AtomicU64,
    refused: ByCode,
    received: Received,
}

/// Of items from peers.
#[derive(Debug, Default)]
struct Received {
    stored: AtomicU64,
    duplicates: AtomicU64,
    refused: ByCode,
    retries: ByCode,
}

/// One count for each code.
#[derive(Debug)]
struct ByCode(Vec<AtomicU64>);

impl Default for ByCode {
    fn default() -> Self {
        Self(ErrorCode::ALL.iter().map(|_| AtomicU64::default()).collect())
    }
}

impl ByCode {
    fn add(&self, code: ErrorCode) {
        let known = ErrorCode::ALL.iter().position(|known| *known == code);
        if let Some(count) = known.and_then(|index| self.0.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn read(&self) -> impl Iterator<Item = (ErrorCode, u64)> + '_ {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        ErrorCode::ALL
            .iter()
            .copied()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
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
        self.refused.read()
    }

    /// Messages queued for hubs of other domains.
    pub fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Items of peers that were stored, or that an endpoint took.
    pub fn received(&self) -> u64 {
        self.received.stored.load(Ordering::Relaxed)
    }

    /// Items of peers that were here before.
    pub fn received_duplicates(&self) -> u64 {
        self.received.duplicates.load(Ordering::Relaxed)
    }

    /// Items of peers that were refused for good, by code; codes that never occurred are left out.
    pub fn received_refused(&self) -> impl Iterator<Item = (ErrorCode, u64)> + '_ {
        self.received.refused.read()
    }

    /// Items of peers that were put off, by code; codes that never occurred are left out.
    pub fn received_retries(&self) -> impl Iterator<Item = (ErrorCode, u64)> + '_ {
        self.received.retries.read()
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
        self.refused.add(refusal.code);
    }

    pub(super) fn count_received(&self, reception: Reception) {
        match reception {
            Reception::Stored => drop(self.received.stored.fetch_add(1, Ordering::Relaxed)),
            Reception::Duplicate => drop(self.received.duplicates.fetch_add(1, Ordering::Relaxed)),
            Reception::Refused(code) => self.received.refused.add(code),
            Reception::Retry { code, .. } => self.received.retries.add(code),
        }
    }

    pub(super) fn count_direct_failed(&self) {
        self.direct_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_direct_skipped(&self) {
        self.direct_skipped.fetch_add(1, Ordering::Relaxed);
    }
}
