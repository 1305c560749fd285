//! Counters for the metrics of reception, since this process began.

use std::sync::atomic::{AtomicU64, Ordering};

use aip_protocol::error::{ErrorCode, Refusal};

use super::PushAnswer;
use super::Reception;
use crate::budgets::Tally;

/// The calls that peers make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// `POST /federation/v1/messages`.
    Push,
    /// `GET /federation/v1/outbox`.
    Backfill,
    /// `GET /federation/v1/status`.
    Status,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Push, Self::Backfill, Self::Status];

    /// Whether its request has a body, which the signature covers.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Push)
    }

    /// A stable word for labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Backfill => "backfill",
            Self::Status => "status",
        }
    }
}

/// One count for each code of §7.
#[derive(Debug)]
struct ByCode(Vec<AtomicU64>);

impl Default for ByCode {
    fn default() -> Self {
        Self(ErrorCode::ALL.iter().map(|_| AtomicU64::new(0)).collect())
    }
}

impl ByCode {
    fn count(&self, code: ErrorCode) {
        let index = ErrorCode::ALL.iter().position(|other| *other == code);
        if let Some(count) = index.and_then(|index| self.0.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Those that are not zero.
    fn read(&self) -> Vec<(ErrorCode, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        let counts = ErrorCode::ALL.iter().copied().zip(counts);
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Counters {
    taken: [AtomicU64; 3],
    turned_away: ByCode,
    stored: AtomicU64,
    duplicate: AtomicU64,
    retry: AtomicU64,
    refused: ByCode,
    signatures: AtomicU64,
    looks: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were answered with 200, by call.
    pub taken: Vec<(&'static str, u64)>,
    /// Requests that were refused, by code.
    pub turned_away: Vec<(ErrorCode, u64)>,
    /// Items by result.
    pub items: Tally,
    /// Refused items by code.
    pub refused: Vec<(ErrorCode, u64)>,
    /// Signatures of requests that were checked.
    pub signatures: u64,
    /// Looks past the cache, at documents and histories, that requests were the reason for.
    pub looks: u64,
}

impl Counters {
    /// The counters now.
    pub fn read(&self) -> Counts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let refused = self.refused.read();
        Counts {
            taken: Call::ALL
                .map(Call::as_str)
                .into_iter()
                .zip(self.taken.iter().map(get))
                .collect(),
            turned_away: self.turned_away.read(),
            items: Tally {
                stored: get(&self.stored),
                duplicate: get(&self.duplicate),
                refused: refused.iter().map(|(_, count)| count).sum(),
                retry: get(&self.retry),
            },
            refused,
            signatures: get(&self.signatures),
            looks: get(&self.looks),
        }
    }

    /// Counts how a call ended, and passes it on.
    pub(crate) fn call<T>(&self, call: Call, outcome: Result<T, Refusal>) -> Result<T, Refusal> {
        match &outcome {
            Ok(_) => {
                let [push, backfill, status] = &self.taken;
                let count = match call {
                    Call::Push => push,
                    Call::Backfill => backfill,
                    Call::Status => status,
                };
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(refusal) => self.turned_away.count(refusal.code),
        }
        outcome
    }

    pub(super) fn items(&self, answer: &PushAnswer) {
        for result in &answer.results {
            match result.reception {
                Reception::Stored => self.stored.fetch_add(1, Ordering::Relaxed),
                Reception::Duplicate => self.duplicate.fetch_add(1, Ordering::Relaxed),
                Reception::Retry { .. } => self.retry.fetch_add(1, Ordering::Relaxed),
                Reception::Refused(code) => {
                    self.refused.count(code);
                    0
                }
            };
        }
    }

    pub(super) fn signature(&self) {
        self.signatures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }
}
