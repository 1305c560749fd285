//! Public bugs of neighbouring systems, as tests of ours. Rows are those of the project's bug log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aip_protocol::error::ErrorCode;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::{Did, Name};
use aip_protocol::signature::{Tag, sign};
use aip_registry::agent::AgentSummary;
use aip_registry::directory::{
    AgentChange, AgentRecord, AppendOutcome, Counts, CreateOutcome, NewAgent, NextOperation,
};
use aip_registry::{
    AloneSiblings, Directory, MemoryStore, QuotaOverride, Registered, Registry, RegistryConfig,
    RegistryError, Seams, Standing, StoreError,
};
use async_trait::async_trait;
use rand::SeedableRng;

use crate::kit::{Agent, DOMAIN, Hub, domain, name, sqlite, start};

fn code<T: std::fmt::Debug>(answer: Result<T, RegistryError>) -> ErrorCode {
    answer.expect_err("not good").code()
}

#[tokio::test]
async fn row_11_a_rotated_key_is_known_to_who_had_the_old_one_in_memory() {
    let hub = Hub::open();
    let bob = hub.agent("bob").await;
    hub.registry.resolve(&bob.did).await.expect("cached");
    let rotated = bob.rotated(hub.now(), false);
    hub.registry
        .operate(&name("bob"), &rotated.wire())
        .await
        .expect("appended");
    let seen = hub
        .registry
        .resolve(&bob.did)
        .await
        .expect("resolved")
        .expect("bob");
    assert!(seen.identity.current_signing(&rotated.kid()).is_some());
    hub.token(&rotated).await;
}

/// A store that does not answer for a while.
#[derive(Debug)]
struct Flaky {
    store: MemoryStore,
    failures_left: AtomicU32,
}

#[async_trait]
impl Directory for Flaky {
    async fn create(&self, agent: NewAgent) -> Result<CreateOutcome, StoreError> {
        self.store.create(agent).await
    }
    async fn append(&self, next: NextOperation) -> Result<AppendOutcome, StoreError> {
        self.store.append(next).await
    }
    async fn get(&self, name: &Name) -> Result<Option<AgentRecord>, StoreError> {
        let count_down = self
            .failures_left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match count_down {
            Ok(_) => Err(StoreError::Unavailable(Arc::new(std::io::Error::other("down")))),
            Err(_) => self.store.get(name).await,
        }
    }
    async fn history(&self, name: &Name, from_seq: u64, limit: u32) -> Result<Vec<String>, StoreError> {
        self.store.history(name, from_seq, limit).await
    }
    async fn list(&self, after: Option<&Name>, limit: u32) -> Result<Vec<AgentSummary>, StoreError> {
        self.store.list(after, limit).await
    }
    async fn update(&self, name: &Name, change: AgentChange) -> Result<bool, StoreError> {
        self.store.update(name, change).await
    }
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.store.counts().await
    }
}

#[tokio::test]
async fn row_12_a_failure_is_not_remembered_and_an_absence_ends_with_the_registration() {
    let directory = Arc::new(Flaky {
        store: MemoryStore::new(),
        failures_left: AtomicU32::new(0),
    });
    let seams = Seams {
        directory: Arc::<Flaky>::clone(&directory),
        grants: Arc::new(MemoryStore::new()),
        clock: Arc::new(aip_protocol::clock::ManualClock::new(start())),
        siblings: Arc::new(AloneSiblings),
        challenge_key: [7; 32].into(),
        rng: Box::new(rand::rngs::StdRng::seed_from_u64(1)),
    };
    let registry = Registry::new(domain(), RegistryConfig::default(), seams);
    let alice = Agent::new("alice", start());
    assert!(
        registry.resolve(&alice.did).await.expect("resolved").is_none(),
        "the absence is in memory now"
    );
    registry.register(&alice.wire(), None).await.expect("registered");
    directory.failures_left.store(1, Ordering::SeqCst);
    assert_eq!(
        code(registry.resolve(&alice.did).await),
        ErrorCode::Unavailable,
        "not 404"
    );
    assert!(
        registry.resolve(&alice.did).await.expect("resolved").is_some(),
        "the next one is asked anew"
    );
}

#[tokio::test]
async fn row_13_only_a_full_kid_of_a_signing_key_signs_in() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let sealing = alice.identity.sealing_key().expect("a sealing key").to_string();
    for kid in [
        alice.did.to_string(),
        format!("{}#{sealing}", alice.did),
        alice.signing.public().to_string(),
        "#".to_owned(),
        String::new(),
    ] {
        let challenge = hub.registry.challenge(&alice.did).expect("a challenge").challenge;
        let sig = alice.answer(&challenge, DOMAIN);
        let answer = hub.registry.issue_token(&alice.did, &kid, &challenge, &sig).await;
        assert_eq!(code(answer), ErrorCode::KeyUnknown, "{kid:?}");
    }
}

#[tokio::test]
async fn row_14_each_of_several_keys_signs_in_under_its_own_kid() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let keys: Vec<_> = (1..=3).map(|n| SigningKey::from_seed([n; 32])).collect();
    let next = alice.next(hub.now(), |draft| {
        draft.keys.signing = keys.iter().map(|k| k.public().clone()).collect();
    });
    hub.registry
        .operate(&name("alice"), &next.wire())
        .await
        .expect("appended");
    for (at, signer) in keys.iter().enumerate() {
        for (named, key) in keys.iter().enumerate() {
            let challenge = hub.registry.challenge(&alice.did).expect("a challenge").challenge;
            let object = aip_protocol::challenge::challenge_object(DOMAIN, &challenge, &alice.did);
            let sig = sign(signer, Tag::Challenge, &object);
            let kid = format!("{}#{}", alice.did, key.public());
            let answer = hub.registry.issue_token(&alice.did, &kid, &challenge, &sig).await;
            assert_eq!(answer.is_ok(), at == named, "signed by key {at}, named {named}");
        }
    }
}

