//! The contract of senders' buckets, as plain async functions: every implementation runs them all, each on fresh
//! buckets.
#![expect(clippy::missing_panics_doc, reason = "a broken contract is to panic")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::{Rate, SenderBuckets, SenderKey};

const ALICE: SenderKey = [1; 16];
const BOB: SenderKey = [2; 16];

/// Makes fresh buckets, which several processes may share.
pub trait Ground: Send + Sync {
    /// Buckets of this rate, as two processes see them; the same object where there is one process.
    fn buckets(
        &self,
        rate: Rate,
    ) -> impl Future<Output = (Arc<dyn SenderBuckets>, Arc<dyn SenderBuckets>)> + Send;

    /// Lets time pass for them.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

fn rate(messages_per_sec: u32, burst_messages: u32) -> Rate {
    let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    Rate {
        messages_per_sec: at_least_one(messages_per_sec),
        burst_messages: at_least_one(burst_messages),
    }
}

/// A full bucket holds a burst and no more, whichever process is asked.
pub async fn a_burst_fits_exactly(ground: &impl Ground) {
    let (one, other) = ground.buckets(rate(1, 50)).await;
    let asks = (0..200).map(|number| if number % 2 == 0 { &one } else { &other });
    let answers = join_all(asks.map(|buckets| buckets.take(&ALICE))).await;
    let fits = answers.iter().filter(|answer| answer.is_ok()).count();
    // One more a second, should the machine be slow.
    assert!((50..=55).contains(&fits), "{fits} messages fit");
    let refused = answers.iter().filter_map(|answer| answer.err());
    refused.for_each(|wait_secs| assert_eq!(wait_secs, 1));
}

/// Each sender has a bucket of its own.
pub async fn senders_do_not_share_a_bucket(ground: &impl Ground) {
    let (one, other) = ground.buckets(rate(1, 1)).await;
    assert_eq!(one.take(&ALICE).await, Ok(()));
    assert_eq!(one.take(&BOB).await, Ok(()));
    assert_eq!(other.take(&ALICE).await, Err(1));
}

/// A message fits again when its time has come.
pub async fn a_bucket_fills_again(ground: &impl Ground) {
    let (one, other) = ground.buckets(rate(20, 2)).await;
    for _ in 0..2 {
        assert_eq!(one.take(&ALICE).await, Ok(()));
    }
    for _ in 0..1_000 {
        if other.take(&ALICE).await == Ok(()) {
            return;
        }
        ground.pass(Duration::from_millis(10)).await;
    }
    unreachable!("the bucket stays empty");
}

/// However long nothing was taken, a bucket holds a burst at most.
pub async fn a_pause_saves_up_no_more_than_a_burst(ground: &impl Ground) {
    let (one, _) = ground.buckets(rate(1_000, 5)).await;
    assert_eq!(one.take(&ALICE).await, Ok(()));
    ground.pass(Duration::from_millis(200)).await;
    let answers = join_all((0..400).map(|_| one.take(&ALICE))).await;
    let fits = answers.iter().filter(|answer| answer.is_ok()).count();
    // 200 would fit if the pause had been saved up, beside what fits while this runs.
    assert!((5..200).contains(&fits), "{fits} messages fit");
}
