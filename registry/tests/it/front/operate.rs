//! How a history grows, and that everybody sees it at once.

use std::pin::pin;
use std::sync::Arc;

use aip_protocol::error::ErrorCode;
use aip_protocol::identity::{EndpointPolicy, Operation, OperationDraft};
use aip_registry::directory::{AppendOutcome, NextOperation, StoredOperation};
use aip_registry::limits::{HISTORY_BYTES_MAX, OPERATIONS_PER_AGENT_MAX, REPLAYED_AT_ONCE_BYTES_MAX};
use aip_registry::{Directory, Operated, RegistryConfig, Standing};
use futures_util::future::poll_immediate;
use tokio::task::JoinSet;

use super::{code, refused};
use crate::kit::{Agent, Hub, name, sqlite, start};

#[tokio::test]
async fn a_rotation_is_seen_at_once_and_again_is_the_same() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let before = hub
        .registry
        .resolve(&alice.did)
        .await
        .expect("resolved")
        .expect("alice");
    assert!(before.identity.current_signing(&alice.kid()).is_some());

    let rotated = alice.rotated(hub.now(), false);
    let answer = hub
        .registry
        .operate(&name("alice"), &rotated.wire())
        .await
        .expect("appended");
    assert!(matches!(answer, Operated::Appended(_)));
    let after = hub
        .registry
        .resolve(&alice.did)
        .await
        .expect("resolved")
        .expect("alice");
    assert_eq!(after.identity.summary(), rotated.identity.summary());
    assert_eq!(answer.agent().identity.summary(), rotated.identity.summary());
    assert!(after.identity.current_signing(&alice.kid()).is_none());

    hub.wait(3_600);
    let again = hub
        .registry
        .operate(&name("alice"), &rotated.wire())
        .await
        .expect("the same");
    assert!(
        matches!(again, Operated::Same(_)),
        "a retry of the head, however late"
    );
}

