//! What the relay asks before it queues mail for another hub, and what delivery asks before it sends.

use std::num::NonZeroU32;
use std::sync::{Arc, Weak};
use std::time::Duration;

use aip_federation::delivery::{Delivery, LookUpError, PeerDirectory, PeerFacts};
use aip_federation::directory::Directory;
use aip_federation::peers::{FederationStore, PeerChange, PeerRecord, StoreError};
use aip_federation::policy::Policy;
use aip_protocol::clock::Clock;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use aip_relay::mailbox::{MailboxId, Quota};
use aip_relay::rate::SenderRates;
use aip_relay::relay::{PeerTerms, Peers};
use async_trait::async_trait;
use moka::sync::Cache;

/// Records that are held, so that not every message asks the database.
const RECORDS_HELD_MAX: u64 = 10_000;
/// How long a record is held: what the operator decided elsewhere counts after it at the latest.
const RECORD_HELD: Duration = Duration::from_secs(5);
/// Domains that this hub never met which one sender may send to in an hour, in one process: each becomes a peer that is kept
/// and looked after, and names cost nothing.
const NEW_PEERS_PER_HOUR: NonZeroU32 = NonZeroU32::new(100).unwrap();

/// The hubs of other domains, on their way out.
#[derive(Debug)]
pub struct Outgoing {
    store: Arc<dyn FederationStore>,
    policy: Arc<Policy>,
    clock: Arc<dyn Clock>,
    held: Cache<Domain, Arc<PeerRecord>>,
    /// How many domains each sender may have this hub meet.
    meetings: SenderRates,
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
            meetings: SenderRates::per_hour(NEW_PEERS_PER_HOUR, clock.clone()),
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

    /// What is known of a peer, which may be nothing.
    async fn known(&self, peer: &Domain) -> Result<Option<Arc<PeerRecord>>, Refusal> {
        if let Some(held) = self.held.get(peer) {
            return Ok(Some(held));
        }
        let found = self.store.peer(peer).await;
        let found = found.map_err(|error| unreadable(peer, &error))?;
        Ok(found.map(|record| self.hold(peer, record)))
    }

    fn hold(&self, peer: &Domain, record: PeerRecord) -> Arc<PeerRecord> {
        let record = Arc::new(record);
        self.held.insert(peer.clone(), Arc::clone(&record));
        record
    }

    fn take_meeting(&self, sender: &Did) -> Result<(), Refusal> {
        let taken = self.meetings.take(MailboxId::of(sender).as_bytes());
        taken.map_err(|wait_secs| {
            let per_hour = NEW_PEERS_PER_HOUR;
            let detail = format!(
                "A sender may send to {per_hour} domains an hour that this hub never met; wait as Retry-After says."
            );
            Refusal::new(ErrorCode::RateLimited, detail)
                .with("limit_per_hour", per_hour.get())
                .retry_after(wait_secs)
        })
    }
}

#[async_trait]
impl Peers for Outgoing {
    async fn admit(&self, peer: &Domain, _sender: &Did) -> Result<PeerTerms, Refusal> {
        let known = self.known(peer).await?;
        self.policy.outgoing(peer, known.as_deref())?;
        let caps = self.policy.queue(known.as_deref());
        Ok(PeerTerms::of_outbox(Quota {
            mailbox_messages: caps.items,
            mailbox_bytes: caps.bytes,
            sender_messages: caps.items_per_sender,
        }))
    }

    async fn meet(&self, peer: &Domain, sender: &Did) -> Result<(), Refusal> {
        if self.known(peer).await?.is_none() {
            self.take_meeting(sender)?;
            let met = self.store.change(peer, PeerChange::Met, self.clock.now()).await;
            self.hold(peer, met.map_err(|error| unreadable(peer, &error))?);
        }
        Ok(())
    }

    fn queued(&self, peer: &Domain) {
        if let Some(delivery) = self.delivery.get().and_then(Weak::upgrade) {
            delivery.wake(peer);
        }
    }
}

