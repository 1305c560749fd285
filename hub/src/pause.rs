//! A hub that stands still: nothing that it keeps changes, while `aip-hub migrate-store` copies it elsewhere.
//!
//! A pause is a lease, and has a number. Whoever holds it renews it by its number; when they die, it runs out and the
//! hub goes on by itself, and who comes back late learns that their pause is over. What asks for a change meanwhile is told to come back: a sender tries again, a session ends and is taken up again. Only
//! the pause for good has no end: what was copied goes on elsewhere, and this hub must not grow apart from it.
//!
//! The stores are wrapped ([`PausableMailboxes`], [`PausableNames`], [`PausablePeers`], [`PausableMarket`]), so that no door can be forgotten.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::time::Timestamp;
use tokio::sync::{RwLock, RwLockReadGuard};

mod mailboxes;
mod market;
mod names;
mod peers;

pub use mailboxes::PausableMailboxes;
pub use market::PausableMarket;
pub use names::PausableNames;
pub use peers::PausablePeers;

/// What a caller is told, for the log.
const SENTENCE: &str = "the hub is paused while its stores are copied";

/// Whether the hub stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    None,
    Until(Timestamp),
    ForGood,
}

/// The hold, and how many there were.
#[derive(Debug)]
struct State {
    hold: Hold,
    number: u64,
}

impl Hold {
    fn holds(self, now: Timestamp) -> bool {
        match self {
            Self::None => false,
            Self::Until(end) => now < end,
            Self::ForGood => true,
        }
    }
}

/// The gate that every change passes.
#[derive(Debug)]
pub struct Pause {
    clock: Arc<dyn Clock>,
    state: RwLock<State>,
}

/// A change that is under way; a pause waits for it.
#[derive(Debug)]
pub struct Change<'a>(
    #[expect(dead_code, reason = "held until the change is done")] RwLockReadGuard<'a, State>,
);

impl Pause {
    /// A hub that runs.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: RwLock::new(State {
                hold: Hold::None,
                number: 0,
            }),
        }
    }

    /// Begins a change; `None` while the hub stands still.
    pub async fn begin(&self) -> Option<Change<'_>> {
        let state = self.state.read().await;
        let held = state.hold != Hold::None && state.hold.holds(self.clock.now());
        (!held).then_some(Change(state))
    }

    /// Whether the hub stands still.
    pub async fn is_held(&self) -> bool {
        self.begin().await.is_none()
    }

    /// Stands still for `lease` from now, or for good; returns the number of the pause once every change that was under
    /// way is done. One for good stays, whatever is asked later. `renews` is the number of a pause that is to go on:
    /// `None` if it has ended, so that something may have changed since.
    pub async fn hold(&self, lease: Option<Duration>, renews: Option<u64>) -> Option<u64> {
        let mut state = self.state.write().await;
        let now = self.clock.now();
        let held = state.hold.holds(now);
        if renews.is_some_and(|number| !held || number != state.number) {
            return None;
        }
        if !held {
            state.number += 1;
        }
        state.hold = match (state.hold, lease) {
            (Hold::ForGood, _) | (_, None) => Hold::ForGood,
            (_, Some(lease)) => Hold::Until(now + lease),
        };
        Some(state.number)
    }

    /// Goes on, unless the pause is for good; whether it does.
    pub async fn resume(&self) -> bool {
        let mut state = self.state.write().await;
        if state.hold == Hold::ForGood {
            return false;
        }
        state.hold = Hold::None;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::clock::ManualClock;

    fn pause() -> (Arc<ManualClock>, Arc<Pause>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_000)));
        (clock.clone(), Arc::new(Pause::new(clock)))
    }

    #[tokio::test]
    async fn a_lease_that_nobody_renews_runs_out() {
        let (clock, pause) = pause();
        let lease = Some(Duration::from_secs(10));
        assert_eq!(pause.hold(lease, None).await, Some(1));
        clock.advance(Duration::from_millis(9_999));
        assert!(pause.is_held().await);
        assert_eq!(pause.hold(lease, Some(1)).await, Some(1), "renewed");
        clock.advance(Duration::from_millis(9_999));
        assert!(pause.is_held().await);
        clock.advance(Duration::from_millis(1));
        assert!(!pause.is_held().await);
    }

    /// Between two pauses something may have changed: who slept through the end of one does not get the next.
    #[tokio::test]
    async fn a_pause_that_has_ended_is_not_renewed() {
        let (clock, pause) = pause();
        let lease = Some(Duration::from_secs(10));
        assert_eq!(pause.hold(lease, Some(0)).await, None, "there was none");
        assert_eq!(pause.hold(lease, None).await, Some(1));
        clock.advance(Duration::from_secs(10));
        assert_eq!(pause.hold(lease, Some(1)).await, None);
        assert_eq!(pause.hold(None, Some(1)).await, None);
        assert!(!pause.is_held().await);
        assert_eq!(pause.hold(lease, None).await, Some(2));
        assert_eq!(pause.hold(lease, Some(1)).await, None);
        assert_eq!(pause.hold(lease, Some(2)).await, Some(2));
    }

    #[tokio::test]
    async fn a_pause_is_ended_unless_it_is_for_good() {
        let (clock, pause) = pause();
        pause.hold(Some(Duration::from_secs(10)), None).await;
        assert!(pause.resume().await);
        assert!(!pause.is_held().await);
        pause.hold(None, None).await;
        pause.hold(Some(Duration::from_secs(1)), None).await;
        assert!(!pause.resume().await);
        clock.advance(Duration::from_hours(1));
        assert!(pause.is_held().await);
    }

    #[tokio::test]
    async fn a_pause_begins_when_what_was_begun_is_done() {
        let (_, pause) = pause();
        let change = pause.begin().await.unwrap();
        let holder = tokio::spawn({
            let pause = pause.clone();
            async move { pause.hold(None, None).await }
        });
        tokio::task::yield_now().await;
        assert!(!holder.is_finished(), "a change is under way");
        drop(change);
        holder.await.unwrap();
        assert!(pause.begin().await.is_none());
    }
}
