//! Registration, operations and histories at the HTTP door; their rules are tested in the registry.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix_web::test::TestRequest;
use aip_protocol::clock::Clock as _;
use aip_protocol::multikey::SigningKey;
use aip_relay::inbox::Join;
use aip_relay::mailbox::MailboxId;
use aip_relay::session::SessionId;

use crate::config::Registration;
use crate::testing::{TestDisk, TestHub};

#[actix_web::test]
async fn a_registration_is_answered_with_the_agent() {
    let hub = TestHub::new();
    let agent = hub.agent("alice");
    let answer = hub.post("/api/v1/agents", agent.genesis()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.json()["did"], agent.did.as_str());
    assert_eq!(answer.json()["history"]["genesis"], agent.identity.genesis_hash());
    assert_eq!(hub.post("/api/v1/agents", agent.genesis()).await.status, 200);
}

#[actix_web::test]
async fn a_taken_name_stays_with_its_agent() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    hub.clock.advance(std::time::Duration::from_secs(1));
    let answer = hub.post("/api/v1/agents", hub.agent("alice").genesis()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (409, "handle_taken")
    );
}

#[actix_web::test]
async fn a_full_disk_takes_no_new_agents_and_still_lets_known_ones_change() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(TestDisk::default());
    let hub = TestHub::on_disk(dir.path(), disk.clone());
    let mut alice = hub.registered("alice").await;
    disk.full.store(true, Ordering::SeqCst);
    let answer = hub.post("/api/v1/agents", hub.agent("bob").genesis()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (503, "unavailable")
    );
    assert!(answer.json()["detail"].as_str().unwrap().contains("disk"));
    assert!(!answer.header("retry-after").is_empty());
    let next = alice.next(hub.clock.now(), |_| ());
    let answer = hub.post("/api/v1/agents/alice/operations", next).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    disk.full.store(false, Ordering::SeqCst);
    hub.registered("bob").await;
}

#[actix_web::test]
async fn policies_are_kept() {
    let closed = TestHub::with(|settings| settings.hub.registration = Registration::Closed);
    let answer = closed
        .post("/api/v1/agents", closed.agent("alice").genesis())
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (403, "registration_closed")
    );

    let by_invite = TestHub::with(|settings| settings.hub.registration = Registration::Invite);
    let register = |invite: &str| {
        let request = TestRequest::post()
            .uri("/api/v1/agents")
            .insert_header(("x-aip-invite", invite));
        request
            .insert_header(("content-type", "application/json"))
            .set_payload(by_invite.agent("alice").genesis())
    };
    let answer = by_invite.ask(register("no-such-invite")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (403, "invite_required")
    );
    let invite = by_invite
        .hub
        .app
        .registry
        .create_invite(1, None, "a note")
        .await
        .unwrap();
    assert_eq!(by_invite.ask(register(&invite.code)).await.status, 201);
}

#[actix_web::test]
async fn registrations_are_limited_per_address() {
    let hub = TestHub::with(|settings| {
        settings.hub.development = false;
        settings.hub.registration = Registration::Open;
        settings.registry.registrations_per_minute = 1;
        settings.registry.registration_burst = 1;
    });
    assert_eq!(
        hub.post("/api/v1/agents", hub.agent("alice").genesis())
            .await
            .status,
        201
    );
    let answer = hub.post("/api/v1/agents", hub.agent("bob").genesis()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (429, "rate_limited")
    );
}

#[actix_web::test]
async fn an_operation_moves_the_head() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let operation = agent.next(hub.clock.now(), |_| ());
    let answer = hub
        .post("/api/v1/agents/alice/operations", operation.clone())
        .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.json()["history"]["head"], agent.identity.head_hash());
    assert_eq!(
        hub.post("/api/v1/agents/alice/operations", operation)
            .await
            .status,
        200
    );
}

/// A history is public: whoever posts its head again must not end the sessions of its agent.
#[actix_web::test]
async fn a_revocation_ends_sessions_and_its_repetition_does_not() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let mailbox = MailboxId::of(&agent.did);
    let join = |number| Join {
        session: SessionId::from_random(number),
        share: false,
        credit: 1,
    };
    let (app, did) = (&hub.hub.app, agent.did.clone());
    let _before = app.inbox.join(did.clone(), join(1)).await.unwrap();
    let operation = agent.next(hub.clock.now(), |draft| {
        let fresh = SigningKey::from_seed([9; 32]);
        let dropped = std::mem::replace(&mut draft.keys.signing, vec![fresh.public().clone()]);
        draft.revoked = dropped.iter().map(ToString::to_string).collect();
    });
    let path = "/api/v1/agents/alice/operations";
    assert_eq!(hub.post(path, operation.clone()).await.status, 201);
    assert!(!app.presence.is_connected(&mailbox));

    let _after = app.inbox.join(did, join(2)).await.unwrap();
    assert_eq!(hub.post(path, operation).await.status, 200);
    assert!(app.presence.is_connected(&mailbox));
}

