//! What the relay asks before it queues mail for another hub, and what delivery asks before it sends.

use std::sync::{Arc, Weak};
use std::time::Duration;

use aip_federation::delivery::{Delivery, LookUpError, PeerDirectory, PeerFacts};
use aip_federation::directory::Directory;
use aip_federation::peers::{FederationStore, PeerChange, PeerRecord};
use aip_federation::policy::Policy;
use aip_protocol::clock::Clock;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use aip_relay::mailbox::Quota;
use aip_relay::relay::{PeerTerms, Peers};
use async_trait::async_trait;
use moka::sync::Cache;

/// Records that are held, so that not every message asks the database.
const RECORDS_HELD_MAX: u64 = 10_000;
/// How long a record is held: what the operator decided elsewhere counts after it at the latest.
const RECORD_HELD: Duration = Duration::from_secs(5);

/// The hubs of other domains, on their way out.
#[derive(Debug)]
pub struct Outgoing {
    store: Arc<dyn FederationStore>,
    policy: Arc<Policy>,
    clock: Arc<dyn Clock>,
    held: Cache<Domain, Arc<PeerRecord>>,
    /// Set once delivery exists, which is made after the relay.
    delivery: std::sync::OnceLock<Weak<Delivery>>,
}

impl Outgoing {
    pub(crate) fn new(store: Arc<dyn FederationStore>, policy: Arc<Policy>, clock: Arc<dyn Clock>) -> Self {
        let held = Cache::builder()
            .max_capacity(RECORDS_HELD_MAX)
            .time_to_live(RECORD_HELD);
        Self {
            store,
            policy,
            clock,
            held: held.build(),
            delivery: std::sync::OnceLock::new(),
        }
    }

    /// Whom to wake when mail is queued.
    pub(super) fn wake(&self, delivery: &Arc<Delivery>) {
        // Set once, at start.
        self.delivery.get_or_init(|| Arc::downgrade(delivery));
    }

    /// Forgets what is held of a peer about which something was decided.
    pub(super) fn forget(&self, peer: &Domain) {
        self.held.invalidate(peer);
    }

    /// The record of a peer, which is met with the first message for it: from then on its outbox is looked after.
    async fn record(&self, peer: &Domain) -> Result<Arc<PeerRecord>, Refusal> {
        if let Some(held) = self.held.get(peer) {
            return Ok(held);
        }
        let found = match self.store.peer(peer).await {
            Ok(Some(record)) => Ok(record),
            Ok(None) => self.store.change(peer, PeerChange::Met, self.clock.now()).await,
            Err(error) => Err(error),
        };
        let record = Arc::new(found.map_err(|error| {
            tracing::warn!(peer = %peer, %error, "The record of a peer cannot be read");
            let detail = "This hub cannot look up what it knows of that domain; try again.";
            Refusal::new(ErrorCode::Unavailable, detail)
        })?);
        self.held.insert(peer.clone(), Arc::clone(&record));
        Ok(record)
    }
}

#[async_trait]
impl Peers for Outgoing {
    async fn admit(&self, peer: &Domain, _sender: &Did) -> Result<PeerTerms, Refusal> {
        // Before it is met: a name that the policy refuses leaves nothing behind.
        self.policy.outgoing(peer, self.held.get(peer).as_deref())?;
        let record = self.record(peer).await?;
        self.policy.outgoing(peer, Some(&record))?;
        let caps = self.policy.queue(Some(&record));
        Ok(PeerTerms::of_outbox(Quota {
            mailbox_messages: caps.items,
            mailbox_bytes: caps.bytes,
            sender_messages: caps.items_per_sender,
        }))
    }

    fn queued(&self, peer: &Domain) {
        if let Some(delivery) = self.delivery.get().and_then(Weak::upgrade) {
            delivery.wake(peer);
        }
    }
}

/// Where peers are, for those that mail may go to.
#[derive(Debug)]
pub(super) struct Whereabouts {
    pub(super) directory: Arc<Directory>,
    pub(super) store: Arc<dyn FederationStore>,
    pub(super) policy: Arc<Policy>,
}

#[async_trait]
impl PeerDirectory for Whereabouts {
    async fn facts(&self, domain: &Domain, fresh: bool) -> Result<PeerFacts, LookUpError> {
        let record = self
            .store
            .peer(domain)
            .await
            .map_err(|_error| LookUpError::Unavailable)?;
        if self.policy.outgoing(domain, record.as_ref()).is_err() {
            return Err(LookUpError::Blocked);
        }
        self.directory.facts(domain, fresh).await
    }
}
