//! Processes that stop and start while others work.

use std::time::Duration;

use aip_tests::cluster::Cluster;
use aip_tests::ws::Socket;
use serde_json::json;

use super::{inbox, places, sent, two};

/// Sockets are told to come back, what was taken is there, and another process has it.
#[tokio::test]
async fn a_process_that_stops_says_so_and_leaves_everything() {
    let mut cluster = Cluster::start(2);
    let (alice, bob) = two(&cluster).await;
    let (mut socket, _) = Socket::signed_in(cluster.hub(0), &bob, json!({})).await;
    sent(cluster.hub(0), &alice, &bob).await;
    assert_eq!(socket.frame("msg").await["seq"], 1);
    let stopped = cluster.hub_mut(0).terminate(Duration::from_secs(30));
    assert!(
        stopped.is_some_and(|status| status.success()),
        "{stopped:?}: {}",
        cluster.hub(0).log()
    );
    assert_eq!(socket.close_code().await, 1001);

    let (mut socket, _) = Socket::signed_in(cluster.hub(1), &bob, json!({})).await;
    let message = socket.frame("msg").await;
    assert_eq!(
        (&message["seq"], message["attempt"].as_u64() >= Some(2)),
        (&json!(1), true),
        "{message}"
    );
    cluster.hub_mut(0).restart();
    let token = bob.token(cluster.hub(0)).await;
    assert_eq!(places(&inbox(cluster.hub(0), &token).await), [1]);
}

/// The engines are more patient than a process: one that dies leaves its agents to the others.
#[tokio::test]
async fn a_process_that_dies_leaves_its_agents_to_the_others() {
    let mut cluster = Cluster::start(2);
    let (alice, bob) = two(&cluster).await;
    let (mut lost, _) = Socket::signed_in(cluster.hub(0), &bob, json!({})).await;
    sent(cluster.hub(1), &alice, &bob).await;
    assert_eq!(lost.frame("msg").await["seq"], 1);
    cluster.hub_mut(0).kill();
    let (mut found, _) = Socket::signed_in(cluster.hub(1), &bob, json!({})).await;
    assert_eq!(found.frame("msg").await["seq"], 1);
    sent(cluster.hub(1), &alice, &bob).await;
    assert_eq!(found.frame("msg").await["seq"], 2);
}
