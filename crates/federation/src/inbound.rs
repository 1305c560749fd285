//! What comes in from peers (spec §8): pushes of mail, requests for backfill, questions about what became of mail.
//!
//! A door calls [`Inbound::knock`] with the head of a request, reads the body only of those that get a [`Ticket`], and calls
//! what was asked for with it. The order of the checks is by what they cost:
//!
//! 1. before the body: size, form and times of the signature, budgets of the network, of the peer, of strangers;
//! 2. policy; the peer's document, out of a cache, and only so many unknown ones at a time; digest and signature, on a bounded
//!    number of threads; the nonce;
//! 3. the batch; per item its number, the envelope's form, times and domains, its recipient, its sender's history, the
//!    sender's signature; then it is handed to [`Local`], this hub's own agents;
//! 4. what became of all of them is noted in one step before the answer.

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use aip_protocol::peer::AdmittedItem;
use async_trait::async_trait;
use bytes::Bytes;

use crate::budgets::Gate;
use crate::limits::UNAVAILABLE_RETRY_SECS;
use crate::outbox::Outbox;
use crate::policy::Policy;

mod answer;
mod authenticate;
mod batch;
mod counters;
mod cpu;
mod epochs;
mod judge;
mod knock;
mod lines;
pub(crate) mod query;
mod seams;
mod senders;
mod status;
#[cfg(test)]
mod tests;

pub use answer::{ItemResult, PushAnswer};
pub use counters::{Call, Counters, Counts};
pub use knock::{Incoming, Ticket};
pub use seams::{Documents, Heard, MailStatus, Seams, Senders, Statuses, Unheard};
pub use status::StatusAnswer;

pub use crate::budgets::{PeerLoad, Tally};

/// What became of one item at this hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// Durable: in the recipient's mailbox, or taken by its endpoint.
    Stored,
    /// It was here before.
    Duplicate,
    /// Refused for good.
    Refused(ErrorCode),
    /// Not now; the peer comes again after so many seconds.
    Retry {
        /// Why.
        code: ErrorCode,
        /// When to come again.
        after_secs: u64,
    },
}

/// This hub's own agents.
#[async_trait]
pub trait Local: Debug + Send + Sync {
    /// Delivers an item whose sender's signature was verified: recipient known and not ended, sender not blocked, quota,
    /// dedup, then its endpoint or its mailbox. `wire` is the envelope as it came in. What fails here is
    /// [`Reception::Retry`] with `unavailable`.
    async fn deliver(&self, item: AdmittedItem, wire: Bytes) -> Reception;

    /// Whether an agent of this hub exists: cheap, asked before anything is fetched for an item.
    async fn knows(&self, did: &Did) -> bool;
}

/// What reception is set to.
#[derive(Debug, Clone)]
pub struct InboundSettings {
    /// Whom this hub has to do with, and how much of it. Its own domain is in there.
    pub policy: Arc<Policy>,
    /// Longest envelope, in bytes.
    pub envelope_bytes_max: usize,
    /// Threads that verify what peers send, at once.
    pub verifications_max: usize,
}

/// The receiving side.
#[derive(Debug)]
pub struct Inbound {
    policy: Arc<Policy>,
    envelope_bytes_max: usize,
    seams: Seams,
    gate: Gate,
    cpu: cpu::Cpu,
    counters: Counters,
}

impl Inbound {
    /// Puts the receiving side together.
    pub fn new(settings: InboundSettings, seams: Seams) -> Arc<Self> {
        Arc::new(Self {
            policy: settings.policy,
            envelope_bytes_max: settings.envelope_bytes_max,
            seams,
            gate: Gate::default(),
            cpu: cpu::Cpu::new(settings.verifications_max),
            counters: Counters::default(),
        })
    }

    /// Takes in a push. It goes on when the caller goes away.
    ///
    /// # Errors
    ///
    /// The whole request is refused: `body_too_large`; `rate_limited` and `unavailable`, with the time to wait;
    /// `peer_blocked`; what is wrong with the peer's document; `hub_key_unknown`, `digest_mismatch`,
    /// `request_signature_invalid`; what is wrong with the batch; `epoch_changed`.
    pub async fn push(self: &Arc<Self>, ticket: Ticket, body: Bytes) -> Result<PushAnswer, Refusal> {
        let answer = self.take_in(Arc::new(ticket), body).await;
        self.counters.call(Call::Push, answer)
    }

    async fn take_in(self: &Arc<Self>, ticket: Arc<Ticket>, body: Bytes) -> Result<PushAnswer, Refusal> {
        knock::check_size(u64::try_from(body.len()).ok())?;
        let caller = self.authenticate(&ticket, Some(&body)).await?;
        let peer = caller.domain.clone();
        let push = self.cpu.run(move || batch::read(&body, &peer)).await??;
        self.check_epoch(&caller, &push.epoch).await?;
        judge::judge_to_the_end(self, ticket, push).await
    }

    /// Whether somebody at this address may have the hub of a domain looked up that was never met: within the same budgets as
    /// requests in the names of such domains.
    ///
    /// # Errors
    ///
    /// `rate_limited`, with the time to wait.
    pub fn look_up(&self, address: IpAddr) -> Result<(), Refusal> {
        self.gate.look_up(Some(address), self.seams.clock.now())
    }

    /// The counters of reception.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The peers that handed in most items since this process began, at most `top` and
    /// [`LOADS_MAX`](crate::limits::LOADS_MAX).
    pub fn loads(&self, top: usize) -> Vec<PeerLoad> {
        self.gate.loads(top)
    }

    /// What one peer has handed in, if it was heard of since this process began.
    pub fn load(&self, domain: &Domain) -> Option<PeerLoad> {
        self.gate.load(domain)
    }

    /// Who makes a verified request without a body.
    pub(crate) async fn caller(&self, ticket: &Arc<Ticket>) -> Result<Domain, Refusal> {
        Ok(self.authenticate(ticket, None).await?.domain)
    }

    /// So many bytes go to a peer.
    pub(crate) fn give(&self, peer: &Domain, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.gate.give(peer, bytes, self.seams.clock.now());
    }

    pub(crate) fn own(&self) -> &Domain {
        &self.policy.own
    }

    pub(crate) fn outboxes(&self) -> &dyn Outbox {
        &*self.seams.outbox
    }
}

/// A store of ours failed: the cause is logged, the peer comes again.
pub(crate) fn unavailable(error: impl std::error::Error + 'static) -> Refusal {
    tracing::error!(
        error = &error as &dyn std::error::Error,
        "A request of a peer failed at a store of this hub"
    );
    let detail = "This hub cannot do that now; come again later.";
    Refusal::new(ErrorCode::Unavailable, detail).retry_after(UNAVAILABLE_RETRY_SECS)
}
