//! Who gets a session, and who keeps it.

use actix_web::test::TestRequest;
use aip_protocol::error::ErrorCode;

use super::*;
use crate::limits::{NEWCOMERS_MAX, NEWCOMERS_PER_NETWORK_MAX};

#[actix_web::test]
async fn a_token_opens_a_session_too() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let mut client = bed.open().await;
    client
        .say(json!({ "t": "auth", "token": bed.hub.token(&bob).await }))
        .await;
    assert_eq!(client.frame().await["t"], "ready");
}

#[actix_web::test]
async fn who_does_not_sign_in_is_told_why() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let good = bed.open().await.auth(&bob);
    let without = |member: &str| {
        let mut auth = good.clone();
        auth.as_object_mut().unwrap().remove(member);
        auth
    };
    for (frame, code) in [
        // The challenge was another socket's.
        (good.clone(), "signature_invalid"),
        (without("did"), "member_missing"),
        (without("kid"), "member_missing"),
        (without("sig"), "member_missing"),
        (json!({ "t": "auth", "token": "nonsense" }), "token_invalid"),
        (json!({ "t": "credit", "n": 1 }), "token_invalid"),
        (
            json!({ "t": "auth", "did": "did:aip:hub.example:nobody", "kid": "x", "sig": good["sig"] }),
            "sender_unknown",
        ),
    ] {
        let mut client = bed.open().await;
        client.say(frame.clone()).await;
        let error = client.frame().await;
        assert_eq!(
            (&error["t"], &error["code"]),
            (&json!("error"), &json!(code)),
            "{frame}"
        );
        assert_eq!(client.closes().await, 4401);
    }
}

#[actix_web::test]
async fn row_26_a_captured_auth_frame_is_worth_nothing() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let mut first = bed.open().await;
    let auth = first.auth(&bob);
    first.say(auth.clone()).await;
    assert_eq!(first.frame().await["t"], "ready");
    let mut replay = bed.open().await;
    replay.say(auth).await;
    assert_eq!(replay.closes().await, 4401);
}

#[actix_web::test]
async fn who_says_nothing_is_closed() {
    let bed = Bed::with(|settings| settings.receive.auth_timeout_secs = 1);
    let mut client = bed.open().await;
    assert_eq!(client.closes().await, 4408);
}

#[actix_web::test]
async fn an_agent_that_is_no_longer_good_is_closed() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let (mut client, _) = bed.connect(&bob).await;
    bed.hub
        .hub
        .app
        .presence
        .close_agent(&MailboxId::of(&bob.did), CloseReason::Unauthenticated);
    assert_eq!(client.closes().await, 4401);
}

#[actix_web::test]
async fn a_deactivated_agent_is_closed_at_once() {
    let bed = Bed::new();
    let mut bob = bed.hub.registered("bob").await;
    let (mut client, _) = bed.connect(&bob).await;
    let at = bed.hub.hub.app.clock.now();
    let end = bob.next(at, |draft| draft.deactivated = true);
    assert_eq!(
        bed.hub.post("/api/v1/agents/bob/operations", end).await.status,
        201
    );
    assert_eq!(client.closes().await, 4401);
}

#[actix_web::test]
async fn a_handshake_needs_the_subprotocol_and_a_listed_origin() {
    let bed = Bed::with(|settings| settings.http.allowed_origins = vec!["https://app.example".to_owned()]);
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n";
    let protocol = "Sec-WebSocket-Protocol: other, aip.v1\r\n";
    for (headers, expected) in [
        (format!("{upgrade}{protocol}"), "101"),
        (
            format!("{upgrade}{protocol}Origin: https://app.example\r\n"),
            "101",
        ),
        (
            format!("{upgrade}{protocol}Origin: https://evil.example\r\n"),
            "403",
        ),
        (format!("{upgrade}{protocol}Origin: null\r\n"), "403"),
        (upgrade.to_owned(), "400"),
        (format!("{upgrade}Sec-WebSocket-Protocol: other\r\n"), "400"),
        (protocol.to_owned(), "400"),
    ] {
        let answer = bed.attempt(&headers).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected}")),
            "{headers}: {answer}"
        );
    }
}

