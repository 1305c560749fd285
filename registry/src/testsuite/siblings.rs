//! The contract of siblings: two registries of one hub over one store, over every implementation, each time fresh ones.

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use aip_protocol::challenge::challenge_object;
use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::error::ErrorCode;
use aip_protocol::identity::{Keys, OperationDraft};
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::{Did, Domain, Name};
use aip_protocol::signature::{Signature, Tag, sign};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use rand_core::{CryptoRng, TryCryptoRng, TryRng};

use super::fixtures::at;
use crate::secret::SecretHash;
use crate::siblings::{Siblings, Spend};
use crate::{MemoryStore, Registry, RegistryConfig, Seams, Standing};

const DOMAIN: &str = "hub.example";

/// Two processes.
#[derive(Debug)]
pub struct Context {
    /// Under test, one for each process.
    pub siblings: [Arc<dyn Siblings>; 2],
    /// Over one store.
    pub registries: [Arc<Registry>; 2],
    clock: Arc<ManualClock>,
    _ground: Box<dyn Any + Send + Sync>,
}

impl Context {
    /// `inform` lets a registry hear the other process; `ground` is what has to live as long as the two.
    pub fn new(
        siblings: [Arc<dyn Siblings>; 2],
        clock: Arc<ManualClock>,
        inform: impl Fn(usize, Weak<Registry>),
        ground: impl Any + Send + Sync,
    ) -> Self {
        let store = Arc::new(MemoryStore::new());
        let registry = |number: usize| {
            let seams = Seams {
                directory: Arc::<MemoryStore>::clone(&store),
                grants: Arc::<MemoryStore>::clone(&store),
                clock: Arc::<ManualClock>::clone(&clock),
                siblings: Arc::clone(&siblings[number]),
                challenge_key: [7; 32].into(),
                rng: rng(number),
            };
            let domain = Domain::parse(DOMAIN).unwrap();
            let registry = Arc::new(Registry::new(domain, RegistryConfig::default(), seams));
            inform(number, Arc::downgrade(&registry));
            registry
        };
        let registries = [registry(0), registry(1)];
        Self {
            siblings,
            registries,
            clock,
            _ground: Box::new(ground),
        }
    }