#[tokio::test]
async fn a_stale_operation_is_told_the_head() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let stale = alice.next(hub.now(), |draft| {
        draft.profile = aip_protocol::json::Json::from([("name", "stale".into())]);
    });
    let rotated = alice.rotated(hub.now(), false);
    hub.registry
        .operate(&name("alice"), &rotated.wire())
        .await
        .expect("appended");
    let refusal = refused(hub.registry.operate(&name("alice"), &stale.wire()).await);
    assert_eq!(refusal.code, ErrorCode::HistoryConflict);
    let head = serde_json::Value::from(rotated.identity.head_hash());
    assert!(
        refusal.members.contains(&("head", head)) && refusal.members.contains(&("seq", 1.into())),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn bad_operations_are_refused_with_the_right_code_and_change_nothing() {
    let hub = Hub::open();
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let operate = async |agent: &str, wire: &[u8]| code(hub.registry.operate(&name(agent), wire).await);
    let early = aip_protocol::time::Timestamp::from_unix_millis(start().unix_millis() - 60_000);
    let mut back = alice.identity.next_draft(start());
    back.created_at = early;
    let back = crate::kit::wire(&back.sign(&alice.rotation).expect("signed"));
    let foreign = crate::kit::wire(
        &alice
            .identity
            .next_draft(start())
            .sign(&bob.rotation)
            .expect("signed"),
    );
    let nobody = Agent::new("nobody", start()).rotated(start(), false);
    assert_eq!(operate("alice", b"{}").await, ErrorCode::MemberMissing);
    assert_eq!(
        operate("bob", &alice.rotated(start(), false).wire()).await,
        ErrorCode::NotYours
    );
    assert_eq!(operate("nobody", &nobody.wire()).await, ErrorCode::NotFound);
    assert_eq!(operate("alice", &back).await, ErrorCode::CreatedAtGoesBack);
    assert_eq!(operate("alice", &foreign).await, ErrorCode::RotationKeyUnknown);
    hub.wait(301);
    assert_eq!(
        operate("alice", &alice.rotated(start(), false).wire()).await,
        ErrorCode::CreatedAtOutOfWindow
    );
    let resolved = hub
        .registry
        .resolve(&alice.did)
        .await
        .expect("resolved")
        .expect("alice");
    assert_eq!(resolved.identity.summary(), alice.identity.summary());
}

#[tokio::test]
async fn deactivation_ends_the_history() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let ended = alice.next(hub.now(), |draft| draft.deactivated = true);
    hub.registry
        .operate(&name("alice"), &ended.wire())
        .await
        .expect("ended");
    assert!(
        hub.registry
            .resolve(&alice.did)
            .await
            .expect("resolved")
            .expect("alice")
            .identity
            .is_deactivated()
    );
    // A client cannot even sign a further one with this library, so it is made by hand.
    let mut draft = ended.identity.next_draft(hub.now());
    draft.deactivated = false;
    let further = crate::kit::wire(&draft.sign(&alice.rotation).expect("signed"));
    assert_eq!(
        code(hub.registry.operate(&name("alice"), &further).await),
        ErrorCode::AgentDeactivated
    );
    let again = hub.registry.operate(&name("alice"), &ended.wire()).await;
    assert!(matches!(again, Ok(Operated::Same(_))), "the retry of the end");
    assert_eq!(hub.registry.counts().await.expect("counted").deactivated, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_operations_on_one_head_one_is_appended_and_the_others_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::over(Arc::new(sqlite(folder.path()).await), RegistryConfig::default());
    let alice = hub.agent("alice").await;
    let mut callers = JoinSet::new();
    for n in 0..16 {
        let next = alice.next(hub.now(), |draft| {
            draft.profile = aip_protocol::json::Json::from([("n", n.to_string().into())]);
        });
        let registry = Arc::clone(&hub.registry);
        callers.spawn(async move { registry.operate(&name("alice"), &next.wire()).await });
    }
    let mut appended = Vec::new();
    for answer in callers.join_all().await {
        match answer {
            Ok(operated) => appended.push(operated),
            refusal => assert_eq!(code(refusal), ErrorCode::HistoryConflict),
        }
    }
    assert_eq!(appended.len(), 1);
    let resolved = hub
        .registry
        .resolve(&alice.did)
        .await
        .expect("resolved")
        .expect("alice");
    assert_eq!(
        resolved.identity.head_hash(),
        appended[0].agent().identity.head_hash()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_shown_an_older_head_after_a_newer_one_was_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::over(Arc::new(sqlite(folder.path()).await), RegistryConfig::default());
    let mut alice = hub.agent("alice").await;
    let mut readers = JoinSet::new();
    for _ in 0..4 {
        let (registry, did) = (Arc::clone(&hub.registry), alice.did.clone());
        readers.spawn(async move {
            let mut newest = 0;
            while newest < 30 {
                let seq = registry
                    .resolve(&did)
                    .await
                    .expect("resolved")
                    .expect("alice")
                    .identity
                    .seq();
                assert!(seq >= newest, "{seq} after {newest}");
                newest = seq;
                tokio::task::yield_now().await;
            }
        });
    }
    for _ in 0..30 {
        alice = alice.next(hub.now(), |_| ());
        hub.registry
            .operate(&name("alice"), &alice.wire())
            .await
            .expect("appended");
        let seq = hub
            .registry
            .resolve(&alice.did)
            .await
            .expect("resolved")
            .expect("alice")
            .identity
            .seq();
        assert_eq!(seq, alice.identity.seq(), "read your own writes");
    }
    readers.join_all().await;
}

#[tokio::test]
async fn a_dropped_call_does_not_leave_an_old_head_in_memory() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    hub.registry.resolve(&alice.did).await.expect("resolved");
    let rotated = alice.rotated(hub.now(), true);
    // The caller is gone after its first step; the change goes on without it.
    {
        let alice_name = name("alice");
        let wire = rotated.wire();
        let mut call = Box::pin(hub.registry.operate(&alice_name, &wire));
        let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_ready()));
        assert!(!poll.await, "it waits for its change");
    }
    while hub
        .registry
        .history(&name("alice"), None, 10)
        .await
        .expect("a page")
        .operations
        .len()
        < 2
    {
        tokio::task::yield_now().await;
    }
    let again = hub
        .registry
        .operate(&name("alice"), &rotated.wire())
        .await
        .expect("answered");
    assert_eq!(again.agent().identity.seq(), 1);
    let resolved = hub
        .registry
        .resolve(&alice.did)
        .await
        .expect("resolved")
        .expect("alice");
    assert!(
        resolved.identity.signing_key(&alice.kid(), hub.now()).is_none(),
        "the revoked key is gone"
    );
}

#[tokio::test]
async fn a_suspension_between_two_operations_stays() {
    let hub = Hub::open();
    let mut alice = hub.agent("alice").await;
    for n in 0..6 {
        alice = alice.next(hub.now(), |_| ());
        let standing = if n % 2 == 0 {
            Standing::Suspended
        } else {
            Standing::Active
        };
        let (own_name, wire) = (name("alice"), alice.wire());
        let (operated, set) = tokio::join!(
            hub.registry.operate(&own_name, &wire),
            hub.registry.set_standing(&own_name, standing)
        );
        operated.expect("appended");
        set.expect("set");
        let seen = hub
            .registry
            .resolve(&alice.did)
            .await
            .expect("resolved")
            .expect("alice");
        assert_eq!(
            (seen.standing, seen.identity.seq()),
            (standing, alice.identity.seq())
        );
    }
}