#[actix_web::test]
async fn sockets_that_have_not_signed_in_are_bounded() {
    let sockets = crate::socket::Sockets::new(1);
    let held: Vec<_> = (0..NEWCOMERS_MAX)
        .map(|_| sockets.newcomer(None).unwrap())
        .collect();
    assert_eq!(sockets.newcomer(None).unwrap_err().status(), 429);
    drop(held);
    assert!(sockets.newcomer(None).is_ok());
}

/// A hub as in production, which limits by address.
fn guarded() -> Bed {
    Bed::with(|settings| {
        settings.hub.development = false;
        settings.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        (settings.http.requests_per_sec, settings.http.request_burst) = (1, 3);
    })
}

#[actix_web::test]
async fn one_address_does_not_take_all_places_to_sign_in() {
    let app = &guarded().hub.hub.app;
    let from = |address: &str| {
        let peer = format!("{address}:1").parse().unwrap();
        app.throttle
            .network(&TestRequest::default().peer_addr(peer).to_http_request())
    };
    let (stranger, other) = (from("192.0.2.1"), from("198.51.100.7"));
    assert!(stranger.is_some() && stranger != other);
    let places = || app.sockets.newcomer(stranger);
    let held: Vec<_> = (0..NEWCOMERS_PER_NETWORK_MAX)
        .map(|_| places().unwrap())
        .collect();
    assert_eq!(places().unwrap_err().status(), 429);
    app.sockets.newcomer(other).unwrap();
    drop(held);
    places().unwrap();
}

/// As over HTTP: checking a signature costs, and whoever sends many that are not good pays for it.
#[actix_web::test]
async fn envelopes_with_bad_signatures_count_against_their_address() {
    let bed = guarded();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let (mut client, _) = bed.connect(&alice).await;
    let [good, other] = [1, 2].map(|number| {
        let wire = bed.hub.envelope(&alice, &bob, number).to_wire();
        serde_json::from_slice::<Value>(&wire).unwrap()
    });
    let mut forged = good.clone();
    forged["sig"] = other["sig"].clone();
    for number in 0..20 {
        client
            .say(json!({ "t": "send", "ref": number.to_string(), "envelope": forged }))
            .await;
    }
    for _ in 0..20 {
        let code = client.frame_of("sent").await["code"].clone();
        assert!(code == "signature_invalid" || code == "rate_limited", "{code}");
    }
    // More than the burst is owed by now.
    client
        .say(json!({ "t": "send", "ref": "good", "envelope": good }))
        .await;
    let sent = client.frame_of("sent").await;
    assert_eq!(sent["code"], "rate_limited", "{sent}");
    assert!(
        sent["retry_after_s"].as_u64().is_some_and(|secs| secs > 0),
        "{sent}"
    );
}

/// So do sign-ins.
#[actix_web::test]
async fn bad_sign_ins_count_against_their_address() {
    let tips = async || {
        let bed = guarded();
        let bob = bed.hub.registered("bob").await;
        let throttle = &bed.hub.hub.app.throttle;
        let mut client = bed.open().await;
        let peer = "127.0.0.1:1".parse().unwrap();
        let network = throttle.network(&TestRequest::default().peer_addr(peer).to_http_request());
        for _ in 0..3 {
            throttle.count_proof(network, ErrorCode::SignatureInvalid);
        }
        let mut auth = client.auth(&bob);
        auth["sig"] = bed.open().await.auth(&bob)["sig"].clone();
        client.say(auth).await;
        assert_eq!(client.frame().await["code"], "signature_invalid");
        let mut late = bed.open().await;
        let auth = late.auth(&bob);
        late.say(auth).await;
        late.frame().await["code"] == "rate_limited"
    };
    // A machine that is busy for a second has forgotten one failure.
    for _ in 0..10 {
        if tips().await {
            return;
        }
    }
    panic!("a failure was not counted");
}