/// What is refused while the record of a peer cannot be read.
pub(super) fn unreadable(peer: &Domain, error: &StoreError) -> Refusal {
    tracing::warn!(peer = %peer, %error, "The record of a peer cannot be read");
    let detail = "This hub cannot look up what it knows of that domain; try again.";
    Refusal::new(ErrorCode::Unavailable, detail)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aip_federation::peers::{PeerStore as _, Stance};
    use aip_federation::policy::{Mode, QueueCaps};
    use aip_protocol::clock::ManualClock;
    use aip_protocol::time::Timestamp;
    use aip_registry::MemoryStore;

    use super::*;

    fn domain(text: &str) -> Domain {
        Domain::parse(text).unwrap()
    }

    fn agent(name: &str) -> Did {
        Did::parse(&format!("did:aip:own.example:{name}")).unwrap()
    }

    fn policy() -> Policy {
        Policy {
            own: domain("own.example"),
            mode: Mode::Open,
            allowed: BTreeSet::new(),
            blocked: BTreeSet::from([domain("blocked.example")]),
            ramp: true,
            items_per_sec: 500,
            bytes_per_sec: 1024 * 1024,
            queue: QueueCaps::default(),
        }
    }

    async fn sends(outgoing: &Outgoing, peer: &str, sender: &Did) -> Result<(), Refusal> {
        outgoing.admit(&domain(peer), sender).await?;
        outgoing.meet(&domain(peer), sender).await
    }

    #[tokio::test]
    async fn one_sender_has_this_hub_meet_so_many_domains_an_hour_and_no_more() {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_796_000_000_000)));
        let outgoing = Outgoing::new(store.clone(), Arc::new(policy()), clock.clone());
        let (alice, bob) = (agent("alice"), agent("bob"));
        for number in 0..NEW_PEERS_PER_HOUR.get() {
            let refused = sends(&outgoing, "blocked.example", &alice).await;
            assert_eq!(refused.unwrap_err().code, ErrorCode::PeerBlocked);
            let made_up = format!("made-up-{number}.example");
            sends(&outgoing, &made_up, &alice).await.unwrap();
            // Again, which costs nothing, held or not.
            outgoing.forget(&domain(&made_up));
            sends(&outgoing, &made_up, &alice).await.unwrap();
        }
        let refusal = sends(&outgoing, "next.example", &alice).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::RateLimited);
        assert_eq!(
            refusal.members,
            [("limit_per_hour", serde_json::Value::from(100))]
        );
        assert_eq!(refusal.retry_after_secs, Some(36));
        let next = store.peer(&domain("next.example")).await.unwrap();
        assert!(next.is_none(), "it left nothing behind");
        sends(&outgoing, "made-up-7.example", &alice).await.unwrap();
        sends(&outgoing, "of-bob.example", &bob).await.unwrap();
        sends(&outgoing, "of-bob.example", &alice).await.unwrap();
        clock.advance(Duration::from_secs(36));
        sends(&outgoing, "next.example", &alice).await.unwrap();
        sends(&outgoing, "after.example", &alice).await.unwrap_err();
    }

    fn of_allowlist() -> (Outgoing, Arc<MemoryStore>) {
        let store = Arc::new(MemoryStore::new());
        let policy = Policy {
            mode: Mode::Allowlist,
            allowed: BTreeSet::from([domain("listed.example")]),
            blocked: BTreeSet::from([domain("two.example")]),
            ..policy()
        };
        let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
        (Outgoing::new(store.clone(), Arc::new(policy), clock), store)
    }

    async fn code(outgoing: &Outgoing, peer: &str) -> Option<ErrorCode> {
        let admitted = outgoing.admit(&domain(peer), &agent("alice")).await;
        admitted.err().map(|refusal| refusal.code)
    }

    #[tokio::test]
    async fn what_the_operator_decided_about_a_peer_wins_over_the_settings() {
        let (outgoing, store) = of_allowlist();
        for peer in ["two.example", "three.example"] {
            assert_eq!(
                code(&outgoing, peer).await,
                Some(ErrorCode::PeerBlocked),
                "{peer}"
            );
            let domain = domain(peer);
            let allowed = PeerChange::Stance(Stance::Allowed);
            let changed = store.change(&domain, allowed, Timestamp::UNIX_EPOCH);
            changed.await.unwrap();
            assert_eq!(code(&outgoing, peer).await, None, "{peer}");
            let blocked = PeerChange::Stance(Stance::Blocked);
            let changed = store.change(&domain, blocked, Timestamp::UNIX_EPOCH);
            changed.await.unwrap();
            outgoing.forget(&domain);
            assert_eq!(
                code(&outgoing, peer).await,
                Some(ErrorCode::PeerBlocked),
                "{peer}"
            );
        }
    }

    #[tokio::test]
    async fn a_peer_is_known_once_mail_is_to_wait_for_it() {
        let (outgoing, store) = of_allowlist();
        let listed = domain("listed.example");
        assert_eq!(code(&outgoing, "listed.example").await, None);
        assert!(store.peer(&listed).await.unwrap().is_none());
        outgoing.meet(&listed, &agent("alice")).await.unwrap();
        assert!(store.peer(&listed).await.unwrap().is_some());
    }
}
