//! A hub that receives, and hubs that push to it: the real directory and the real look-ups of agents on a scripted network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::envelope::{EnvelopeDraft, new_id};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::{Did, Domain};
use aip_protocol::peer::AdmittedItem;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::*;
use crate::directory::{Directory, DirectorySeams, DirectorySettings};
use crate::egress::fake::FakeExchange;
use crate::identities::{IdentityLimits, IdentitySeams, RemoteIdentities};
use crate::outbox::fake::FakeOutbox;
use crate::peers::fake::FakeStore;
use crate::peers::{Noted, ReceivedStore as _};
use crate::policy::{Mode, QueueCaps};
use crate::testsuite::{FakeAgent, FakeHub};

mod arrivals;
mod doors;
mod epochs;
mod hostile;
mod items;
mod order;
mod property;
mod signing;

use signing::Signing;

const OWN: &str = "own.example";
const PEER: &str = "peer.example";
/// Where the peer's requests come from.
const HOME: &str = "198.51.100.7";

/// This hub's agents: a set of names, and what was delivered to them, once for each dedup key.
#[derive(Debug, Default)]
struct FakeLocal {
    agents: BTreeSet<Did>,
    /// What to say to items for these instead of taking them.
    told: Mutex<BTreeMap<Did, Reception>>,
    taken: Mutex<Vec<(Uuid, Bytes)>>,
    met: Mutex<BTreeSet<[u8; 16]>>,
    /// While this is so, nobody is delivered to.
    held: watch::Sender<bool>,
    /// Told when somebody is to be delivered to.
    reached: Notify,
}

impl FakeLocal {
    fn tell(&self, agent: &Did, reception: Option<Reception>) {
        let mut told = self.told.lock().unwrap();
        match reception {
            Some(reception) => told.insert(agent.clone(), reception),
            None => told.remove(agent),
        };
    }

    fn ids(&self) -> Vec<Uuid> {
        self.taken.lock().unwrap().iter().map(|(id, _)| *id).collect()
    }
}

#[async_trait]
impl Local for FakeLocal {
    async fn deliver(&self, item: AdmittedItem, wire: Bytes) -> Reception {
        // Others have their turn in between, as they do before a real store.
        tokio::task::yield_now().await;
        self.reached.notify_one();
        drop(self.held.subscribe().wait_for(|held| !held).await);
        if let Some(told) = self.told.lock().unwrap().get(&item.envelope.to) {
            return *told;
        }
        if !self.met.lock().unwrap().insert(item.envelope.dedup_key()) {
            return Reception::Duplicate;
        }
        self.taken.lock().unwrap().push((item.envelope.id, wire));
        Reception::Stored
    }

    async fn knows(&self, did: &Did) -> bool {
        self.agents.contains(did)
    }
}

#[derive(Debug, Default)]
struct FakeStatuses(Mutex<BTreeMap<Uuid, MailStatus>>);

#[async_trait]
impl Statuses for FakeStatuses {
    async fn status(&self, _from: &Did, _to: &Did, id: Uuid) -> Result<Option<MailStatus>, Refusal> {
        Ok(self.0.lock().unwrap().get(&id).cloned())
    }
}

#[derive(Debug, Default)]
struct Ears(AtomicU64);

impl Heard for Ears {
    fn heard(&self, _peer: &Domain) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A hub that receives, its agent, a peer and the peer's agent.
struct World {
    net: Arc<FakeExchange>,
    store: Arc<FakeStore>,
    outbox: Arc<FakeOutbox>,
    local: Arc<FakeLocal>,
    statuses: Arc<FakeStatuses>,
    ears: Arc<Ears>,
    clock: Arc<ManualClock>,
    inbound: Arc<Inbound>,
    peer: FakeHub,
    alice: FakeAgent,
    bob: Did,
    rng: Mutex<StdRng>,
}

fn policy() -> Policy {
    Policy {
        own: Domain::parse(OWN).unwrap(),
        mode: Mode::Open,
        allowed: BTreeSet::new(),
        blocked: BTreeSet::new(),
        ramp: false,
        items_per_sec: 1_000_000,
        bytes_per_sec: 1 << 40,
        queue: QueueCaps::default(),
    }
}

impl World {
    fn new() -> Self {
        Self::with(policy())
    }

