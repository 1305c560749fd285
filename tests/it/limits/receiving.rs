//! Limits of the way out.

use aip_tests::raw::{Request, Wire, ask};
use aip_tests::ws::{Heard, Socket, ws_frame};
use aip_tests::{TestAgent, keyed};
use serde_json::{Value, json};

use super::{get, hub, told, two};

const FIN_TEXT: u8 = 0x81;

#[tokio::test]
async fn row_83_a_frame_ends_exactly_at_its_limit() {
    let hub = hub("[relay]\nenvelope_bytes_max = 4096\n[receive]\nframe_bytes_max = 6000\n");
    let bob = TestAgent::registered(&hub, "bob").await;
    let frame = |bytes: usize| {
        let mut text = json!({ "t": "ack", "epoch": "x", "upto": 0 }).to_string();
        text.extend(std::iter::repeat_n(' ', bytes - text.len()));
        ws_frame(FIN_TEXT, bytes as u64, text.as_bytes())
    };
    let (mut socket, _ready) = Socket::signed_in(&hub, &bob, json!({})).await;
    socket.raw(&frame(6_000)).await;
    assert_eq!(socket.frame("error").await["code"], "epoch_changed");
    socket.raw(&frame(6_001)).await;
    assert_eq!(socket.close_code().await, 4413);
    // A message in parts is a message.
    let (mut socket, _ready) = Socket::signed_in(&hub, &bob, json!({})).await;
    let half = vec![b' '; 3_001];
    let parts = [ws_frame(0x01, 3_001, &half), ws_frame(0x80, 3_001, &half)].concat();
    socket.raw(&parts).await;
    assert_eq!(socket.close_code().await, 4413);
}

/// A larger credit than the hub gives is cut to it; what is in flight tells.
#[tokio::test]
async fn row_83_credit_ends_exactly_at_its_limit() {
    let hub = hub("[receive]\ncredit_messages_max = 3\n");
    let (alice, bob) = two(&hub).await;
    for _ in 0..5 {
        assert_eq!(alice.send(&hub, &bob).await.status, 202);
    }
    for more in [
        json!({ "credit": 1_000 }),
        json!({ "credit": u64::MAX }),
        json!({ "credit": 3 }),
    ] {
        let (mut socket, ready) = Socket::signed_in(&hub, &bob, more).await;
        for seq in 1..=3 {
            assert_eq!(socket.frame("msg").await["seq"], seq);
        }
        // The answer to a question comes next: no fourth message.
        socket.say(&json!({ "t": "credit", "n": 1_000 })).await;
        socket.say(&json!({ "t": "ack", "epoch": "x", "upto": 0 })).await;
        let Heard::Frame(next) = socket.hear().await else {
            panic!("closed");
        };
        assert_eq!(next["t"], "error", "{next}");
        assert_eq!(ready["pending"], 5);
    }
}

#[tokio::test]
async fn row_42_a_silent_socket_is_closed() {
    let hub = hub("[receive]\nsilence_timeout_secs = 6\n");
    let (alice, bob) = two(&hub).await;
    // One that answers pings is not silent, however little it has to say.
    let (mut alive, _ready) = Socket::signed_in(&hub, &alice, json!({})).await;
    let alive = tokio::spawn(async move { alive.frame("msg").await });
    let (silent, _ready) = Socket::signed_in(&hub, &bob, json!({})).await;
    // Nobody reads this one, so its pings go unanswered.
    until(async || hub.metric("aip_presence_sessions").await == Some(1.0)).await;
    assert_eq!(bob.send(&hub, &alice).await.status, 202);
    assert_eq!(alive.await.unwrap()["seq"], 1);
    drop(silent);
}

/// Asks again until it holds, or a deadline ends the hang.
async fn until(holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    assert!(
        tokio::time::timeout(aip_tests::raw::DEADLINE, waiting)
            .await
            .is_ok(),
        "it never happens"
    );
}

#[tokio::test]
async fn row_83_a_poll_ends_exactly_at_its_limits() {
    let hub = hub("[receive]\npoll_messages_max = 3\npoll_wait_secs_max = 2\n");
    let (alice, bob) = two(&hub).await;
    let token = bob.token(&hub).await;
    let empty = get(&hub, "/api/v1/inbox?wait_s=2", &token).await;
    assert_eq!((empty.status, &empty.json()["items"]), (200, &json!([])));
    for _ in 0..5 {
        alice.send(&hub, &bob).await;
    }
    for target in ["/api/v1/inbox?limit=3", "/api/v1/inbox"] {
        let page = get(&hub, target, &token).await.json();
        assert_eq!(page["items"].as_array().unwrap().len(), 3, "{target}: {page}");
    }
    for (target, parameter) in [
        ("/api/v1/inbox?limit=4", "limit"),
        ("/api/v1/inbox?wait_s=3", "wait_s"),
        ("/api/v1/inbox?limit=0", "limit"),
        ("/api/v1/inbox/dead?limit=4", "limit"),
    ] {
        let refused = get(&hub, target, &token).await;
        assert_eq!(told(&refused), (400, "parameter_invalid".to_owned()), "{target}");
        assert_eq!(refused.json()["parameter"], parameter);
        let most = if parameter == "limit" { "3" } else { "2" };
        assert!(
            refused.json()["detail"].as_str().unwrap().contains(most),
            "{}",
            refused.text()
        );
    }
}

