//! What operators ask and decide.

use aip_protocol::error::ErrorCode;
use aip_registry::{QuotaOverride, Standing};

use super::code;
use crate::kit::{Hub, name};

#[tokio::test]
async fn agents_are_listed_in_pages() {
    let hub = Hub::open();
    for agent in ["carol", "alice", "bob"] {
        hub.agent(agent).await;
    }
    let first = hub.registry.list_agents(None, 2).await.expect("a page");
    assert_eq!(
        first.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(),
        ["alice", "bob"]
    );
    let rest = hub
        .registry
        .list_agents(Some(&first[1].name), 2)
        .await
        .expect("a page");
    assert_eq!(
        rest.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(),
        ["carol"]
    );
}

#[tokio::test]
async fn standing_and_quota_are_seen_by_the_next_resolution() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let resolve = async || {
        hub.registry
            .resolve(&alice.did)
            .await
            .expect("resolved")
            .expect("alice")
    };
    assert_eq!(
        (resolve().await.standing, resolve().await.quota),
        (Standing::Active, QuotaOverride::default())
    );
    let quota = QuotaOverride {
        mailbox_messages: Some(7),
        mailbox_bytes: Some(1 << 40),
        sender_messages: None,
    };
    hub.registry.set_quota(&name("alice"), quota).await.expect("set");
    hub.registry
        .set_standing(&name("alice"), Standing::Suspended)
        .await
        .expect("set");
    assert_eq!(
        (resolve().await.standing, resolve().await.quota),
        (Standing::Suspended, quota)
    );
    assert!(!resolve().await.takes_part());
    assert_eq!(
        code(hub.registry.set_quota(&name("nobody"), quota).await),
        ErrorCode::NotFound
    );
}

#[tokio::test]
async fn invites_are_made_listed_and_revoked() {
    let hub = Hub::open();
    let made = hub
        .registry
        .create_invite(3, None, "für Freunde")
        .await
        .expect("an invite");
    let listed = hub
        .registry
        .list_invites(None, 10)
        .await
        .expect("a page")
        .remove(0);
    assert_eq!(
        (&listed.id, listed.note.as_str(), listed.uses_left),
        (&made.id, "für Freunde", 3)
    );
    assert!(hub.registry.revoke_invite(&made.id).await.expect("answered"));
    assert!(!hub.registry.revoke_invite(&made.id).await.expect("answered"));
    assert!(
        !hub.registry
            .list_invites(None, 10)
            .await
            .expect("a page")
            .remove(0)
            .is_good(hub.now())
    );

    let invalid = async |uses, ends, note: &str| code(hub.registry.create_invite(uses, ends, note).await);
    assert_eq!(invalid(0, None, "").await, ErrorCode::ParameterInvalid);
    assert_eq!(invalid(1_000_001, None, "").await, ErrorCode::ParameterInvalid);
    assert_eq!(invalid(1, Some(hub.now()), "").await, ErrorCode::ParameterInvalid);
    assert_eq!(
        invalid(1, None, &"x".repeat(201)).await,
        ErrorCode::ParameterInvalid
    );
    assert_eq!(invalid(1, None, "a\0b").await, ErrorCode::ParameterInvalid);
}
