//! Limits of the way in.

use aip_client::protocol::identity::RouteMode;
use aip_tests::raw::{Request, ask};
use aip_tests::{TestAgent, keyed};
use serde_json::json;

use super::{get, hub, number, retry_after, told, two};

/// `wire` with blanks up to a size: they count, and are no part of what was signed.
fn padded(mut wire: Vec<u8>, bytes: usize) -> Vec<u8> {
    assert!(wire.len() <= bytes);
    wire.resize(bytes, b' ');
    wire
}

#[tokio::test]
async fn row_83_an_envelope_ends_exactly_at_its_limit() {
    let hub = hub("[relay]\nenvelope_bytes_max = 5000\n");
    let (alice, bob) = two(&hub).await;
    for path in ["/api/v1/messages", "/relay/bob"] {
        let send = async |bytes| {
            let wire = padded(alice.envelope(&bob).to_wire(), bytes);
            ask(hub.url(), &Request::post(path, wire)).await
        };
        assert_eq!(send(5_000).await.status, 202, "{path}");
        let refused = send(5_001).await;
        assert_eq!(told(&refused), (413, "envelope_too_large".to_owned()), "{path}");
        assert_eq!(refused.json()["limit_bytes"], 5_000, "{}", refused.text());
    }
}

#[tokio::test]
async fn row_83_a_batch_ends_exactly_at_its_limits() {
    let hub = hub("[relay]\nenvelope_bytes_max = 4096\nbatch_envelopes_max = 3\nbatch_bytes_max = 8000\n");
    let (alice, bob) = two(&hub).await;
    let batch = |count: usize, bytes: usize| {
        let wires = (0..count).map(|_| String::from_utf8(alice.envelope(&bob).to_wire()).unwrap());
        padded(
            format!("[{}]", wires.collect::<Vec<_>>().join(",")).into_bytes(),
            bytes,
        )
    };
    let full = keyed::send(&hub, batch(3, 8_000)).await;
    assert_eq!(full.status, 200, "{}", full.text());
    assert!(
        full.json()
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["status"] == "stored"),
        "{}",
        full.text()
    );
    let many = keyed::send(&hub, batch(4, 8_000)).await;
    assert_eq!(told(&many), (413, "body_too_large".to_owned()));
    assert_eq!(many.json()["limit_envelopes"], 3, "{}", many.text());
    let large = keyed::send(&hub, batch(1, 8_001)).await;
    assert_eq!(told(&large), (413, "body_too_large".to_owned()));
    assert_eq!(large.json()["limit_bytes"], 8_000, "{}", large.text());
    // One that is too large among good ones is refused alone.
    let mut items = batch(2, 4_000);
    let end = items.iter().rposition(|byte| *byte == b']').unwrap();
    items.splice(
        end..=end,
        format!(",{}]", String::from_utf8(vec![b' '; 4_000]).unwrap() + "{}").into_bytes(),
    );
    let mixed = keyed::send(&hub, items.trim_ascii().to_vec()).await;
    assert_eq!(mixed.json()[2]["status"], "refused", "{}", mixed.text());
    assert_eq!(mixed.json()[0]["status"], "stored", "{}", mixed.text());
}

#[tokio::test]
async fn row_83_a_sender_has_its_burst_and_no_more() {
    let hub = hub("[relay]\nsender_messages_per_sec = 1\nsender_burst_messages = 3\n");
    let (alice, bob) = two(&hub).await;
    let wires: Vec<_> = (0..30).map(|_| alice.envelope(&bob).to_wire()).collect();
    let mut refused = None;
    for wire in wires {
        let answer = keyed::send(&hub, wire.clone()).await;
        if answer.status != 202 {
            refused = Some((answer, wire));
            break;
        }
    }
    let (refused, wire) = refused.expect("a limit");
    assert_eq!(told(&refused), (429, "rate_limited".to_owned()));
    assert_eq!(
        (&refused.json()["limit_per_sec"], &refused.json()["burst"]),
        (&json!(1), &json!(3))
    );
    assert!((1..=3).contains(&retry_after(&refused)));
    // Another sender is not concerned, and the refused one is as good as new when its time has come.
    assert_eq!(bob.send(&hub, &alice).await.status, 202);
    tokio::time::sleep(std::time::Duration::from_secs(retry_after(&refused))).await;
    assert_eq!(keyed::send(&hub, wire).await.status, 202);
}

