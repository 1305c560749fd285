//! The WebSocket door (spec §6): one task a socket, which signs the agent in and then carries frames both ways.
//!
//! What an agent gets and when is decided by [`aip_relay::session`]; this room knows sockets only. Everything is
//! bounded: sockets that have not signed in, the time they have for it, the size and rate of frames, the sends that
//! wait, the time a frame may take to be written. A slow agent slows only itself: nothing is read for it from the
//! store until what was read before has been written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aip_protocol::error::{ErrorCode, Refusal};
use aip_relay::session::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::limits::{NEWCOMERS_MAX, UNAVAILABLE_RETRY_SECS};

mod auth;
mod close;
mod frame;
mod inflow;
mod pace;
mod sends;
mod task;
mod wire;

pub use inflow::{Allowance, watched};
pub use task::serve;
pub use wire::Wire;

/// What the sockets of a process share.
#[derive(Debug)]
pub struct Sockets {
    newcomers: Arc<Semaphore>,
    run: u32,
    joined: AtomicU32,
}

impl Sockets {
    /// No sockets yet. `run` tells the sessions of this run from those of another.
    pub fn new(run: u32) -> Self {
        Self {
            newcomers: Arc::new(Semaphore::new(NEWCOMERS_MAX)),
            run,
            joined: AtomicU32::new(0),
        }
    }

    /// A place for a socket that has not signed in; it is given back by dropping it.
    ///
    /// # Errors
    /// 429 when there are too many of them: it is their doing, and no failure of the hub.
    pub fn newcomer(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.newcomers).try_acquire_owned().map_err(|_full| {
            let detail = "Too many sockets are signing in at the same time. Try again in a moment.";
            Refusal::new(ErrorCode::RateLimited, detail)
                .with("limit_sockets", NEWCOMERS_MAX)
                .retry_after(UNAVAILABLE_RETRY_SECS)
                .into()
        })
    }

    /// A name for a session.
    fn session(&self) -> SessionId {
        let number = self.joined.fetch_add(1, Ordering::Relaxed);
        SessionId::from_random(u64::from(self.run) << 32 | u64::from(number))
    }
}

#[cfg(test)]
mod tests;
