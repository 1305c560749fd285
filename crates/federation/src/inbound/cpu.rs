//! Work of which there may only be so much at once: signatures, digests and parsing of what peers send.
//!
//! A bounded number of threads, so that what peers ask for never takes all processors from this hub's own agents, and a
//! bounded queue before them.

use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::budgets::busy;
use crate::limits::VERIFY_QUEUE_MAX;

#[derive(Debug)]
pub(super) struct Cpu {
    turns: Arc<Semaphore>,
    queue: Semaphore,
}

impl Cpu {
    /// `turns` pieces of work at once, at least one.
    pub(super) fn new(turns: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(turns.clamp(1, Semaphore::MAX_PERMITS))),
            queue: Semaphore::new(VERIFY_QUEUE_MAX),
        }
    }

    /// Does a piece of work when it is its turn; `unavailable` when too many wait.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let _queued = self.queue.try_acquire().map_err(|_full| busy())?;
        // The semaphore is never closed.
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let done = spawn_blocking(move || {
            // Kept by the work itself: who goes away meanwhile does not make room before it is done.
            let _turn = turn;
            work()
        });
        done.await.map_err(|error| {
            tracing::error!(error = %error, "Work for a peer ended in a panic");
            Refusal::new(ErrorCode::Internal, "The hub failed.")
        })
    }
}
