//! One peer of which mail waits: when the next attempt is, and what it may carry. Time and chance are arguments.

mod lease;
mod luck;

use std::sync::Arc;

use aip_protocol::limits::BATCH_ITEMS_MAX;
use aip_protocol::time::Timestamp;

use super::DeliveryConfig;
use super::backoff::Backoff;
use super::batch::FRAME_BYTES;
use super::ledger::places::Places;
use super::ledger::{AHEAD, Due, Ledger, Room};
use super::view::LastError;
use crate::breaker::Breaker;
use crate::limits;
use crate::schedule::Class;
use lease::Linger;

/// What one process knows about a peer with mail.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) ledger: Ledger,
    pub(super) breaker: Breaker,
    pub(super) last_error: Option<LastError>,
    backoff: Backoff,
    batches_max: usize,
    /// Counts the news of mail.
    news: u64,
    /// The news that was followed up: what came later may lie beyond the ledger's cursor.
    seen: u64,
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
    pub(super) pace: Pace,
    /// Nothing before then, after failures.
    wait_until: Timestamp,
    /// Nothing before then, the peer says.
    told_until: Timestamp,
    /// Nothing before then, for reasons of our own.
    own_until: Timestamp,
    attempted_at: Option<Timestamp>,
    lease_until: Option<Timestamp>,
    linger: Option<Linger>,
    ask_fresh: bool,
    answer_noted_at: Option<Timestamp>,
}

/// How soon the last answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Prompt,
    /// It took long, or it does so now.
    Slow,
}

/// What one look at the outbox is for.
#[derive(Debug)]
pub(super) struct Errand {
    /// Messages that were looked at before and may go now.
    pub(super) due: Vec<Due>,
    /// New ones are looked for beyond here …
    pub(super) cursor: u64,
    /// … so many at most.
    pub(super) new_max: usize,
    pub(super) room: Room,
    pub(super) news: u64,
}

impl Peer {
    pub(super) fn new(config: &DeliveryConfig, places: &Arc<Places>) -> Self {
        Self {
            ledger: Ledger::new(places),
            breaker: Breaker::new(config.breaker),
            last_error: None,
            backoff: config.backoff,
            batches_max: config.batches_per_peer_max.clamp(1, limits::PUSHES_PER_PEER_MAX),
            news: 0,
            seen: 0,
            gathering: false,
            pushing: 0,
            window: 1,
            items_max: BATCH_ITEMS_MAX,
            failures: 0,
            round: 0,
            proven: false,
            pace: Pace::Prompt,
            wait_until: Timestamp::UNIX_EPOCH,
            told_until: Timestamp::UNIX_EPOCH,
            own_until: Timestamp::UNIX_EPOCH,
            attempted_at: None,
            lease_until: None,
            linger: None,
            ask_fresh: false,
            answer_noted_at: None,
        }
    }

    /// New mail is in the outbox.
    pub(super) fn mail_came(&mut self) {
        self.news += 1;
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

    /// Whether mail may lie beyond the ledger's cursor.
    fn has_news(&self) -> bool {
        self.seen < self.news
    }

    /// When the peer would be asked if nothing spoke against it.
    fn work_at(&self) -> Option<Timestamp> {
        if self.looks_further() {
            return Some(Timestamp::UNIX_EPOCH);
        }
        self.ledger.next_due()
    }

    /// Whether to look beyond the cursor.
    fn looks_further(&self) -> bool {
        self.has_news() && self.ledger.room() > 0
    }

    fn class(&self) -> Class {
        if self.failures > 0 || self.breaker.opens_at().is_some() {
            Class::Failing
        } else if !self.proven {
            Class::Fresh
        } else if self.pace == Pace::Slow {
            Class::Slow
        } else if self.pushing > 0 {
            Class::More
        } else {
            Class::Well
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_idle(&self) -> bool {
        let is_busy = self.gathering || self.pushing > 0 || self.has_news() || self.linger.is_some();
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
        self.news += u64::from(self.linger.is_some());
        if self.failures > 0 || !self.proven {
            self.attempted_at = Some(now);
        }
    }

    /// What to read from the outbox next.
    pub(super) fn errand(&self, now: Timestamp) -> Errand {
        // Of a peer that answers more is looked at than goes into one batch, so that pairs are kept together.
        let (bytes, ahead) = match self.class() {
            Class::Well | Class::More | Class::Slow => (limits::BATCH_BYTES_MAX - FRAME_BYTES, AHEAD),
            Class::Fresh | Class::Failing => (limits::PROBE_BYTES_MAX, 1),
        };
        let room = Room {
            items: self.items_max,
            bytes,
        };
        let looks_further = self.looks_further();
        let due = self.ledger.ready(now, room, looks_further);
        let wanted = if looks_further && due.len() < room.items {
            (room.items * ahead).saturating_sub(due.len())
        } else {
            0
        };
        Errand {
            due,
            cursor: self.ledger.cursor(),
            new_max: wanted.min(self.ledger.room()),
            room,
            news: self.news,
        }
    }

    /// There was nothing beyond the cursor when the errand was given.
    pub(super) fn reached_end(&mut self, errand: &Errand) {
        self.seen = errand.news;
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

    /// When the next attempt would be: for people.
    pub(super) fn next_attempt(&self, now: Timestamp) -> Option<Timestamp> {
        self.next_at(now).map(|(at, _)| at.max(now))
    }
}

#[cfg(test)]
mod tests;
