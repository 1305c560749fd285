//! Who gets a name, and what is told to who does not.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::identity::Operation;
use aip_protocol::json::{Json, Object};
use aip_protocol::multikey::SigningKey;
use aip_protocol::signature::{Tag, sign};
use aip_registry::{Policy, Registered, RegistryConfig, Standing};
use tokio::task::JoinSet;

use super::{code, refused};
use crate::kit::{Agent, Hub, name, sqlite, start, wire};

#[tokio::test]
async fn an_agent_registers_once_and_resolves() {
    let hub = Hub::open();
    let alice = Agent::new("alice", start());
    assert!(
        hub.registry
            .resolve(&alice.did)
            .await
            .expect("resolved")
            .is_none(),
        "not yet"
    );

    let answer = hub
        .registry
        .register(&alice.wire(), None)
        .await
        .expect("registered");
    assert!(matches!(answer, Registered::Created(_)));
    let resolved = hub
        .registry
        .resolve(&alice.did)
        .await
        .expect("resolved")
        .expect("alice");
    for agent in [answer.agent(), &resolved] {
        assert_eq!(agent.identity.summary(), alice.identity.summary());
        assert_eq!((agent.standing, agent.registered_at), (Standing::Active, start()));
    }
    let again = hub
        .registry
        .register(&alice.wire(), None)
        .await
        .expect("the same");
    assert!(matches!(again, Registered::Same(_)));
}

#[tokio::test]
async fn a_taken_name_stays_taken() {
    let hub = Hub::open();
    hub.agent("alice").await;
    hub.wait(1);
    let other = Agent::new("alice", hub.now());
    assert_eq!(
        code(hub.registry.register(&other.wire(), None).await),
        ErrorCode::HandleTaken
    );

    let bob = hub.agent("bob").await;
    let ended = bob.next(hub.now(), |draft| draft.deactivated = true);
    hub.registry
        .operate(&name("bob"), &ended.wire())
        .await
        .expect("ended");
    hub.wait(1);
    let heir = Agent::new("bob", hub.now());
    assert_eq!(
        code(hub.registry.register(&heir.wire(), None).await),
        ErrorCode::HandleTaken,
        "for ever"
    );
}

#[tokio::test]
async fn the_clock_window_is_exact_and_names_both_clocks() {
    let hub = Hub::open();
    for (agent, offset, is_in) in [
        ("a", -300_000, true),
        ("b", 300_000, true),
        ("c", -300_001, false),
        ("d", 300_001, false),
    ] {
        let created_at = aip_protocol::time::Timestamp::from_unix_millis(start().unix_millis() + offset);
        let answer = hub
            .registry
            .register(&Agent::new(agent, created_at).wire(), None)
            .await;
        if is_in {
            answer.expect("within the window");
        } else {
            let refusal = refused(answer);
            assert_eq!(refusal.code, ErrorCode::CreatedAtOutOfWindow);
            let told = format!("{} {:?}", refusal.detail, refusal.members);
            assert!(
                told.contains(&created_at.to_string()) && told.contains(&start().to_string()),
                "{told}"
            );
        }
    }
}

#[tokio::test]
async fn the_same_registration_is_answered_again_whatever_the_clock_and_the_policy_say() {
    let store = Arc::new(aip_registry::MemoryStore::new());
    let open = Hub::over(Arc::clone(&store), RegistryConfig::default());
    let alice = open.agent("alice").await;
    open.wait(3_600);
    assert!(matches!(
        open.registry.register(&alice.wire(), None).await,
        Ok(Registered::Same(_))
    ));
    for policy in [Policy::Closed, Policy::Invite] {
        let hub = Hub::over(
            Arc::clone(&store),
            RegistryConfig {
                policy,
                ..RegistryConfig::default()
            },
        );
        assert!(matches!(
            hub.registry.register(&alice.wire(), None).await,
            Ok(Registered::Same(_))
        ));
        let other = Agent::new("alice", hub.now() + Duration::from_secs(1));
        assert!(hub.registry.register(&other.wire(), None).await.is_err());
    }
}

/// The operation with members set or taken away, signed anew with a key and a tag.
fn edited(agent: &Agent, signer: &SigningKey, tag: Tag, edit: impl FnOnce(&mut Object)) -> Vec<u8> {
    let mut object = agent
        .identity
        .head()
        .json
        .as_object()
        .expect("an object")
        .without(&["sig"]);
    edit(&mut object);
    let sig = sign(signer, tag, &Json::Object(object.clone()));
    object.insert("sig", sig.to_string());
    Json::Object(object).to_jcs()
}

/// The operation under another spelling of its DID.
fn spelled(agent: &Agent, did: &str) -> Vec<u8> {
    edited(agent, &agent.rotation, Tag::Identity, |object| {
        object.insert("did", did);
        object.insert("kid", format!("{did}#{}", agent.rotation.public()));
    })
}

