//! Limits of connections.

use std::time::Duration;

use aip_tests::raw::{Request, Wire};

use super::{hub, two};

/// One more than the limit waits in the system's queue until another leaves.
#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let hub = hub("[http]\nworkers = 1\nconnections_max = 2\n");
    let live = Request::get("/health/live").to_bytes();
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut wire = Wire::open(hub.url()).await.unwrap();
        wire.send(&live).await.unwrap();
        assert_eq!(wire.answer().await.unwrap().status, 200);
        held.push(wire);
    }
    let mut late = Wire::open(hub.url()).await.unwrap();
    late.send(&live).await.unwrap();
    // Those inside are served meanwhile; the late one has not been heard.
    for wire in &mut held {
        for _ in 0..20 {
            wire.send(&live).await.unwrap();
            assert_eq!(wire.answer().await.unwrap().status, 200);
        }
    }
    tokio::select! {
        biased;
        answer = late.answer() => panic!("served beyond the limit: {answer:?}"),
        () = tokio::task::yield_now() => {}
    }
    drop(held.pop());
    assert_eq!(late.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let hub = hub("[http]\nkeep_alive_secs = 1\n");
    let mut wire = Wire::open(hub.url()).await.unwrap();
    for _ in 0..3 {
        wire.send(&Request::get("/health/live").to_bytes()).await.unwrap();
        assert_eq!(wire.answer().await.unwrap().status, 200);
    }
    assert!(wire.rest().await.is_empty());
}

/// The time for a body is no limit for one that keeps coming at the least rate; below it, it is.
#[tokio::test]
async fn a_body_that_keeps_its_pace_may_take_longer() {
    let hub = hub("[http]\nbody_timeout_secs = 1\nbody_bytes_per_sec_min = 1000\n");
    let (alice, bob) = two(&hub).await;
    let mut body = alice.envelope(&bob).to_wire();
    body.resize(64_000, b' ');
    let mut wire = Wire::open(hub.url()).await.unwrap();
    let head = Request::post("/api/v1/messages", body.clone()).to_bytes();
    let (head, body) = head.split_at(head.len() - body.len());
    wire.send(head).await.unwrap();
    // About three times the time that a body of any kind may take, at ten times the least rate.
    for part in body.chunks(2_000) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        wire.send(part).await.unwrap();
    }
    let answer = wire.answer().await.unwrap();
    assert_eq!(answer.status, 202, "{}", answer.text());
}
