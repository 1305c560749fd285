//! Challenges, tokens and the socket's door.

use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;
use aip_protocol::signature::{Signature, Tag, sign};
use aip_registry::limits::TOKENS_PER_AGENT_MAX;
use aip_registry::{RegistryConfig, Standing};

use super::code;
use crate::kit::{Agent, DOMAIN, Hub, name, start};

/// The challenge for an agent and its answer to it.
fn answered(hub: &Hub, agent: &Agent) -> (String, Signature) {
    let challenge = hub.registry.challenge(&agent.did).expect("a challenge").challenge;
    let sig = agent.answer(&challenge, DOMAIN);
    (challenge, sig)
}

#[tokio::test]
async fn a_token_is_good_for_an_hour_to_the_millisecond() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let (challenge, sig) = answered(&hub, &alice);
    let issued = hub
        .registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &sig)
        .await
        .expect("a token");
    assert_eq!(issued.expires_at, hub.now() + Duration::from_hours(1));
    assert_eq!(issued.token.len(), 43, "32 bytes in base64url");
    assert_eq!(
        hub.registry.authenticate(&issued.token).await.expect("answered"),
        Some(alice.did.clone())
    );
    hub.clock.advance(Duration::from_millis(3_599_999));
    assert_eq!(
        hub.registry.authenticate(&issued.token).await.expect("answered"),
        Some(alice.did.clone())
    );
    hub.clock.advance(Duration::from_millis(1));
    assert_eq!(
        hub.registry.authenticate(&issued.token).await.expect("answered"),
        None
    );
    assert_eq!(
        hub.registry.sweep().await.expect("swept"),
        2,
        "the token and its spent challenge"
    );
    for bad in [
        "",
        "not-a-token",
        &issued.token.to_uppercase(),
        &"x".repeat(1_000_000),
        &challenge,
    ] {
        assert_eq!(hub.registry.authenticate(bad).await.expect("answered"), None);
    }
}

#[tokio::test]
async fn a_challenge_ends_after_its_lifetime() {
    let hub = Hub::in_memory(RegistryConfig {
        challenge_lifetime_secs: 60,
        ..RegistryConfig::default()
    });
    let alice = hub.agent("alice").await;
    let (challenge, sig) = answered(&hub, &alice);
    hub.wait(60);
    let late = hub
        .registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &sig)
        .await;
    assert_eq!(code(late), ErrorCode::ChallengeInvalid);
}

#[tokio::test]
async fn wrong_answers_are_told_apart() {
    let hub = Hub::open();
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let issue = async |agent: &Agent, kid: &str, challenge: &str, sig: &Signature| {
        code(hub.registry.issue_token(&agent.did, kid, challenge, sig).await)
    };
    let (challenge, sig) = answered(&hub, &alice);
    let (alice_kid, bob_kid) = (alice.kid(), bob.kid());

    let invented = "A".repeat(challenge.len());
    assert_eq!(
        issue(&alice, &alice_kid, &invented, &alice.answer(&invented, DOMAIN)).await,
        ErrorCode::ChallengeInvalid
    );
    assert_eq!(
        issue(&bob, &bob_kid, &challenge, &bob.answer(&challenge, DOMAIN)).await,
        ErrorCode::ChallengeInvalid,
        "alice's"
    );
    assert_eq!(
        issue(&alice, &bob_kid, &challenge, &sig).await,
        ErrorCode::KeyUnknown,
        "a key of bob"
    );
    assert_eq!(
        issue(&alice, &alice_kid, &challenge, &bob.answer(&challenge, DOMAIN)).await,
        ErrorCode::SignatureInvalid
    );
    let elsewhere = alice.answer(&challenge, "elsewhere.example");
    assert_eq!(
        issue(&alice, &alice_kid, &challenge, &elsewhere).await,
        ErrorCode::SignatureInvalid,
        "another audience"
    );
    let object = aip_protocol::challenge::challenge_object(DOMAIN, &challenge, &alice.did);
    let other_tag = sign(&alice.signing, Tag::Envelope, &object);
    assert_eq!(
        issue(&alice, &alice_kid, &challenge, &other_tag).await,
        ErrorCode::SignatureInvalid,
        "another tag"
    );
    let rotation_kid = format!("{}#{}", alice.did, alice.rotation.public());
    let by_rotation = sign(&alice.rotation, Tag::Challenge, &object);
    assert_eq!(
        issue(&alice, &rotation_kid, &challenge, &by_rotation).await,
        ErrorCode::KeyUnknown,
        "a rotation key"
    );
    let ghost = Agent::new("ghost", start());
    let (challenge, sig) = answered(&hub, &ghost);
    assert_eq!(
        issue(&ghost, &ghost.kid(), &challenge, &sig).await,
        ErrorCode::SenderUnknown
    );
}