#[tokio::test]
async fn a_full_history_can_still_be_ended() {
    let store = Arc::new(aip_registry::MemoryStore::new());
    let hub = Hub::over(Arc::clone(&store), RegistryConfig::default());
    let mut alice = hub.agent("alice").await;
    for _ in 1..OPERATIONS_PER_AGENT_MAX {
        alice = alice.next(hub.now(), |_| ());
        let operation = StoredOperation::from(alice.identity.head());
        let next = NextOperation {
            name: name("alice"),
            operation,
            admitted_at: hub.now(),
        };
        assert_eq!(
            store.append(next).await.expect("answered"),
            AppendOutcome::Appended
        );
    }
    // That went past the front, which remembers its own registration only.
    assert_eq!(
        hub.registry
            .resolve(&alice.did)
            .await
            .expect("resolved")
            .expect("alice")
            .identity
            .seq(),
        1_023
    );
    let beyond = alice.next(hub.now(), |_| ());
    let refusal = refused(hub.registry.operate(&name("alice"), &beyond.wire()).await);
    assert_eq!(refusal.code, ErrorCode::OperationInvalid);
    assert!(
        refusal
            .members
            .contains(&("limit", OPERATIONS_PER_AGENT_MAX.into()))
    );
    let ended = alice.next(hub.now(), |draft| draft.deactivated = true);
    hub.registry
        .operate(&name("alice"), &ended.wire())
        .await
        .expect("ended");
}

/// Operations near their largest fill a history long before their number does: every load replays it.
#[tokio::test]
async fn a_history_is_bounded_in_bytes_too() {
    let hub = Hub::open();
    let mut alice = hub.agent("alice").await;
    let long =
        |draft: &mut OperationDraft| drop(draft.extra.insert("x-note", "n".repeat(15 * 1024).as_str()));
    let mut bytes = alice.wire().len() as u64;
    let refusal = loop {
        let next = alice.next(hub.now(), long);
        match hub.registry.operate(&name("alice"), &next.wire()).await {
            Ok(_) => bytes += next.wire().len() as u64,
            Err(error) => break error.refusal().cloned().expect("a refusal"),
        }
        assert!(bytes <= HISTORY_BYTES_MAX, "{bytes} bytes are in");
        alice = next;
    };
    assert_eq!(refusal.code, ErrorCode::OperationInvalid);
    assert!(
        refusal
            .members
            .contains(&("limit_bytes", HISTORY_BYTES_MAX.into()))
    );
    assert!(
        bytes + 16 * 1024 > HISTORY_BYTES_MAX,
        "it is full, with {bytes} bytes"
    );
    let ended = alice.next(hub.now(), |draft| draft.deactivated = true);
    hub.registry
        .operate(&name("alice"), &ended.wire())
        .await
        .expect("ended");
}

/// Whoever can register can make a history that takes long to check: nobody else may wait for it.
#[tokio::test]
async fn a_long_history_is_replayed_beside_the_workers() {
    let store = Arc::new(aip_registry::MemoryStore::new());
    let hub = Hub::over(Arc::clone(&store), RegistryConfig::default());
    let (mut long, short) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut bytes = long.wire().len() as u64;
    while bytes <= REPLAYED_AT_ONCE_BYTES_MAX {
        long = long.next(hub.now(), |draft| {
            drop(draft.extra.insert("x-note", "n".repeat(15 * 1024).as_str()));
        });
        bytes += long.wire().len() as u64;
        hub.registry
            .operate(&name("alice"), &long.wire())
            .await
            .expect("appended");
    }
    // Another registry over the same store has nothing in memory yet.
    let cold = Hub::over(store, RegistryConfig::default());
    let quick = poll_immediate(cold.registry.resolve(&short.did)).await;
    assert!(quick.is_some(), "a usual history does not change threads");
    let mut load = pin!(cold.registry.resolve(&long.did));
    assert!(poll_immediate(&mut load).await.is_none(), "the worker is free");
    let loaded = load.await.expect("resolved").expect("alice");
    assert_eq!(loaded.identity.head_hash(), long.identity.head_hash());
}

#[tokio::test]
async fn unknown_members_are_kept_and_served() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let next = alice.next(hub.now(), |draft| drop(draft.extra.insert("x-services", "mine")));
    hub.registry
        .operate(&name("alice"), &next.wire())
        .await
        .expect("appended");
    let page = hub
        .registry
        .history(&name("alice"), None, 10)
        .await
        .expect("a page");
    let operation = Operation::parse(
        page.operations[1].as_bytes(),
        EndpointPolicy { allow_http: false },
    );
    let operation = operation.expect("an operation");
    assert_eq!(
        operation.json.get("x-services").and_then(|v| v.as_str()),
        Some("mine")
    );
}
