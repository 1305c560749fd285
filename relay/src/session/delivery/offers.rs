//! Towards the agent: what a session may be given next, and what becomes of a fetch.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::open::{Offer, Stage};
use super::super::{Effect, Found, SessionId, Wanted};
use super::{Asked, Delivery, Session};
use crate::limits::{
    ATTEMPTS_MAX, CLAIM_LEAD_MILLIS, CLAIM_RETRY_MILLIS_MIN, DELIVERY_BYTES_MAX, DELIVERY_MESSAGES_MAX,
    IN_FLIGHT_BYTES_MAX, PARKED_MAX, REDELIVERY_SECS, SESSIONS_BEFORE_DEAD, STORE_PAUSE_SECS,
};

/// The code of a dead letter that nobody rejected.
pub(crate) const ATTEMPTS_EXHAUSTED: &str = "attempts_exhausted";

/// The pause after the `attempt`th offer, which counts from 1.
pub(super) fn redelivery_pause(attempt: u32) -> Duration {
    let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    let secs = REDELIVERY_SECS
        .get(index)
        .or(REDELIVERY_SECS.last())
        .copied()
        .unwrap_or_default();
    Duration::from_secs(secs)
}

/// Whether a message has had its chances.
pub(crate) fn is_exhausted(attempts: u32, sessions: u32) -> bool {
    attempts >= ATTEMPTS_MAX && sessions >= SESSIONS_BEFORE_DEAD
}

/// What became of one found message.
enum Admitted {
    Deliver,
    Skip,
    Bury,
    NoRoom,
}

impl Delivery {
    /// Gives a session what it has room for, and the store what waits for it.
    pub(super) fn pump(&mut self, id: SessionId, now: Duration, effects: &mut Vec<Effect>) {
        let floor = self.floor;
        let Some(session) = self.session_mut(id) else {
            return;
        };
        session.not_before.take_if(|at| *at <= now);
        if std::mem::take(&mut session.acked) {
            effects.push(Effect::Acked { floor });
        }
        if let Some((upto, also)) = self.acks.start(id, now) {
            effects.push(Effect::Ack { upto, also });
        }
        if let Some((asked, fetch)) = self.next_fetch(id, now) {
            self.take(id, &asked);
            if let Some(session) = self.session_mut(id) {
                session.turn_for_new = matches!(asked, Asked::Again { .. });
                session.asked = Some(asked);
            }
            effects.push(fetch);
        }
    }

    /// Sessions that have something to do, other than the one whose event it was.
    pub(super) fn wake_others(&self, own: Option<SessionId>, now: Duration, effects: &mut Vec<Effect>) {
        let mut ack = self.acks.is_startable(now);
        for session in self.sessions.iter().filter(|session| Some(session.id) != own) {
            if session.acked || std::mem::take(&mut ack) || self.next_fetch(session.id, now).is_some() {
                effects.push(Effect::Wake(session.id));
            }
        }
    }

    pub(super) fn has_room(&self, session: &Session, bytes: u64) -> bool {
        let window = self.open.window(session.id);
        window.messages < session.credit
            && (window.messages == 0 || window.bytes + bytes <= IN_FLIGHT_BYTES_MAX)
    }

    /// What `id` would read next. New messages and repeated ones take turns, so that neither holds the other up.
    fn next_fetch(&self, id: SessionId, now: Duration) -> Option<(Asked, Effect)> {
        let session = self.session(id)?;
        if session.asked.is_some() || session.not_before.is_some_and(|at| at > now) {
            return None;
        }
        if session.turn_for_new {
            self.next_new(session).or_else(|| self.next_again(session))
        } else {
            self.next_again(session).or_else(|| self.next_new(session))
        }
    }

    fn next_again(&self, session: &Session) -> Option<(Asked, Effect)> {
        let window = self.open.window(session.id);
        let (mut seqs, mut bytes) = (Vec::new(), 0);
        let (mut messages, mut held) = (window.messages, window.bytes);
        for (seq, offer) in self.open.due_for(session.id) {
            if seqs.len() >= DELIVERY_MESSAGES_MAX
                || (!seqs.is_empty() && bytes + offer.bytes > DELIVERY_BYTES_MAX)
            {
                break;
            }
            if offer.holder.is_none() {
                let fits =
                    messages < session.credit && (messages == 0 || held + offer.bytes <= IN_FLIGHT_BYTES_MAX);
                if !fits {
                    continue;
                }
                messages += 1;
                held += offer.bytes;
            }
            bytes += offer.bytes;
            seqs.push(seq);
        }
        let wanted = Wanted::Seqs(seqs.clone());
        let max_messages = seqs.len();
        (max_messages > 0).then_some((
            Asked::Again { seqs },
            Effect::Fetch {
                wanted,
                max_messages,
                max_bytes: u64::MAX,
            },
        ))
    }

