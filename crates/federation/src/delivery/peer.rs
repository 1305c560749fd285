//! One peer of which mail waits: when the next attempt is, and what it may carry. Time and chance are arguments.

use std::time::Duration;

use aip_protocol::limits::BATCH_ITEMS_MAX;
use aip_protocol::time::Timestamp;

use super::DeliveryConfig;
use super::answer::{Failure, FailureKind};
use super::backoff::{Backoff, jitter};
use super::batch::FRAME_BYTES;
use super::ledger::{Ledger, Room};
use super::view::LastError;
use crate::breaker::Breaker;
use crate::limits;
use crate::schedule::Class;

/// What one process knows about a peer with mail.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) ledger: Ledger,
    pub(super) breaker: Breaker,
    pub(super) last_error: Option<LastError>,
    backoff: Backoff,
    batches_max: usize,
    /// Mail may lie beyond the ledger's cursor.
    more: bool,
    /// Counts the news of mail, so that what comes during a look is not overlooked.
    news: u64,
    /// Somebody is looking at the outbox.
    gathering: bool,
    /// Batches on their way.
    pushing: usize,
    /// How many of them may be: one until the peer has answered, more with every answer.
    window: usize,
    /// Messages in a batch: fewer after one that was too much.
    items_max: usize,
    /// Failures in a row; batches that were on their way together count once.
    failures: u32,
    /// Counts turns of luck.
    round: u64,
    proven: bool,
    /// Nothing before then, after failures.
    wait_until: Timestamp,
    /// Nothing before then, the peer says.
    told_until: Timestamp,
    /// Nothing before then, for reasons of our own.
    own_until: Timestamp,
    attempted_at: Option<Timestamp>,
    lease_until: Option<Timestamp>,
    linger: Option<Linger>,
    has_sent: bool,
    ask_fresh: bool,
    answer_noted_at: Option<Timestamp>,
}

/// An outbox that ran empty is looked at for a while.
#[derive(Debug, Clone, Copy)]
struct Linger {
    until: Timestamp,
    poll_at: Timestamp,
}

/// What one look at the outbox is for.
#[derive(Debug)]
pub(super) struct Errand {
    /// Messages that were looked at before and may go now.
    pub(super) due: Vec<u64>,
    /// New ones are looked for beyond here …
    pub(super) cursor: u64,
    /// … so many at most.
    pub(super) new_max: usize,
    pub(super) room: Room,
    pub(super) news: u64,
}

impl Peer {
    pub(super) fn new(config: &DeliveryConfig) -> Self {
        Self {
            ledger: Ledger::default(),
            breaker: Breaker::new(config.breaker),
            last_error: None,
            backoff: config.backoff,
            batches_max: config.batches_per_peer_max.clamp(1, limits::PUSHES_PER_PEER_MAX),
            more: false,
            news: 0,
            gathering: false,
            pushing: 0,
            window: 1,
            items_max: BATCH_ITEMS_MAX,
            failures: 0,
            round: 0,
            proven: false,
            wait_until: Timestamp::UNIX_EPOCH,
            told_until: Timestamp::UNIX_EPOCH,
            own_until: Timestamp::UNIX_EPOCH,
            attempted_at: None,
            lease_until: None,
            linger: None,
            has_sent: false,
            ask_fresh: false,
            answer_noted_at: None,
        }
    }

    /// New mail is in the outbox.
    pub(super) fn mail_came(&mut self) {
        self.more = true;
        self.news += 1;
    }

    /// The peer talks to us: it may be back. A peer that has just been asked, and one that said when it wants to be asked, is
    /// not asked for that.
    pub(super) fn probe_soon(&mut self, now: Timestamp) {
        if self.attempted_at.is_none_or(|at| at + limits::PROBE_EVERY <= now) {
            self.breaker.half_open(now);
            self.wait_until = self.wait_until.min(now);
        }
    }

    /// The operator wants an attempt now.
    pub(super) fn forget_pauses(&mut self, now: Timestamp) {
        self.breaker.reset();
        self.failures = 0;
        self.ask_fresh = true;
        self.ledger.forget_pauses();
        for until in [&mut self.wait_until, &mut self.told_until, &mut self.own_until] {
            *until = now.min(*until);
        }
    }

    /// When the next attempt is, and what is known of the peer; `None` while none can be made, and when nothing waits.
    pub(super) fn next_at(&self, now: Timestamp) -> Option<(Timestamp, Class)> {
        if self.gathering || self.pushing >= self.window() {
            return None;
        }
        let gates = [self.wait_until, self.told_until, self.own_until];
        let gate = gates.into_iter().chain(self.breaker.opens_at()).max();
        let gate = gate.unwrap_or(now);
        let at = match (self.work_at(), self.linger) {
            (Some(at), _) => at.max(gate),
            (None, Some(linger)) => linger.poll_at.min(linger.until),
            (None, None) => return None,
        };
        Some((at, self.class()))
    }

    /// When the peer would be asked if nothing spoke against it.
    fn work_at(&self) -> Option<Timestamp> {
        if self.more && self.ledger.room() > 0 {
            return Some(Timestamp::UNIX_EPOCH);
        }
        self.ledger.next_due()
    }

