//! Who gets through the operator's door, and what lies behind it.

use actix_web::http::{Method, StatusCode};
use actix_web::test::TestRequest;
use aip_protocol::clock::Clock as _;
use aip_protocol::json::Json;
use serde_json::{Value, json};

use super::*;
use crate::config::{Registration, Secret};
use crate::testing::{Answer, TestHub};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn hub() -> TestHub {
    TestHub::with(|settings| settings.http.operator_token = Secret::new(TOKEN))
}

fn request(method: Method, path: &str, token: &str) -> TestRequest {
    let request = TestRequest::default().method(method).uri(path);
    request.insert_header(("authorization", format!("Bearer {token}")))
}

async fn get(hub: &TestHub, path: &str) -> Value {
    let answer = hub.ask_operator(request(Method::GET, path, TOKEN)).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json()
}

async fn send(hub: &TestHub, method: Method, path: &str, body: &Value) -> Answer {
    hub.ask_operator(request(method, path, TOKEN).set_json(body))
        .await
}

/// Every method of every path of this resource, with the names filled in.
fn doors() -> Vec<(Method, String)> {
    let pairs = |endpoint: Endpoint| {
        let path = endpoint
            .path()
            .replace("{name}", "alice")
            .replace("{id}", "0123456789abcdef")
            .replace("{domain}", "two.example")
            .replace("{did}", "did:aip:two.example:bob");
        let methods: Vec<_> = endpoint
            .methods()
            .iter()
            .filter(|method| **method != "HEAD")
            .copied()
            .collect();
        methods
            .into_iter()
            .map(move |method| (Method::from_bytes(method.as_bytes()).unwrap(), path.clone()))
    };
    endpoints().into_iter().flat_map(pairs).collect()
}

#[actix_web::test]
async fn row_87_every_route_is_closed_without_the_operators_token() {
    let hub = hub();
    assert_eq!(doors().len(), 44);
    for (method, path) in doors() {
        for token in [
            "",
            "x",
            "0123456789abcdef0123456789abcdeX",
            "0123456789abcdef0123456789abcdef0",
        ] {
            let answer = hub
                .ask_operator(request(method.clone(), &path, token).set_json(json!({})))
                .await;
            assert_eq!(
                answer.status,
                StatusCode::UNAUTHORIZED,
                "{method} {path} with {token:?}"
            );
            assert_eq!(answer.code(), "token_invalid");
        }
    }
}

