//! The machine of one agent: its sessions, what they hold, what comes next.

use std::time::Duration;

use aip_protocol::time::Timestamp;

use super::acks::Acks;
use super::elapsed::Elapsed;
use super::open::{Open, Stage};
use super::{Done, Effect, Elsewhere, Event, Position, Said, SessionId};
use crate::limits::{
    ACK_BACKLOG_MAX, ATTEMPTS_MAX, CREDIT_MAX, PARKED_MAX, SHARED_SESSIONS_MAX, TAKEOVER_PAUSE_MILLIS,
};
use crate::mailbox::Epoch;

pub(crate) use self::offers::{ATTEMPTS_EXHAUSTED, is_exhausted};

mod answers;
mod offers;

/// What a session has asked the store for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    /// What comes after `after` in the mailbox; `end` was its last message then, as far as was known after so many
    /// `hints`.
    Next { after: u64, end: u64, hints: u64 },
    /// Messages to offer again.
    Again { seqs: Vec<u64> },
}

/// One connection, from `Join` to `Leave` or takeover.
#[derive(Debug)]
struct Session {
    id: SessionId,
    share: bool,
    credit: u32,
    asked: Option<Asked>,
    /// The last read was for messages to offer again: new ones have the next turn.
    turn_for_new: bool,
    /// The next new message is so large; it waits until there is room.
    waits_for_bytes: u64,
    /// Acks of this session have become durable in another one's hands.
    acked: bool,
    /// After a failure of the store: nothing is read before this.
    not_before: Option<Duration>,
}

/// Delivery to one agent; see the [module](super).
#[derive(Debug, Default)]
pub struct Delivery {
    epoch: Option<Epoch>,
    /// Everything up to here is settled, durably.
    floor: u64,
    /// What the next message will get, as far as is known.
    next_seq: u64,
    /// The highest message that was ever offered, over any door.
    offered: u64,
    /// Everything up to here was offered since the last fresh start, or need not be.
    scanned: u64,
    /// How often there was a hint of messages that nobody can name.
    hints: u64,
    /// So many of the hints were followed to the end of the mailbox.
    followed: u64,
    sessions: Vec<Session>,
    open: Open,
    acks: Acks,
    time: Elapsed,
    taken_over: Option<Duration>,
}

impl Delivery {
    /// The machine of an agent that nobody has connected for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an event in and tells what is to be done, in this order.
    pub fn handle(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let now = self.time.advance(now);
        let mut effects = Vec::new();
        self.expire(now);
        let session = self.apply(now, event, &mut effects);
        if let Some(session) = session {
            self.pump(session, now, &mut effects);
        }
        self.wake_others(session, now, &mut effects);
        let seqs = self.open.take_freed();
        if !seqs.is_empty() {
            let after = Duration::ZERO;
            effects.push(Effect::Release { seqs, after });
        }
        effects
    }

    /// How long until `session` should poll without being woken.
    pub fn next_due(&mut self, now: Timestamp, session: SessionId) -> Option<Duration> {
        let now = self.time.advance(now);
        let pause = self
            .session(session)
            .filter(|s| s.asked.is_none())
            .and_then(|s| s.not_before);
        let due = [self.open.next_due(), self.acks.next_due(), pause]
            .into_iter()
            .flatten()
            .min()?;
        Some(due.saturating_sub(now))
    }

    /// How long a newcomer should wait before it joins: two clients that evict each other are slowed down.
    pub fn takeover_pause(&mut self, now: Timestamp) -> Option<Duration> {
        let now = self.time.advance(now);
        let end = self.taken_over? + Duration::from_millis(TAKEOVER_PAUSE_MILLIS);
        Some(end.saturating_sub(now)).filter(|pause| !pause.is_zero())
    }

    /// Whether `seq` is in the mailbox but was not offered, as far as the machine knows. It forgets what was offered
    /// before the agent connected; the store remembers, and tells by [`Elsewhere::Offered`].
    pub fn is_offer_unknown(&self, seq: u64) -> bool {
        seq > self.offered && seq < self.next_seq
    }

    /// Whether frames of the agent should wait, since its acks come faster than they become durable.
    pub fn is_backlogged(&self) -> bool {
        self.acks.backlog() >= ACK_BACKLOG_MAX
    }

    /// Whether this session is part of the machine: joined, not left, not replaced.
    pub fn has(&self, session: SessionId) -> bool {
        self.session(session).is_some()
    }

    /// What the session has in flight: messages and bytes.
    pub fn in_flight(&self, session: SessionId) -> (u32, u64) {
        let window = self.open.window(session);
        (window.messages, window.bytes)
    }

    fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id)
    }

    fn session_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.id == id)
    }

    /// Returns the session whose turn it is to do more.
    fn apply(&mut self, now: Duration, event: Event, effects: &mut Vec<Effect>) -> Option<SessionId> {
        match event {
            Event::Join {
                session,
                share,
                credit,
                position,
            } => {
                self.join(now, session, share, credit, position, effects);
                Some(session)
            }
            Event::Leave { session } => {
                self.leave(session);
                None
            }
            Event::Poll { session } => Some(session),
            Event::Said { session, frame } => {
                // Who was replaced has nothing to say any more.
                if self.has(session) {
                    self.said(now, session, frame, effects);
                }
                Some(session)
            }
            Event::Done { session, work } => {
                self.done(now, session, work, effects);
                Some(session)
            }
            Event::Elsewhere(what) => {
                self.elsewhere(now, what, effects);
                None
            }
        }
    }

    fn said(&mut self, now: Duration, id: SessionId, frame: Said, effects: &mut Vec<Effect>) {
        match frame {
            Said::Credit(credit) => {
                if let Some(session) = self.session_mut(id) {
                    session.credit = credit.min(CREDIT_MAX);
                }
            }
            Said::Ack { epoch, upto, also } => self.ack(id, &epoch, upto, also, effects),
            Said::Nak {
                epoch,
                seq,
                retry_after,
            } => self.nak(now, id, &epoch, seq, retry_after, effects),
            Said::Reject { epoch, seq, code } => self.reject(now, &epoch, seq, code, effects),
        }
    }

    fn done(&mut self, now: Duration, id: SessionId, work: Done, effects: &mut Vec<Effect>) {
        match work {
            Done::Fetched(found) => self.fetched(now, id, &found, effects),
            Done::FetchFailed => self.fetch_failed(now, id),
            Done::Sent(seqs) => self.sent(now, id, &seqs, effects),
            Done::Taken(taken) => self.taken(now, id, &taken),
            Done::OfferFailed(seqs) => self.offer_failed(now, id, &seqs),
            Done::Acked(floor) => self.ack_done(id, floor),
            Done::AckFailed => self.ack_failed(now, id),
        }
    }

    fn elsewhere(&mut self, now: Duration, what: Elsewhere, effects: &mut Vec<Effect>) {
        match what {
            Elsewhere::Unsure => self.hints += 1,
            Elsewhere::Stored(seq) => self.next_seq = self.next_seq.max(seq.saturating_add(1)),
            Elsewhere::Offered(upto) => self.offered = self.offered.max(upto),
            Elsewhere::Settled { upto, also, floor } => {
                self.settle(upto, &also);
                self.floor = self.floor.max(floor);
            }
            Elsewhere::Buried(seq) => drop(self.open.remove(seq)),
            Elsewhere::Released(seqs) => seqs.into_iter().for_each(|seq| self.open.given_back(seq)),
            Elsewhere::TakenOver(sessions) => self.hand_over(now, &sessions, effects),
        }
    }

    /// Who is left carries on; with the last one everything is the business of the other process.
    fn hand_over(&mut self, now: Duration, sessions: &[SessionId], effects: &mut Vec<Effect>) {
        for id in sessions {
            if self.has(*id) {
                self.sessions.retain(|session| session.id != *id);
                self.replaced(now, *id, effects);
            }
        }
        if self.sessions.is_empty() {
            self.open.clear();
            self.acks.forget_waiting();
        }
    }

    fn replaced(&mut self, now: Duration, id: SessionId, effects: &mut Vec<Effect>) {
        self.open.release_all(id);
        self.taken_over = Some(now);
        effects.push(Effect::Replaced(id));
    }

    fn join(
        &mut self,
        now: Duration,
        id: SessionId,
        share: bool,
        credit: u32,
        position: Position,
        effects: &mut Vec<Effect>,
    ) {
        let is_new_epoch = self.epoch.as_ref().is_some_and(|epoch| *epoch != position.epoch);
        if is_new_epoch {
            (self.floor, self.next_seq, self.offered) = (0, 0, 0);
            self.acks.forget_waiting();
        }
        self.epoch = Some(position.epoch);
        self.floor = self.floor.max(position.floor);
        self.next_seq = self.next_seq.max(position.next_seq);
        self.offered = self.offered.max(self.floor);
        let shares = share && !is_new_epoch && self.sessions.iter().all(|session| session.share);
        let stay = if shares { SHARED_SESSIONS_MAX - 1 } else { 0 };
        while self.sessions.len() > stay {
            let replaced = self.sessions.remove(0).id;
            self.replaced(now, replaced, effects);
        }
        if self.sessions.is_empty() {
            // A fresh start: whatever is not settled is offered again, at once and in mailbox order.
            self.open.clear();
            self.scanned = self.floor;
        }
        self.sessions.push(Session {
            id,
            share,
            credit: credit.min(CREDIT_MAX),
            asked: None,
            turn_for_new: false,
            waits_for_bytes: 0,
            acked: false,
            not_before: None,
        });
    }

    fn leave(&mut self, id: SessionId) {
        self.acks.failed(id, None);
        if !self.has(id) {
            return;
        }
        self.sessions.retain(|session| session.id != id);
        self.open.release_all(id);
        if self.sessions.is_empty() {
            self.open.clear();
            self.acks.forget_waiting();
        }
    }

    /// Takes settled messages out of everybody's hands.
    fn settle(&mut self, upto: u64, also: &[u64]) {
        self.open.remove_upto(upto);
        for seq in also {
            self.open.remove(*seq);
        }
    }

    /// Messages whose pause has ended are due. One that its holder did not answer goes to whoever has room; one that
    /// has had all its attempts stops blocking its holder's window.
    fn expire(&mut self, now: Duration) {
        for seq in self.open.expire(now) {
            let Some(offer) = self.open.get(seq).copied() else {
                continue;
            };
            let Some(holder) = offer.holder else { continue };
            let others = self
                .sessions
                .iter()
                .any(|other| other.id != holder && self.has_room(other, offer.bytes));
            if (others || offer.attempt >= ATTEMPTS_MAX) && self.open.parked() < PARKED_MAX {
                self.open.set(seq, None, Stage::Due);
            }
        }
    }
}
