//! Who gets a session, and who keeps it.

use super::*;

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
    let held: Vec<_> = (0..crate::limits::NEWCOMERS_MAX)
        .map(|_| sockets.newcomer().unwrap())
        .collect();
    assert_eq!(sockets.newcomer().unwrap_err().status(), 429);
    drop(held);
    assert!(sockets.newcomer().is_ok());
}