    fn with(policy: Policy) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_secs(1_796_000_000)));
        let (net, store) = (Arc::new(FakeExchange::new()), Arc::new(FakeStore::new()));
        let bob = Did::parse("did:aip:own.example:bob").unwrap();
        let local = Arc::new(FakeLocal {
            agents: BTreeSet::from([bob.clone(), Did::parse("did:aip:own.example:carol").unwrap()]),
            ..FakeLocal::default()
        });
        let (outbox, statuses, ears) = (Arc::new(FakeOutbox::new()), Arc::default(), Arc::default());
        let peer = FakeHub::new(PEER, 1);
        let alice = peer.agent("alice", 2, clock.now() - Duration::from_hours(1));
        peer.publish(&net, clock.now());
        peer.serve(&net, &alice);
        let directory = Directory::new(
            DirectorySettings::new(policy.own.clone()),
            DirectorySeams {
                store: store.clone(),
                exchange: net.clone(),
                clock: clock.clone(),
            },
            Box::new(StdRng::seed_from_u64(5)),
        );
        let identities = RemoteIdentities::new(
            IdentityLimits::default(),
            IdentitySeams {
                directory: directory.clone(),
                store: store.clone(),
                exchange: net.clone(),
                clock: clock.clone(),
            },
        );
        let settings = InboundSettings {
            policy: Arc::new(policy),
            envelope_bytes_max: 256 * 1024,
            verifications_max: 2,
        };
        let seams = Seams {
            documents: Arc::new(directory),
            senders: Arc::new(identities),
            store: store.clone(),
            local: local.clone(),
            outbox: outbox.clone(),
            statuses: Arc::clone(&statuses) as Arc<dyn Statuses>,
            heard: Arc::clone(&ears) as Arc<dyn Heard>,
            clock: clock.clone(),
        };
        Self {
            inbound: Inbound::new(settings, seams),
            net,
            store,
            outbox,
            local,
            statuses,
            ears,
            clock,
            peer,
            alice,
            bob,
            rng: Mutex::new(StdRng::seed_from_u64(9)),
        }
    }

    /// An envelope of an agent for one of ours.
    fn envelope(&self, from: &FakeAgent, to: &Did) -> (Uuid, String) {
        self.envelope_at(from, to, self.clock.now())
    }

    fn envelope_at(&self, from: &FakeAgent, to: &Did, created_at: Timestamp) -> (Uuid, String) {
        let mut rng = self.rng.lock().unwrap();
        let id = new_id(&mut *rng);
        let draft = EnvelopeDraft::new(id, from.did.clone(), to.clone(), "aip.message", created_at);
        let opening = OpeningKey::from_seed([77; 32]);
        let envelope = draft.seal(&from.signing, opening.public(), b"{}", &mut *rng);
        (id, String::from_utf8(envelope.unwrap().to_wire()).unwrap())
    }

    fn item(&self, seq: u64, envelope: &str) -> String {
        let now = self.clock.now();
        format!(r#"{{"peer_seq":{seq},"accepted_at":"{now}","envelope":{envelope}}}"#)
    }

    /// An item with a new message from alice to bob.
    fn mail(&self, seq: u64) -> (Uuid, String) {
        let (id, envelope) = self.envelope(&self.alice, &self.bob);
        (id, self.item(seq, &envelope))
    }

    fn batch(&self, items: &[String]) -> Bytes {
        batch_of(&self.peer.domain, &self.peer.epoch, items)
    }

    async fn push(&self, items: &[String]) -> Result<PushAnswer, Refusal> {
        self.send(self.sign_push(&self.batch(items)), self.batch(items))
            .await
    }

    /// Has these settled, whatever they were.
    async fn settle(&self, seqs: impl IntoIterator<Item = u64>) {
        let stored = |peer_seq| Noted {
            peer_seq,
            refused: None,
        };
        let noted: Vec<Noted> = seqs.into_iter().map(stored).collect();
        self.store.note(&self.peer.domain, "1", &noted).await.unwrap();
    }

    /// The receptions of a push that was taken.
    async fn results(&self, items: &[String]) -> Vec<Reception> {
        let answer = self.push(items).await.unwrap();
        answer.results.iter().map(|result| result.reception).collect()
    }

    async fn send(&self, incoming: Incoming, body: Bytes) -> Result<PushAnswer, Refusal> {
        let bytes = u64::try_from(body.len()).unwrap();
        let ticket = self.inbound.knock(Call::Push, incoming, Some(bytes))?;
        self.inbound.push(ticket, body).await
    }

    fn sign_push(&self, body: &[u8]) -> Incoming {
        Signing::of(&self.peer).push(self, body)
    }

    fn nonce(&self) -> String {
        new_id(&mut *self.rng.lock().unwrap()).to_string()
    }

    /// Requests that went out to this URL.
    fn asked(&self, url: &str) -> usize {
        self.net.count(url)
    }

    fn counts(&self) -> Counts {
        self.inbound.counters().read()
    }
}

fn batch_of(domain: &Domain, epoch: &str, items: &[String]) -> Bytes {
    let items = items.join(",");
    format!(r#"{{"aip":"1","domain":"{domain}","epoch":"{epoch}","items":[{items}]}}"#).into()
}

fn code<T: Debug>(result: Result<T, Refusal>) -> ErrorCode {
    result.unwrap_err().code
}

const fn refused(code: ErrorCode) -> Reception {
    Reception::Refused(code)
}
