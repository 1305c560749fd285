//! The service with everything around it replaced: a map of identities, a store in memory that can be told to fail,
//! an outbound door that leads nowhere, a clock that stands still.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aip_federation::egress::fake::FakeOutbound;
use aip_protocol::clock::ManualClock;
use aip_protocol::envelope::{Envelope, EnvelopeDraft, new_id};
use aip_protocol::identity::{Identity, Keys, OperationDraft, RouteMode};
use aip_protocol::json::{Json, Object};
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::{Domain, Name};
use aip_protocol::signature::{Tag, sign};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::admission::LocalAgent;
use crate::mailbox::{Epoch, Fetch, Mailboxes, Select};
use crate::presence::{Attached, Joining};
use crate::rate::SenderRates;
use crate::session::{Position, SessionId};

mod batches;
mod endpoints;
mod federation;
mod reception;
mod refusals;
mod store;
mod storing;

use store::TestStore;

const START_MS: i64 = 1_796_000_000_000;
const ENDPOINT: &str = "https://bob.example/aip";

/// The agents of the hub, and how often it was asked for one.
#[derive(Debug, Default)]
struct Map {
    agents: Mutex<HashMap<Did, LocalAgent>>,
    lookups: AtomicUsize,
    broken: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl IdentitySource for Map {
    async fn agent(&self, did: &Did) -> Result<Option<LocalAgent>, SourceError> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        if self.broken.load(Ordering::SeqCst) {
            return Err(SourceError("the database is away".into()));
        }
        Ok(self.agents.lock().unwrap().get(did).cloned())
    }
}

/// An agent with all its keys.
struct Agent {
    did: Did,
    signing: SigningKey,
    opening: OpeningKey,
    rotation: SigningKey,
}

