//! Budgets: how much of something a peer, an address or everybody together may use.
//!
//! [`Rate`] says how much, [`Bucket`] how much of it is used up. They are apart so that a rate can change, as that of a new
//! peer does, while what was used stays used. What is counted here is counted by this process alone.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::time::Timestamp;

mod addresses;
mod gate;
mod peers;
mod places;

pub use peers::{PeerLoad, Tally};

pub(crate) use gate::{Gate, Verified, busy};
pub(crate) use places::Place;

/// So many tokens in a time, and so many at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    tokens: u64,
    period_ms: u64,
    burst: u64,
}

impl Rate {
    /// `tokens` a second, `burst` at once.
    pub const fn per_sec(tokens: u64, burst: u64) -> Self {
        Self {
            tokens,
            period_ms: 1_000,
            burst,
        }
    }

    /// One token each `secs` seconds, `burst` at once.
    pub const fn one_in(secs: u64, burst: u64) -> Self {
        Self {
            tokens: 1,
            period_ms: secs.saturating_mul(1_000),
            burst,
        }
    }

    /// Tokens in the long run, per second, rounded down.
    pub const fn tokens_per_sec(&self) -> u64 {
        match self.tokens.saturating_mul(1_000).checked_div(self.period_ms) {
            Some(tokens) => tokens,
            None => 0,
        }
    }

    /// Tokens at once.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    fn full(&self) -> u64 {
        self.burst.saturating_mul(self.period_ms)
    }
}

/// What is used up of a [`Rate`]. A new one is full. Its period must stay the same; tokens and burst may change.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bucket {
    /// In tokens times the rate's period in milliseconds, so that no fraction is lost.
    spent: u64,
    at_ms: i64,
}

impl Bucket {
    /// Takes `amount` tokens if they are there; more than the burst counts as the burst.
    ///
    /// # Errors
    ///
    /// The whole seconds, at least one, until they are.
    pub(crate) fn take(&mut self, amount: u64, rate: Rate, now: Timestamp) -> Result<(), u64> {
        self.settle(rate, now);
        let wanted = amount.saturating_mul(rate.period_ms).min(rate.full());
        self.wait_for(wanted, rate)?;
        self.spent = self.spent.saturating_add(wanted);
        Ok(())
    }

    /// Whether anything is left, without taking it.
    ///
    /// # Errors
    ///
    /// The whole seconds, at least one, until something is.
    pub(crate) fn look(&mut self, rate: Rate, now: Timestamp) -> Result<(), u64> {
        self.settle(rate, now);
        self.wait_for(1, rate)
    }

    /// Takes `amount` tokens whether they are there or not. The debt is at most another burst.
    pub(crate) fn charge(&mut self, amount: u64, rate: Rate, now: Timestamp) {
        self.settle(rate, now);
        let wanted = amount.saturating_mul(rate.period_ms);
        self.spent = self
            .spent
            .saturating_add(wanted)
            .min(rate.full().saturating_mul(2));
    }

    /// Takes up to `amount` tokens and says how many.
    pub(crate) fn take_up_to(&mut self, amount: u64, rate: Rate, now: Timestamp) -> u64 {
        self.settle(rate, now);
        let left = rate.full().saturating_sub(self.spent);
        let granted = left.checked_div(rate.period_ms).unwrap_or(0).min(amount);
        self.spent = self.spent.saturating_add(granted.saturating_mul(rate.period_ms));
        granted
    }

    /// Whether nothing of it is used: such a bucket need not be kept.
    pub(crate) fn is_full(&mut self, rate: Rate, now: Timestamp) -> bool {
        self.settle(rate, now);
        self.spent == 0
    }

    /// Gives back what has come since. A clock that was set back gives nothing, and takes nothing.
    fn settle(&mut self, rate: Rate, now: Timestamp) {
        let now_ms = now.unix_millis();
        let elapsed_ms = u64::try_from(now_ms.saturating_sub(self.at_ms)).unwrap_or(0);
        self.at_ms = now_ms;
        self.spent = self.spent.saturating_sub(elapsed_ms.saturating_mul(rate.tokens));
    }

    fn wait_for(&self, wanted: u64, rate: Rate) -> Result<(), u64> {
        let short = self.spent.saturating_add(wanted).saturating_sub(rate.full());
        if short == 0 {
            return Ok(());
        }
        let wait_ms = match rate.tokens {
            0 => u64::MAX,
            tokens => short.div_ceil(tokens),
        };
        Err(wait_ms.div_ceil(1_000).max(1))
    }
}

/// `rate_limited`, with the seconds to wait.
pub(crate) fn slow(detail: &'static str, after_secs: u64) -> Refusal {
    Refusal::new(ErrorCode::RateLimited, detail).retry_after(after_secs.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Rate = Rate::per_sec(10, 30);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_millis(1_796_000_000_000 + millis)
    }

    #[test]
    fn a_burst_then_the_rate() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(30, TEN, at(0)), Ok(()));
        assert_eq!(bucket.take(1, TEN, at(0)), Err(1));
        assert_eq!(bucket.take(1, TEN, at(99)), Err(1));
        assert_eq!(bucket.take(1, TEN, at(100)), Ok(()));
        assert_eq!(bucket.take(25, TEN, at(100)), Err(3));
        assert_eq!(bucket.take_up_to(25, TEN, at(1_100)), 10);
        assert!(!bucket.is_full(TEN, at(4_000)));
        assert!(bucket.is_full(TEN, at(4_100)));
    }

    #[test]
    fn what_is_charged_may_be_owed_but_not_for_ever() {
        let mut bucket = Bucket::default();
        bucket.charge(1_000_000, TEN, at(0));
        assert_eq!(bucket.look(TEN, at(0)), Err(4), "a burst of debt, at most");
        assert_eq!(bucket.look(TEN, at(3_000)), Err(1));
        assert_eq!(bucket.look(TEN, at(3_001)), Ok(()));
    }

    #[test]
    fn more_than_the_burst_is_let_through_by_a_full_bucket() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(1_000, TEN, at(0)), Ok(()));
        assert_eq!(bucket.take(1_000, TEN, at(0)), Err(3));
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(30, TEN, at(0)), Ok(()));
        assert_eq!(bucket.take(1, TEN, at(-3_600_000)), Err(1));
        assert_eq!(bucket.take(1, TEN, at(-3_599_900)), Ok(()));
    }

    #[test]
    fn slow_rates_and_changing_ones() {
        let seldom = Rate::one_in(900, 2);
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(2, seldom, at(0)), Ok(()));
        assert_eq!(bucket.take(1, seldom, at(0)), Err(900));
        assert_eq!(bucket.take(1, seldom, at(900_000)), Ok(()));
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(30, TEN, at(0)), Ok(()));
        assert_eq!(bucket.take(170, Rate::per_sec(100, 200), at(0)), Ok(()));
        assert_eq!(
            bucket.take(1, Rate::per_sec(0, 5), at(0)),
            Err(u64::MAX.div_ceil(1_000))
        );
    }
}
