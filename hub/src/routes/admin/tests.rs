//! Who gets through the operator's door, and what lies behind it.

use std::sync::Arc;

use actix_web::http::{Method, StatusCode};
use actix_web::test::{TestRequest, call_service, init_service, read_body_json};
use actix_web::web::Data;
use aip_protocol::clock::ManualClock;
use aip_protocol::time::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::config::Settings;
use crate::server;
use crate::wiring::{self, Seams};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn app() -> Data<App> {
    let mut settings = Settings::development();
    settings.hub.domain = "localhost:8080".to_owned();
    settings.http.operator_token = crate::config::Secret::new(TOKEN);
    let clock = Arc::new(ManualClock::new(Timestamp::parse("2026-11-29T20:15:30Z").unwrap()));
    let seams = Seams::in_memory(&settings, clock).unwrap();
    wiring::build(settings, seams).unwrap().app
}

async fn ask(app: &Data<App>, method: Method, path: &str, token: &str, body: Option<Value>) -> (StatusCode, Value) {
    let service = init_service(server::application(app.clone(), server::operator)).await;
    let mut request = TestRequest::default().method(method).uri(path);
    if !token.is_empty() {
        request = request.insert_header(("authorization", format!("Bearer {token}")));
    }
    if let Some(body) = body {
        request = request.set_json(body);
    }
    let response = call_service(&service, request.to_request()).await;
    let status = response.status();
    let body = if status == StatusCode::NO_CONTENT { Value::Null } else { read_body_json(response).await };
    (status, body)
}

/// Every method of every path of this resource, with the names filled in.
fn doors() -> Vec<(Method, String)> {
    let pairs = |endpoint: Endpoint| {
        let path = endpoint.path().replace("{name}", "alice").replace("{id}", "0123456789abcdef");
        let methods: Vec<_> = endpoint.methods().iter().filter(|method| **method != "HEAD").copied().collect();
        methods.into_iter().map(move |method| (Method::from_bytes(method.as_bytes()).unwrap(), path.clone()))
    };
    endpoints().into_iter().flat_map(pairs).collect()
}

#[actix_web::test]
async fn row_87_every_route_is_closed_without_the_operators_token() {
    let app = app();
    assert_eq!(doors().len(), 7);
    for (method, path) in doors() {
        for token in ["", "x", "0123456789abcdef0123456789abcdeX", "0123456789abcdef0123456789abcdef0"] {
            let (status, body) = ask(&app, method.clone(), &path, token, Some(json!({}))).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path} with {token:?}");
            assert_eq!(body["code"], "token_invalid");
        }
    }
}

#[actix_web::test]
async fn an_empty_operator_token_opens_nothing() {
    let mut settings = Settings::development();
    settings.hub.domain = "localhost:8080".to_owned();
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let seams = Seams::in_memory(&settings, clock).unwrap();
    let app = wiring::build(settings, seams).unwrap().app;
    let request = TestRequest::get().uri(AGENTS_PATH).insert_header(("authorization", "Bearer "));
    let service = init_service(server::application(app, server::operator)).await;
    assert_eq!(call_service(&service, request.to_request()).await.status(), StatusCode::UNAUTHORIZED);
}

#[actix_web::test]
async fn row_17_the_public_listener_has_none_of_these_routes() {
    let app = app();
    let service = init_service(server::application(app, server::public)).await;
    for (method, path) in doors() {
        let request = TestRequest::default().method(method).uri(&path);
        let request = request.insert_header(("authorization", format!("Bearer {TOKEN}")));
        assert_eq!(call_service(&service, request.to_request()).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[actix_web::test]
async fn an_invite_is_made_listed_and_revoked() {
    let app = app();
    let (status, made) = ask(&app, Method::POST, INVITES_PATH, TOKEN, Some(json!({ "uses": 2, "days": 1, "note": "for bob" }))).await;
    assert_eq!(status, StatusCode::CREATED);
    let (_, page) = ask(&app, Method::GET, INVITES_PATH, TOKEN, None).await;
    let line = &page["items"][0];
    assert_eq!(line["id"], made["id"]);
    assert_eq!((&line["state"], &line["uses_left"]), (&json!("good"), &json!(2)));
    assert_eq!(line["expires_at"], "2026-11-30T20:15:30.000Z");
    assert!(!page.to_string().contains(made["code"].as_str().unwrap()), "a code is shown once");
    let path = INVITE_PATH.replace("{id}", made["id"].as_str().unwrap());
    assert_eq!(ask(&app, Method::DELETE, &path, TOKEN, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(ask(&app, Method::DELETE, &path, TOKEN, None).await.0, StatusCode::NOT_FOUND);
    let (_, page) = ask(&app, Method::GET, INVITES_PATH, TOKEN, None).await;
    assert_eq!(page["items"][0]["state"], "revoked");
}

#[actix_web::test]
async fn pages_of_invites_follow_each_other() {
    let app = app();
    for _ in 0..3 {
        ask(&app, Method::POST, INVITES_PATH, TOKEN, Some(json!({}))).await;
    }
    let (_, first) = ask(&app, Method::GET, &format!("{INVITES_PATH}?limit=2"), TOKEN, None).await;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let after = first["next_cursor"].as_str().unwrap();
    let (_, last) = ask(&app, Method::GET, &format!("{INVITES_PATH}?limit=2&after={after}"), TOKEN, None).await;
    assert_eq!(last["items"].as_array().unwrap().len(), 1);
    assert_eq!(last["next_cursor"], Value::Null);
}

#[actix_web::test]
async fn a_body_is_exactly_what_the_route_knows() {
    let app = app();
    for body in [json!({ "uses": "two" }), json!({ "color": "red" }), json!([])] {
        let (status, answer) = ask(&app, Method::POST, INVITES_PATH, TOKEN, Some(body.clone())).await;
        assert_eq!((status, &answer["code"]), (StatusCode::BAD_REQUEST, &json!("member_invalid")), "{body}");
    }
    let quota = QUOTA_PATH.replace("{name}", "alice");
    let (status, answer) = ask(&app, Method::PUT, &quota, TOKEN, Some(json!({ "mailbox_messages": 5 }))).await;
    assert_eq!((status, &answer["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
}

#[actix_web::test]
async fn a_hub_in_memory_has_nothing_to_back_up() {
    let app = app();
    let (status, _) = ask(&app, Method::POST, BACKUPS_PATH, TOKEN, Some(json!({ "to": "/nowhere" }))).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let (status, answer) = ask(&app, Method::POST, BACKUPS_PATH, TOKEN, Some(json!({ "to": "here" }))).await;
    assert_eq!((status, &answer["code"]), (StatusCode::BAD_REQUEST, &json!("member_invalid")));
}