#[actix_web::test]
async fn an_empty_operator_token_opens_nothing() {
    let hub = TestHub::new();
    let answer = hub.ask_operator(request(Method::GET, AGENTS_PATH, "")).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

#[actix_web::test]
async fn the_public_listener_has_none_of_these_routes() {
    let hub = hub();
    for (method, path) in doors() {
        let answer = hub.ask(request(method, &path, TOKEN)).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[actix_web::test]
async fn row_87_an_agent_cannot_set_its_own_standing_or_quota() {
    let hub = hub();
    let mut alice = hub.registered("alice").await;
    let profile = br#"{"standing": "active", "quota": {"mailbox_messages": 1000000}, "admin": true}"#;
    let wire = alice.next(hub.clock.now(), |draft| {
        draft.profile = Json::parse(profile).unwrap();
    });
    let answer = hub.post("/api/v1/agents/alice/operations", wire).await;
    assert!(answer.status.is_success(), "{answer:?}");
    let page = get(&hub, AGENTS_PATH).await;
    assert_eq!(page["items"][0]["quota"]["mailbox_messages"], Value::Null);
}

#[actix_web::test]
async fn an_agent_is_suspended_and_let_back_in() {
    let hub = hub();
    hub.registered("alice").await;
    let path = STANDING_PATH.replace("{name}", "alice");
    for standing in ["suspended", "suspended", "active"] {
        let answer = send(&hub, Method::PUT, &path, &json!({ "standing": standing })).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert_eq!(get(&hub, AGENTS_PATH).await["items"][0]["standing"], standing);
    }
    let unknown = STANDING_PATH.replace("{name}", "nobody");
    let answer = send(&hub, Method::PUT, &unknown, &json!({ "standing": "suspended" })).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (StatusCode::NOT_FOUND, "not_found")
    );
}

#[actix_web::test]
async fn a_quota_is_set_and_taken_back_as_a_whole() {
    let hub = hub();
    let alice = hub.registered("alice").await;
    let path = QUOTA_PATH.replace("{name}", "alice");
    send(
        &hub,
        Method::PUT,
        &path,
        &json!({ "mailbox_messages": 5, "mailbox_bytes": 9_000 }),
    )
    .await;
    let quota = &get(&hub, AGENTS_PATH).await["items"][0]["quota"];
    assert_eq!(
        *quota,
        json!({ "mailbox_messages": 5, "mailbox_bytes": 9_000, "sender_messages": null })
    );
    let agent = hub.hub.app.registry.resolve(&alice.did).await.unwrap().unwrap();
    assert_eq!(
        agent.quota.mailbox_messages,
        Some(5),
        "the cache knows it at once"
    );
    send(&hub, Method::PUT, &path, &json!({})).await;
    let quota = &get(&hub, AGENTS_PATH).await["items"][0]["quota"];
    assert_eq!(quota["mailbox_messages"], Value::Null);
}

#[actix_web::test]
async fn an_invite_is_made_used_listed_and_revoked() {
    let hub = TestHub::with(|settings| {
        settings.http.operator_token = Secret::new(TOKEN);
        settings.hub.registration = Registration::Invite;
    });
    let made = send(
        &hub,
        Method::POST,
        INVITES_PATH,
        &json!({ "uses": 2, "days": 1, "note": "for bob" }),
    )
    .await;
    assert_eq!(
        (made.status, made.header("cache-control")),
        (StatusCode::CREATED, "no-store")
    );
    let (code, id) = (made.json()["code"].clone(), made.json()["id"].clone());
    let register = TestRequest::post()
        .uri("/api/v1/agents")
        .insert_header(("x-aip-invite", code.as_str().unwrap()));
    let register = register.insert_header(("content-type", "application/json"));
    assert_eq!(
        hub.ask(register.set_payload(hub.agent("bob").genesis()))
            .await
            .status,
        StatusCode::CREATED
    );

    let page = get(&hub, INVITES_PATH).await;
    let line = &page["items"][0];
    assert_eq!(
        (&line["id"], &line["state"], &line["uses_left"]),
        (&id, &json!("good"), &json!(1))
    );
    assert_eq!(line["expires_at"], "2026-11-30T20:15:30.000Z");
    assert!(
        !page.to_string().contains(code.as_str().unwrap()),
        "a code is shown once"
    );
    assert_eq!(get(&hub, AGENTS_PATH).await["items"][0]["invite"], id);

    let path = INVITE_PATH.replace("{id}", id.as_str().unwrap());
    for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
        assert_eq!(
            hub.ask_operator(request(Method::DELETE, &path, TOKEN))
                .await
                .status,
            status
        );
    }
    assert_eq!(get(&hub, INVITES_PATH).await["items"][0]["state"], "revoked");
}

#[actix_web::test]
async fn pages_follow_each_other_to_the_end() {
    let hub = hub();
    for name in ["alice", "bob", "carol"] {
        hub.registered(name).await;
        send(&hub, Method::POST, INVITES_PATH, &json!({})).await;
    }
    for (path, id) in [(AGENTS_PATH, "name"), (INVITES_PATH, "id")] {
        let first = get(&hub, &format!("{path}?limit=2")).await;
        assert_eq!(first["items"].as_array().unwrap().len(), 2);
        let after = first["next_cursor"].as_str().unwrap();
        assert_eq!(first["items"][1][id], after);
        let last = get(&hub, &format!("{path}?limit=2&after={after}")).await;
        assert_eq!(last["items"].as_array().unwrap().len(), 1);
        assert_eq!(last["next_cursor"], Value::Null);
    }
    let answer = hub
        .ask_operator(request(Method::GET, &format!("{AGENTS_PATH}?limit=0"), TOKEN))
        .await;
    assert_eq!(answer.code(), "parameter_invalid");
}

#[actix_web::test]
async fn a_body_is_exactly_what_the_route_knows() {
    let hub = hub();
    for body in [json!({ "uses": "two" }), json!({ "color": "red" }), json!([])] {
        let answer = send(&hub, Method::POST, INVITES_PATH, &body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (StatusCode::BAD_REQUEST, "member_invalid"),
            "{body}"
        );
    }
    let answer = send(&hub, Method::POST, INVITES_PATH, &json!({ "uses": 0 })).await;
    assert_eq!(answer.code(), "parameter_invalid");
}

#[actix_web::test]
async fn a_hub_in_memory_has_nothing_to_back_up() {
    let hub = hub();
    let answer = send(&hub, Method::POST, BACKUPS_PATH, &json!({ "to": "/nowhere" })).await;
    assert_eq!(answer.code(), "unavailable");
    let answer = send(&hub, Method::POST, BACKUPS_PATH, &json!({ "to": "here" })).await;
    assert_eq!(answer.code(), "member_invalid");
}

#[actix_web::test]
async fn a_paused_hub_takes_nothing_and_goes_on_when_nobody_holds_it() {
    let hub = hub();
    let (alice, bob) = (hub.registered("alice").await, hub.registered("bob").await);
    hub.send(&alice, &bob, 1).await;
    let lease = json!({ "lease_secs": 10 });
    let answer = send(&hub, Method::PUT, PAUSE_PATH, &lease).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["pause"]),
        (200, &json!(1))
    );

    let envelope = hub.envelope(&alice, &bob, 2).to_wire();
    let answer = hub.post("/api/v1/messages", envelope).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (503, "unavailable")
    );
    assert!(answer.header("retry-after").parse::<u64>().unwrap() > 0);
    let carol = hub.agent("carol");
    let answer = hub.post("/api/v1/agents", carol.genesis()).await;
    assert_eq!(answer.code(), "unavailable");
    let answer = hub.publish(&hub.listing(&alice, "x-1", 1, |_| {})).await;
    assert_eq!(answer.code(), "unavailable");
    let answer = hub.get("/health/ready").await;
    assert_eq!(answer.json()["reason"], "paused");
    assert_eq!(hub.get("/api/v1/resolve/bob%23hub.example").await.status, 200);

    hub.clock.advance(std::time::Duration::from_secs(10));
    assert_eq!(hub.send(&alice, &bob, 2).await, 2, "the lease has ended");
    let renewal = json!({ "lease_secs": 10, "renews": 1 });
    let answer = send(&hub, Method::PUT, PAUSE_PATH, &renewal).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (409, "version_conflict")
    );
}

#[actix_web::test]
async fn a_pause_is_ended_by_the_operator_unless_it_is_for_good() {
    let hub = hub();
    let pause =
        async |lease: Value| send(&hub, Method::PUT, PAUSE_PATH, &json!({ "lease_secs": lease })).await;
    for wrong in [json!(0), json!(601), json!("x")] {
        assert_eq!(pause(wrong).await.code(), "member_invalid");
    }
    assert_eq!(pause(json!(600)).await.status, 200);
    let resume = || hub.ask_operator(request(Method::DELETE, PAUSE_PATH, TOKEN));
    assert_eq!(resume().await.status, 204);
    assert_eq!(hub.get("/health/ready").await.status, 200);
    assert_eq!(pause(Value::Null).await.status, 200);
    assert_eq!(resume().await.code(), "unavailable");
    hub.clock.advance(std::time::Duration::from_hours(1));
    assert_eq!(hub.get("/health/ready").await.json()["reason"], "paused");
}
