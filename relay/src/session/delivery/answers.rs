//! From the agent: ack, nak, reject, and the store's word on them.

use std::time::Duration;

use aip_protocol::error::ErrorCode;

use super::super::open::{Offer, Stage};
use super::super::{Effect, SessionId};
use super::Delivery;
use super::offers::redelivery_pause;
use crate::limits::{
    ACK_ALSO_MAX, ATTEMPTS_MAX, NAK_EXHAUSTED_SECS_MIN, NAK_SECS_MAX, PARKED_MAX, REJECT_CODE_BYTES_MAX,
    STORE_PAUSE_SECS,
};

/// Whether `code` may stand in a `reject`: 1 to 64 of `[a-z0-9_]`.
pub(crate) fn is_reject_code(code: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=REJECT_CODE_BYTES_MAX).contains(&code.len()) && code.bytes().all(plain)
}

fn refused(code: ErrorCode, detail: &'static str) -> Effect {
    Effect::Refused { code, detail }
}

impl Delivery {
    /// What is wrong with a frame that names `seq` in `epoch`; `None` also for a stale session, which is not answered.
    fn complaint(&self, epoch: &str, seq: u64) -> Option<Effect> {
        if self.epoch.as_ref().is_none_or(|own| own.as_str() != epoch) {
            let detail =
                "The frame names another epoch: the store was created anew or restored. Connect again.";
            return Some(refused(ErrorCode::EpochChanged, detail));
        }
        let detail = "The frame names a message beyond what was offered. Name only what you have received.";
        (seq > self.offered).then(|| refused(ErrorCode::CursorInvalid, detail))
    }

    pub(super) fn ack(
        &mut self,
        id: SessionId,
        epoch: &str,
        upto: u64,
        also: Vec<u64>,
        effects: &mut Vec<Effect>,
    ) {
        if also.len() > ACK_ALSO_MAX {
            let detail = "`also` names more than 1,024 messages. Send several acks.";
            return effects.push(refused(ErrorCode::MemberInvalid, detail));
        }
        let highest = also.iter().copied().fold(upto, u64::max);
        if let Some(complaint) = self.complaint(epoch, highest) {
            return effects.push(complaint);
        }
        if highest <= self.floor {
            // Nothing new: it has been durable all along.
            return effects.push(Effect::Acked { floor: self.floor });
        }
        self.open.mark_acked(upto, &also);
        let floor = self.floor;
        self.acks
            .add(id, upto, also.into_iter().filter(|seq| *seq > floor).collect());
    }

    pub(super) fn ack_done(&mut self, id: SessionId, floor: u64) {
        self.floor = self.floor.max(floor);
        let Some(batch) = self.acks.done(id) else { return };
        self.open.remove_upto(batch.upto);
        for seq in batch.also {
            self.open.remove(seq);
        }
        for told in batch.tell {
            if let Some(session) = self.session_mut(told) {
                session.acked = true;
            }
        }
    }

    pub(super) fn ack_failed(&mut self, now: Duration, id: SessionId) {
        self.acks
            .failed(id, Some(now + Duration::from_secs(STORE_PAUSE_SECS)));
        if self.sessions.is_empty() {
            self.acks.forget_waiting();
        }
    }

    pub(super) fn nak(
        &mut self,
        now: Duration,
        id: SessionId,
        epoch: &str,
        seq: u64,
        retry_after: Duration,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(complaint) = self.complaint(epoch, seq) {
            return effects.push(complaint);
        }
        // Another session's message, or one that is settled: nothing to put back.
        let Some(offer) = self
            .open
            .get(seq)
            .copied()
            .filter(|offer| offer.holder == Some(id) && offer.stage != Stage::Acked)
        else {
            return;
        };
        let exhausted = offer.attempt >= ATTEMPTS_MAX;
        let least = if exhausted {
            Duration::from_secs(NAK_EXHAUSTED_SECS_MIN)
        } else {
            Duration::ZERO
        };
        let pause = retry_after.min(Duration::from_secs(NAK_SECS_MAX)).max(least);
        let holder = if self.open.parked() < PARKED_MAX {
            None
        } else {
            Some(id)
        };
        self.open.set(seq, holder, Stage::Until(now + pause));
        if pause.is_zero() {
            self.open.free(seq);
        } else if self.open.is_claimed(seq) {
            let seqs = vec![seq];
            effects.push(Effect::Release { seqs, after: pause });
        }
        // A pause of nothing ends now.
        self.expire(now);
    }

    pub(super) fn reject(
        &mut self,
        now: Duration,
        epoch: &str,
        seq: u64,
        code: String,
        effects: &mut Vec<Effect>,
    ) {
        if !is_reject_code(&code) {
            let detail = "`code` is not 1 to 64 of a-z, 0-9 and _.";
            return effects.push(refused(ErrorCode::MemberInvalid, detail));
        }
        if let Some(complaint) = self.complaint(epoch, seq) {
            return effects.push(complaint);
        }
        if seq <= self.floor || self.acks.covers(seq) {
            return;
        }
        // In nobody's hands until it is buried; if that fails it comes up again.
        let known = self
            .open
            .get(seq)
            .map_or((0, 0), |offer| (offer.bytes, offer.attempt));
        let stage = Stage::Until(now + redelivery_pause(1));
        self.open.insert(
            seq,
            Offer {
                bytes: known.0,
                attempt: known.1,
                holder: None,
                stage,
            },
        );
        effects.push(Effect::Bury { seq, code });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reject_codes_are_small_and_plain() {
        assert!(is_reject_code("unreadable") && is_reject_code("a") && is_reject_code(&"9".repeat(64)));
        for code in ["", "Unreadable", "not readable", "a-b", "ü", &"a".repeat(65)] {
            assert!(!is_reject_code(code), "{code}");
        }
    }
}
