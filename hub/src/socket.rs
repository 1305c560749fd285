//! The WebSocket door (spec §6): one task a socket, which signs the agent in and then carries frames both ways.
//!
//! What an agent gets and when is decided by [`aip_relay::session`]; this room knows sockets only. Everything is
//! bounded: sockets that have not signed in, the time they have for it, the size and rate of frames, the sends that
//! wait, the time a frame may take to be written. A slow agent slows only itself: nothing is read for it from the
//! store until what was read before has been written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_relay::session::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::error::ApiError;
use crate::limits::{NEWCOMERS_MAX, NEWCOMERS_PER_NETWORK_MAX, ROUND_MILLIS, UNAVAILABLE_RETRY_SECS};
use crate::throttle::{Hold, Holdings, Network};

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

/// The place of a socket that has not signed in, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _among_all: OwnedSemaphorePermit,
    _of_its_network: Hold,
}

/// What the sockets of a process share.
#[derive(Debug)]
pub struct Sockets {
    newcomers: Arc<Semaphore>,
    newcomers_by_network: Holdings,
    run: u32,
    joined: AtomicU32,
    began: Instant,
}

impl Sockets {
    /// No sockets yet. `run` tells the sessions of this run from those of another.
    pub fn new(run: u32) -> Self {
        Self {
            newcomers: Arc::new(Semaphore::new(NEWCOMERS_MAX)),
            newcomers_by_network: Holdings::new(NEWCOMERS_PER_NETWORK_MAX),
            run,
            joined: AtomicU32::new(0),
            began: Instant::now(),
        }
    }

    /// A place for a socket from `network` that has not signed in; it is given back by dropping it.
    ///
    /// # Errors
    /// 429 when there are too many of them, or too many from there: it is their doing, and no failure of the hub.
    pub fn newcomer(&self, network: Option<Network>) -> Result<Place, ApiError> {
        let mut of_its_network = self.newcomers_by_network.hold(network);
        if !of_its_network.grow(1) {
            let detail = "Too many sockets from your network address are signing in. Try again in a moment.";
            return Err(crowded(detail, NEWCOMERS_PER_NETWORK_MAX));
        }
        let among_all = Arc::clone(&self.newcomers).try_acquire_owned().map_err(|_full| {
            let detail = "Too many sockets are signing in at the same time. Try again in a moment.";
            crowded(detail, NEWCOMERS_MAX)
        })?;
        Ok(Place {
            _among_all: among_all,
            _of_its_network: of_its_network,
        })
    }

    /// The first round after `due`. What is not urgent is done for many sockets in one round, for which a thread wakes
    /// once.
    fn round_after(&self, due: Instant) -> Instant {
        let due_millis = due.saturating_duration_since(self.began).as_millis();
        let rounds = u64::try_from(due_millis).unwrap_or_default() / ROUND_MILLIS + 1;
        self.began + Duration::from_millis(rounds.saturating_mul(ROUND_MILLIS))
    }

    /// A name for a session.
    fn session(&self) -> SessionId {
        let number = self.joined.fetch_add(1, Ordering::Relaxed);
        SessionId::from_random(u64::from(self.run) << 32 | u64::from(number))
    }
}

fn crowded(detail: &'static str, sockets_max: usize) -> ApiError {
    Refusal::new(ErrorCode::RateLimited, detail)
        .with("limit_sockets", sockets_max)
        .retry_after(UNAVAILABLE_RETRY_SECS)
        .into()
}

#[cfg(test)]
mod tests;