#[tokio::test]
async fn row_83_a_mailbox_ends_exactly_at_its_limits() {
    for (config, fits, limit) in [
        ("mailbox_messages_max = 3\n", 3, 3),
        ("mailbox_messages_per_sender_max = 2\n", 2, 2),
        ("envelope_bytes_max = 4096\nmailbox_bytes_max = 9000\n", 0, 9_000),
    ] {
        let hub = hub(&format!("[relay]\n{config}"));
        let (alice, bob) = two(&hub).await;
        let mut bytes = 0;
        let mut stored = 0;
        let refused = loop {
            let wire = alice.envelope_with(&bob, &[b'x'; 600], |_| ()).to_wire();
            bytes += wire.len();
            let answer = keyed::send(&hub, wire).await;
            if answer.status != 202 {
                break answer;
            }
            stored += 1;
            assert!(stored < 100, "{config} limits nothing");
        };
        assert_eq!(told(&refused), (507, "mailbox_full".to_owned()), "{config}");
        assert_eq!(number(&refused.json()["limit"]), limit, "{}", refused.text());
        assert!(
            refused.json()["scope"].is_string() && retry_after(&refused) > 0,
            "{}",
            refused.text()
        );
        if fits > 0 {
            assert_eq!(stored, fits, "{config}");
        } else {
            assert!(stored > 0 && bytes > 9_000, "{stored} messages, {bytes} bytes");
        }
        // Nothing of the refused one is left, and an ack makes room for it.
        let token = bob.token(&hub).await;
        let inbox = get(&hub, "/api/v1/inbox", &token).await.json();
        assert_eq!(inbox["items"].as_array().unwrap().len(), stored, "{inbox}");
        let ack = json!({ "epoch": inbox["epoch"], "upto": stored }).to_string();
        assert_eq!(
            ask(hub.url(), &Request::post("/api/v1/inbox/ack", ack).bearer(&token))
                .await
                .status,
            200
        );
        assert_eq!(alice.send(&hub, &bob).await.status, 202, "{config}");
    }
}

#[tokio::test]
async fn row_83_a_disk_that_is_too_full_takes_nothing_and_gives_everything() {
    let mut hub = hub("");
    let (alice, bob) = two(&hub).await;
    assert_eq!(alice.send(&hub, &bob).await.status, 202);
    // No disk has so much to spare.
    hub.use_environment(vec![(
        "AIP_HUB__RELAY__DISK_FREE_BYTES_MIN".to_owned(),
        i64::MAX.to_string(),
    )]);
    hub.restart();
    let refused = alice.send(&hub, &bob).await;
    assert_eq!(told(&refused), (503, "unavailable".to_owned()));
    assert!(retry_after(&refused) > 0);
    let ready = ask(hub.url(), &Request::get("/health/ready")).await;
    assert_eq!(
        (ready.status, &ready.json()["reason"]),
        (503, &json!("disk_full")),
        "{}",
        ready.text()
    );
    let token = bob.token(&hub).await;
    let inbox = get(&hub, "/api/v1/inbox", &token).await.json();
    assert_eq!(inbox["items"][0]["seq"], 1, "{inbox}");
    let ack = json!({ "epoch": inbox["epoch"], "upto": 1 }).to_string();
    let acked = ask(hub.url(), &Request::post("/api/v1/inbox/ack", ack).bearer(&token)).await;
    assert_eq!((acked.status, &acked.json()["floor"]), (200, &json!(1)));
}

#[tokio::test]
async fn row_83_a_blocked_sender_sends_nothing() {
    let mut hub = hub("");
    let (alice, bob) = two(&hub).await;
    hub.use_environment(vec![(
        "AIP_HUB__RELAY__BLOCKED_SENDERS".to_owned(),
        format!("[\"{}\"]", alice.did),
    )]);
    hub.restart();
    assert_eq!(
        told(&alice.send(&hub, &bob).await),
        (403, "sender_blocked".to_owned())
    );
    assert_eq!(bob.send(&hub, &alice).await.status, 202);
}

/// A 2xx stands whatever follows it (§5), and no more than the limit is read of that: this endpoint promises a
/// gigabyte, sends one byte over the limit, and says nothing more.
#[tokio::test]
async fn row_83_a_long_answer_of_an_endpoint_is_read_no_further() {
    let hub = hub("[egress]\nanswer_bytes_max = 100\n");
    let alice = TestAgent::registered(&hub, "alice").await;
    for (name, status_line, status, route) in [
        ("yes", "200 OK", 200, "direct"),
        ("no", "503 Service Unavailable", 202, "mailbox"),
    ] {
        let endpoint = crate::hostile::answering(
            format!(
                "HTTP/1.1 {status_line}\r\ncontent-length: 1073741824\r\n\r\n{}",
                "x".repeat(101)
            )
            .into_bytes(),
        )
        .await;
        let agent = TestAgent::draft(&hub, name, |draft| {
            draft.route_mode = RouteMode::Direct;
            draft.endpoint = Some(endpoint);
        });
        let answer = alice.send(&hub, &agent.register(&hub).await).await;
        assert_eq!(
            (answer.status, &answer.json()["route"]),
            (status, &json!(route)),
            "{name}: {}",
            answer.text()
        );
    }
}
