//! Several registries over one store.

use std::sync::{Arc, Weak};

use aip_protocol::clock::ManualClock;
use aip_registry::testsuite::siblings::{Context, Family};
use aip_registry::{
    AloneSiblings, MemoryStore, Registry, RegistryConfig, Seams, Siblings, Spend, Standing,
    secret::SecretHash,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::kit::{Agent, domain, name, start};

fn family() -> Context {
    let members = Family::pair();
    let siblings = [0, 1].map(|number: usize| Arc::<Family>::clone(&members[number]) as Arc<dyn Siblings>);
    let inform = |number: usize, registry: Weak<Registry>| members[number].inform(registry);
    Context::new(siblings, Arc::new(ManualClock::new(start())), inform, ())
}

aip_registry::stamp_siblings!(family());

fn alone(store: &Arc<MemoryStore>) -> Registry {
    let seams = Seams {
        directory: Arc::<MemoryStore>::clone(store),
        grants: Arc::<MemoryStore>::clone(store),
        clock: Arc::new(ManualClock::new(start())),
        siblings: Arc::new(AloneSiblings),
        challenge_key: [7; 32].into(),
        rng: Box::new(StdRng::seed_from_u64(1)),
    };
    Registry::new(domain(), RegistryConfig::default(), seams)
}

#[tokio::test]
async fn after_lost_news_everything_is_read_anew() {
    let store = Arc::new(MemoryStore::new());
    let (one, other) = (alone(&store), alone(&store));
    let (alice, bob) = (Agent::new("alice", start()), Agent::new("bob", start()));
    one.register(&alice.wire(), None).await.expect("registered");
    let standing = async |agent: &Agent| {
        let found = other.resolve(&agent.did).await.expect("resolved");
        found.map(|agent| agent.standing)
    };
    assert_eq!(standing(&alice).await, Some(Standing::Active));
    assert_eq!(standing(&bob).await, None);
    one.set_standing(&name("alice"), Standing::Suspended)
        .await
        .expect("set");
    one.register(&bob.wire(), None).await.expect("registered");
    assert_eq!(standing(&alice).await, Some(Standing::Active), "it is held");
    assert_eq!(standing(&bob).await, None, "its absence is held");
    other.forget_all();
    assert_eq!(standing(&alice).await, Some(Standing::Suspended));
    assert_eq!(standing(&bob).await, Some(Standing::Active));
    one.set_standing(&name("bob"), Standing::Suspended)
        .await
        .expect("set");
    other.forget(&bob.did).await;
    assert_eq!(standing(&bob).await, Some(Standing::Suspended));
}

#[tokio::test]
async fn who_is_alone_asks_the_store() {
    let challenge = SecretHash::of("challenge");
    assert_eq!(AloneSiblings.spend(&challenge, start()).await, Spend::Unknown);
}