/// What no hub may take, with the code that it answers.
fn bad_registrations(mallory: &Agent) -> Vec<(&'static str, Vec<u8>, ErrorCode)> {
    let plain = String::from_utf8(mallory.wire()).expect("text");
    let with = |extra: &str| format!("{},{extra}}}", plain.trim_end_matches('}')).into_bytes();
    let set = |name: &str, value: Json| {
        edited(mallory, &mallory.rotation, Tag::Identity, |object| {
            drop(object.insert(name, value));
        })
    };
    let changed = plain.replace("\"mallory\"", "\"alice\"").into_bytes();
    let sign_kid = |object: &mut Object| drop(object.insert("kid", mallory.kid()));
    let by_signing_key = edited(mallory, &mallory.signing, Tag::Identity, sign_kid);
    let other_tag = edited(mallory, &mallory.rotation, Tag::Envelope, |_| ());
    let elsewhere = Agent::at("did:aip:elsewhere.example:mallory", start());
    let levels = format!("\"x\":{}{}", "[".repeat(32), "]".repeat(32));
    vec![
        ("no JSON", b"alice".to_vec(), ErrorCode::JsonInvalid),
        ("a duplicate member", with("\"seq\":0"), ErrorCode::JsonInvalid),
        ("a float", with("\"x\":0.5"), ErrorCode::JsonInvalid),
        ("33 levels", with(&levels), ErrorCode::JsonInvalid),
        ("a huge body", vec![b' '; 1_000_000], ErrorCode::BodyTooLarge),
        (
            "17 kB",
            set("x", "y".repeat(17_000).into()),
            ErrorCode::BodyTooLarge,
        ),
        ("another domain", elsewhere.wire(), ErrorCode::NotYours),
        (
            "an upper-case name",
            spelled(mallory, "did:aip:hub.example:Mallory"),
            ErrorCode::DidInvalid,
        ),
        (
            "an upper-case domain",
            spelled(mallory, "did:aip:Hub.example:mallory"),
            ErrorCode::DidInvalid,
        ),
        ("a changed member", changed, ErrorCode::SignatureInvalid),
        ("another tag", other_tag, ErrorCode::SignatureInvalid),
        (
            "by the signing key",
            by_signing_key,
            ErrorCode::RotationKeyUnknown,
        ),
        (
            "deactivated",
            set("deactivated", true.into()),
            ErrorCode::OperationInvalid,
        ),
        (
            "http where only https is allowed",
            http(mallory),
            ErrorCode::MemberInvalid,
        ),
        (
            "operation 1",
            mallory.next(start(), |_| ()).wire(),
            ErrorCode::HistoryConflict,
        ),
    ]
}

#[tokio::test]
async fn bad_registrations_are_refused_with_the_right_code_and_leave_nothing() {
    let hub = Hub::open();
    let mallory = Agent::new("mallory", start());
    for (what, wire, expected) in bad_registrations(&mallory) {
        let refusal = refused(hub.registry.register(&wire, None).await);
        assert_eq!(refusal.code, expected, "{what}: {refusal}");
        assert!(refusal.code.status() < 500, "{what}");
    }
    assert!(
        hub.registry
            .resolve(&mallory.did)
            .await
            .expect("resolved")
            .is_none()
    );
    assert_eq!(hub.registry.counts().await.expect("counted").agents, 0);
}

fn http(agent: &Agent) -> Vec<u8> {
    edited(agent, &agent.rotation, Tag::Identity, |object| {
        object.insert("route_mode", "direct");
        object.insert("endpoint", "http://agent.example/aip");
    })
}

#[tokio::test]
async fn http_endpoints_are_the_operators_choice_and_stay_when_it_changes() {
    let store = Arc::new(aip_registry::MemoryStore::new());
    let lax = RegistryConfig {
        allow_http_endpoints: true,
        ..RegistryConfig::default()
    };
    let agent = Agent::new("alice", start());
    Hub::over(Arc::clone(&store), lax)
        .registry
        .register(&http(&agent), None)
        .await
        .expect("allowed");
    let strict = Hub::over(store, RegistryConfig::default());
    assert!(
        strict
            .registry
            .resolve(&agent.did)
            .await
            .expect("resolved")
            .is_some()
    );
}

#[tokio::test]
async fn reserved_names_are_those_of_the_protocol_and_the_operators() {
    let reserved_names = ["Support".to_owned(), "not a name!".to_owned()].into();
    let hub = Hub::in_memory(RegistryConfig {
        reserved_names,
        ..RegistryConfig::default()
    });
    for reserved in ["admin", "connect", "api", "relay", "well-known", "www", "support"] {
        let answer = hub
            .registry
            .register(&Agent::new(reserved, start()).wire(), None)
            .await;
        assert_eq!(code(answer), ErrorCode::NameReserved, "{reserved}");
    }
    hub.agent("admins").await;
}