    /// Waits until the second process resolves an agent as told.
    async fn until(&self, did: &Did, standing: Option<Standing>) {
        for _ in 0..1_000 {
            let agent = self.registries[1].resolve(did).await.unwrap();
            if agent.map(|agent| agent.standing) == standing {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        unreachable!("the other process never sees the agent as {standing:?}");
    }
}

/// Numbers that differ from process to process, and are good for nothing else.
#[derive(Debug)]
struct Counter(u64);

impl TryRng for Counter {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.0 += 1;
        Ok(u32::try_from(self.0 & 0xffff_ffff).unwrap())
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.0 += 1;
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(8) {
            self.0 += 1;
            chunk.copy_from_slice(&self.0.to_be_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Counter {}

fn rng(number: usize) -> Box<dyn CryptoRng + Send> {
    Box::new(Counter(u64::try_from(number).unwrap() << 32))
}

struct Agent {
    did: Did,
    signing: SigningKey,
    wire: Vec<u8>,
}

impl Agent {
    fn new(name: &str, now: Timestamp) -> Self {
        let did = Did::parse(&format!("did:aip:{DOMAIN}:{name}")).unwrap();
        let (signing, rotation) = (SigningKey::from_seed([1; 32]), SigningKey::from_seed([2; 32]));
        let keys = Keys {
            signing: vec![signing.public().clone()],
            sealing: vec![OpeningKey::from_seed([3; 32]).public().clone()],
            rotation: vec![rotation.public().clone()],
        };
        let operation = OperationDraft::genesis(did.clone(), now, keys)
            .sign(&rotation)
            .unwrap();
        Self {
            did,
            signing,
            wire: operation.json.to_jcs(),
        }
    }

    fn name(&self) -> Name {
        self.did.handle().name
    }

    fn kid(&self) -> String {
        format!("{}#{}", self.did, self.signing.public().as_str())
    }

    fn answer(&self, challenge: &str) -> Signature {
        sign(
            &self.signing,
            Tag::Challenge,
            &challenge_object(DOMAIN, challenge, &self.did),
        )
    }
}

fn later() -> Timestamp {
    at(0) + Duration::from_mins(6)
}

/// The first to spend a challenge learns that it is fresh, everybody after that it is spent.
pub async fn a_challenge_is_fresh_once(ctx: Context) {
    let [one, other] = &ctx.siblings;
    let (first, second) = (SecretHash::of("first"), SecretHash::of("second"));
    assert_eq!(one.spend(&first, later()).await, Spend::Fresh);
    assert_eq!(other.spend(&first, later()).await, Spend::Spent);
    assert_eq!(one.spend(&first, later()).await, Spend::Spent);
    assert_eq!(other.spend(&second, later()).await, Spend::Fresh);
}

/// However many spend it at once.
pub async fn one_of_many_spends_a_challenge(ctx: Context) {
    let challenge = SecretHash::of("challenge");
    let tasks = (0..40).map(|number| {
        let siblings = Arc::clone(&ctx.siblings[number % 2]);
        tokio::spawn(async move { siblings.spend(&challenge, later()).await })
    });
    let (mut fresh, mut spent) = (0, 0);
    for task in tasks.collect::<Vec<_>>() {
        match task.await.unwrap() {
            Spend::Fresh => fresh += 1,
            Spend::Spent => spent += 1,
            Spend::Unknown => unreachable!("nobody could be asked"),
        }
    }
    assert_eq!((fresh, spent), (1, 39));
}

/// What one process changes is not believed in the other any more.
pub async fn a_change_is_seen_by_the_other(ctx: Context) {
    let alice = Agent::new("alice", ctx.clock.now());
    ctx.registries[0].register(&alice.wire, None).await.unwrap();
    ctx.until(&alice.did, Some(Standing::Active)).await;
    for standing in [Standing::Suspended, Standing::Active] {
        let here = &ctx.registries[0];
        here.set_standing(&alice.name(), standing).await.unwrap();
        ctx.until(&alice.did, Some(standing)).await;
    }
}

/// Nor that a name is free.
pub async fn a_registration_ends_an_absence(ctx: Context) {
    let alice = Agent::new("alice", ctx.clock.now());
    ctx.until(&alice.did, None).await;
    ctx.registries[0].register(&alice.wire, None).await.unwrap();
    ctx.until(&alice.did, Some(Standing::Active)).await;
}

/// A challenge of one process can be answered at the other, once.
pub async fn a_challenge_is_good_at_every_process_and_once(ctx: Context) {
    let [one, other] = &ctx.registries;
    let alice = Agent::new("alice", ctx.clock.now());
    one.register(&alice.wire, None).await.unwrap();
    let challenge = one.challenge(&alice.did).unwrap().challenge;
    let (kid, sig) = (alice.kid(), alice.answer(&challenge));
    let token = other.issue_token(&alice.did, &kid, &challenge, &sig).await;
    let token = token.unwrap().token;
    for registry in [one, other] {
        let again = registry.issue_token(&alice.did, &kid, &challenge, &sig);
        assert_eq!(again.await.unwrap_err().code(), ErrorCode::ChallengeInvalid);
        assert_eq!(
            registry.authenticate(&token).await.unwrap(),
            Some(alice.did.clone())
        );
    }
}

#[derive(Default)]
struct Home {
    registries: Vec<(usize, Weak<Registry>)>,
    spent: HashSet<SecretHash>,
}

/// Siblings in one process's memory.
pub struct Family {
    home: Arc<Mutex<Home>>,
    number: usize,
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({})", self.number)
    }
}

impl Family {
    /// Two processes.
    pub fn pair() -> [Arc<Self>; 2] {
        let home = Arc::<Mutex<Home>>::default();
        [0, 1].map(|number| {
            let home = Arc::clone(&home);
            Arc::new(Self { home, number })
        })
    }

    /// Lets a registry hear the others.
    pub fn inform(&self, registry: Weak<Registry>) {
        let mut home = self.home.lock().unwrap();
        home.registries.push((self.number, registry));
    }
}

#[async_trait]
impl Siblings for Family {
    fn changed(&self, did: &Did) {
        for (number, registry) in &self.home.lock().unwrap().registries {
            if let Some(registry) = registry.upgrade().filter(|_| *number != self.number) {
                let did = did.clone();
                tokio::spawn(async move { registry.forget(&did).await });
            }
        }
    }

    async fn spend(&self, challenge: &SecretHash, _until: Timestamp) -> Spend {
        let is_new = self.home.lock().unwrap().spent.insert(*challenge);
        if is_new { Spend::Fresh } else { Spend::Spent }
    }
}
