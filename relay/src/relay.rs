//! The service that the hub calls: submit an envelope, submit many, receive one of a peer, ask what became of one.
//!
//! [`Relay::submit`] is the whole of spec §5: admission in its order, then the direct endpoint, the
//! mailbox, or the outbox for the recipient's hub. An answer is given only when what it says is durable. What follows admission goes on without its caller, so that one
//! who hangs up does not leave a message stored with nobody told.

use std::sync::Arc;
use std::time::Duration;

use aip_federation::egress::Outbound;
use aip_protocol::clock::Clock;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use bytes::Bytes;
use rand_core::Rng;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::outlive::Outlive;
use crate::admission::{self, Candidate, Door};
use crate::direct::Direct;
use crate::inbox::Terms;
use crate::mailbox::{MailboxId, MailboxStore, Quota, StatusRecord, StoreError};
use crate::presence::Presence;
use crate::rate::SenderBuckets;

mod batch;
mod config;
mod deliver;
mod outcome;
mod outlive;
mod receive;
mod seams;
mod stats;

pub use batch::is_batch;
pub use config::RelayConfig;
pub use outcome::{BatchItem, SendError, Sent, Submission};
pub use receive::OwnAgents;
pub use seams::{IdentitySource, PeerTerms, Peers, SourceError};
pub use stats::RelayStats;

/// What a [`Relay`] is plugged into.
#[derive(Debug)]
pub struct Seams {
    /// The time. It must never read less than the store's high-water mark.
    pub clock: Arc<dyn Clock>,
    /// Who exists.
    pub identities: Arc<dyn IdentitySource>,
    /// Where messages wait.
    pub store: Arc<dyn MailboxStore>,
    /// The way out to direct endpoints.
    pub outbound: Arc<dyn Outbound>,
    /// Who is connected, and so hears of new mail and of what became of a message.
    pub presence: Arc<Presence>,
    /// How much each sender may still send, at [`RelayConfig::rate`].
    pub buckets: Arc<dyn SenderBuckets>,
    /// The hubs of other domains; `None`: federation is switched off, and mail to their agents is refused.
    pub peers: Option<Arc<dyn Peers>>,
}

/// Envelopes in.
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    seams: Seams,
    direct: Direct,
    stats: RelayStats,
    tasks: TaskTracker,
}

/// An envelope that passed the whole pipeline up to dedup, and where it goes.
#[derive(Debug)]
struct Admitted {
    candidate: Candidate,
    quota: Quota,
    way: Way,
    /// How long it may wait.
    retention: Duration,
}

/// Where an admitted envelope goes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// To the recipient's mailbox.
    Mailbox,
    /// To the recipient's own endpoint first, in direct mode.
    Direct(String),
    /// To the outbox for the hub of this domain.
    Peer(Domain),
}

impl Relay {
    /// Puts the service together. `rng` spreads the pauses after failed direct deliveries.
    pub fn new(config: RelayConfig, seams: Seams, rng: Box<dyn Rng + Send>) -> Arc<Self> {
        let direct = Direct::new(
            Arc::clone(&seams.outbound),
            Arc::clone(&seams.clock),
            config.direct,
            rng,
        );
        let (stats, tasks) = (RelayStats::default(), TaskTracker::new());
        Arc::new(Self {
            config,
            seams,
            direct,
            stats,
            tasks,
        })
    }

    /// Takes in one envelope as it came over the wire.
    ///
    /// # Errors
    ///
    /// [`SendError::Refused`] leaves no record. Any other error is a failure of ours: nothing was acknowledged, and
    /// a retry of the same bytes tells what happened.
    pub async fn submit(self: &Arc<Self>, wire: Bytes, door: &Door) -> Result<Submission, SendError> {
        let admitted = self
            .admit(&wire, door)
            .await
            .inspect_err(|error| self.stats.count_error(error))?;
        let relay = Arc::clone(self);
        Outlive::new(&self.tasks, async move { relay.deliver(admitted).await }).await
    }

    /// What became of a message, for its sender: one record per recipient of that id, or the one to `to`. Empty when
    /// there is none (any more).
    pub async fn status(
        &self,
        sender: &Did,
        id: Uuid,
        to: Option<&Did>,
    ) -> Result<Vec<StatusRecord>, StoreError> {
        self.seams.store.status(sender, id, to).await
    }

    /// What the mailbox of `owner` may hold, and for how long.
    pub async fn terms(&self, owner: &Did) -> Result<Terms, SendError> {
        let quota = self
            .seams
            .identities
            .agent(owner)
            .await?
            .and_then(|agent| agent.quota);
        let Self { config, .. } = self;
        Ok(Terms {
            quota: quota.unwrap_or(config.quota),
            retention: config.retention,
        })
    }

    /// Counts since the start.
    pub fn stats(&self) -> &RelayStats {
        &self.stats
    }

    /// Waits until every delivery that was begun has ended; for a shutdown, after the doors are closed.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The pipeline of spec §5 from size to "sender allowed".
    async fn admit(&self, wire: &Bytes, door: &Door) -> Result<Admitted, SendError> {
        let config = &self.config;
        let now = self.seams.clock.now();
        let candidate = admission::inspect(wire, door, &config.domain, config.envelope_bytes_max, now)?;
        let envelope = &candidate.envelope;

        if !admission::is_local(&envelope.from, &config.domain) {
            return Err(admission::sender_unknown().into());
        }
        let sender = self.seams.identities.agent(&envelope.from).await?;
        let key = admission::check_sender(envelope, sender.as_ref())?;
        admission::check_signature(envelope, key)?;

        let (way, terms) = self.way_to(&envelope.from, &envelope.to).await?;
        config.blocklist.check(&envelope.from)?;
        if !matches!(door, Door::Hub(_)) {
            self.take_rate(&envelope.from).await?;
        }
        // Last: what is refused makes no peer known.
        if let (Way::Peer(peer), Some(peers)) = (&way, &self.seams.peers) {
            peers.meet(peer, &envelope.from).await?;
        }
        Ok(Admitted {
            candidate,
            quota: terms.quota,
            way,
            retention: terms.retention,
        })
    }

    /// How a message from `sender` reaches this recipient, and on which terms it waits.
    async fn way_to(&self, sender: &Did, recipient: &Did) -> Result<(Way, Terms), SendError> {
        let Self { config, seams, .. } = self;
        if !admission::is_local(recipient, &config.domain) {
            let peers = seams.peers.as_ref().ok_or_else(admission::recipient_remote)?;
            let peer = recipient.domain();
            let terms = peers.admit(&peer, sender).await?;
            return Ok((Way::Peer(peer), terms));
        }
        let known = seams.identities.agent(recipient).await?;
        let known = admission::check_recipient(known.as_ref())?;
        let terms = Terms {
            quota: known.quota.unwrap_or(config.quota),
            retention: config.retention,
        };
        Ok((deliver::way_to(known), terms))
    }

    /// Every message costs, a retry too: a flood of duplicates is a flood.
    async fn take_rate(&self, sender: &Did) -> Result<(), SendError> {
        let taken = self.seams.buckets.take(MailboxId::of(sender).as_bytes()).await;
        taken.map_err(|wait_secs| {
            let rate = self.config.rate;
            let per_sec = rate.messages_per_sec;
            let detail = format!("A sender may send {per_sec} messages a second; wait as Retry-After says.");
            Refusal::new(ErrorCode::RateLimited, detail)
                .with("limit_per_sec", per_sec.get())
                .with("burst", rate.burst_messages.get())
                .retry_after(wait_secs)
                .into()
        })
    }
}

#[cfg(test)]
mod tests;