#[tokio::test]
async fn refusals_come_in_the_order_that_is_written_down() {
    let closed = Hub::in_memory(RegistryConfig {
        policy: Policy::Closed,
        ..RegistryConfig::default()
    });
    let old = start() + Duration::from_secs(301);
    // Each agent has every fault from its own on; the first one is told.
    let old_admin = Agent::new("admin", old);
    assert_eq!(
        code(closed.registry.register(&old_admin.wire(), None).await),
        ErrorCode::NameReserved
    );
    let old_alice = Agent::new("alice", old);
    let changed = String::from_utf8(old_alice.wire())
        .expect("text")
        .replace("personal", "business");
    assert_eq!(
        code(closed.registry.register(changed.as_bytes(), None).await),
        ErrorCode::CreatedAtOutOfWindow
    );
    let alice = Agent::new("alice", start());
    let changed = String::from_utf8(alice.wire())
        .expect("text")
        .replace("personal", "business");
    assert_eq!(
        code(closed.registry.register(changed.as_bytes(), None).await),
        ErrorCode::SignatureInvalid
    );
    assert_eq!(
        code(closed.registry.register(&alice.wire(), None).await),
        ErrorCode::RegistrationClosed
    );
}

#[tokio::test]
async fn an_invite_lets_in_and_a_refused_registration_does_not_use_it_up() {
    let hub = Hub::in_memory(RegistryConfig {
        policy: Policy::Invite,
        ..RegistryConfig::default()
    });
    let code_of = |invite: aip_registry::NewInvite| invite.code;
    let invite = code_of(
        hub.registry
            .create_invite(2, None, "for friends")
            .await
            .expect("an invite"),
    );
    let alice = Agent::new("alice", start());
    for bad in [None, Some(""), Some("no such code"), Some(&*"x".repeat(10_000))] {
        assert_eq!(
            code(hub.registry.register(&alice.wire(), bad).await),
            ErrorCode::InviteRequired
        );
    }
    let answer = hub.registry.register(&alice.wire(), Some(&invite)).await;
    assert!(matches!(answer, Ok(Registered::Created(_))));
    assert!(matches!(
        hub.registry.register(&alice.wire(), Some(&invite)).await,
        Ok(Registered::Same(_))
    ));
    hub.wait(1);
    let thief = Agent::new("alice", hub.now());
    assert_eq!(
        code(hub.registry.register(&thief.wire(), Some(&invite)).await),
        ErrorCode::HandleTaken
    );
    let bob = Agent::new("bob", hub.now());
    assert!(
        hub.registry.register(&bob.wire(), Some(&invite)).await.is_ok(),
        "the second use was still there"
    );
    let carol = Agent::new("carol", hub.now());
    assert_eq!(
        code(hub.registry.register(&carol.wire(), Some(&invite)).await),
        ErrorCode::InviteRequired
    );

    let short = hub.now() + Duration::from_mins(1);
    let invite = code_of(
        hub.registry
            .create_invite(1, Some(short), "")
            .await
            .expect("an invite"),
    );
    hub.wait(60);
    assert_eq!(
        code(hub.registry.register(&carol.wire(), Some(&invite)).await),
        ErrorCode::InviteRequired
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_forty_registrations_of_one_name_exactly_one_is_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::over(Arc::new(sqlite(folder.path()).await), RegistryConfig::default());
    // Half of them are the same operation, sent again by an impatient client.
    let same = Agent::new("alice", start());
    let mut callers = JoinSet::new();
    for n in 0..40_u64 {
        let other = Agent::new("alice", start() + Duration::from_millis(n + 1));
        let agent = if n % 2 == 0 { same.clone() } else { other };
        let registry = Arc::clone(&hub.registry);
        callers.spawn(async move { registry.register(&wire(agent.identity.head()), None).await });
    }
    let (mut created, mut same) = (0, 0);
    for answer in callers.join_all().await {
        match answer {
            Ok(Registered::Created(_)) => created += 1,
            Ok(Registered::Same(_)) => same += 1,
            refusal => assert_eq!(code(refusal), ErrorCode::HandleTaken),
        }
    }
    assert_eq!(created, 1);
    assert!(same == 0 || same == 19, "all the same ones alike: {same}");
    assert_eq!(hub.registry.counts().await.expect("counted").agents, 1);
}

#[tokio::test]
async fn what_was_signed_is_what_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::over(Arc::new(sqlite(folder.path()).await), RegistryConfig::default());
    let alice = Agent::new("alice", start());
    let wire = edited(&alice, &alice.rotation, Tag::Identity, |object| {
        object.insert(
            "x-unknown",
            Json::from([("ключ", Json::from("значение \u{1f511}"))]),
        );
    });
    // Blanks and order are not signed: the canonical form of the same operation is kept.
    let spaced = String::from_utf8(wire.clone())
        .expect("text")
        .replacen('{', "{ \n", 1);
    hub.registry
        .register(spaced.as_bytes(), None)
        .await
        .expect("registered");
    let page = hub
        .registry
        .history(&name("alice"), None, 10)
        .await
        .expect("a page");
    assert_eq!(page.operations, [String::from_utf8(wire.clone()).expect("text")]);
    let policy = aip_protocol::identity::EndpointPolicy { allow_http: false };
    assert!(
        Operation::parse(page.operations[0].as_bytes(), policy)
            .expect("an operation")
            .verify()
    );
}
