//! Whom this hub has to do with, and how much of it (spec §8).
//!
//! What the operator decided about one peer wins over the lists of the configuration, and those over the mode. Only peers
//! are judged: what agents of this hub send each other is nobody's policy, and their hub need be on no list.

use std::collections::BTreeSet;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;

use crate::limits::{
    BYTES_BURST_MIN, ITEMS_BURST_MIN, ITEMS_BURST_SECS, QUEUE_BYTES_MAX, QUEUE_ITEMS_MAX,
    QUEUE_ITEMS_PER_SENDER_MAX, REQUESTS,
};
use crate::peers::{PeerRecord, Stance};

pub use crate::budgets::Rate;

mod ramp;

/// What holds for peers about which nothing was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// All may.
    #[default]
    Open,
    /// Nobody may.
    Allowlist,
    /// All may; those that may not are named one by one.
    Blocklist,
    /// All may send and get mail, nobody sees the catalog.
    Limited,
}

/// The policy of this hub.
#[derive(Debug, Clone)]
pub struct Policy {
    /// This hub's own domain.
    pub own: Domain,
    /// What holds where nothing was decided.
    pub mode: Mode,
    /// Peers that count as allowed, unless the operator decided otherwise since.
    pub allowed: BTreeSet<Domain>,
    /// Peers that count as blocked, unless the operator decided otherwise since.
    pub blocked: BTreeSet<Domain>,
    /// Whether a new peer starts small and grows.
    pub ramp: bool,
    /// Items a second that a grown peer may hand in.
    pub items_per_sec: u32,
    /// Bytes a second that a grown peer may hand in.
    pub bytes_per_sec: u64,
    /// How much of our agents' mail may wait for one peer.
    pub queue: QueueCaps,
}

/// What a peer may do here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permits {
    /// Mail, both ways.
    pub mail: bool,
    /// The catalog.
    pub catalog: bool,
}

/// How much a peer may hand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Items.
    pub items: Rate,
    /// Bytes of bodies.
    pub bytes: Rate,
    /// Requests of any kind.
    pub requests: Rate,
    /// Distinct senders in a window of [`SENDERS_WINDOW_SECS`](crate::limits::SENDERS_WINDOW_SECS); `None`: any number.
    pub senders_max: Option<usize>,
}

/// How much may wait for one peer in its outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCaps {
    /// Messages.
    pub items: u32,
    /// Bytes of their envelopes.
    pub bytes: u64,
    /// Messages of one sender.
    pub items_per_sender: u32,
}

impl Default for QueueCaps {
    fn default() -> Self {
        Self {
            items: QUEUE_ITEMS_MAX,
            bytes: QUEUE_BYTES_MAX,
            items_per_sender: QUEUE_ITEMS_PER_SENDER_MAX,
        }
    }
}

const NOTHING: Permits = Permits {
    mail: false,
    catalog: false,
};
const MAIL: Permits = Permits {
    mail: true,
    catalog: false,
};
const ALL: Permits = Permits {
    mail: true,
    catalog: true,
};

impl Policy {
    /// What a peer may do here, frozen or not.
    pub fn permits(&self, domain: &Domain, record: Option<&PeerRecord>) -> Permits {
        match self.stance(domain, record) {
            Stance::Allowed => ALL,
            Stance::Blocked => NOTHING,
            Stance::Limited => MAIL,
            Stance::Undecided => match self.mode {
                Mode::Open | Mode::Blocklist => ALL,
                Mode::Allowlist => NOTHING,
                Mode::Limited => MAIL,
            },
        }
    }

    /// Whether anything is taken from a peer.
    ///
    /// # Errors
    ///
    /// `peer_blocked`: by the policy, by the operator, because it is frozen, or because it claims to be this hub.
    pub fn incoming(&self, domain: &Domain, record: Option<&PeerRecord>) -> Result<(), Refusal> {
        if *domain == self.own {
            return Err(blocked(
                "This is that domain's hub; it takes no mail from itself.",
            ));
        }
        if record.is_some_and(|record| record.frozen.is_some()) {
            return Err(blocked(
                "Your hub shows a key that none of its known keys vouches for; this hub's operator decides.",
            ));
        }
        self.mail(
            domain,
            record,
            "This hub takes nothing from yours; ask its operator.",
        )
    }

    /// Whether mail for a peer is taken from our agents.
    ///
    /// Mail for a frozen peer is: it waits in the outbox, as it would for a peer that is down, until the operator decides.
    ///
    /// # Errors
    ///
    /// `peer_blocked`.
    pub fn outgoing(&self, domain: &Domain, record: Option<&PeerRecord>) -> Result<(), Refusal> {
        if *domain == self.own {
            return Ok(());
        }
        self.mail(
            domain,
            record,
            "This hub sends nothing to that one; ask your operator.",
        )
    }

    /// How much a peer may hand in now. What the operator allowed it holds as it is; else the settings do, for a new peer as
    /// far as it has grown. A peer that the operator called allowed is not new.
    pub fn allowance(&self, domain: &Domain, record: Option<&PeerRecord>, now: Timestamp) -> Allowance {
        let limits = record.map(|record| record.limits).unwrap_or_default();
        let is_new = self.ramp && self.stance(domain, record) != Stance::Allowed;
        let reach = if is_new {
            ramp::reach(record, now)
        } else {
            ramp::GROWN
        };
        let items_max = u64::from(self.items_per_sec);
        let items = limits.items_per_sec.map(u64::from);
        let bytes = limits.bytes_per_sec;
        Allowance {
            items: item_rate(items.unwrap_or(reach.items_per_sec.min(items_max))),
            bytes: byte_rate(bytes.unwrap_or(reach.bytes_per_sec.min(self.bytes_per_sec))),
            requests: REQUESTS,
            senders_max: (reach.items_per_sec < items_max).then_some(reach.senders),
        }
    }

    /// How much may wait for a peer.
    pub fn queue(&self, record: Option<&PeerRecord>) -> QueueCaps {
        let items = record.and_then(|record| record.limits.queue_items);
        QueueCaps {
            items: items.unwrap_or(self.queue.items),
            ..self.queue
        }
    }

    fn stance(&self, domain: &Domain, record: Option<&PeerRecord>) -> Stance {
        match record.map(|record| record.stance).unwrap_or_default() {
            Stance::Undecided if self.blocked.contains(domain) => Stance::Blocked,
            Stance::Undecided if self.allowed.contains(domain) => Stance::Allowed,
            stance => stance,
        }
    }

    fn mail(
        &self,
        domain: &Domain,
        record: Option<&PeerRecord>,
        detail: &'static str,
    ) -> Result<(), Refusal> {
        if self.permits(domain, record).mail {
            Ok(())
        } else {
            Err(blocked(detail))
        }
    }
}

fn blocked(detail: &'static str) -> Refusal {
    Refusal::new(ErrorCode::PeerBlocked, detail)
}

/// A burst of some seconds, and of some whole batches: else a slow peer could never hand one in.
fn item_rate(per_sec: u64) -> Rate {
    Rate::per_sec(
        per_sec,
        per_sec.saturating_mul(ITEMS_BURST_SECS).max(ITEMS_BURST_MIN),
    )
}

fn byte_rate(per_sec: u64) -> Rate {
    Rate::per_sec(per_sec, per_sec.saturating_mul(2).max(BYTES_BURST_MIN))
}

#[cfg(test)]
mod tests;
