//! Keys of hubs: pinned, rotated, and shown by somebody else.

use aip_client::protocol::multikey::SigningKey;
use aip_tests::peer::item;
use aip_tests::raw::Request;
use aip_tests::{TestAgent, TestHub, TestPeer, binary};

use super::{inbox, roomy, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_nobody_vouches_for_freezes_the_peer_until_the_operator_decides() {
    let hub = TestHub::start_with(roomy());
    let mut peer = TestPeer::start("e1").await;
    let bob = TestAgent::registered(&hub, "bob").await;
    let alice = peer.agent("alice");
    let answer = peer
        .hand_in(&hub, "e1", &[item(1, &alice.envelope(&bob))])
        .await
        .expect("an answer");
    assert_eq!(answer.json()["results"][0]["status"], "stored");

    peer.show(SigningKey::from_seed([5; 32]), false, "e1");
    let path = format!("/admin/peers/{}", peer.domain);
    until("the peer is frozen", || async {
        let answer = peer
            .hand_in(&hub, "e1", &[item(2, &alice.envelope(&bob))])
            .await
            .expect("an answer");
        assert!(
            matches!(answer.status, 401 | 403 | 409 | 429),
            "{}",
            answer.text()
        );
        !hub.operate(Request::get(path.clone())).await.json()["frozen"].is_null()
    })
    .await;
    let shown = hub.operate(Request::get(path.clone())).await.json();
    assert_eq!(shown["frozen"]["code"], "key_mismatch", "{shown}");
    let queued = bob.send(&hub, &alice).await;
    assert_eq!(
        queued.json()["status"],
        "queued",
        "mail for it waits: {}",
        queued.text()
    );
    let other = TestPeer::start("e1").await;
    let carol = other.agent("carol");
    assert_eq!(bob.send(&hub, &carol).await.json()["status"], "queued");
    until("later mail for another peer is there", || async {
        !other.items().is_empty()
    })
    .await;
    assert!(peer.items().is_empty(), "something went to a peer that is frozen");

    assert_eq!(
        hub.operate(Request::post(format!("{path}/repin"), "{}"))
            .await
            .status,
        204
    );
    until("mail passes again", || async {
        let answer = peer
            .hand_in(&hub, "e1", &[item(2, &alice.envelope(&bob))])
            .await
            .expect("an answer");
        answer.status == 200 && answer.json()["results"][0]["status"] != "retry"
    })
    .await;
    until("what waited goes out", || async { !peer.items().is_empty() }).await;
    says_what_was_decided(&hub).await;
}

/// The audit log has the key that was pinned, the freeze and the operator's word.
async fn says_what_was_decided(hub: &TestHub) {
    let audit = hub.operate(Request::get("/admin/audit/peers")).await.json();
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|line| line["action"].as_str())
        .collect();
    for action in ["pin", "freeze", "repin"] {
        assert!(
            actions.contains(&action),
            "{action} is not in the audit log: {actions:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_the_pinned_one_vouches_for_is_taken() {
    let hub = TestHub::start_with(roomy());
    let mut peer = TestPeer::start("e1").await;
    let bob = TestAgent::registered(&hub, "bob").await;
    let alice = peer.agent("alice");
    assert_eq!(
        peer.hand_in(&hub, "e1", &[item(1, &alice.envelope(&bob))])
            .await
            .expect("an answer")
            .status,
        200
    );
    peer.show(SigningKey::from_seed([6; 32]), true, "e1");
    until("the new key is known", || async {
        let answer = peer
            .hand_in(&hub, "e1", &[item(2, &alice.envelope(&bob))])
            .await
            .expect("an answer");
        answer.status == 200
    })
    .await;
    let shown = hub
        .operate(Request::get(format!("/admin/peers/{}", peer.domain)))
        .await
        .json();
    assert!(shown["frozen"].is_null(), "{shown}");
}

fn rotate(hub: &TestHub) -> std::process::Output {
    let mut command = std::process::Command::new(binary("aip-hub"));
    command.args(["rotate-key", "--domain", &hub.domain(), "--data"]);
    command.arg(hub.data()).output().expect("it runs")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hub_rotates_its_own_key_and_its_peers_follow() {
    let mut alpha = TestHub::start_with(roomy());
    let beta = TestHub::start_with(roomy());
    let alice = TestAgent::registered(&alpha, "alice").await;
    let bob = TestAgent::registered(&beta, "bob").await;
    let token = bob.token(&beta).await;
    assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
    until("the first message is there", || async {
        inbox(&beta, &token).await.len() == 1
    })
    .await;

    tokio::task::block_in_place(|| {
        alpha.terminate(super::DEADLINE).expect("it stops");
        let rotated = rotate(&alpha);
        assert!(rotated.status.success(), "{rotated:?}");
        // Twice would put the key aside that the peers have pinned, and that the hub's own agent needs.
        let again = rotate(&alpha);
        assert!(!again.status.success(), "{again:?}");
        let words = String::from_utf8_lossy(&again.stderr);
        assert!(words.contains("has not started since"), "{words}");
        alpha.restart();
    });
    assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
    until(
        "a message signed with the new key of the hub is there",
        || async { inbox(&beta, &token).await.len() == 2 },
    )
    .await;
    let shown = beta
        .operate(Request::get(format!("/admin/peers/{}", alpha.domain())))
        .await
        .json();
    assert!(shown["frozen"].is_null(), "{shown}");
    tokio::task::block_in_place(|| {
        alpha.terminate(super::DEADLINE).expect("it stops");
        let once_more = rotate(&alpha);
        assert!(once_more.status.success(), "it has started since: {once_more:?}");
    });
}
