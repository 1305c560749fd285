//! Calls that are answered later, or by events.

use std::time::Duration;

use actix_web::http::Method;
use aip_protocol::sse::{Decoder, Event};
use serde_json::{Value, json};

use super::{Shop, refused};
use crate::testing::Answer;

const LATER: (&str, &str) = ("prefer", "respond-async");
const EVENTS: (&str, &str) = ("accept", "text/event-stream");

/// The path of a URL of this hub.
fn path(url: &Value) -> String {
    let url = url.as_str().unwrap();
    let (_, path) = url.split_once("/ai-market").unwrap();
    format!("/ai-market{path}")
}

fn events(answer: &Answer) -> Vec<Event> {
    assert_eq!(answer.header("content-type"), "text/event-stream", "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    Decoder::new(1_000_000).push(&answer.body).unwrap()
}

fn data(event: &Event) -> Value {
    serde_json::from_str(&event.data).unwrap()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

/// A shop, and a job of it that is under way.
async fn under_way(headers: &[(&str, &str)]) -> (Shop, String, Value) {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", Some("0.05")).await;
    let (_, key) = shop.account("1").await;
    shop.provider.hangs(true);
    let mut all = vec![("x-api-key", key.as_str()), LATER];
    all.extend(headers);
    let answer = shop.calls("echo@v1", &all, &json!({ "x": 1 })).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let job = answer.json();
    assert_eq!(answer.header("location"), job["poll_url"].as_str().unwrap());
    assert_eq!(answer.header("preference-applied"), "respond-async");
    assert_eq!(answer.header("retry-after"), "2");
    (shop, key, job)
}

#[actix_web::test]
async fn a_call_that_is_answered_later_is_polled_with_its_secret() {
    let (shop, key, job) = under_way(&[]).await;
    assert_eq!(
        (
            &job["success"],
            &job["status"],
            &job["capability_id"],
            &job["protocol_version"]
        ),
        (&json!(true), &json!("running"), &json!("echo@v1"), &json!("v2"))
    );
    let secret = job["job_secret"].as_str().unwrap();
    let poll = path(&job["poll_url"]);
    let shown = [("x-aimarket-job-secret", secret)];
    let now = shop.reads(&poll, &shown).await;
    assert_eq!(
        (now.status.as_u16(), &now.json()["status"]),
        (200, &json!("running"))
    );
    assert_eq!(
        (now.header("retry-after"), now.header("cache-control")),
        ("2", "no-store")
    );
    assert!(now.json().get("job_secret").is_none() && now.json().get("answer").is_none());

    shop.provider.hangs(false);
    let patient = [shown[0], ("prefer", "wait=30")];
    let over = shop.reads(&poll, &patient).await;
    let body = over.json();
    assert_eq!(
        (&body["status"], &body["answer_status"]),
        (&json!("succeeded"), &json!(200))
    );
    assert_eq!(body["answer"]["result"], json!({ "echo": { "x": 1 } }));
    assert_eq!(body["answer"]["invocation_id"], job["job_id"]);
    assert_eq!(over.header("retry-after"), "");
    // Who pays it needs no secret.
    let by_key = shop.reads(&poll, &[("x-api-key", &key)]).await.json();
    assert_eq!(by_key, body);
    assert_eq!(shop.balance(&key).await.to_bits(), 0.95_f64.to_bits());
    shop.balanced().await;
}

#[actix_web::test]
async fn nobody_else_looks_at_a_job() {
    let (shop, _key, job) = under_way(&[]).await;
    let poll = path(&job["poll_url"]);
    let (_, other) = shop.account("1").await;
    for (headers, status, code) in [
        (vec![], 400, "job_secret_required"),
        (
            vec![("x-aimarket-job-secret", "aimj_wrong")],
            404,
            "job_not_found",
        ),
        (vec![("x-api-key", other.as_str())], 404, "job_not_found"),
        (vec![("x-api-key", "aimk_wrong")], 401, "invalid_api_key"),
        (
            vec![
                ("x-aimarket-job-secret", "aimj_a"),
                ("x-aimarket-job-secret", "aimj_b"),
            ],
            400,
            "header_invalid",
        ),
    ] {
        refused(&shop.reads(&poll, &headers).await, status, code);
        let events = format!("{poll}/events");
        refused(&shop.reads(&events, &headers).await, status, code);
        refused(
            &shop.asks(Method::DELETE, &poll, &headers, &json!({})).await,
            status,
            code,
        );
    }
    let secret = job["job_secret"].as_str().unwrap();
    let nowhere = shop
        .reads("/ai-market/v2/jobs/x", &[("x-aimarket-job-secret", secret)])
        .await;
    refused(&nowhere, 404, "job_not_found");
    let odd = [("x-aimarket-job-secret", secret), ("last-event-id", "x")];
    refused(
        &shop.reads(&format!("{poll}/events"), &odd).await,
        400,
        "header_invalid",
    );
    refused(
        &shop.posts(&poll, &[], &json!({})).await,
        405,
        "method_not_allowed",
    );
}

#[actix_web::test]
async fn a_job_that_is_cancelled_costs_nothing() {
    let (shop, key, job) = under_way(&[("idempotency-key", "order-0001")]).await;
    let shown = [("x-aimarket-job-secret", job["job_secret"].as_str().unwrap())];
    let poll = path(&job["poll_url"]);
    for _again in 0..2 {
        let cancelled = shop.asks(Method::DELETE, &poll, &shown, &json!({})).await;
        let body = cancelled.json();
        assert_eq!(
            (cancelled.status.as_u16(), &body["status"]),
            (200, &json!("cancelled"))
        );
        assert_eq!(
            (&body["answer_status"], &body["answer"]["error"]),
            (&json!(409), &json!("job_cancelled"))
        );
    }
    assert_eq!(shop.balance(&key).await.to_bits(), 1.0_f64.to_bits());
    let headers = [("x-api-key", key.as_str()), ("idempotency-key", "order-0001")];
    refused(
        &shop.calls("echo@v1", &headers, &json!({ "x": 1 })).await,
        409,
        "job_cancelled",
    );
    let stream = shop.reads(&format!("{poll}/events"), &shown).await;
    let events = events(&stream);
    assert_eq!(names(&events), ["job", "error"]);
    assert_eq!(
        (&data(&events[1])["error"], &data(&events[1])["status"]),
        (&json!("job_cancelled"), &json!(409))
    );
    shop.balanced().await;
}

#[actix_web::test]
async fn a_call_is_answered_by_events_as_they_come() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", Some("0.05")).await;
    let (_, key) = shop.account("1").await;
    shop.provider.speaks(
        "event: progress\ndata: {\"done\": 0.5}\n\nevent: chunk\ndata: Once\n\n\
         event: result\ndata: {\"result\": {\"text\": \"Once\"}}\n\n",
    );
    let answer = shop
        .calls("echo@v1", &[("x-api-key", &key), EVENTS], &json!({}))
        .await;
    assert_eq!(answer.status, 200);
    let heard = events(&answer);
    assert_eq!(names(&heard), ["job", "progress", "chunk", "result"]);
    assert_eq!(
        (heard[1].id.as_deref(), heard[2].id.as_deref()),
        (Some("1"), Some("2"))
    );
    assert_eq!(
        (data(&heard[1]), data(&heard[2])),
        (json!({ "done": 0.5 }), json!("Once"))
    );
    let result = data(&heard[3]);
    assert_eq!(
        (&result["result"], &result["price_usd"]),
        (&json!({ "text": "Once" }), &json!(0.05))
    );
    let job = data(&heard[0]);
    assert_eq!(result["invocation_id"], job["job_id"]);
    // It is found again, from behind what was heard.
    let shown = [
        ("x-aimarket-job-secret", job["job_secret"].as_str().unwrap()),
        ("last-event-id", "1"),
    ];
    let again = shop
        .reads(&format!("{}/events", path(&job["poll_url"])), &shown)
        .await;
    let again = events(&again);
    assert_eq!(names(&again), ["job", "chunk", "result"]);
    assert_eq!(again[2].data, heard[3].data);
    assert!(data(&again[0]).get("job_secret").is_none());
    assert_eq!(shop.balance(&key).await.to_bits(), 0.95_f64.to_bits());
    let asked = shop.provider.accepted();
    assert!(asked.contains("text/event-stream"), "{asked}");
}

#[actix_web::test]
async fn a_provider_that_fails_is_told_by_an_event() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", Some("0.05")).await;
    let (_, key) = shop.account("1").await;
    for (says, reason) in [
        ("event: error\ndata: {\"error\": \"out of tea\"}\n\n", "refused"),
        ("event: chunk\ndata: Once\n\n", "answer_invalid"),
    ] {
        shop.provider.speaks(says);
        let answer = shop
            .calls("echo@v1", &[("x-api-key", &key), EVENTS], &json!({}))
            .await;
        let events = events(&answer);
        let error = events.last().map(data).unwrap();
        assert_eq!(
            (&error["error"], &error["reason"], &error["status"]),
            (&json!("provider_failed"), &json!(reason), &json!(502))
        );
    }
    assert_eq!(shop.balance(&key).await.to_bits(), 1.0_f64.to_bits());
}

