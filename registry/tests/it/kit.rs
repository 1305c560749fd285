//! What the tests are made of: agents with real keys, registries over any store, a clock that waits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::challenge::challenge_object;
use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::identity::{Identity, Keys, Operation, OperationDraft};
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::{Did, Domain, Name};
use aip_protocol::signature::{Signature, Tag, sign};
use aip_protocol::time::Timestamp;
use aip_registry::{
    AloneSiblings, Directory, Grants, MemoryStore, Registry, RegistryConfig, Seams, SqlStore,
};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sha2::{Digest, Sha256};

pub(crate) const DOMAIN: &str = "hub.example";

pub(crate) fn domain() -> Domain {
    Domain::parse(DOMAIN).expect("a domain")
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-11-29T20:15:30.123Z").expect("a time")
}

pub(crate) async fn sqlite(folder: &Path) -> SqlStore {
    SqlStore::open_sqlite(&folder.join("registry.sqlite"), &domain())
        .await
        .expect("a store")
}

/// A registry with its clock in the test's hand.
pub(crate) struct Hub {
    pub(crate) registry: Arc<Registry>,
    pub(crate) clock: Arc<ManualClock>,
}

impl Hub {
    pub(crate) fn over<S: Directory + Grants + 'static>(store: Arc<S>, config: RegistryConfig) -> Self {
        let clock = Arc::new(ManualClock::new(start()));
        let seams = Seams {
            directory: Arc::<S>::clone(&store),
            grants: store,
            clock: Arc::<ManualClock>::clone(&clock),
            siblings: Arc::new(AloneSiblings),
            challenge_key: [7; 32].into(),
            rng: Box::new(StdRng::seed_from_u64(1)),
        };
        Self {
            registry: Arc::new(Registry::new(domain(), config, seams)),
            clock,
        }
    }

    pub(crate) fn in_memory(config: RegistryConfig) -> Self {
        Self::over(Arc::new(MemoryStore::new()), config)
    }

    pub(crate) fn open() -> Self {
        Self::in_memory(RegistryConfig::default())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn wait(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    /// A registered agent.
    pub(crate) async fn agent(&self, agent: &str) -> Agent {
        let agent = Agent::new(agent, self.now());
        self.registry
            .register(&agent.wire(), None)
            .await
            .expect("registered");
        agent
    }

    /// A token for an agent, by its newest signing key.
    pub(crate) async fn token(&self, agent: &Agent) -> String {
        let challenge = self
            .registry
            .challenge(&agent.did)
            .expect("a challenge")
            .challenge;
        let sig = agent.answer(&challenge, DOMAIN);
        self.registry
            .issue_token(&agent.did, &agent.kid(), &challenge, &sig)
            .await
            .expect("a token")
            .token
    }
}

/// An agent's own side: its keys and its history.
#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) did: Did,
    pub(crate) identity: Identity,
    pub(crate) signing: Arc<SigningKey>,
    pub(crate) rotation: Arc<SigningKey>,
}

impl Agent {
    pub(crate) fn new(agent: &str, created_at: Timestamp) -> Self {
        Self::at(&format!("did:aip:{DOMAIN}:{agent}"), created_at)
    }

    pub(crate) fn at(did: &str, created_at: Timestamp) -> Self {
        let did = Did::parse(did).expect("a DID");
        let (signing, rotation) = (key(&did, "signing"), key(&did, "rotation"));
        let keys = Keys {
            signing: vec![signing.public().clone()],
            sealing: vec![OpeningKey::from_seed([9; 32]).public().clone()],
            rotation: vec![rotation.public().clone()],
        };
        let genesis = OperationDraft::genesis(did.clone(), created_at, keys)
            .sign(&rotation)
            .expect("signed");
        let identity = Identity::genesis(genesis).expect("an identity");
        Self {
            did,
            identity,
            signing: Arc::new(signing),
            rotation: Arc::new(rotation),
        }
    }

    /// The newest operation's bytes.
    pub(crate) fn wire(&self) -> Vec<u8> {
        wire(self.identity.head())
    }

    pub(crate) fn kid(&self) -> String {
        format!("{}#{}", self.did, self.signing.public())
    }

    /// The same agent after one more operation, which `edit` made.
    pub(crate) fn next(&self, created_at: Timestamp, edit: impl FnOnce(&mut OperationDraft)) -> Self {
        let mut draft = self.identity.next_draft(created_at);
        edit(&mut draft);
        let operation = draft.sign(&self.rotation).expect("signed");
        Self {
            identity: self.identity.apply(operation).expect("applied"),
            ..self.clone()
        }
    }

    /// The same agent with a fresh signing key in place of the old one.
    pub(crate) fn rotated(&self, created_at: Timestamp, is_compromised: bool) -> Self {
        let fresh = key(&self.did, &format!("signing {}", self.identity.seq() + 1));
        let old = self.signing.public().to_string();
        let after = self.next(created_at, |draft| {
            draft.keys.signing = vec![fresh.public().clone()];
            draft.revoked = if is_compromised { vec![old] } else { Vec::new() };
        });
        Self {
            signing: Arc::new(fresh),
            ..after
        }
    }

    pub(crate) fn answer(&self, challenge: &str, audience: &str) -> Signature {
        sign(
            &self.signing,
            Tag::Challenge,
            &challenge_object(audience, challenge, &self.did),
        )
    }
}

pub(crate) fn wire(operation: &Operation) -> Vec<u8> {
    operation.json.to_jcs()
}

/// A key that depends on nothing but whose it is and what for.
fn key(did: &Did, what: &str) -> SigningKey {
    SigningKey::from_seed(Sha256::digest(format!("{did} {what}")).into())
}
