//! An embedder, its vectors, and what waits for it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_protocol::time::Timestamp;
use tokio::sync::Notify;

use super::backlog::Backlog;
use super::found::SpaceStats;
use crate::embedder::Embedder;
use crate::error::CatalogError;
use crate::limits::{EMBEDDER_FAILURES_MAX, EMBEDDER_REST_SECS, EMBEDDINGS_WAITING_MAX};
use crate::vectors::{Space, TextHash};

/// What a change means to a shelf.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    pub seq: u64,
    pub number: u64,
    /// Of the listing's text; none when it is gone.
    pub hash: Option<TextHash>,
}

/// One embedder's part of the catalog.
#[derive(Debug)]
pub(super) struct Shelf {
    pub space: Space,
    pub embedder: Arc<dyn Embedder>,
    /// Something waits.
    pub awake: Notify,
    /// Vectors of listings that are gone may be left, since deletions were forgotten.
    pub may_hold_gone: AtomicBool,
    backlog: Mutex<Backlog>,
    is_whole: AtomicBool,
    failures: AtomicU32,
    /// Until when queries do without it, in milliseconds since 1970.
    rests_until: AtomicI64,
}

impl Shelf {
    /// The full-text index holds the changes up to `applied`.
    pub(super) fn new(space: Space, embedder: Arc<dyn Embedder>, applied: u64) -> Self {
        let settled = space.settled();
        Self {
            backlog: Mutex::new(Backlog::new(settled, applied, EMBEDDINGS_WAITING_MAX)),
            is_whole: AtomicBool::new(settled > 0),
            space,
            embedder,
            awake: Notify::new(),
            may_hold_gone: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            rests_until: AtomicI64::new(i64::MIN),
        }
    }

    pub(super) fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at changes that the full-text index holds: what is gone goes here, what reads differently waits. They are all
    /// changes up to `passed`, where that is said.
    pub(super) fn consider(&self, changes: &[Read], passed: Option<u64>) -> Result<(), CatalogError> {
        // First: whoever keeps vectors after this looks at what changed.
        self.backlog().changed(changes.iter().map(|change| change.number));
        let gone = changes.iter().filter(|change| change.hash.is_none());
        let removed = self
            .space
            .remove(&gone.map(|change| change.number).collect::<Vec<_>>());
        if removed.is_err() {
            self.may_hold_gone.store(true, Ordering::Release);
        }
        let is_new = |change: &&Read| change.hash.is_some() && change.hash != self.space.hash(change.number);
        let waiting: Vec<&Read> = changes.iter().filter(is_new).collect();
        let mut backlog = self.backlog();
        for change in waiting {
            backlog.push(change.seq, change.number);
        }
        if let Some(seq) = passed {
            backlog.passed(seq);
        }
        drop(backlog);
        self.awake.notify_one();
        removed
    }

    /// Forgets how far it had come; the vectors stay, and those whose text is unchanged are good.
    pub(super) fn begin_anew(&self) -> Result<(), CatalogError> {
        self.space.settle(0)?;
        self.backlog().begin_anew();
        self.may_hold_gone.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Acquire)
    }

    /// True the first time.
    pub(super) fn became_whole(&self) -> bool {
        !self.is_whole.swap(true, Ordering::AcqRel)
    }

    pub(super) fn pending(&self) -> u64 {
        self.backlog().len()
    }

    pub(super) fn stats(&self, is_serving: bool) -> SpaceStats {
        SpaceStats {
            embedder: self.space.id().to_owned(),
            vectors: u64::try_from(self.space.len()).unwrap_or(u64::MAX),
            pending: self.pending(),
            is_whole: self.is_whole(),
            is_serving,
            bytes: self.space.bytes(),
        }
    }

    /// Whether queries do without the embedder for now: it failed repeatedly.
    pub(super) fn is_resting(&self, now: Timestamp) -> bool {
        now.unix_millis() < self.rests_until.load(Ordering::Acquire)
    }

    pub(super) fn answered(&self) {
        self.failures.store(0, Ordering::Release);
    }

    pub(super) fn failed(&self, now: Timestamp) {
        if self.failures.fetch_add(1, Ordering::AcqRel) + 1 >= EMBEDDER_FAILURES_MAX {
            let rest = i64::try_from(EMBEDDER_REST_SECS * 1_000).unwrap_or(i64::MAX);
            self.rests_until
                .store(now.unix_millis().saturating_add(rest), Ordering::Release);
        }
    }
}
