//! Both doors of resolution, on input that people and proxies really send.

use std::time::Duration;

use actix_web::test::TestRequest;
use aip_protocol::clock::Clock as _;
use aip_protocol::time::Timestamp;

use crate::testing::TestHub;

#[actix_web::test]
async fn the_answer_names_the_agent_and_its_endpoint() {
    let hub = TestHub::new();
    let agent = hub.registered("alice").await;
    let answer = hub.get("/api/v1/resolve/alice%23hub.example").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    assert_eq!(body["handle"], "alice#hub.example");
    assert_eq!(body["did"], "did:aip:hub.example:alice");
    assert_eq!(body["route_mode"], "relay");
    assert_eq!(body["endpoint"], "https://hub.example/relay/alice");
    assert_eq!(body["did_document"]["id"], "did:aip:hub.example:alice");
    assert_eq!(body["history"]["seq"], 0);
    assert_eq!(body["history"]["head"], agent.identity.head_hash());
    assert!(Timestamp::parse(body["expires_at"].as_str().unwrap()).unwrap() > hub.clock.now());
}

#[actix_web::test]
async fn a_direct_agent_is_reached_at_its_own_endpoint() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let operation = agent.next(hub.clock.now(), |draft| {
        draft.route_mode = aip_protocol::identity::RouteMode::Direct;
        draft.endpoint = Some("https://alice.example/aip".to_owned());
    });
    assert_eq!(
        hub.post("/api/v1/agents/alice/operations", operation)
            .await
            .status,
        201
    );
    let body = hub.get("/api/v1/resolve/alice%23hub.example").await.json();
    assert_eq!(
        (body["route_mode"].as_str(), body["endpoint"].as_str()),
        (Some("direct"), Some("https://alice.example/aip"))
    );
    assert_eq!(body["history"]["seq"], 1);
}

#[actix_web::test]
async fn row_1_a_bare_name_is_never_someone_else() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    for path in ["/api/v1/resolve/alice", "/api/v1/resolve?id=alice"] {
        let answer = hub.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (400, "handle_domain_missing")
        );
        assert!(answer.json()["detail"].as_str().unwrap().contains("%23"));
    }
}

#[actix_web::test]
async fn row_2_an_identifier_is_decoded_exactly_once() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    for path in [
        "/api/v1/resolve/alice%2523hub.example",
        "/api/v1/resolve?id=alice%2523hub.example",
    ] {
        let answer = hub.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (400, "handle_invalid"),
            "{path}"
        );
    }
    assert_eq!(
        hub.get("/api/v1/resolve?id=alice%23hub.example").await.status,
        200
    );
}

#[actix_web::test]
async fn row_3_an_encoded_slash_confuses_no_route() {
    let hub = TestHub::new();
    for path in [
        "/api/v1/resolve/..%2F..%2Fetc%2Fpasswd",
        "/api/v1/resolve/a%2Fb%23hub.example",
        "/api/v1/agents/a%2Fb/history",
    ] {
        let answer = hub.get(path).await;
        assert!([400, 404].contains(&answer.status.as_u16()), "{path}: {answer:?}");
        answer.code();
    }
}

#[actix_web::test]
async fn row_4_a_did_is_read_in_every_spelling_and_printed_in_one() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    for id in [
        "did%3Aaip%3Ahub.example%3Aalice",
        "did:aip:hub.example:alice",
        "did:aip:HUB.example:alice",
        "ALICE%23HUB.EXAMPLE",
    ] {
        let answer = hub.get(&format!("/api/v1/resolve/{id}")).await;
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
        assert_eq!(answer.json()["did"], "did:aip:hub.example:alice");
    }
}

#[actix_web::test]
async fn refusals_are_told_apart() {
    let hub = TestHub::new();
    for (id, status, code) in [
        ("nobody%23hub.example", 404, "not_found"),
        ("alice%23elsewhere.example", 502, "peer_failed"),
        ("did%3Aaip%3A5f2a9c0de1b34477", 404, "did_foreign"),
        ("did%3Aweb%3Aexample.org", 400, "did_method_unsupported"),
        ("a..b%23hub.example", 400, "name_invalid"),
        ("alice%23192.0.2.1", 400, "domain_invalid"),
        ("al%FFice%23hub.example", 400, "handle_invalid"),
        ("alice%00%23hub.example", 400, "name_invalid"),
    ] {
        let answer = hub.get(&format!("/api/v1/resolve/{id}")).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (status, code),
            "{id}"
        );
    }
    assert_eq!(hub.get("/api/v1/resolve").await.code(), "parameter_invalid");
    assert_eq!(
        hub.get("/api/v1/resolve?id=a&id=b").await.code(),
        "parameter_invalid"
    );
    assert_eq!(
        hub.get("/api/v1/resolve?name=a").await.code(),
        "parameter_unknown"
    );
}

#[actix_web::test]
async fn an_unchanged_agent_is_not_sent_again() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let path = "/api/v1/resolve/alice%23hub.example";
    let first = hub.get(path).await;
    let etag = first.header("etag").to_owned();
    assert!(first.header("cache-control").contains("max-age="));
    let again = |etag: &str| {
        TestRequest::get()
            .uri(path)
            .insert_header(("if-none-match", etag))
    };
    let unchanged = hub.ask(again(&etag)).await;
    assert_eq!((unchanged.status.as_u16(), unchanged.body.len()), (304, 0));
    hub.post(
        "/api/v1/agents/alice/operations",
        agent.next(hub.clock.now(), |_| ()),
    )
    .await;
    assert_eq!(hub.ask(again(&etag)).await.status, 200);
}

#[actix_web::test]
async fn a_kept_answer_does_not_outlive_its_promise() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    for _ in 0..5 {
        let body = hub.get("/api/v1/resolve/alice%23hub.example").await.json();
        assert!(Timestamp::parse(body["expires_at"].as_str().unwrap()).unwrap() > hub.clock.now());
        hub.clock.advance(Duration::from_secs(20));
    }
}

#[actix_web::test]
async fn row_12_an_agent_is_found_as_soon_as_it_exists() {
    let hub = TestHub::new();
    assert_eq!(hub.get("/api/v1/resolve/alice%23hub.example").await.status, 404);
    hub.registered("alice").await;
    assert_eq!(hub.get("/api/v1/resolve/alice%23hub.example").await.status, 200);
}

#[actix_web::test]
async fn an_agent_that_ended_is_gone() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let end = agent.next(hub.clock.now(), |draft| draft.deactivated = true);
    assert_eq!(hub.post("/api/v1/agents/alice/operations", end).await.status, 201);
    let answer = hub.get("/api/v1/resolve/alice%23hub.example").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (410, "agent_deactivated")
    );
    assert_eq!(answer.json()["history"]["head"], agent.identity.head_hash());
}
