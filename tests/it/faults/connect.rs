//! A message that arrives while its recipient's socket is being opened.

use std::time::Duration;

use aip_client::protocol::clock::Clock as _;
use aip_client::{Client, Draft, SystemClock};
use aip_tests::clients::{agent, handle};
use aip_tests::raw_socket::{RawOptions, RawSocket};
use aip_tests::{TestHub, chance, seed};
use anyhow::{Result, ensure};
use rand::RngExt as _;
use serde_json::json;

use super::{DEADLINE, roomy};

/// Connections; each gets one message at another moment of its opening.
const CONNECTIONS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_30_a_message_that_arrives_during_connect_is_delivered_once() -> Result<()> {
    let mut chance = chance(seed("connect"));
    let hub = TestHub::start_with(roomy(""));
    let (alice, bob) = (agent(&hub, "alice").await?, agent(&hub, "bob").await?);
    let bob_handle = handle(&hub, "bob");
    // How long an opening takes here tells over which span the moments are to be spread. It asserts nothing.
    let before = SystemClock.now();
    let (socket, _ready) = RawSocket::open(&hub, &bob, RawOptions::default()).await?;
    let opening = u64::try_from(SystemClock.now().millis_since(before))
        .unwrap_or_default()
        .clamp(2, 200);
    socket.close().await;
    for _ in 0..CONNECTIONS {
        let offset = Duration::from_micros(chance.random_range(0..opening * 1_500));
        tokio::time::timeout(
            DEADLINE,
            connect_and_send(&hub, &alice, &bob, &bob_handle, offset),
        )
        .await??;
    }
    Ok(())
}

async fn connect_and_send(
    hub: &TestHub,
    alice: &Client,
    bob: &Client,
    bob_handle: &str,
    offset: Duration,
) -> Result<()> {
    let sealed = alice.seal(&Draft::text(bob_handle, "are you there?")).await?;
    let sending = async {
        tokio::time::sleep(offset).await;
        alice.submit(&sealed).await
    };
    let receiving = async {
        let (mut socket, _ready) = RawSocket::open(hub, bob, RawOptions::default()).await?;
        let message = socket.expect("msg").await?;
        ensure!(message["attempt"] == 1, "{message}");
        let ack = json!({"t": "ack", "epoch": message["epoch"], "upto": message["seq"], "also": []});
        socket.send(&ack).await?;
        // Whatever was pushed twice lies between the message and the confirmation.
        let acked = socket.expect("acked").await?;
        ensure!(acked["floor"] == message["seq"], "{acked}");
        socket.close().await;
        anyhow::Ok(message)
    };
    let (sent, received) = tokio::join!(sending, receiving);
    let (sent, received) = (sent?, received?);
    ensure!(
        received["envelope"]["id"] == sealed.id().to_string(),
        "another message: {received}"
    );
    ensure!(
        received["seq"] == sent.seq.unwrap_or_default(),
        "another place: {received}"
    );
    Ok(())
}
