//! Whom a hub has to do with, and how much of it.

use aip_client::protocol::error::ErrorCode;
use aip_client::protocol::name::Domain;
use aip_client::search::Query;
use aip_tests::clients::agent;
use aip_tests::peer::{Mood, item};
use aip_tests::raw::try_ask;
use aip_tests::{HubOptions, TestAgent, TestHub, TestPeer};
use serde_json::Value;

fn hub(federation: &str) -> TestHub {
    TestHub::start_with(HubOptions {
        config: Some(format!("[federation]\n{federation}\n")),
        ..HubOptions::default()
    })
}

#[tokio::test]
async fn a_blocked_peer_hands_nothing_in_and_gets_nothing() {
    let peer = TestPeer::start("e1").await;
    let hub = hub(&format!("blocked = [\"{}\"]", peer.domain));
    let (bob, mallory) = (TestAgent::registered(&hub, "bob").await, peer.agent("mallory"));
    let items = [item(1, &mallory.envelope(&bob))];
    let answer = peer.hand_in(&hub, "e1", &items).await.expect("an answer");
    assert_eq!((answer.status, answer.code().as_str()), (403, "peer_blocked"));
    let answer = bob.send(&hub, &mallory).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "peer_blocked"));
    assert!(
        peer.asked().is_empty(),
        "a blocked peer is not even asked who it is"
    );
}

#[tokio::test]
async fn an_allowlist_lets_those_in_that_it_names() {
    let (named, other) = (TestPeer::start("e1").await, TestPeer::start("e1").await);
    let hub = hub(&format!(
        "policy = \"allowlist\"\nallowed = [\"{}\"]",
        named.domain
    ));
    let bob = TestAgent::registered(&hub, "bob").await;
    let alice = TestAgent::registered(&hub, "alice").await;
    let (known, unknown) = (named.agent("mallory"), other.agent("mallory"));
    let items = [item(1, &known.envelope(&bob))];
    let answer = named.hand_in(&hub, "e1", &items).await.expect("an answer");
    assert_eq!(
        answer.json()["results"][0]["status"],
        "stored",
        "{}",
        answer.text()
    );
    assert_eq!(bob.send(&hub, &known).await.json()["status"], "queued");
    let items = [item(1, &unknown.envelope(&bob))];
    let answer = other.hand_in(&hub, "e1", &items).await.expect("an answer");
    assert_eq!((answer.status, answer.code().as_str()), (403, "peer_blocked"));
    let answer = bob.send(&hub, &unknown).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "peer_blocked"));
    assert!(other.asked().is_empty(), "it is not even asked who it is");
    // Its own agents need not be named.
    super::local_mail_passes(&hub, &alice, &bob).await;
}

/// A hub of another domain is searched by message; one that is limited to mail gets no catalog that way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limited_peer_gets_no_catalog_by_mail() {
    let home = TestHub::start();
    let alice = agent(&home, "alice").await.expect("an agent");
    for (policy, is_open) in [("open", true), ("limited", false)] {
        let asked = hub(&format!("policy = \"{policy}\""));
        let domain = Domain::parse(&asked.domain()).expect("a domain");
        let answer = alice
            .search_by_message(&Query::text("tea"), Some(&domain), super::DEADLINE)
            .await;
        match answer {
            Ok(found) => assert!(is_open, "a limited peer got {found:?}"),
            Err(error) => assert!(
                !is_open && error.is_code(ErrorCode::PeerBlocked),
                "{policy}: {error}"
            ),
        }
    }
}

#[tokio::test]
async fn a_peer_hands_in_no_more_than_it_may() {
    // Four batches that a peer may have in flight; one a second after that.
    const AT_ONCE: usize = 256;
    let peer = TestPeer::start("e1").await;
    let roomy = "[relay]\nmailbox_messages_per_sender_max = 1_000";
    let hub = hub(&format!("ramp = false\npeer_items_per_sec = 1\n{roomy}"));
    let (bob, mallory) = (TestAgent::registered(&hub, "bob").await, peer.agent("mallory"));
    let mut stored = 0;
    let mut slowed = 0;
    for batch in 0..20_u64 {
        let items: Vec<Value> = (1..=20)
            .map(|n| item(batch * 20 + n, &mallory.envelope(&bob)))
            .collect();
        let answer = peer.hand_in(&hub, "e1", &items).await.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let results = answer.json()["results"].as_array().cloned().unwrap_or_default();
        for result in &results {
            match (result["status"].as_str(), result["code"].as_str()) {
                (Some("stored"), None) => stored += 1,
                (Some("retry"), Some("rate_limited")) => slowed += 1,
                _ => panic!("{result}"),
            }
        }
    }
    assert!(
        stored >= AT_ONCE,
        "{stored} of {AT_ONCE} messages were taken at once"
    );
    assert!(
        slowed > 0,
        "400 messages were taken at once from a peer that may hand in one a second"
    );
    assert_eq!(stored + slowed, 400);
}

#[tokio::test]
async fn a_peer_sends_no_more_bytes_than_it_may() {
    let peer = TestPeer::start("e1").await;
    let hub = hub("ramp = false\npeer_bytes_per_sec = 65_536");
    // The longest batches, all spaces: four fit at once, a fifth is owed, and sixteen seconds pay for one.
    let mut batch = peer.batch("e1", &[]);
    batch.push_str(&" ".repeat(1024 * 1024 - batch.len()));
    for number in 0..6 {
        let answer = try_ask(hub.url(), &peer.push(&hub, batch.clone())).await;
        // Who is slowed may be hung up on before all of it is sent.
        if number < 4 {
            assert_eq!(answer.expect("an answer").status, 200);
        }
    }
    let answer = peer.hand_in(&hub, "e1", &[]).await.expect("an answer");
    assert_eq!((answer.status, answer.code().as_str()), (429, "rate_limited"));
    let wait_secs = answer.header("retry-after").parse::<u64>();
    assert!(wait_secs.is_ok_and(|secs| secs > 0), "{}", answer.text());
}

#[tokio::test]
async fn an_outbox_holds_no_more_than_it_may() {
    let peer = TestPeer::start("e1").await;
    peer.turn(Mood::Busy);
    let hub = hub("queue_messages_max = 2\nqueue_messages_per_sender_max = 1");
    let mallory = peer.agent("mallory");
    let senders = [
        TestAgent::registered(&hub, "alice").await,
        TestAgent::registered(&hub, "bob").await,
        TestAgent::registered(&hub, "carol").await,
    ];
    for (number, status, scope) in [
        (0, 202, ""),
        (0, 507, "sender"),
        (1, 202, ""),
        (2, 507, "mailbox"),
    ] {
        let answer = senders[number].send(&hub, &mallory).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        if status == 507 {
            assert_eq!(
                (answer.code().as_str(), answer.json()["scope"].as_str()),
                ("mailbox_full", Some(scope))
            );
        }
    }
}
