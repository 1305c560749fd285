//! From a challenge to a token, over HTTP.

use actix_web::test::TestRequest;
use actix_web::{FromRequest as _, dev::Payload};
use aip_protocol::challenge::challenge_object;
use aip_protocol::signature::{Tag, sign};
use serde_json::{Value, json};

use crate::extract::Caller;
use crate::testing::{Answer, DOMAIN, TestAgent, TestHub};

async fn challenge(hub: &TestHub, agent: &TestAgent) -> String {
    let answer = hub
        .post("/api/v1/auth/challenge", json!({ "did": agent.did }).to_string())
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["challenge"].as_str().unwrap().to_owned()
}

fn signed(agent: &TestAgent, challenge: &str, audience: &str) -> Value {
    let sig = sign(
        &agent.signing,
        Tag::Challenge,
        &challenge_object(audience, challenge, &agent.did),
    );
    json!({ "did": agent.did, "kid": agent.kid(), "challenge": challenge, "sig": sig.to_string() })
}

async fn exchange(hub: &TestHub, request: &Value) -> Answer {
    hub.post("/api/v1/auth/token", request.to_string()).await
}

async fn caller(hub: &TestHub, authorization: String) -> Result<String, String> {
    let request = TestRequest::default().app_data(hub.hub.app.clone());
    let request = request
        .insert_header(("authorization", authorization))
        .to_http_request();
    let caller = Caller::from_request(&request, &mut Payload::None).await;
    caller
        .map(|Caller(did)| did.to_string())
        .map_err(|error| error.code().to_string())
}

#[actix_web::test]
async fn a_signed_challenge_becomes_a_token() {
    let hub = TestHub::new();
    let agent = hub.registered("alice").await;
    let answer = exchange(&hub, &signed(&agent, &challenge(&hub, &agent).await, DOMAIN)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("cache-control")),
        (200, "no-store")
    );
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(
        caller(&hub, format!("Bearer {token}")).await.as_deref(),
        Ok("did:aip:hub.example:alice")
    );
}

#[actix_web::test]
async fn anything_else_opens_nothing() {
    let hub = TestHub::new();
    for authorization in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic YTpi",
        "Bearer é",
    ] {
        assert_eq!(
            caller(&hub, authorization.to_owned()).await.unwrap_err(),
            "token_invalid",
            "{authorization}"
        );
    }
}

#[actix_web::test]
async fn a_challenge_works_once() {
    let hub = TestHub::new();
    let agent = hub.registered("alice").await;
    let request = signed(&agent, &challenge(&hub, &agent).await, DOMAIN);
    assert_eq!(exchange(&hub, &request).await.status, 200);
    assert_eq!(exchange(&hub, &request).await.code(), "challenge_invalid");
}

#[actix_web::test]
async fn an_answer_for_another_hub_is_refused() {
    let hub = TestHub::new();
    let agent = hub.registered("alice").await;
    let request = signed(&agent, &challenge(&hub, &agent).await, "elsewhere.example");
    let answer = exchange(&hub, &request).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (401, "signature_invalid")
    );
    assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"aip\"");
}

#[actix_web::test]
async fn members_are_checked_one_by_one() {
    let hub = TestHub::new();
    let agent = hub.registered("alice").await;
    let good = signed(&agent, "x", DOMAIN);
    for (member, value, code) in [
        ("kid", Value::Null, "member_invalid"),
        ("challenge", json!(7), "member_invalid"),
        ("did", json!("alice"), "did_invalid"),
        ("sig", json!("ed25519:z0"), "signature_malformed"),
    ] {
        let mut request = good.clone();
        request[member] = value;
        assert_eq!(exchange(&hub, &request).await.code(), code, "{member}");
        request.as_object_mut().unwrap().remove(member);
        let answer = exchange(&hub, &request).await;
        assert_eq!(
            (answer.code().as_str(), &answer.json()["member"]),
            ("member_missing", &json!(member))
        );
    }
    assert_eq!(
        hub.post("/api/v1/auth/challenge", "[]").await.code(),
        "member_missing"
    );
    assert_eq!(
        hub.post("/api/v1/auth/challenge", "{\"did\":1.5}").await.code(),
        "json_invalid"
    );
}

#[actix_web::test]
async fn a_challenge_does_not_tell_who_exists() {
    let hub = TestHub::new();
    let known = hub.registered("alice").await;
    let (known, unknown) = (
        challenge(&hub, &known).await,
        challenge(&hub, &hub.agent("nobody")).await,
    );
    assert_eq!(known.len(), unknown.len());
}