/// The relay and what it is plugged into.
struct Bench {
    relay: Arc<Relay>,
    clock: Arc<ManualClock>,
    identities: Arc<Map>,
    store: Arc<TestStore>,
    outbound: Arc<FakeOutbound>,
    presence: Arc<Presence>,
    rng: Mutex<StdRng>,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut RelayConfig)) -> Self {
        Self::among(None, change)
    }

    fn among(peers: Option<Arc<dyn Peers>>, change: impl FnOnce(&mut RelayConfig)) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(START_MS)));
        let identities = Arc::new(Map::default());
        let store = Arc::new(TestStore::new());
        let outbound = Arc::new(FakeOutbound::new([]));
        let presence = Presence::new();
        let mut config = RelayConfig::new(Domain::parse("hub.example").unwrap());
        change(&mut config);
        let seams = Seams {
            clock: clock.clone(),
            identities: identities.clone(),
            store: store.clone(),
            outbound: outbound.clone(),
            presence: presence.clone(),
            buckets: Arc::new(SenderRates::new(config.rate, clock.clone())),
            peers,
        };
        let relay = Relay::new(config, seams, Box::new(StdRng::seed_from_u64(2)));
        Self {
            relay,
            clock,
            identities,
            store,
            outbound,
            presence,
            rng: Mutex::new(StdRng::seed_from_u64(3)),
        }
    }

    /// An agent that has existed for a day, not registered.
    fn stranger(&self, name: &str) -> Agent {
        self.stranger_at("hub.example", name)
    }

    fn stranger_at(&self, domain: &str, name: &str) -> Agent {
        let mut rng = self.rng.lock().unwrap();
        Agent {
            did: Did::parse(&format!("did:aip:{domain}:{name}")).unwrap(),
            signing: SigningKey::generate(&mut *rng),
            opening: OpeningKey::generate(&mut *rng),
            rotation: SigningKey::generate(&mut *rng),
        }
    }

    fn agent(&self, name: &str) -> Agent {
        let agent = self.stranger(name);
        self.register(&agent, None);
        agent
    }

    /// An agent in direct mode at [`ENDPOINT`].
    fn direct_agent(&self, name: &str) -> Agent {
        let agent = self.stranger(name);
        self.register(&agent, Some(ENDPOINT));
        agent
    }

    fn register(&self, agent: &Agent, endpoint: Option<&str>) {
        let keys = Keys {
            signing: vec![agent.signing.public().clone()],
            sealing: vec![agent.opening.public().clone()],
            rotation: vec![agent.rotation.public().clone()],
        };
        let created_at = Timestamp::from_unix_millis(START_MS - 86_400_000);
        let mut draft = OperationDraft::genesis(agent.did.clone(), created_at, keys);
        if let Some(endpoint) = endpoint {
            draft.route_mode = RouteMode::Direct;
            draft.endpoint = Some(endpoint.to_owned());
        }
        let identity = Identity::genesis(draft.sign(&agent.rotation).unwrap()).unwrap();
        self.set(LocalAgent {
            identity,
            suspended: false,
            quota: None,
        });
    }

    fn set(&self, agent: LocalAgent) {
        self.identities
            .agents
            .lock()
            .unwrap()
            .insert(agent.identity.did().clone(), agent);
    }

    fn change(&self, agent: &Agent, change: impl FnOnce(&mut LocalAgent)) {
        let mut agents = self.identities.agents.lock().unwrap();
        change(agents.get_mut(&agent.did).unwrap());
    }

    fn deactivate(&self, agent: &Agent) {
        self.change(agent, |known| {
            let mut draft = known.identity.next_draft(Timestamp::from_unix_millis(START_MS));
            draft.deactivated = true;
            known.identity = known
                .identity
                .apply(draft.sign(&agent.rotation).unwrap())
                .unwrap();
        });
    }

    fn draft(&self, from: &Agent, to: &Agent) -> EnvelopeDraft {
        let id = new_id(&mut *self.rng.lock().unwrap());
        EnvelopeDraft::new(
            id,
            from.did.clone(),
            to.did.clone(),
            "aip.message",
            self.clock.now(),
        )
    }

    fn seal(&self, draft: EnvelopeDraft, from: &Agent, to: &Agent) -> Envelope {
        draft
            .seal(
                &from.signing,
                to.opening.public(),
                b"{}",
                &mut *self.rng.lock().unwrap(),
            )
            .unwrap()
    }

    fn envelope(&self, from: &Agent, to: &Agent) -> Envelope {
        self.seal(self.draft(from, to), from, to)
    }

    async fn submit(&self, wire: impl Into<Bytes>, door: &Door) -> Result<Submission, SendError> {
        self.relay.submit(wire.into(), door).await
    }

    async fn send(&self, envelope: &Envelope) -> Result<Submission, SendError> {
        self.submit(envelope.to_wire(), &Door::Home).await
    }

    async fn code(&self, wire: impl Into<Bytes>, door: &Door) -> &'static str {
        match self.submit(wire, door).await {
            Ok(submission) => submission.status.as_str(),
            Err(error) => error.code().as_str(),
        }
    }

    /// The wire bytes that wait for an agent, in order.
    async fn waiting(&self, agent: &Agent) -> Vec<Bytes> {
        let fetch = Fetch {
            select: Select::After(0),
            max_messages: 1_000,
            max_bytes: usize::MAX,
            now: self.clock.now(),
        };
        let messages = self.store.fetch(&MailboxId::of(&agent.did), fetch).await.unwrap();
        messages.into_iter().map(|message| message.wire).collect()
    }

    /// What the agent's only session hears of its messages, from now on.
    async fn listen(&self, agent: &Agent) -> (Attached, SessionId) {
        let attached = self.presence.attach(MailboxId::of(&agent.did)).await;
        let session = SessionId::from_random(1);
        let position = Position {
            epoch: Epoch::from_random(1),
            floor: 0,
            next_seq: 1,
        };
        let joining = Joining {
            session,
            share: false,
            credit: 10,
            position,
            generation: 0,
        };
        let (_bell, _effects) = attached.join(self.clock.now(), joining);
        (attached, session)
    }

    fn lookups(&self) -> usize {
        self.identities.lookups.swap(0, Ordering::SeqCst)
    }

    fn refused(&self, code: &str) -> u64 {
        self.relay
            .stats()
            .refused()
            .find(|(known, _)| known.as_str() == code)
            .map_or(0, |(_, count)| count)
    }
}

/// The envelope with members changed, signed again by `signer`.
fn resigned(envelope: &Envelope, signer: &SigningKey, change: impl FnOnce(&mut Object)) -> Vec<u8> {
    let mut object = envelope.json.as_object().unwrap().clone();
    object.remove("sig");
    change(&mut object);
    let sig = sign(signer, Tag::Envelope, &Json::Object(object.clone()));
    object.insert("sig", sig.to_string());
    Json::Object(object).to_jcs()
}

/// The envelope with members changed and the old signature.
fn forged(envelope: &Envelope, change: impl FnOnce(&mut Object)) -> Vec<u8> {
    let mut object = envelope.json.as_object().unwrap().clone();
    change(&mut object);
    Json::Object(object).to_jcs()
}

fn at(offset_ms: i64) -> Timestamp {
    Timestamp::from_unix_millis(START_MS + offset_ms)
}

fn slow_rate(burst: u32) -> crate::rate::Rate {
    let one = NonZeroU32::MIN;
    crate::rate::Rate {
        messages_per_sec: one,
        burst_messages: NonZeroU32::new(burst).unwrap(),
    }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
