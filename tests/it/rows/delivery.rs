//! Rows about delivery that show only in a whole hub.

use std::time::Duration;

use aip_client::protocol::json::Json;
use aip_tests::raw::{Request, ask};
use aip_tests::ws::Socket;
use aip_tests::{HubOptions, TestAgent, TestHub, Vitals, keyed};
use serde_json::{Value, json};

fn hub(config: &str) -> TestHub {
    TestHub::start_with(HubOptions {
        config: Some(config.to_owned()),
        ..HubOptions::default()
    })
}

/// Far more messages than any queue between sender and socket holds, to a reader that takes its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_34_a_burst_to_a_slow_reader_loses_nothing() {
    const MESSAGES: usize = 2_000;
    const BATCH: usize = 100;
    let hub = hub(
        "[relay]\nsender_messages_per_sec = 100000\nsender_burst_messages = 100000\nmailbox_messages_max = 10000\n\
         mailbox_messages_per_sender_max = 10000\n",
    );
    let alice = TestAgent::registered(&hub, "alice").await;
    let bob = TestAgent::registered(&hub, "bob").await;
    let (mut socket, ready) = Socket::signed_in(&hub, &bob, json!({ "credit": 32 })).await;
    let envelopes: Vec<_> = (0..MESSAGES).map(|_| alice.envelope(&bob)).collect();
    let sending = async {
        for batch in envelopes.chunks(BATCH) {
            let wires = batch
                .iter()
                .map(|envelope| Value::from(envelope.json.clone()))
                .collect::<Vec<_>>();
            let answer = keyed::send(&hub, Value::from(wires).to_string()).await;
            assert!(
                answer
                    .json()
                    .as_array()
                    .is_some_and(|items| items.iter().all(|item| item["status"] == "stored"))
            );
        }
    };
    let receiving = async {
        let mut received = Vec::new();
        while received.len() < MESSAGES {
            let message = socket.frame("msg").await;
            received.push(message["envelope"]["id"].as_str().unwrap().to_owned());
            if received.len().is_multiple_of(100) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let ack = json!({ "t": "ack", "epoch": ready["epoch"], "upto": message["seq"] });
            socket.say(&ack).await;
        }
        received
    };
    let ((), received) = tokio::join!(sending, receiving);
    let sent: Vec<String> = envelopes.iter().map(|envelope| envelope.id.to_string()).collect();
    assert!(received == sent, "not each once, in order");
}

/// What is refused for its size is counted, not kept, not logged.
#[tokio::test]
async fn row_85_oversize_messages_leave_no_trace() {
    const REFUSED: u32 = 300;
    let hub = hub("[relay]\nenvelope_bytes_max = 5000\n");
    let alice = TestAgent::registered(&hub, "alice").await;
    let bob = TestAgent::registered(&hub, "bob").await;
    let canary = "canary-of-an-oversize-message";
    let large = alice
        .envelope_with(&bob, &[b'x'; 4_000], |draft| {
            draft.thread = Some(canary.to_owned());
        })
        .to_wire();
    assert!(large.len() > 5_000);
    let before = Vitals::of(&hub).await;
    let log_before = hub.log().len();
    for _ in 0..REFUSED {
        assert_eq!(
            keyed::send(&hub, large.clone()).await.code(),
            "envelope_too_large"
        );
    }
    assert_eq!(alice.send(&hub, &bob).await.status, 202);
    let after = Vitals::assert_well(&hub, &before).await;
    let counted = |name: &str| after.count(name) - before.count(name);
    assert!((counted("aip_relay_stored_total") - 1.0).abs() < f64::EPSILON);
    assert!((counted("aip_store_stored_total") - 1.0).abs() < f64::EPSILON);
    assert!((counted("aip_relay_refused_total") - f64::from(REFUSED)).abs() < f64::EPSILON);
    let log = hub.log();
    assert!(
        !log.contains(canary) && log.len() - log_before < 1_000,
        "{}",
        log.get(log_before..).unwrap_or_default()
    );
}

/// Numbers and escapes that readers read differently are refused at the door, and those behind them flow.
#[tokio::test]
async fn rows_21_and_22_one_refused_item_holds_up_nobody() {
    let hub = hub("");
    let alice = TestAgent::registered(&hub, "alice").await;
    let bob = TestAgent::registered(&hub, "bob").await;
    let good = || String::from_utf8(alice.envelope(&bob).to_wire()).unwrap();
    let bad = |value: &str| good().replacen('{', &format!("{{\"x\":{value},"), 1);
    let values = [
        "9007199254740993",
        "1.5",
        "1e400",
        "-0",
        "\"\\ud800\"",
        "\"\\udc00x\"",
    ];
    let mut items: Vec<String> = values.iter().map(|value| bad(value)).collect();
    items.push(good());
    let answer = keyed::send(&hub, format!("[{}]", items.join(","))).await.json();
    for (value, item) in values.iter().zip(answer.as_array().unwrap()) {
        assert_eq!(
            (&item["status"], &item["code"]),
            (&json!("refused"), &json!("json_invalid")),
            "{value}"
        );
    }
    assert_eq!(answer[values.len()]["status"], "stored");
    // An escape that only looks odd means the same as the character, to us and to whoever checks the signature.
    let envelope = alice.envelope_with(&bob, b"{}", |draft| draft.thread = Some("é\u{0}😀".to_owned()));
    let odd = String::from_utf8(envelope.to_wire())
        .unwrap()
        .replace('é', "\\u00E9")
        .replace('😀', "\\ud83d\\uDE00");
    assert_eq!(Json::parse(odd.as_bytes()).unwrap(), envelope.json);
    let taken = keyed::send(&hub, odd.clone()).await;
    assert_eq!(taken.status, 202, "{}", taken.text());
    let token = bob.token(&hub).await;
    let inbox = ask(hub.url(), &Request::get("/api/v1/inbox").bearer(&token))
        .await
        .text();
    assert!(inbox.contains(&odd), "it is delivered as it was sent: {inbox}");
}
