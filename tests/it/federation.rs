//! Federation between real hubs: the story of three of them, faults, and peers that are hostile.

mod engines;
mod faults;
mod hostile;
mod keys;
mod moves;
mod network;
mod policy;
mod receipts;
mod story;

use std::time::Duration;

use aip_tests::raw::{Request, ask};
use aip_tests::{HubOptions, TestAgent, TestHub};
use serde_json::Value;

/// Ends a test that would hang; no test is about time.
const DEADLINE: Duration = Duration::from_mins(3);

/// Hubs with room for what these tests send, and no first steps for new peers.
const ROOMY: &str = r#"
[relay]
sender_messages_per_sec = 1_000_000
sender_burst_messages = 1_000_000
mailbox_messages_max = 25_000
mailbox_messages_per_sender_max = 25_000
mailbox_bytes_max = 4_294_967_296
[federation]
ramp = false
peer_items_per_sec = 1_000_000
queue_messages_per_sender_max = 100_000
[log]
filter = "info,actix_server=warn"
"#;

fn roomy() -> HubOptions {
    HubOptions {
        config: Some(ROOMY.to_owned()),
        ..HubOptions::default()
    }
}

/// Waits until `reached`, which others bring about.
async fn until<F: Future<Output = bool>>(what: &str, mut reached: impl FnMut() -> F) {
    let wait = async {
        while !reached().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(
        tokio::time::timeout(DEADLINE, wait).await.is_ok(),
        "not in time: {what}"
    );
}

/// What lies in an agent's mailbox.
async fn inbox(hub: &TestHub, token: &str) -> Vec<Value> {
    let request = Request::get("/api/v1/inbox?limit=100").bearer(token);
    let answer = ask(hub.url(), &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["items"].as_array().cloned().unwrap_or_default()
}

/// Mail between two agents of the hub, so that nobody else holds them up.
async fn local_mail_passes(hub: &TestHub, from: &TestAgent, to: &TestAgent) {
    let answer = from.send(hub, to).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
}