    fn next_new(&self, session: &Session) -> Option<(Asked, Effect)> {
        let window = self.open.window(session.id);
        let is_new = self.scanned.saturating_add(1) < self.next_seq || self.followed < self.hints;
        if !is_new || self.open.parked() >= PARKED_MAX || !self.has_room(session, session.waits_for_bytes) {
            return None;
        }
        let room = usize::try_from(session.credit.saturating_sub(window.messages)).unwrap_or(usize::MAX);
        let max_messages = room.min(DELIVERY_MESSAGES_MAX);
        let max_bytes = IN_FLIGHT_BYTES_MAX
            .saturating_sub(window.bytes)
            .clamp(1, DELIVERY_BYTES_MAX);
        let asked = Asked::Next {
            after: self.scanned,
            end: self.next_seq.saturating_sub(1),
            hints: self.hints,
        };
        Some((
            asked,
            Effect::Fetch {
                wanted: Wanted::After(self.scanned),
                max_messages,
                max_bytes,
            },
        ))
    }

    /// Messages that are read to be offered again belong to the reader from here on.
    fn take(&mut self, id: SessionId, asked: &Asked) {
        if let Asked::Again { seqs } = asked {
            for seq in seqs {
                self.open.set(*seq, Some(id), Stage::Moving);
            }
        }
    }

    pub(super) fn fetched(
        &mut self,
        now: Duration,
        id: SessionId,
        found: &[Found],
        effects: &mut Vec<Effect>,
    ) {
        let Some(asked) = self.session_mut(id).and_then(|session| session.asked.take()) else {
            return;
        };
        let seqs = match asked {
            // What was offered since did not get through: the search starts over there.
            Asked::Next { after, .. } if after > self.scanned => Vec::new(),
            Asked::Next { end, hints, .. } => {
                if found.is_empty() {
                    self.followed = self.followed.max(hints);
                }
                self.fetched_new(now, id, found, end, effects)
            }
            Asked::Again { seqs } => self.fetched_again(now, id, found, &seqs, effects),
        };
        if let Some(last) = seqs.last() {
            self.offered = self.offered.max(*last);
            effects.push(Effect::Deliver { seqs });
        }
    }

    fn fetched_new(
        &mut self,
        now: Duration,
        id: SessionId,
        found: &[Found],
        end: u64,
        effects: &mut Vec<Effect>,
    ) -> Vec<u64> {
        let mut seqs = Vec::with_capacity(found.len());
        if let Some(session) = self.session_mut(id) {
            session.waits_for_bytes = 0;
        }
        if found.is_empty() {
            self.scanned = self.scanned.max(end);
        }
        for message in found {
            self.next_seq = self.next_seq.max(message.seq.saturating_add(1));
            // What is not ahead was offered by another session of the agent in the meantime.
            if message.seq <= self.scanned {
                continue;
            }
            match self.admit(id, message) {
                Admitted::Deliver => {
                    self.hold(id, message);
                    seqs.push(message.seq);
                }
                Admitted::Skip => {}
                Admitted::Bury => self.give_up(now, message, effects),
                Admitted::NoRoom => {
                    if let Some(session) = self.session_mut(id) {
                        session.waits_for_bytes = message.bytes;
                    }
                    break;
                }
            }
            self.scanned = message.seq;
        }
        seqs
    }

    /// Whether the message is still on its way to this session, and was not answered or taken over meanwhile.
    fn is_moving(&self, seq: u64, id: SessionId) -> bool {
        self.open
            .get(seq)
            .is_some_and(|offer| offer.holder == Some(id) && offer.stage == Stage::Moving)
    }

    fn admit(&self, id: SessionId, message: &Found) -> Admitted {
        let Some(session) = self.session(id) else {
            return Admitted::NoRoom;
        };
        if message.seq <= self.floor || self.acks.covers(message.seq) || self.open.get(message.seq).is_some()
        {
            Admitted::Skip
        } else if is_exhausted(message.attempts, message.sessions) {
            Admitted::Bury
        } else if self.has_room(session, message.bytes) {
            Admitted::Deliver
        } else {
            Admitted::NoRoom
        }
    }