#[tokio::test]
async fn a_challenge_tells_nothing_about_who_exists_and_keeps_nothing() {
    let hub = Hub::open();
    let (alice, ghost) = (hub.agent("alice").await, Agent::new("ghost", start()));
    let known = hub.registry.challenge(&alice.did).expect("a challenge");
    let unknown = hub.registry.challenge(&ghost.did).expect("a challenge");
    assert_eq!(known.challenge.len(), unknown.challenge.len());
    assert_eq!(known.expires_at, unknown.expires_at);
    assert_ne!(
        known.challenge,
        hub.registry.challenge(&alice.did).expect("a challenge").challenge
    );
    let foreign = Did::parse("did:aip:elsewhere.example:alice").expect("a DID");
    assert_eq!(code(hub.registry.challenge(&foreign)), ErrorCode::SenderNotLocal);
    // However many a stranger asks for in alice's name, her own go on working.
    let (challenge, sig) = answered(&hub, &alice);
    for _ in 0..10_000 {
        hub.registry.challenge(&alice.did).expect("a challenge");
    }
    hub.registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &sig)
        .await
        .expect("a token");
}

#[tokio::test]
async fn a_challenge_of_one_door_is_not_valid_at_the_other() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let socket = hub.registry.socket_challenge();
    let text = socket.text().to_owned();
    let sig = alice.answer(&text, DOMAIN);
    let at_http = hub
        .registry
        .issue_token(&alice.did, &alice.kid(), &text, &sig)
        .await;
    assert_eq!(code(at_http), ErrorCode::ChallengeInvalid);
    let (_, http_sig) = answered(&hub, &alice);
    let at_socket = hub
        .registry
        .authenticate_socket(socket, &alice.did, &alice.kid(), &http_sig)
        .await;
    assert_eq!(
        code(at_socket),
        ErrorCode::SignatureInvalid,
        "the socket has its own challenge"
    );

    let socket = hub.registry.socket_challenge();
    let sig = alice.answer(socket.text(), DOMAIN);
    let agent = hub
        .registry
        .authenticate_socket(socket, &alice.did, &alice.kid(), &sig)
        .await
        .expect("in");
    assert_eq!(agent.identity.did(), &alice.did);
    let socket = hub.registry.socket_challenge();
    let sig = alice.answer(socket.text(), DOMAIN);
    hub.wait(60);
    let late = hub
        .registry
        .authenticate_socket(socket, &alice.did, &alice.kid(), &sig)
        .await;
    assert_eq!(code(late), ErrorCode::ChallengeInvalid);
}

