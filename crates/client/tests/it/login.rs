//! Logging in: once per token, and never for somebody else.

use std::sync::Arc;
use std::time::Duration;

use aip_client::protocol::clock::ManualClock;
use aip_client::protocol::time::Timestamp;
use aip_client::{Error, Registration};
use uuid::Uuid;

use crate::fake::{FakeHub, Fault};
use crate::support::{agent, builder, listen, within};

const TOKEN: &str = "/api/v1/auth/token";

#[tokio::test]
async fn row_33_a_token_is_renewed_once_at_four_fifths_of_its_life() {
    let hub = FakeHub::start().await;
    let start = Timestamp::parse("2026-11-29T20:00:00Z").unwrap();
    let clock = Arc::new(ManualClock::new(start));
    hub.state().token_expires_at = Some("2026-11-29T21:00:00Z".to_owned());
    let alice = builder(&hub).clock(clock.clone()).build().unwrap();
    alice.register("alice", Registration::default()).await.unwrap();
    // Many at once are one login.
    let calls = (0..20).map(|_| alice.status(Uuid::nil(), None));
    for outcome in futures_util::future::join_all(calls).await {
        outcome.unwrap();
    }
    assert_eq!(hub.count(TOKEN), 1);
    clock.advance(Duration::from_mins(47));
    alice.status(Uuid::nil(), None).await.unwrap();
    assert_eq!(hub.count(TOKEN), 1);
    hub.state().token_expires_at = Some("2026-11-29T22:00:00Z".to_owned());
    clock.advance(Duration::from_mins(2));
    for _ in 0..5 {
        alice.status(Uuid::nil(), None).await.unwrap();
    }
    assert_eq!(hub.count(TOKEN), 2);
    assert_eq!(hub.count("/api/v1/auth/challenge"), 2, "one challenge per token");
}

#[tokio::test]
async fn a_token_that_the_hub_forgot_is_replaced_once() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let forgotten = || Fault::Answer(401, serde_json::json!({"code": "token_invalid"}));
    hub.fail("/api/v1/messages/", [forgotten()]);
    alice.status(Uuid::nil(), None).await.unwrap();
    assert_eq!(hub.count(TOKEN), 2);
    hub.fail("/api/v1/messages/", [forgotten(), forgotten(), forgotten()]);
    assert!(alice.status(Uuid::nil(), None).await.is_err());
    assert_eq!(hub.count(TOKEN), 3, "it is not tried for ever");
}

#[tokio::test]
async fn row_26_a_challenge_for_another_hub_is_not_answered() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    hub.state().claimed_domain = Some("bank.example".to_owned());
    let mut listener = listen(&alice);
    let refused = within(listener.next()).await.unwrap_err();
    assert!(matches!(refused, Error::Unverified { .. }), "{refused}");
    assert!(hub.frames("auth").is_empty(), "nothing was signed");
}
