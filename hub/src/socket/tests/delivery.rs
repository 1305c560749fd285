//! Messages on their way, to sockets that are slow, replaced, shared or ended.

use aip_relay::inbox::{Join, Output};
use tokio::time::timeout;

use super::*;

#[actix_web::test]
async fn a_message_travels_and_is_acked() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    bed.hub.send(&alice, &bob, 1).await;
    let (mut client, ready) = bed.connect(&bob).await;
    assert_eq!((&ready["floor"], &ready["pending"]), (&json!(0), &json!(1)));
    let message = client.frame().await;
    let sent: Value = serde_json::from_slice(&bed.hub.envelope(&alice, &bob, 1).to_wire()).unwrap();
    assert_eq!(
        (&message["t"], &message["seq"], &message["attempt"]),
        (&json!("msg"), &json!(1), &json!(1))
    );
    assert_eq!(
        (&message["epoch"], &message["envelope"]),
        (&ready["epoch"], &sent)
    );
    assert_eq!(client.ack(&ready["epoch"], 1).await["floor"], 1);
    bed.hub.send(&alice, &bob, 2).await;
    assert_eq!(client.frame().await["seq"], 2);
}

#[actix_web::test]
async fn row_32_the_second_connection_replaces_the_first() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let (mut first, _) = bed.connect(&bob).await;
    let (mut second, _) = bed.connect(&bob).await;
    assert_eq!(first.closes().await, 4409);
    bed.hub.send(&alice, &bob, 1).await;
    assert_eq!(second.frame().await["seq"], 1);
}

#[actix_web::test]
async fn connections_that_share_stay_both() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let share = json!({ "share": true, "credit": 1 });
    let (mut first, _) = bed.connect_with(&bob, share.clone()).await;
    let (mut second, _) = bed.connect_with(&bob, share).await;
    bed.hub.send(&alice, &bob, 1).await;
    bed.hub.send(&alice, &bob, 2).await;
    let mut got = [
        first.frame().await["seq"].clone(),
        second.frame().await["seq"].clone(),
    ];
    got.sort_by_key(Value::as_u64);
    assert_eq!(got, [json!(1), json!(2)]);
}

#[actix_web::test]
async fn rows_35_and_36_a_client_that_never_reads_holds_nobody_up() {
    let bed = Bed::with(|settings| {
        settings.relay.mailbox_messages_per_sender_max = 1_000;
        settings.relay.sender_burst_messages = 1_000;
    });
    let (alice, bob, carol) = (
        bed.hub.registered("alice").await,
        bed.hub.registered("bob").await,
        bed.hub.registered("carol").await,
    );
    // A window far larger than what the system buffers for a socket.
    let (stalled, _) = bed.connect_with(&bob, json!({ "credit": 1_000 })).await;
    let (mut live, ready) = bed.connect(&carol).await;
    for number in 1..=300 {
        bed.hub.send(&alice, &bob, number).await;
    }
    for number in 1..=50 {
        bed.hub.send(&alice, &carol, 1_000 + number).await;
        assert_eq!(live.frame_of("msg").await["seq"], number);
        live.ack(&ready["epoch"], number).await;
    }
    drop(stalled);
    let (mut again, ready) = bed.connect(&bob).await;
    assert_eq!(ready["pending"], 300, "nothing was dropped");
    assert_eq!(again.frame_of("msg").await["seq"], 1);
}

#[actix_web::test]
async fn row_48_an_event_stream_goes_on_after_its_last_event() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let token = bed.hub.token(&bob).await;
    for number in 1..=3 {
        bed.hub.send(&alice, &bob, number).await;
    }
    let stream = async |more: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", bed.port)).await.unwrap();
        let head = format!(
            "GET /api/v1/inbox/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let mut first = stream("").await;
    let text = read_until(&mut first, ":3\n").await;
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap()
        .to_owned();
    assert!(id.ends_with(":1"), "{id}");
    drop(first);
    let mut second = stream(&format!("Last-Event-ID: {id}\r\n")).await;
    let text = read_until(&mut second, ":3\n").await;
    let ids: Vec<&str> = text.lines().filter(|line| line.starts_with("id: ")).collect();
    assert_eq!(ids.len(), 2, "{text}");
    bed.hub.send(&alice, &bob, 4).await;
    read_until(&mut second, ":4\n").await;
    bed.hub.hub.begin_to_close();
    read_until(&mut second, "0\r\n\r\n").await;
}

async fn read_until(stream: &mut TcpStream, mark: &str) -> String {
    let mut text = String::new();
    let mut bytes = vec![0; 65_536];
    while !text.contains(mark) {
        let length = tokio::time::timeout(PATIENCE, stream.read(&mut bytes))
            .await
            .expect("bytes in time")
            .unwrap();
        assert!(length > 0, "the stream ended before {mark:?}: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    text
}
#[actix_web::test]
async fn row_80_a_stopping_hub_closes_with_1001_and_finishes_acks() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    bed.hub.send(&alice, &bob, 1).await;
    let mut idle = Vec::new();
    for number in 0..20 {
        let agent = bed.hub.registered(&format!("agent{number}")).await;
        idle.push(bed.connect(&agent).await.0);
    }
    let mut newcomer = bed.open().await;
    let (mut client, ready) = bed.connect(&bob).await;
    client.frame_of("msg").await;
    client
        .say(json!({ "t": "ack", "epoch": ready["epoch"], "upto": 1 }))
        .await;
    client.frame_of("acked").await;
    bed.hub.hub.begin_to_close();
    for client in idle.iter_mut().chain([&mut newcomer, &mut client]) {
        assert_eq!(client.closes().await, 1001);
    }
    drop((idle, newcomer, client));
    tokio::time::timeout(PATIENCE, bed.server.stop(true))
        .await
        .expect("the listener stops");
    let state = bed
        .hub
        .hub
        .app
        .store
        .state(&MailboxId::of(&bob.did))
        .await
        .unwrap();
    assert_eq!((state.floor, state.pending), (1, 0));
    assert_eq!(bed.hub.hub.app.presence.counts().sessions, 0);
}

/// The store fails just when there is something to read. Nobody says a word, and yet it is asked again.
#[tokio::test(start_paused = true)]
async fn a_read_that_failed_is_tried_again() {
    let hub = TestHub::new();
    let (alice, bob) = (hub.registered("alice").await, hub.registered("bob").await);
    hub.send(&alice, &bob, 1).await;
    let app = &hub.hub.app;
    let pause = app.pause.clone().unwrap();
    pause.hold(Some(Duration::from_mins(1)), None).await;
    let join = Join {
        session: app.sockets.session(),
        share: false,
        credit: 8,
    };
    let (mut link, ready) = app.inbox.join(bob.did.clone(), join).await.unwrap();
    assert_eq!(ready.pending, 1);
    let next = timeout(Duration::from_millis(500), link.next()).await;
    assert!(next.is_err(), "nothing can be read: {next:?}");

    pause.resume().await;
    hub.clock.advance(Duration::from_secs(1));
    let next = timeout(PATIENCE, link.next()).await;
    assert!(matches!(next, Ok(Output::Message(item)) if item.seq == 1));
}