    fn fetched_again(
        &mut self,
        now: Duration,
        id: SessionId,
        found: &[Found],
        asked: &[u64],
        effects: &mut Vec<Effect>,
    ) -> Vec<u64> {
        let mut seqs = Vec::with_capacity(found.len());
        for seq in asked {
            if !self.is_moving(*seq, id) {
                continue;
            }
            match found.iter().find(|message| message.seq == *seq) {
                Some(message) if is_exhausted(message.attempts, message.sessions) => {
                    self.give_up(now, message, effects);
                }
                Some(message) => {
                    self.hold(id, message);
                    seqs.push(*seq);
                }
                // Settled or expired in the meantime.
                None => drop(self.open.remove(*seq)),
            }
        }
        seqs
    }

    fn hold(&mut self, id: SessionId, message: &Found) {
        let attempt = message.attempts.saturating_add(1);
        let offer = Offer {
            bytes: message.bytes,
            attempt,
            holder: Some(id),
            stage: Stage::Moving,
        };
        self.open.insert(message.seq, offer);
        if self.session(id).is_some_and(|session| session.share) {
            self.open.claim(message.seq);
        }
    }

    /// Another process was faster: whoever has room asks again when that one's time is over, or it gives them back.
    pub(super) fn taken(&mut self, now: Duration, id: SessionId, taken: &[(u64, Duration)]) {
        for (seq, hold) in taken {
            if self.is_moving(*seq, id) {
                let pause = (*hold).max(Duration::from_millis(CLAIM_RETRY_MILLIS_MIN));
                self.open.taken(*seq, now + pause);
            }
        }
    }

    /// The pause until the next offer begins when a message was sent, however long that took.
    pub(super) fn sent(&mut self, now: Duration, id: SessionId, seqs: &[u64], effects: &mut Vec<Effect>) {
        let mut claims = BTreeMap::<Duration, Vec<u64>>::new();
        for seq in seqs {
            let Some(offer) = self.open.get(*seq).copied() else {
                continue;
            };
            if self.is_moving(*seq, id) {
                let pause = redelivery_pause(offer.attempt);
                self.open.set(*seq, Some(id), Stage::Until(now + pause));
                if self.open.is_claimed(*seq) {
                    claims.entry(pause).or_default().push(*seq);
                }
            }
        }
        let lead = Duration::from_millis(CLAIM_LEAD_MILLIS);
        effects.extend(claims.into_iter().map(|(pause, seqs)| Effect::Release {
            seqs,
            after: pause.saturating_sub(lead),
        }));
    }

    /// To the dead letters. If that fails the message comes up again after the first pause.
    fn give_up(&mut self, now: Duration, message: &Found, effects: &mut Vec<Effect>) {
        let stage = Stage::Until(now + redelivery_pause(1));
        let offer = Offer {
            bytes: message.bytes,
            attempt: message.attempts,
            holder: None,
            stage,
        };
        self.open.insert(message.seq, offer);
        effects.push(Effect::Bury {
            seq: message.seq,
            code: ATTEMPTS_EXHAUSTED.to_owned(),
        });
    }

    pub(super) fn fetch_failed(&mut self, now: Duration, id: SessionId) {
        let Some(session) = self.session_mut(id) else {
            return;
        };
        session.not_before = Some(now + Duration::from_secs(STORE_PAUSE_SECS));
        let Some(Asked::Again { seqs }) = session.asked.take() else {
            return;
        };
        for seq in seqs {
            if self.is_moving(seq, id) {
                self.open.set(seq, Some(id), Stage::Due);
            }
        }
    }

    /// Nothing was sent: the search for new messages starts over before the first of them, which keeps their order.
    pub(super) fn offer_failed(&mut self, now: Duration, id: SessionId, seqs: &[u64]) {
        let Some(session) = self.session_mut(id) else {
            return;
        };
        session.not_before = Some(now + Duration::from_secs(STORE_PAUSE_SECS));
        for seq in seqs {
            if self.is_moving(*seq, id) {
                self.open.free(*seq);
                self.open.remove(*seq);
                self.scanned = self.scanned.min(seq.saturating_sub(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_as_the_specification_says() {
        let secs: Vec<u64> = (1..=8)
            .map(|attempt| redelivery_pause(attempt).as_secs())
            .collect();
        assert_eq!(secs, [30, 60, 120, 300, 300, 300, 300, 300]);
    }

    #[test]
    fn eight_attempts_in_two_sessions_exhaust() {
        assert!(is_exhausted(8, 2) && is_exhausted(9, 3));
        assert!(!is_exhausted(7, 7) && !is_exhausted(100, 1));
    }
}
