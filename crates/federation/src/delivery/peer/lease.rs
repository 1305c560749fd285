//! The lease of a peer: who of several processes sends, and for how long after the outbox ran empty.

use std::time::Duration;

use aip_protocol::time::Timestamp;

use super::super::backoff::jitter;
use super::Peer;
use crate::limits;

/// An outbox that ran empty is looked at for a while.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linger {
    pub(super) until: Timestamp,
    pub(super) poll_at: Timestamp,
}

impl Peer {
    /// Whether the lease has to be taken or lengthened first.
    pub(in super::super) fn needs_lease(&self, now: Timestamp) -> bool {
        self.lease_until
            .is_none_or(|until| until < now + limits::LEASE_RENEW)
    }

    /// The lease is ours until then. Says whether it was not before.
    pub(in super::super) fn leased(&mut self, until: Timestamp) -> bool {
        self.lease_until.replace(until).is_none()
    }

    /// Another process sends to this peer. What it does is not known here: begin again when it is our turn.
    pub(in super::super) fn not_ours(&mut self, now: Timestamp, chance: u32) {
        self.lease_until = None;
        self.linger = None;
        self.ledger.restart();
        self.news += 1;
        self.own_until = now + limits::LINGER + jitter(limits::LINGER, chance);
    }

    /// Whether a lease is held that others wait for.
    pub(in super::super) fn holds_lease(&self, now: Timestamp) -> bool {
        self.lease_until.is_some_and(|until| until > now)
    }

    /// The outbox is empty. Says whether the lease is to be given back.
    pub(in super::super) fn ran_empty(&mut self, now: Timestamp, poll: Option<Duration>) -> bool {
        if self.has_news() || !self.ledger.is_empty() {
            return false;
        }
        let until = self.linger.map_or(now + limits::LINGER, |linger| linger.until);
        let poll_at = now + poll.unwrap_or(limits::LINGER);
        let lingers = self.proven && now < until;
        self.linger = lingers.then_some(Linger { until, poll_at });
        !lingers && self.lease_until.take().is_some_and(|until| until > now)
    }
}