#[actix_web::test]
async fn a_stale_operation_is_told_the_head() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let mut stale = hub.agent("alice");
    hub.post(
        "/api/v1/agents/alice/operations",
        agent.next(hub.clock.now(), |_| ()),
    )
    .await;
    let profile = aip_protocol::json::Json::from([("name", aip_protocol::json::Json::from("other"))]);
    let answer = hub
        .post(
            "/api/v1/agents/alice/operations",
            stale.next(hub.clock.now(), |d| d.profile = profile),
        )
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (409, "history_conflict")
    );
    assert_eq!(answer.json()["head"], agent.identity.head_hash());
}

#[actix_web::test]
async fn a_history_is_read_page_by_page_and_byte_by_byte() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let mut sent = vec![agent.genesis()];
    for _ in 0..4 {
        sent.push(agent.next(hub.clock.now(), |_| ()));
        hub.post("/api/v1/agents/alice/operations", sent.last().unwrap().clone())
            .await;
    }
    let (mut path, mut read) = ("/api/v1/agents/alice/history?limit=2".to_owned(), Vec::new());
    loop {
        let page = hub.get(&path).await.json();
        read.extend(
            page["operations"]
                .as_array()
                .unwrap()
                .iter()
                .map(|op| op["seq"].as_u64().unwrap()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/api/v1/agents/alice/history?limit=2&cursor={cursor}");
    }
    assert_eq!(read, [0, 1, 2, 3, 4]);
    let whole = hub.get("/api/v1/agents/alice/history").await;
    for operation in sent {
        let (body, text) = (
            String::from_utf8(whole.body.to_vec()).unwrap(),
            String::from_utf8(operation).unwrap(),
        );
        assert!(body.contains(&text), "{text} is not in {body}");
    }
}

#[actix_web::test]
async fn a_history_refuses_what_it_cannot_read() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    for (path, code) in [
        ("/api/v1/agents/nobody/history", "not_found"),
        ("/api/v1/agents/a..b/history", "name_invalid"),
        ("/api/v1/agents/alice/history?cursor=forged", "cursor_invalid"),
        ("/api/v1/agents/alice/history?limit=0", "parameter_invalid"),
        ("/api/v1/agents/alice/history?limit=101", "parameter_invalid"),
        ("/api/v1/agents/alice/history?page=2", "parameter_unknown"),
    ] {
        assert_eq!(hub.get(path).await.code(), code, "{path}");
    }
}

#[actix_web::test]
async fn the_page_of_an_agent_shows_nothing_it_wrote_itself() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let name = aip_protocol::json::Json::from("<script>alert(1)</script>");
    let profile = aip_protocol::json::Json::from([("name", name)]);
    hub.post(
        "/api/v1/agents/alice/operations",
        agent.next(hub.clock.now(), |d| d.profile = profile),
    )
    .await;
    let answer = hub.get("/agents/alice").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    let page = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(page.contains("did:aip:hub.example:alice") && page.contains(agent.signing.public().as_str()));
    assert!(!page.contains("alert(1)"));
    assert_eq!(hub.get("/agents/nobody").await.code(), "not_found");
}

#[actix_web::test]
async fn row_87_an_agent_cannot_set_what_the_operator_sets() {
    let hub = TestHub::new();
    let agent = hub.registered("alice").await;
    let wire = String::from_utf8(agent.genesis()).unwrap();
    let with_flags = wire.replacen(
        '{',
        "{\"standing\":\"active\",\"quota\":{\"mailbox_messages\":9},\"admin\":true,",
        1,
    );
    assert_eq!(
        hub.post("/api/v1/agents", with_flags).await.code(),
        "signature_invalid"
    );
    for (request, path) in [
        (TestRequest::patch(), "/api/v1/agents/alice"),
        (TestRequest::put(), "/api/v1/agents/alice"),
        (TestRequest::patch(), "/admin/agents/alice"),
        (TestRequest::post(), "/admin/invites"),
        (TestRequest::get(), "/admin/agents"),
    ] {
        assert_eq!(
            hub.ask(request.uri(path)).await.status,
            404,
            "{path} is on the public listener"
        );
    }
}

#[actix_web::test]
async fn row_24_a_wrong_clock_is_told_both_times() {
    let hub = TestHub::new();
    let early = hub.agent("alice").genesis();
    hub.clock.advance(std::time::Duration::from_mins(10));
    let answer = hub.post("/api/v1/agents", early).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (422, "created_at_out_of_window")
    );
    let problem = answer.json();
    let told = problem.to_string();
    assert!(
        told.contains("2026-11-29T20:15:30") && told.contains("2026-11-29T20:25:30"),
        "{told}"
    );
    assert_eq!(hub.get("/api/v1/resolve/alice%23hub.example").await.status, 404);
}