#[tokio::test]
async fn row_83_readers_of_one_agent_end_exactly_at_their_limit() {
    let hub = hub("");
    let bob = TestAgent::registered(&hub, "bob").await;
    let token = bob.token(&hub).await;
    let open = async || {
        let mut wire = Wire::open(hub.url()).await.unwrap();
        wire.send(&Request::get("/api/v1/inbox/stream").bearer(&token).to_bytes())
            .await
            .unwrap();
        wire
    };
    let mut readers = Vec::new();
    for _ in 0..16 {
        readers.push(open().await);
    }
    until(async || hub.metric("aip_presence_readers").await == Some(16.0)).await;
    let refused = open().await.answer().await.unwrap();
    assert_eq!(told(&refused), (429, "rate_limited".to_owned()));
    assert!(super::retry_after(&refused) > 0);
    drop(readers.pop());
    until(async || get(&hub, "/api/v1/inbox", &token).await.status == 200).await;
}

#[tokio::test]
async fn row_83_numbers_in_an_ack_end_exactly_at_their_limit() {
    let hub = hub("");
    let (alice, bob) = two(&hub).await;
    alice.send(&hub, &bob).await;
    let token = bob.token(&hub).await;
    let epoch = get(&hub, "/api/v1/inbox", &token).await.json()["epoch"].clone();
    let ack = async |count: usize| {
        let body = json!({ "epoch": epoch, "upto": 1, "also": vec![1; count] }).to_string();
        ask(
            hub.url(),
            &Request::post("/api/v1/inbox/ack", body).bearer(&token),
        )
        .await
    };
    assert_eq!(ack(1_024).await.status, 200);
    let refused = ack(1_025).await;
    assert_eq!(
        (told(&refused), &refused.json()["member"]),
        ((400, "member_invalid".to_owned()), &json!("also"))
    );
    assert!(refused.text().contains("1,024"), "{}", refused.text());
}

/// `ref` and the code of a reject are short.
#[tokio::test]
async fn row_83_texts_in_frames_end_exactly_at_their_limits() {
    let hub = hub("");
    let (alice, bob) = two(&hub).await;
    let frame = |bytes: usize| json!({ "t": "send", "ref": "r".repeat(bytes), "envelope": {} });
    let (mut socket, _ready) = Socket::signed_in(&hub, &bob, json!({})).await;
    socket.say(&frame(128)).await;
    assert_eq!(socket.frame("sent").await["code"], "member_missing");
    socket.say(&frame(129)).await;
    assert_eq!(socket.close_code().await, 4400);

    alice.send(&hub, &bob).await;
    let (mut socket, ready) = Socket::signed_in(&hub, &bob, json!({})).await;
    socket.frame("msg").await;
    let reject =
        |bytes: usize| json!({ "t": "reject", "epoch": ready["epoch"], "seq": 1, "code": "c".repeat(bytes) });
    socket.say(&reject(65)).await;
    assert_eq!(socket.frame("error").await["code"], "member_invalid");
    socket.say(&reject(64)).await;
    let token = bob.token(&hub).await;
    until(async || get(&hub, "/api/v1/inbox/dead", &token).await.json()["items"][0]["seq"] == 1).await;
}

/// What no session has ever had in hand is read page by page, each as large as a page may be.
#[tokio::test]
async fn row_83_dead_letters_are_read_in_pages() {
    let hub = hub("[receive]\npoll_messages_max = 2\n");
    let (alice, bob) = two(&hub).await;
    for _ in 0..5 {
        assert_eq!(
            keyed::send(&hub, alice.envelope(&bob).to_wire()).await.status,
            202
        );
    }
    let (mut socket, ready) = Socket::signed_in(&hub, &bob, json!({})).await;
    for seq in 1..=5 {
        socket.frame("msg").await;
        socket
            .say(&json!({ "t": "reject", "epoch": ready["epoch"], "seq": seq, "code": "unwanted" }))
            .await;
    }
    let token = bob.token(&hub).await;
    until(async || hub.metric("aip_store_dead_total").await == Some(5.0)).await;
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = get(&hub, &format!("/api/v1/inbox/dead{cursor}"), &token)
            .await
            .json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2 && !items.is_empty(), "{page}");
        seen.extend(items.iter().map(|item| super::number(&item["seq"])));
        match &page["next_cursor"] {
            Value::String(next) => cursor = format!("?cursor={next}"),
            _ => break,
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}
