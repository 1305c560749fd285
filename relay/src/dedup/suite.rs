//! The contract of a dedup window, as plain async functions: every backend runs them all, each on a fresh
//! window.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a broken contract is to panic"
)]

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use tokio::task::JoinSet;

use super::{DedupWindow, Remember, Seen};
use crate::limits;
use crate::mailbox::{MailboxStore, Route};

/// A fresh window.
#[derive(Debug)]
pub struct Context {
    /// Under test; the whole store, so that it can be swept.
    pub store: Arc<dyn MailboxStore>,
    _ground: Box<dyn Any + Send + Sync>,
}

impl Context {
    /// `ground` is what has to live as long as the store, such as its folder.
    pub fn new(store: Arc<dyn MailboxStore>, ground: impl Any + Send + Sync) -> Self {
        Self {
            store,
            _ground: Box::new(ground),
        }
    }

    async fn remember(&self, remember: Remember) -> Option<Seen> {
        let window: &dyn DedupWindow = &*self.store;
        window.remember(remember).await.unwrap()
    }

    async fn seen(&self, key: u8, digest: u8, now: Timestamp) -> Option<Seen> {
        self.store.seen([key; 16], [digest; 32], now).await.unwrap()
    }
}

const DUPLICATE: Seen = Seen::Duplicate {
    seq: Some(7),
    route: Route::Mailbox,
};

/// So many seconds after 2026-11-29T20:00:00Z, where a bucket begins.
fn at(secs: u64) -> Timestamp {
    Timestamp::parse("2026-11-29T20:00:00Z").unwrap() + Duration::from_secs(secs)
}

fn item(key: u8, digest: u8, now: Timestamp, until: Timestamp) -> Remember {
    Remember {
        key: [key; 16],
        digest: [digest; 32],
        until,
        now,
        seq: Some(7),
        route: Route::Mailbox,
    }
}

/// The first is remembered with its answer; the same is a duplicate, other bytes are refused.
pub async fn the_first_wins(cx: &Context) {
    assert_eq!(cx.seen(1, 1, at(0)).await, None);
    assert_eq!(cx.remember(item(1, 1, at(0), at(900))).await, None);
    assert_eq!(cx.remember(item(1, 1, at(1), at(900))).await, Some(DUPLICATE));
    assert_eq!(cx.remember(item(1, 2, at(1), at(900))).await, Some(Seen::Reused));
    assert_eq!(cx.seen(1, 1, at(2)).await, Some(DUPLICATE));
    assert_eq!(cx.seen(1, 2, at(2)).await, Some(Seen::Reused));
    assert_eq!(cx.seen(2, 1, at(2)).await, None, "another key");
}

/// The answer of a direct delivery comes back as such.
pub async fn the_first_answer_is_kept(cx: &Context) {
    let direct = Remember {
        seq: None,
        route: Route::Direct,
        ..item(1, 1, at(0), at(900))
    };
    assert_eq!(cx.remember(direct).await, None);
    assert_eq!(
        cx.seen(1, 1, at(1)).await,
        Some(Seen::Duplicate {
            seq: None,
            route: Route::Direct
        })
    );
}

/// Remembered up to and including its end, to the nanosecond; after it the key is free again.
pub async fn the_window_is_exact_at_its_edges(cx: &Context) {
    let nano = Duration::from_nanos(1);
    for (key, start) in [(1, 0), (2, 1), (3, 299), (4, 300), (5, 301), (6, 1_199)] {
        let until = at(start + 900) + nano;
        assert_eq!(cx.remember(item(key, 1, at(start), until)).await, None);
        assert_eq!(cx.seen(key, 1, until).await, Some(DUPLICATE));
        assert_eq!(cx.seen(key, 2, until).await, Some(Seen::Reused));
        assert_eq!(cx.seen(key, 1, until + nano).await, None);
        let (now, until) = (until + nano, until + Duration::from_mins(15));
        assert_eq!(
            cx.remember(item(key, 2, now, until)).await,
            None,
            "another envelope may have it now"
        );
        assert_eq!(cx.seen(key, 2, now).await, Some(DUPLICATE));
    }
}

/// The longest life, from every point of a bucket, through all sweeps on the way.
pub async fn the_longest_life_survives_every_sweep(cx: &Context) {
    for (key, start) in [(1, 0), (2, 599), (3, 1_199), (4, 1_200)] {
        let (start, life) = (3_600 * u64::from(key) + start, limits::DEDUP_LIFE_SECS);
        assert_eq!(cx.remember(item(key, 1, at(start), at(start + life))).await, None);
        for step in (0..=life).step_by(60) {
            cx.store.sweep(at(start + step)).await.unwrap();
            assert_eq!(
                cx.seen(key, 1, at(start + step)).await,
                Some(DUPLICATE),
                "{step} s later"
            );
        }
        assert_eq!(cx.seen(key, 1, at(start + life + 1)).await, None);
    }
}

/// A call that took its time before a sweep did still finds what was alive then.
pub async fn a_sweep_leaves_slack_for_calls_under_way(cx: &Context) {
    assert_eq!(cx.remember(item(1, 1, at(0), at(1_199))).await, None);
    cx.store
        .sweep(at(1_200 + limits::CLOCK_SLACK_SECS - 1))
        .await
        .unwrap();
    assert_eq!(cx.seen(1, 1, at(1_199)).await, Some(DUPLICATE));
    cx.store
        .sweep(at(1_200 + limits::CLOCK_SLACK_SECS))
        .await
        .unwrap();
    assert_eq!(cx.seen(1, 1, at(1_199)).await, None);
}

/// Of forty at once one wins.
pub async fn one_winner_under_forty_concurrent_inserts(cx: &Context) {
    let mut tasks = JoinSet::new();
    for _ in 0..40 {
        let store = Arc::clone(&cx.store);
        tasks.spawn(async move { store.remember(item(1, 1, at(0), at(900))).await.unwrap() });
    }
    let answers = tasks.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.is_none()).count(), 1);
    assert_eq!(
        answers
            .iter()
            .filter(|answer| **answer == Some(DUPLICATE))
            .count(),
        39
    );
}
