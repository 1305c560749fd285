//! What attempts brought, and what it means for the next one.

use aip_protocol::limits::BATCH_ITEMS_MAX;
use aip_protocol::time::Timestamp;

use super::super::answer::{Failure, FailureKind};
use super::super::backoff::jitter;
use super::super::view::LastError;
use super::Peer;
use crate::limits;

impl Peer {
    /// The peer talks to us: it may be back. A peer that has just been asked, and one that said when it wants to be asked, is
    /// not asked for that.
    pub(in super::super) fn probe_soon(&mut self, now: Timestamp) {
        if self.attempted_at.is_none_or(|at| at + limits::PROBE_EVERY <= now) {
            self.breaker.half_open(now);
            self.wait_until = self.wait_until.min(now);
        }
    }

    /// The operator wants an attempt now.
    pub(in super::super) fn forget_pauses(&mut self, now: Timestamp) {
        self.breaker.reset();
        self.failures = 0;
        self.ask_fresh = true;
        self.ledger.forget_pauses();
        for until in [&mut self.wait_until, &mut self.told_until, &mut self.own_until] {
            *until = now.min(*until);
        }
    }

    /// Whether the peer's document is to be fetched past every cache: once after it did not take our signature, and with
    /// every probe, since it may have moved.
    pub(in super::super) fn takes_fresh(&mut self) -> bool {
        std::mem::take(&mut self.ask_fresh) || self.breaker.opens_at().is_some()
    }

    /// The peer answered 2xx. Says whether that is worth a note in the store.
    pub(in super::super) fn succeeded(&mut self, now: Timestamp) -> bool {
        self.breaker.succeeded(now);
        self.failures = 0;
        self.round += 1;
        self.window = (self.window + 1).min(self.batches_max);
        self.items_max = (self.items_max * 2).min(BATCH_ITEMS_MAX);
        self.wait_until = Timestamp::UNIX_EPOCH;
        self.told_until = Timestamp::UNIX_EPOCH;
        self.proven = true;
        self.ask_fresh = false;
        let is_news = self
            .answer_noted_at
            .is_none_or(|at| at + limits::NOTE_ANSWER_EVERY <= now);
        if is_news {
            self.answer_noted_at = Some(now);
        }
        is_news
    }

    /// A batch of so many messages, which began in `round`, did not get through.
    pub(in super::super) fn failed(
        &mut self,
        failure: &Failure,
        items: usize,
        round: u64,
        now: Timestamp,
        chance: u32,
    ) {
        self.last_error = Some(LastError {
            code: failure.code.clone(),
            detail: failure.detail.clone(),
            at: now,
        });
        match failure.kind {
            FailureKind::Own => {
                self.own_until = now + limits::OWN_FAILURE_PAUSE;
                return;
            }
            FailureKind::Policy => {
                let half = limits::BACKOFF_MAX / 2;
                self.wait_until = now + half + jitter(half, chance);
            }
            FailureKind::Away | FailureKind::Slow | FailureKind::Unauthentic => self.breaker.failed(now),
            FailureKind::Busy => {}
        }
        if failure.kind == FailureKind::Slow {
            self.items_max = (items / 2).clamp(1, self.items_max);
        }
        self.ask_fresh |= failure.kind == FailureKind::Unauthentic && self.failures == 0;
        self.told_until = self.told_until.max(now + failure.retry_after.unwrap_or_default());
        self.window = 1;
        if self.round == round {
            self.round += 1;
            self.failures = self.failures.saturating_add(1);
            // Once the breaker is open its probes are the attempts: after a long cut mail is not kept waiting for an hour.
            if self.breaker.opens_at().is_none() {
                let pause = self.backoff.pause(self.failures, chance);
                self.wait_until = self.wait_until.max(now + pause);
            }
        }
    }

    /// A batch of so many messages was too much at once: smaller ones, until the one is found that is amiss.
    pub(in super::super) fn unfit(&mut self, items: usize) {
        self.items_max = (items / 2).clamp(1, self.items_max);
    }
}
