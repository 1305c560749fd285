//! What one session knows beyond its connection: what it was offered, and what the hub still owes it. Pure.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

use super::frame::AgentFrame;
use crate::error::{Error, Problem, Result};
use crate::wire::Sent;

/// Of one session, from `ready` to its end.
#[derive(Debug)]
pub(super) struct Progress {
    /// The mailbox's epoch. One session has one.
    pub(super) epoch: String,
    /// The highest sequence number offered in this session, or the hub's floor.
    offered: u64,
    /// Ack frames that are not confirmed yet, oldest first: the highest sequence number of each.
    unconfirmed: VecDeque<u64>,
    /// Ping intervals without a sign of life.
    pub(super) silent: u32,
    sends: HashMap<String, oneshot::Sender<Result<Sent>>>,
    sent: u64,
    pub(super) closing: bool,
}

impl Progress {
    pub(super) fn new(epoch: &str, floor: u64) -> Self {
        Self {
            epoch: epoch.to_owned(),
            offered: floor,
            unconfirmed: VecDeque::new(),
            silent: 0,
            sends: HashMap::new(),
            sent: 0,
            closing: false,
        }
    }

    pub(super) fn offered(&mut self, seq: u64) {
        self.offered = self.offered.max(seq);
    }

    /// Whether this place may be named to the hub. One of an older epoch, or of a session before this one, that was not
    /// offered again yet is kept back: the hub would refuse the frame. It comes again, and is settled then.
    pub(super) fn may_name(&self, epoch: &str, seq: u64) -> bool {
        epoch == self.epoch && seq <= self.offered
    }

    /// The ack frame for places that were recorded, of which some may not be named yet. `floor` is the inbox's own, which
    /// may be ahead of a session that has just begun.
    pub(super) fn acknowledgement(&mut self, floor: u64, mut acked: Vec<u64>) -> AgentFrame {
        let upto = floor.min(self.offered);
        acked.retain(|seq| *seq > upto && *seq <= self.offered);
        acked.sort_unstable();
        acked.dedup();
        self.unconfirmed.push_back(acked.last().copied().unwrap_or(upto));
        AgentFrame::Ack {
            epoch: self.epoch.clone(),
            upto,
            also: acked,
        }
    }

    /// The hub has made acks durable: at least the oldest, and all that its floor covers. It may confirm several at once.
    pub(super) fn confirmed(&mut self, floor: u64) {
        self.unconfirmed.pop_front();
        self.unconfirmed.retain(|highest| *highest > floor);
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// The hub refused a frame, and changed nothing. An ack that it refused is not confirmed later.
    pub(super) fn refused(&mut self, problem: &Problem) {
        tracing::warn!(code = %problem.code, "the hub refused a frame");
        match problem.code.as_str() {
            "cursor_invalid" => drop(self.unconfirmed.pop_front()),
            "epoch_changed" => self.unconfirmed.clear(),
            _ => {}
        }
    }

    /// The frame for an envelope, whose answer goes to `answer`.
    pub(super) fn send(&mut self, envelope: Box<str>, answer: oneshot::Sender<Result<Sent>>) -> AgentFrame {
        self.sends.retain(|_, waiting| !waiting.is_closed());
        self.sent += 1;
        let reference = self.sent.to_string();
        self.sends.insert(reference.clone(), answer);
        AgentFrame::Send { reference, envelope }
    }

    pub(super) fn answered(&mut self, reference: &str, outcome: Result<Sent, Problem>) {
        if let Some(answer) = self.sends.remove(reference) {
            drop(answer.send(outcome.map_err(|problem| Error::Refused(Box::new(problem)))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(upto: u64, also: &[u64]) -> AgentFrame {
        AgentFrame::Ack {
            epoch: "e".to_owned(),
            upto,
            also: also.to_vec(),
        }
    }

    #[test]
    fn nothing_is_named_that_this_session_did_not_offer() {
        let mut progress = Progress::new("e", 2);
        progress.offered(5);
        // 9 was offered by the session before; one place too far, and the hub would refuse all of them.
        assert_eq!(progress.acknowledgement(3, vec![9, 5, 4, 5, 3]), ack(3, &[4, 5]));
        assert_eq!(progress.acknowledgement(8, vec![8]), ack(5, &[]));
        assert!(progress.may_name("e", 5) && !progress.may_name("e", 6) && !progress.may_name("d", 5));
        progress.offered(3);
        assert!(progress.may_name("e", 5), "what comes again takes nothing back");
    }

    #[test]
    fn one_confirmation_may_be_for_several_acks() {
        let mut progress = Progress::new("e", 0);
        progress.offered(9);
        for seq in 1..=3 {
            progress.acknowledgement(seq, Vec::new());
        }
        progress.acknowledgement(3, vec![9]);
        progress.confirmed(3);
        assert!(!progress.is_confirmed(), "9 lies behind a gap");
        progress.confirmed(3);
        assert!(progress.is_confirmed());
        progress.acknowledgement(3, vec![7]);
        progress.refused(&Problem::new("cursor_invalid", ""));
        assert!(progress.is_confirmed(), "what was refused is not waited for");
    }
}
