//! One hub of several processes on PostgreSQL, NATS and Redis: what holds of one process holds of all of them together.

mod commands;
mod keys;
mod losses;
mod migrate;
mod moving;
mod one;
mod several;
mod stopping;

use std::time::Duration;

use aip_tests::cluster::Cluster;
use aip_tests::raw::{Answer, DEADLINE, Request, ask};
use aip_tests::{TestAgent, TestHub};
use serde_json::{Value, json};

/// Waits until `look` finds something.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut waited = Duration::ZERO;
    while waited < DEADLINE {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        waited += Duration::from_millis(50);
    }
    panic!("not in time: {what}")
}

/// Sends a message at one process; its place in the mailbox.
async fn sent(hub: &TestHub, from: &TestAgent, to: &TestAgent) -> u64 {
    let answer = from.send(hub, to).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.json()["seq"].as_u64().unwrap()
}

/// What waits in the agent's mailbox, asked at one process.
async fn inbox(hub: &TestHub, token: &str) -> Answer {
    ask(hub.url(), &Request::get("/api/v1/inbox").bearer(token)).await
}

/// The sequence numbers in it.
fn places(inbox: &Answer) -> Vec<u64> {
    assert_eq!(inbox.status, 200, "{}", inbox.text());
    let items = inbox.json()["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| item["seq"].as_u64()).collect()
}

/// Acks everything up to a place at one process.
async fn acked(hub: &TestHub, token: &str, epoch: &Value, upto: u64) -> Answer {
    let body = json!({ "epoch": epoch, "upto": upto }).to_string();
    ask(hub.url(), &Request::post("/api/v1/inbox/ack", body).bearer(token)).await
}

/// Waits until the hub says this of a message: news of it are written behind its back.
async fn status(hub: &TestHub, token: &str, id: impl std::fmt::Display, expected: &str) {
    let request = Request::get(format!("/api/v1/messages/{id}/status")).bearer(token);
    until(&format!("the status {expected}"), async || {
        let answer = ask(hub.url(), &request).await;
        (answer.json()["status"] == expected).then_some(())
    })
    .await;
}

/// Two agents, registered at the first process.
async fn two(cluster: &Cluster) -> (TestAgent, TestAgent) {
    let first = cluster.hub(0);
    (
        TestAgent::registered(first, "alice").await,
        TestAgent::registered(first, "bob").await,
    )
}

/// Readiness as a whole.
async fn ready(hub: &TestHub) -> (u16, Value) {
    let answer = ask(hub.url(), &Request::get("/health/ready")).await;
    (answer.status, answer.json())
}

/// Waits until a process is ready and lacks nothing.
async fn recovered(hub: &TestHub) {
    until("a hub that lacks nothing", async || {
        let (status, body) = ready(hub).await;
        (status == 200 && body.get("degraded").is_none()).then_some(())
    })
    .await;
}
