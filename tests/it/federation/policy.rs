//! Whom a hub has to do with, and how much of it.

use aip_client::protocol::error::ErrorCode;
use aip_client::protocol::name::Domain;
use aip_client::search::Query;
use aip_tests::clients::agent;
use aip_tests::peer::{Mood, item};
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
    for (peer, status) in [(&named, 200), (&other, 403)] {
        let items = [item(1, &peer.agent("mallory").envelope(&bob))];
        let answer = peer.hand_in(&hub, "e1", &items).await.expect("an answer");
        assert_eq!(answer.status, status, "{}", answer.text());
    }
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
    let peer = TestPeer::start("e1").await;
    let hub = hub("ramp = false\npeer_items_per_sec = 1\npeer_bytes_per_sec = 65_536");
    let (bob, mallory) = (TestAgent::registered(&hub, "bob").await, peer.agent("mallory"));
    let mut slowed = 0;
    for batch in 0..20_u64 {
        let items: Vec<Value> = (1..=20)
            .map(|n| item(batch * 20 + n, &mallory.envelope(&bob)))
            .collect();
        let answer = peer.hand_in(&hub, "e1", &items).await.expect("an answer");
        if answer.status == 429 {
            assert!(
                answer
                    .header("retry-after")
                    .parse::<u64>()
                    .is_ok_and(|secs| secs > 0)
            );
            slowed += 1;
            continue;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        let results = answer.json()["results"].as_array().cloned().unwrap_or_default();
        slowed += results
            .iter()
            .filter(|result| result["status"] == "retry")
            .count();
    }
    assert!(
        slowed > 0,
        "400 messages were taken at once from a peer that may hand in one a second"
    );
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