/// With their status, and in the form of all refusals: no stream was begun.
#[actix_web::test]
async fn what_is_refused_before_a_call_begins_is_no_stream_and_no_job() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", Some("0.05")).await;
    for manner in [LATER, EVENTS] {
        refused(
            &shop.calls("echo@v1", &[manner], &json!({})).await,
            402,
            "payment_required",
        );
        refused(
            &shop.calls("none@v1", &[manner], &json!({})).await,
            404,
            "capability_unknown",
        );
        let wrong = [manner, ("x-api-key", "aimk_wrong")];
        refused(
            &shop.calls("echo@v1", &wrong, &json!({})).await,
            401,
            "invalid_api_key",
        );
    }
    assert!(shop.provider.calls().is_empty());
}

#[actix_web::test]
async fn who_waits_a_little_has_a_quick_answer_at_once() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", None).await;
    let patient = [
        ("prefer", "respond-async, wait=30"),
        ("idempotency-key", "order-0001"),
    ];
    for is_again in [false, true] {
        let answer = shop.calls("echo@v1", &patient, &json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["success"]),
            (200, &json!(true))
        );
        let replayed = if is_again { "true" } else { "" };
        assert_eq!(answer.header("idempotency-replayed"), replayed);
    }
    assert_eq!(shop.provider.calls().len(), 1);
}

#[actix_web::test]
async fn a_followed_call_is_counted_when_it_ends() {
    let (shop, _key, job) = under_way(&[]).await;
    let text = metrics(&shop).await;
    assert!(
        !text.contains("aip_market_invokes_total{capability=\"echo@v1\""),
        "{text}"
    );
    assert!(text.contains("aip_market_under_way 1") && text.contains("aip_market_streams 0"));
    let shown = [("x-aimarket-job-secret", job["job_secret"].as_str().unwrap())];
    shop.asks(Method::DELETE, &path(&job["poll_url"]), &shown, &json!({}))
        .await;
    let line = "aip_market_invokes_total{capability=\"echo@v1\",result=\"cancelled\"} 1";
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !metrics(&shop).await.contains(line) {
        assert!(tokio::time::Instant::now() < deadline, "it is never counted");
        tokio::task::yield_now().await;
    }
}

async fn metrics(shop: &Shop) -> String {
    let metrics = shop.operates(Method::GET, "/metrics", &json!({})).await;
    String::from_utf8(metrics.body.to_vec()).unwrap()
}
