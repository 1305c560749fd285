//! One attempt's hold on its peer: whatever ends the attempt, the peer goes on.

use std::sync::Arc;

use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;

use super::answer::Failure;
use super::peer::{Pace, Peer};
use super::{Delivery, State};
use crate::schedule::Slot;

/// An attempt. While it lives the peer is in memory; when it is dropped, what is still on its way is back, and the peer has
/// its place among the next attempts.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) delivery: Arc<Delivery>,
    pub(super) domain: Arc<Domain>,
    /// The messages that it has taken from the ledger: those that are still on their way at its end go back.
    pub(super) taken: Vec<u64>,
    slot: Option<Slot>,
    stage: Stage,
}

/// How far an attempt is.
#[derive(Debug)]
enum Stage {
    /// Looking for what to send.
    Gathering,
    /// A batch is on its way, since this round.
    Pushing {
        round: u64,
    },
    Over,
}

impl Turn {
    pub(super) fn new(delivery: Arc<Delivery>, domain: Arc<Domain>, slot: Slot) -> Self {
        Self {
            delivery,
            domain,
            taken: Vec::new(),
            slot: Some(slot),
            stage: Stage::Gathering,
        }
    }

    /// Changes the peer, with the time and a chance.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut Peer, Timestamp, u32) -> R) -> Option<R> {
        let now = self.delivery.now();
        let mut state = self.delivery.lock();
        let chance = state.rng.next_u32();
        state
            .peers
            .get_mut(&self.domain)
            .map(|peer| change(peer, now, chance))
    }

    /// A batch goes out: the next attempt of this peer may begin.
    pub(super) fn begin_push(&mut self, seqs: Vec<u64>, bytes: usize) {
        let now = self.delivery.now();
        let mut state = self.delivery.lock();
        let Some(peer) = state.peers.get_mut(&self.domain) else {
            return;
        };
        let round = peer.push_begins();
        self.taken = seqs;
        self.stage = Stage::Pushing { round };
        if let Some(slot) = &mut self.slot {
            state.schedule.shrink(slot, bytes);
        }
        self.delivery.plan(&mut state, &self.domain, now);
    }

    /// The answer takes long: others do not wait for it.
    pub(super) fn is_late(&mut self) {
        let now = self.delivery.now();
        let mut state = self.delivery.lock();
        let State { peers, schedule, .. } = &mut *state;
        if let Some(peer) = peers.get_mut(&self.domain) {
            peer.pace = Pace::Slow;
        }
        if let Some(slot) = &mut self.slot {
            schedule.late(slot);
        }
        self.delivery.plan(&mut state, &self.domain, now);
        self.delivery.news.notify_one();
    }

    /// The attempt failed.
    pub(super) fn failed(&mut self, failure: &Failure) {
        let domain = &self.domain;
        tracing::debug!(peer = %domain, code = %failure.code, detail = %failure.detail, "A peer was not reached");
        let (items, round) = match self.stage {
            Stage::Pushing { round } => (self.taken.len(), round),
            Stage::Gathering | Stage::Over => (0, u64::MAX),
        };
        self.ended(|peer, now, chance| peer.failed(failure, items, round, now, chance));
    }

    /// The attempt is over; `change` says what it brought.
    pub(super) fn ended<R>(&mut self, change: impl FnOnce(&mut Peer, Timestamp, u32) -> R) -> Option<R> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let taken = std::mem::take(&mut self.taken);
        self.with(|peer, now, chance| {
            let brought = change(peer, now, chance);
            match stage {
                Stage::Gathering => peer.gathered_nothing(),
                Stage::Pushing { .. } => peer.push_ended(),
                Stage::Over => {}
            }
            // What the change has settled or deferred is not away any more.
            peer.ledger.back(&taken);
            brought
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Over) {
            self.failed(&Failure::own("the attempt was broken off"));
        }
        let now = self.delivery.now();
        let mut state = self.delivery.lock();
        if let Some(slot) = self.slot.take() {
            state.schedule.free(slot);
        }
        self.delivery.plan(&mut state, &self.domain, now);
        // A slot is free: somebody else may have waited for it.
        self.delivery.news.notify_one();
    }
}
