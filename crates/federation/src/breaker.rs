//! When to stop asking a peer that fails: after so many failures in a row, or when half of the last attempts failed.
//!
//! Closed: attempts go out. Open: none does, until a pause is over, or somebody has reason to believe that the peer is back.
//! Then one attempt is let through as a probe: a success closes the breaker, a failure opens it for twice as long. Only an
//! own success closes it: that the peer talks to us says nothing about whether we reach it.

use std::collections::VecDeque;
use std::time::Duration;

use aip_protocol::time::Timestamp;

use crate::limits;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Opens after so many failures in a row.
    pub failures_in_a_row: u32,
    /// Opens when half of so many attempts failed …
    pub attempts: usize,
    /// … within this time.
    pub within: Duration,
    /// The pause before the first probe.
    pub pause_first: Duration,
    /// The longest pause; it doubles with every probe that fails.
    pub pause_max: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures_in_a_row: limits::BREAKER_FAILURES,
            attempts: limits::BREAKER_ATTEMPTS,
            within: limits::BREAKER_WITHIN,
            pause_first: limits::BREAKER_PAUSE_FIRST,
            pause_max: limits::BREAKER_PAUSE_MAX,
        }
    }
}

/// How a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Attempts go out.
    Closed,
    /// Nothing goes out before then.
    Open {
        /// When one probe may go out.
        until: Timestamp,
    },
    /// One probe may go out, or is on its way.
    HalfOpen,
}

/// The breaker of one peer. Time is an argument.
#[derive(Debug, Clone)]
pub struct Breaker {
    config: BreakerConfig,
    in_a_row: u32,
    /// The last attempts, `true` for a failure; not more than [`BreakerConfig::attempts`].
    recent: VecDeque<(Timestamp, bool)>,
    /// Open, until when, and how long the pause was.
    open: Option<(Timestamp, Duration)>,
}

impl Breaker {
    /// A closed one.
    pub fn new(config: BreakerConfig) -> Self {
        Self {
            config,
            in_a_row: 0,
            recent: VecDeque::new(),
            open: None,
        }
    }

    /// How it stands.
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match self.open {
            None => BreakerState::Closed,
            Some((until, _)) if until <= now => BreakerState::HalfOpen,
            Some((until, _)) => BreakerState::Open { until },
        }
    }

    /// When the next attempt may go out: `None` for any time. The caller sees to it that only one goes out while the breaker
    /// is half open.
    pub fn opens_at(&self) -> Option<Timestamp> {
        self.open.map(|(until, _)| until)
    }

    /// Failures in a row.
    pub fn failures(&self) -> u32 {
        self.in_a_row
    }

    /// An attempt succeeded: closes it.
    pub fn succeeded(&mut self, now: Timestamp) {
        self.in_a_row = 0;
        if self.open.take().is_some() {
            self.recent.clear();
        }
        self.note(now, false);
    }

    /// An attempt failed. Opens it if that was one too many, and again if it was a probe; an attempt from before it opened
    /// changes nothing.
    pub fn failed(&mut self, now: Timestamp) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.note(now, true);
        match self.open {
            Some((until, pause)) if until <= now => {
                let pause = pause.saturating_mul(2).min(self.config.pause_max);
                self.open = Some((now + pause, pause));
            }
            None if self.is_too_much(now) => {
                let pause = self.config.pause_first;
                self.open = Some((now + pause, pause));
            }
            _ => {}
        }
    }

    /// There is reason to believe that the peer is back: a probe may go out now. Closes nothing.
    pub fn half_open(&mut self, now: Timestamp) {
        if let Some((until, _)) = &mut self.open {
            *until = now.min(*until);
        }
    }

    /// Closes it, on the operator's word.
    pub fn reset(&mut self) {
        *self = Self::new(self.config);
    }

    fn note(&mut self, now: Timestamp, is_failure: bool) {
        self.recent.push_back((now, is_failure));
        if self.recent.len() > self.config.attempts {
            self.recent.pop_front();
        }
    }

    fn is_too_much(&self, now: Timestamp) -> bool {
        if self.in_a_row >= self.config.failures_in_a_row {
            return true;
        }
        let is_recent = |at: Timestamp| at + self.config.within >= now;
        let failures = self.recent.iter().filter(|(_, is_failure)| *is_failure).count();
        self.recent.len() >= self.config.attempts
            && self.recent.front().is_some_and(|(at, _)| is_recent(*at))
            && failures * 2 >= self.recent.len()
    }
}

#[cfg(test)]
mod tests;