    fn class(&self) -> Class {
        if self.failures > 0 || self.breaker.opens_at().is_some() {
            Class::Failing
        } else if self.proven {
            Class::Well
        } else {
            Class::Fresh
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_idle(&self) -> bool {
        let is_busy = self.gathering || self.pushing > 0 || self.more || self.linger.is_some();
        !is_busy && self.ledger.is_empty()
    }

    /// Batches that may be on their way; a breaker that is half open lets one through.
    fn window(&self) -> usize {
        if self.breaker.opens_at().is_some() {
            1
        } else {
            self.window
        }
    }

    /// Batches on their way.
    pub(super) fn pushing(&self) -> usize {
        self.pushing
    }

    /// An attempt begins.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.gathering = true;
        // An outbox that ran empty is looked at although there is no news of mail.
        self.more |= self.linger.is_some();
        if self.failures > 0 || !self.proven {
            self.attempted_at = Some(now);
        }
    }

    /// Whether the lease has to be taken or lengthened first.
    pub(super) fn needs_lease(&self, now: Timestamp) -> bool {
        self.lease_until
            .is_none_or(|until| until < now + limits::LEASE_RENEW)
    }

    /// The lease is ours until then. Says whether it was not before.
    pub(super) fn leased(&mut self, until: Timestamp) -> bool {
        self.lease_until.replace(until).is_none()
    }

    /// Another process sends to this peer. What it does is not known here: begin again when it is our turn.
    pub(super) fn not_ours(&mut self, now: Timestamp, chance: u32) {
        self.lease_until = None;
        self.linger = None;
        self.has_sent = false;
        self.ledger.restart();
        self.more = true;
        self.own_until = now + limits::LINGER + jitter(limits::LINGER, chance);
    }

    /// Whether a lease is held that others wait for.
    pub(super) fn holds_lease(&self, now: Timestamp) -> bool {
        self.lease_until.is_some_and(|until| until > now)
    }

    /// What to read from the outbox next.
    pub(super) fn errand(&self, now: Timestamp) -> Errand {
        let bytes = if self.class() == Class::Well {
            limits::BATCH_BYTES_MAX - FRAME_BYTES
        } else {
            limits::PROBE_BYTES_MAX
        };
        let room = Room {
            items: self.items_max,
            bytes,
        };
        let due = self.ledger.ready(now, room, |_| true);
        let new_max = if self.more {
            room.items.saturating_sub(due.len()).min(self.ledger.room())
        } else {
            0
        };
        Errand {
            due,
            cursor: self.ledger.cursor(),
            new_max,
            room,
            news: self.news,
        }
    }

    /// There was nothing beyond the cursor when the errand was given.
    pub(super) fn reached_end(&mut self, errand: &Errand) {
        if self.news == errand.news {
            self.more = false;
        }
    }

    /// The outbox is empty. Says whether the lease is to be given back.
    pub(super) fn ran_empty(&mut self, now: Timestamp, poll: Option<Duration>) -> bool {
        if self.more || !self.ledger.is_empty() {
            return false;
        }
        let until = self.linger.map_or(now + limits::LINGER, |linger| linger.until);
        let poll_at = now + poll.unwrap_or(limits::LINGER);
        let lingers = self.has_sent && now < until;
        self.linger = lingers.then_some(Linger { until, poll_at });
        !lingers && self.lease_until.take().is_some_and(|until| until > now)
    }

    /// A batch goes out.
    pub(super) fn push_begins(&mut self) -> u64 {
        self.gathering = false;
        self.linger = None;
        self.pushing += 1;
        self.round
    }

    /// Nothing goes out.
    pub(super) fn gathered_nothing(&mut self) {
        self.gathering = false;
    }

    /// A batch is not on its way any more.
    pub(super) fn push_ended(&mut self) {
        self.pushing = self.pushing.saturating_sub(1);
    }

    /// Whether the peer's document is to be fetched past every cache: once after it did not take our signature, and with
    /// every probe, since it may have moved.
    pub(super) fn takes_fresh(&mut self) -> bool {
        std::mem::take(&mut self.ask_fresh) || self.breaker.opens_at().is_some()
    }

    /// The peer answered 2xx. Says whether that is worth a note in the store.
    pub(super) fn succeeded(&mut self, now: Timestamp) -> bool {
        self.breaker.succeeded(now);
        self.failures = 0;
        self.round += 1;
        self.window = (self.window + 1).min(self.batches_max);
        self.items_max = (self.items_max * 2).min(BATCH_ITEMS_MAX);
        self.wait_until = Timestamp::UNIX_EPOCH;
        self.told_until = Timestamp::UNIX_EPOCH;
        self.proven = true;
        self.has_sent = true;
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
    pub(super) fn failed(
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
            let pause = self.backoff.pause(self.failures, chance);
            self.wait_until = self.wait_until.max(now + pause);
        }
    }

    /// A batch of so many messages was too much at once: smaller ones, until the one is found that is amiss.
    pub(super) fn unfit(&mut self, items: usize) {
        self.items_max = (items / 2).clamp(1, self.items_max);
    }

    /// When the next attempt would be: for people.
    pub(super) fn next_attempt(&self, now: Timestamp) -> Option<Timestamp> {
        self.next_at(now).map(|(at, _)| at.max(now))
    }
}

#[cfg(test)]
mod tests;
