//! The contract of a shared window, as plain async functions: every implementation runs them all, each on a fresh one.
#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a broken contract is to panic"
)]

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::clock::{Clock, ManualClock};

use super::{Accepted, SharedWindow};
use crate::limits::DEDUP_LIFE_SECS;
use crate::mailbox::Route;

/// A window as two processes see it, and their clock.
#[derive(Debug)]
pub struct Context {
    /// One process.
    pub one: Arc<dyn SharedWindow>,
    /// The other.
    pub other: Arc<dyn SharedWindow>,
    /// Of both. What is kept elsewhere may be forgotten by a clock of its own, which runs.
    pub clock: Arc<ManualClock>,
    _ground: Box<dyn Any + Send + Sync>,
}

impl Context {
    /// `ground` is what has to live as long as the window.
    pub fn new(
        one: Arc<dyn SharedWindow>,
        other: Arc<dyn SharedWindow>,
        clock: Arc<ManualClock>,
        ground: impl Any + Send + Sync,
    ) -> Self {
        Self {
            one,
            other,
            clock,
            _ground: Box::new(ground),
        }
    }

    fn accepted(&self, digest: u8, seq: Option<u64>, route: Route, life: Duration) -> Accepted {
        Accepted {
            digest: [digest; 32],
            until: self.clock.now() + life,
            seq,
            route,
        }
    }

    /// Waits until the other knows `key` as `accepted`.
    async fn until(&self, key: [u8; 16], accepted: Option<Accepted>) {
        for _ in 0..1_000 {
            if self.other.recall(key).await == accepted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?} is recalled", self.other.recall(key).await);
    }
}

const LIFE: Duration = Duration::from_secs(DEDUP_LIFE_SECS);

/// Nothing is known of what nobody noted.
pub async fn an_unknown_key_is_unknown(ctx: &Context) {
    assert_eq!(ctx.one.recall([9; 16]).await, None);
}

/// What one noted, the other recalls, whole.
pub async fn what_one_noted_the_other_recalls(ctx: &Context) {
    let noted = [
        ([1; 16], ctx.accepted(1, Some(1), Route::Mailbox, LIFE)),
        ([2; 16], ctx.accepted(2, None, Route::Direct, LIFE)),
        ([3; 16], ctx.accepted(3, Some(u64::MAX), Route::Mailbox, LIFE)),
        ([0; 16], ctx.accepted(0, Some(0), Route::Mailbox, LIFE)),
    ];
    for (key, accepted) in noted {
        ctx.one.note(key, accepted);
    }
    for (key, accepted) in noted {
        ctx.until(key, Some(accepted)).await;
    }
    assert_eq!(ctx.other.recall([4; 16]).await, None);
}

/// Noted again is harmless.
pub async fn a_note_can_be_repeated(ctx: &Context) {
    let accepted = ctx.accepted(1, Some(1), Route::Mailbox, LIFE);
    ctx.one.note([1; 16], accepted);
    ctx.other.note([1; 16], accepted);
    ctx.until([1; 16], Some(accepted)).await;
}

/// After its end it is forgotten, and not recalled in between.
pub async fn a_note_ends(ctx: &Context) {
    let accepted = ctx.accepted(1, Some(1), Route::Mailbox, Duration::from_secs(5));
    ctx.one.note([1; 16], accepted);
    ctx.until([1; 16], Some(accepted)).await;
    ctx.clock.advance(Duration::from_millis(5_001));
    assert_eq!(ctx.other.recall([1; 16]).await, None);
    let over = ctx.accepted(2, Some(2), Route::Mailbox, Duration::ZERO);
    ctx.clock.advance(Duration::from_millis(1));
    ctx.one.note([2; 16], over);
    assert_eq!(ctx.other.recall([2; 16]).await, None);
}