#[tokio::test]
async fn row_15_a_move_keeps_what_it_does_not_change() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let extra = SigningKey::from_seed([5; 32]);
    let with_extra = alice.next(hub.now(), |draft| draft.keys.signing.push(extra.public().clone()));
    hub.registry
        .operate(&name("alice"), &with_extra.wire())
        .await
        .expect("appended");
    let moved = with_extra.next(hub.now(), |draft| {
        draft.route_mode = aip_protocol::identity::RouteMode::Direct;
        draft.endpoint = Some("https://agent.example/aip".to_owned());
    });
    hub.registry
        .operate(&name("alice"), &moved.wire())
        .await
        .expect("appended");
    let seen = hub
        .registry
        .resolve(&alice.did)
        .await
        .expect("resolved")
        .expect("alice");
    assert_eq!(seen.identity.head().keys.signing.len(), 2);
    assert_eq!(
        seen.identity.head().endpoint.as_deref(),
        Some("https://agent.example/aip")
    );
}

#[tokio::test]
async fn row_16_the_owners_rotation_key_alone_changes_an_identity() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let stranger = SigningKey::from_seed([6; 32]);
    for signer in [&*alice.signing, &stranger] {
        let forged = alice.identity.next_draft(hub.now()).sign(signer).expect("signed");
        let answer = hub
            .registry
            .operate(&name("alice"), &crate::kit::wire(&forged))
            .await;
        assert_eq!(code(answer), ErrorCode::RotationKeyUnknown);
    }
    hub.registry
        .operate(&name("alice"), &alice.rotated(hub.now(), true).wire())
        .await
        .expect("the owner may");
}

#[tokio::test]
async fn row_26_a_captured_answer_is_worth_nothing_again_or_elsewhere() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let challenge = hub.registry.challenge(&alice.did).expect("a challenge").challenge;
    let sig = alice.answer(&challenge, DOMAIN);
    hub.registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &sig)
        .await
        .expect("a token");
    let replayed = hub
        .registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &sig)
        .await;
    assert_eq!(code(replayed), ErrorCode::ChallengeInvalid);
    // A hub that fetched the challenge here to have alice answer it there gets her signature for itself only.
    let challenge = hub.registry.challenge(&alice.did).expect("a challenge").challenge;
    let lured = alice.answer(&challenge, "evil.example");
    let answer = hub
        .registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &lured)
        .await;
    assert_eq!(code(answer), ErrorCode::SignatureInvalid);
}

#[tokio::test]
async fn row_45_who_lost_the_answer_gets_the_same_one_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::over(Arc::new(sqlite(folder.path()).await), RegistryConfig::default());
    let alice = Agent::new("alice", start());
    let first = hub
        .registry
        .register(&alice.wire(), None)
        .await
        .expect("registered");
    let again = hub
        .registry
        .register(&alice.wire(), None)
        .await
        .expect("the same");
    assert!(matches!(again, Registered::Same(_)));
    assert_eq!(first.agent().identity.summary(), again.agent().identity.summary());
    assert_eq!(first.agent().registered_at, again.agent().registered_at);
    assert_eq!(hub.registry.counts().await.expect("counted").agents, 1);
}

#[tokio::test]
async fn row_82_strangers_names_do_not_fill_the_memory() {
    let config = RegistryConfig {
        cache_agents_max: 100,
        ..RegistryConfig::default()
    };
    let hub = Hub::in_memory(config);
    hub.agent("alice").await;
    for n in 0..20_000 {
        let did = Did::parse(&format!("did:aip:{DOMAIN}:nobody-{n}")).expect("a DID");
        assert!(hub.registry.resolve(&did).await.expect("resolved").is_none());
        let foreign = Did::parse(&format!("did:aip:elsewhere.example:nobody-{n}")).expect("a DID");
        assert!(hub.registry.resolve(&foreign).await.expect("resolved").is_none());
        hub.registry.challenge(&did).expect("a challenge");
        assert_eq!(
            hub.registry
                .authenticate(&format!("token-{n}"))
                .await
                .expect("answered"),
            None
        );
    }
    assert!(hub.registry.cached_agents().await <= 100);
    assert_eq!(
        hub.registry.counts().await.expect("counted"),
        Counts {
            agents: 1,
            ..Counts::default()
        }
    );
}

#[tokio::test]
async fn row_87_an_agent_cannot_set_its_own_quota_or_standing() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    hub.registry
        .set_standing(&name("alice"), Standing::Suspended)
        .await
        .expect("suspended");
    let next = alice.next(hub.now(), |draft| {
        for member in ["standing", "quota", "mailbox_messages", "role", "is_admin"] {
            draft.extra.insert(member, "active");
        }
    });
    hub.registry
        .operate(&name("alice"), &next.wire())
        .await
        .expect("its identity stays its own");
    let seen = hub
        .registry
        .resolve(&alice.did)
        .await
        .expect("resolved")
        .expect("alice");
    assert_eq!(
        (seen.standing, seen.quota),
        (Standing::Suspended, QuotaOverride::default())
    );
}