#[tokio::test]
async fn a_revoked_key_takes_its_tokens_with_it_and_a_dropped_one_after_its_grace() {
    let hub = Hub::open();
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (revoked, dropped) = (hub.token(&alice).await, hub.token(&bob).await);
    let alice = alice.rotated(hub.now(), true);
    let rotated_bob = bob.rotated(hub.now(), false);
    hub.registry
        .operate(&name("alice"), &alice.wire())
        .await
        .expect("appended");
    hub.registry
        .operate(&name("bob"), &rotated_bob.wire())
        .await
        .expect("appended");
    assert_eq!(
        hub.registry.authenticate(&revoked).await.expect("answered"),
        None,
        "at once"
    );
    assert_eq!(
        hub.registry.authenticate(&dropped).await.expect("answered"),
        Some(bob.did.clone())
    );
    hub.wait(900);
    assert_eq!(
        hub.registry.authenticate(&dropped).await.expect("answered"),
        Some(bob.did.clone())
    );
    hub.wait(1);
    assert_eq!(
        hub.registry.authenticate(&dropped).await.expect("answered"),
        None,
        "its grace is over"
    );
    let fresh = hub.token(&rotated_bob).await;
    assert_eq!(
        hub.registry.authenticate(&fresh).await.expect("answered"),
        Some(bob.did.clone())
    );
    let (challenge, _) = answered(&hub, &bob);
    let old = hub
        .registry
        .issue_token(&bob.did, &bob.kid(), &challenge, &bob.answer(&challenge, DOMAIN))
        .await;
    assert_eq!(code(old), ErrorCode::KeyUnknown);
}

#[tokio::test]
async fn suspended_and_deactivated_agents_are_out_at_once() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let token = hub.token(&alice).await;
    hub.registry
        .set_standing(&name("alice"), Standing::Suspended)
        .await
        .expect("suspended");
    assert_eq!(hub.registry.authenticate(&token).await.expect("answered"), None);
    let (challenge, sig) = answered(&hub, &alice);
    let answer = hub
        .registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &sig)
        .await;
    assert_eq!(code(answer), ErrorCode::SenderBlocked);
    hub.registry
        .set_standing(&name("alice"), Standing::Active)
        .await
        .expect("back");
    assert_eq!(
        hub.registry.authenticate(&token).await.expect("answered"),
        Some(alice.did.clone())
    );

    let ended = alice.next(hub.now(), |draft| draft.deactivated = true);
    hub.registry
        .operate(&name("alice"), &ended.wire())
        .await
        .expect("ended");
    assert_eq!(hub.registry.authenticate(&token).await.expect("answered"), None);
    let (challenge, sig) = answered(&hub, &alice);
    let answer = hub
        .registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &sig)
        .await;
    assert_eq!(code(answer), ErrorCode::SenderDeactivated);
}

#[tokio::test]
async fn an_agent_whose_clock_is_ahead_can_sign_in() {
    let hub = Hub::open();
    let alice = Agent::new("alice", hub.now() + Duration::from_secs(200));
    hub.registry
        .register(&alice.wire(), None)
        .await
        .expect("registered");
    let token = hub.token(&alice).await;
    assert_eq!(
        hub.registry.authenticate(&token).await.expect("answered"),
        Some(alice.did)
    );
}

#[tokio::test]
async fn secrets_do_not_show() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let (challenge, sig) = answered(&hub, &alice);
    let issued = hub
        .registry
        .issue_token(&alice.did, &alice.kid(), &challenge, &sig)
        .await
        .expect("a token");
    let invite = hub.registry.create_invite(1, None, "").await.expect("an invite");
    let shown = format!("{issued:?} {invite:?} {:?}", hub.registry);
    assert!(
        !shown.contains(&issued.token) && !shown.contains(&invite.code),
        "{shown}"
    );
}

/// The cache of tokens does not keep one that has gone for a newer one.
#[tokio::test]
async fn a_displaced_token_ends_at_once() {
    let hub = Hub::open();
    let alice = hub.agent("alice").await;
    let whose = async |token: &str| hub.registry.authenticate(token).await.expect("answered");
    let mut tokens = Vec::new();
    for _ in 0..TOKENS_PER_AGENT_MAX {
        tokens.push(hub.token(&alice).await);
        hub.clock.advance(Duration::from_millis(1));
    }
    for token in &tokens {
        assert_eq!(whose(token).await.as_ref(), Some(&alice.did));
    }
    let newest = hub.token(&alice).await;
    assert_eq!(whose(&tokens[0]).await, None);
    for token in [&tokens[1], &newest] {
        assert_eq!(whose(token).await.as_ref(), Some(&alice.did));
    }
}
