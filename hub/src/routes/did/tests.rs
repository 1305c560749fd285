//! The DID for the world outside, over HTTP.

use actix_web::test::TestRequest;
use aip_protocol::clock::Clock as _;

use crate::testing::{Answer, TestHub};

async fn resolve(hub: &TestHub, did: &str, accept: &'static str) -> Answer {
    let request = TestRequest::get()
        .uri(&format!("/1.0/identifiers/{did}"))
        .insert_header(("accept", accept));
    hub.ask(request).await
}

#[actix_web::test]
async fn a_result_has_its_three_parts() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    let answer = resolve(&hub, "did%3Aaip%3Ahub.example%3Aalice", "*/*").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "application/did-resolution")
    );
    let body = answer.json();
    assert_eq!(body["didDocument"]["id"], "did:aip:hub.example:alice");
    assert_eq!(body["didResolutionMetadata"]["contentType"], "application/did");
    assert_eq!(body["didDocumentMetadata"]["updated"], "2026-11-29T20:15:30Z");
}

#[actix_web::test]
async fn the_document_alone_is_given_on_request() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    let answer = resolve(&hub, "did:aip:hub.example:alice", "application/did").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "application/did")
    );
    assert_eq!(answer.json()["id"], "did:aip:hub.example:alice");
}

#[actix_web::test]
async fn errors_are_those_of_the_standard() {
    let hub = TestHub::new();
    for (did, accept, status, error) in [
        ("did:aip:hub.example:nobody", "*/*", 404, "NOT_FOUND"),
        ("did:aip:hub.example:", "*/*", 400, "INVALID_DID"),
        ("alice%23hub.example", "*/*", 400, "INVALID_DID"),
        ("did:example:123", "*/*", 501, "METHOD_NOT_SUPPORTED"),
        (
            "did:aip:hub.example:alice",
            "text/html",
            406,
            "REPRESENTATION_NOT_SUPPORTED",
        ),
        (
            "did:aip:hub.example:alice?versionId=0",
            "*/*",
            501,
            "FEATURE_NOT_SUPPORTED",
        ),
    ] {
        let answer = resolve(&hub, did, accept).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (status, "application/did-resolution")
        );
        let body = answer.json();
        assert_eq!(body["didDocument"], serde_json::Value::Null);
        assert_eq!(
            body["didResolutionMetadata"]["error"]["type"],
            format!("https://www.w3.org/ns/did#{error}")
        );
    }
}

#[actix_web::test]
async fn a_deactivated_did_is_gone() {
    let hub = TestHub::new();
    let mut agent = hub.registered("alice").await;
    let end = agent.next(hub.clock.now(), |draft| draft.deactivated = true);
    hub.post("/api/v1/agents/alice/operations", end).await;
    let answer = resolve(&hub, "did:aip:hub.example:alice", "*/*").await;
    assert_eq!(answer.status, 410);
    assert_eq!(answer.json()["didDocumentMetadata"]["deactivated"], true);
    assert_eq!(
        hub.get("/agents/alice/did.json").await.code(),
        "agent_deactivated"
    );
}

#[actix_web::test]
async fn the_did_web_twin_has_the_same_keys() {
    let hub = TestHub::new();
    let agent = hub.registered("alice").await;
    let answer = hub.get("/agents/alice/did.json").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    assert_eq!(body["id"], "did:web:hub.example:agents:alice");
    assert_eq!(body["alsoKnownAs"][0], "did:aip:hub.example:alice");
    assert_eq!(
        body["verificationMethod"][0]["publicKeyMultibase"],
        agent.signing.public().as_str()
    );
    assert_eq!(hub.get("/agents/nobody/did.json").await.code(), "not_found");
}
