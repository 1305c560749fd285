//! Remote agents against a scripted world.

mod caches;
mod lies;
mod pages;

use std::time::Duration;

use aip_protocol::clock::ManualClock;
use aip_protocol::error::ErrorCode;
use aip_protocol::json::Object;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::directory::{DirectorySeams, DirectorySettings};
use crate::egress::fake::{FakeExchange, Told};
use crate::peers::fake::FakeStore;
use crate::peers::{HistoryStore, PeerChange, PeerStore, RecordStore, Stance};
use crate::testsuite::{FakeAgent, FakeHub};

const START_MS: i64 = 1_795_983_330_000;

/// A look-up, and everything around it: a hub with one agent.
struct World {
    clock: Arc<ManualClock>,
    net: Arc<FakeExchange>,
    store: Arc<FakeStore>,
    hub: FakeHub,
    agent: FakeAgent,
    identities: Arc<RemoteIdentities>,
}

impl World {
    fn new() -> Self {
        Self::with(IdentityLimits::default())
    }

    fn with(limits: IdentityLimits) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(START_MS)));
        let (net, store) = (Arc::new(FakeExchange::new()), Arc::new(FakeStore::new()));
        let hub = FakeHub::new("two.example", 2);
        hub.publish(&net, clock.now());
        let agent = hub.agent("bob", 20, clock.now() - Duration::from_hours(24));
        hub.serve(&net, &agent);
        let identities = identities(limits, &store, &net, &clock);
        Self {
            clock,
            net,
            store,
            hub,
            agent,
            identities,
        }
    }

    /// Another process, or this one after a restart: the same store, nothing in memory.
    fn sibling(&self) -> Arc<RemoteIdentities> {
        identities(self.identities.limits, &self.store, &self.net, &self.clock)
    }

    async fn cached(&self) -> Found {
        self.identities.identity(&self.agent.did, Freshness::Cached).await
    }

    async fn fresh(&self) -> Found {
        self.identities.identity(&self.agent.did, Freshness::Fresh).await
    }

    /// How often the hub was asked for the history.
    fn asked(&self) -> usize {
        self.net.count(&self.url())
    }

    fn url(&self) -> String {
        self.hub.history_url("bob")
    }

    fn tell(&self, told: Told) {
        self.net.tell(&self.url(), [told]);
    }

    fn serve(&self) {
        self.hub.serve(&self.net, &self.agent);
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn pass(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    async fn known(&self) -> Option<KnownHistory> {
        self.store.history(&self.agent.did).await.unwrap()
    }

    /// What the hub decided by itself, as `action`s, but for what the directory did.
    async fn actions(&self) -> Vec<String> {
        let lines = self.store.audit_log(None, 0, 100).await.unwrap();
        let actions = lines.into_iter().map(|line| line.action);
        actions.filter(|action| action != "pin").collect()
    }
}

fn identities(
    limits: IdentityLimits,
    store: &Arc<FakeStore>,
    net: &Arc<FakeExchange>,
    clock: &Arc<ManualClock>,
) -> Arc<RemoteIdentities> {
    let seams = DirectorySeams {
        store: store.clone(),
        exchange: net.clone(),
        clock: clock.clone(),
    };
    let settings = DirectorySettings::new(Domain::parse("one.example").unwrap());
    let directory = Directory::new(settings, seams, Box::new(StdRng::seed_from_u64(7)));
    let seams = IdentitySeams {
        directory,
        store: store.clone(),
        exchange: net.clone(),
        clock: clock.clone(),
    };
    RemoteIdentities::new(limits, seams)
}

fn json(operations: &[Operation]) -> Vec<Json> {
    operations
        .iter()
        .map(|operation| operation.json.clone())
        .collect()
}

fn page(operations: Vec<Json>) -> Told {
    let members = [
        ("operations", Json::Array(operations)),
        ("next_cursor", Json::Null),
    ];
    Told::json(200, &Json::from(members))
}

fn code(found: &Found) -> ErrorCode {
    found.as_ref().unwrap_err().code()
}

#[tokio::test]
async fn an_agent_is_looked_up_at_its_own_hub_and_kept() {
    let mut world = World::new();
    world.agent.rotate(21, world.now() - Duration::from_hours(1));
    world.serve();
    let resolved = world.cached().await.unwrap();
    assert_eq!(resolved.identity.did(), &world.agent.did);
    assert_eq!(resolved.identity.seq(), 1);
    assert!(resolved.identity.current_signing(&world.agent.kid()).is_some());
    assert_eq!(resolved.asked_at, world.now());
    assert_eq!(resolved.fresh_until, world.now() + IDENTITY_FRESH);
    let kept = KnownHistory {
        did: world.agent.did.clone(),
        operations: json(&world.agent.operations),
        fetched_at: world.now(),
    };
    assert_eq!(world.known().await, Some(kept));
    let asked = world.net.asked().pop().unwrap();
    assert_eq!(
        asked.url,
        "https://hub.two.example/api/v1/agents/bob/history?limit=100"
    );
    assert!(world.actions().await.is_empty());
}

#[tokio::test]
async fn an_agent_that_ended_is_told_from_one_that_never_was() {
    let mut world = World::new();
    let mut draft = world.agent.identity().next_draft(world.now());
    draft.deactivated = true;
    world
        .agent
        .operations
        .push(draft.sign(&world.agent.rotation).unwrap());
    world.serve();
    assert!(world.cached().await.unwrap().identity.is_deactivated());
}

#[tokio::test]
async fn operations_may_be_as_deep_as_the_protocol_allows_and_have_any_endpoint() {
    let mut world = World::new();
    let mut draft = world.agent.identity().next_draft(world.now());
    // The operation itself is level 1, `x` begins level 2.
    let deepest = (2..=32).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
    draft.extra = Object::from([("x", deepest)]);
    draft.endpoint = Some("http://10.0.0.1:9/".to_owned());
    draft.route_mode = aip_protocol::identity::RouteMode::Direct;
    world
        .agent
        .operations
        .push(draft.sign(&world.agent.rotation).unwrap());
    world.serve();
    assert_eq!(world.cached().await.unwrap().identity.seq(), 1);
}

#[tokio::test]
async fn a_long_history_is_replayed_too() {
    let mut world = World::new();
    let start = world.now() - Duration::from_hours(1);
    for number in 0..40 {
        world.agent.rotate(100 + number, start);
    }
    world.serve();
    assert_eq!(world.cached().await.unwrap().identity.seq(), 40);
    // Also out of the store.
    let resolved = world
        .sibling()
        .identity(&world.agent.did, Freshness::Cached)
        .await
        .unwrap();
    assert_eq!((resolved.identity.seq(), world.asked()), (40, 1));
}

#[tokio::test]
async fn what_is_decided_about_the_hub_holds_for_its_agents() {
    let world = World::new();
    let stance = PeerChange::Stance(Stance::Blocked);
    world
        .store
        .change(&world.hub.domain, stance, world.now())
        .await
        .unwrap();
    assert_eq!(code(&world.cached().await), ErrorCode::PeerBlocked);
    assert_eq!(world.net.asked().len(), 0);

    let mut world = World::new();
    world
        .identities
        .seams
        .directory
        .peer(&world.hub.domain, Freshness::Cached)
        .await
        .unwrap();
    world.pass(3600);
    world.hub.key = aip_protocol::multikey::SigningKey::from_seed([66; 32]);
    world.hub.publish(&world.net, world.now());
    assert_eq!(code(&world.cached().await), ErrorCode::HubKeyNotPinned);
    assert_eq!(world.asked(), 0);
}

#[tokio::test]
async fn a_store_that_fails_is_our_own_trouble_and_is_not_remembered() {
    let world = World::new();
    world.store.fail(true);
    let found = world.cached().await;
    assert_eq!(code(&found), ErrorCode::Unavailable);
    assert!(found.unwrap_err().is_transient());
    world.store.fail(false);
    world.cached().await.unwrap();
}

#[test]
fn refusals_have_the_codes_of_the_protocol_and_no_cause() {
    for (error, code) in [
        (IdentityError::NotFound, ErrorCode::NotFound),
        (IdentityError::Forked, ErrorCode::HistoryForked),
        (IdentityError::Unsound("secret".into()), ErrorCode::HistoryUnsound),
        (IdentityError::Peer(PeerError::Blocked), ErrorCode::PeerBlocked),
    ] {
        let refusal = error.refusal();
        assert_eq!((error.code(), refusal.code), (code, code));
        assert!(!error.is_transient());
        assert!(!refusal.detail.contains("secret"), "{refusal}");
    }
    assert!(IdentityError::Peer(PeerError::Busy).is_transient());
}
