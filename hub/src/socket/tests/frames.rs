//! What an agent says, and what is too much.

use super::*;

#[actix_web::test]
async fn row_42_a_silent_socket_is_pinged_and_then_closed() {
    let bed = Bed::with(|settings| settings.receive.silence_timeout_secs = 2);
    let bob = bed.hub.registered("bob").await;
    // This client answers pings only when it reads, so it is silent while nobody reads.
    let (mut client, _) = bed.connect(&bob).await;
    let mailbox = MailboxId::of(&bob.did);
    while bed.hub.hub.app.presence.is_connected(&mailbox) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(matches!(client.message().await, Some(Ok(Message::Ping(_)))));
    assert_eq!(client.closes().await, 1008);
}

#[actix_web::test]
async fn a_socket_that_answers_pings_stays() {
    let bed = Bed::with(|settings| settings.receive.silence_timeout_secs = 2);
    let bob = bed.hub.registered("bob").await;
    let (mut client, ready) = bed.connect(&bob).await;
    for _ in 0..3 {
        assert!(matches!(client.message().await, Some(Ok(Message::Ping(_)))));
    }
    client.put(Message::Ping(b"here".as_slice().into())).await;
    assert!(
        matches!(client.message().await, Some(Ok(Message::Pong(payload))) if payload.as_ref() == b"here")
    );
    assert_eq!(client.ack(&ready["epoch"], 0).await["floor"], 0);
}

#[actix_web::test]
async fn bad_frames_close_with_4400() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let auth_again = json!({ "t": "auth", "token": "x" }).to_string();
    for message in [
        Message::text("this is not JSON"),
        Message::text("{\"t\":\"hello\"}"),
        Message::text("{\"t\":\"ack\"}"),
        Message::text(auth_again),
        Message::binary(b"{\"t\":\"credit\",\"n\":1}".to_vec()),
    ] {
        let (mut client, _) = bed.connect(&bob).await;
        client.put(message.clone()).await;
        assert_eq!(client.closes().await, 4400, "{message:?}");
    }
}

#[actix_web::test]
async fn a_frame_above_the_limit_closes_with_4413() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let (mut client, _) = bed.connect(&bob).await;
    client.put(Message::text("x".repeat(1_500_000))).await;
    assert_eq!(client.closes().await, 4413);
}

/// Sends a text in so many pieces.
async fn in_pieces(client: &mut Client, text: &str, pieces: usize) {
    let size = text.len().div_ceil(pieces);
    let mut chunks = text.as_bytes().chunks(size).peekable();
    let mut code = OpCode::Data(Data::Text);
    while let Some(chunk) = chunks.next() {
        let header = FrameHeader {
            is_final: chunks.peek().is_none(),
            opcode: code,
            ..FrameHeader::default()
        };
        client
            .put(Message::Frame(Frame::from_payload(header, chunk.to_vec().into())))
            .await;
        code = OpCode::Data(Data::Continue);
    }
}

#[actix_web::test]
async fn a_frame_in_pieces_is_put_together_up_to_the_limit() {
    let bed = Bed::new();
    let bob = bed.hub.registered("bob").await;
    let (mut client, ready) = bed.connect(&bob).await;
    let ack = json!({ "t": "ack", "epoch": ready["epoch"], "upto": 0 }).to_string();
    in_pieces(&mut client, &ack, 7).await;
    assert_eq!(client.frame_of("acked").await["floor"], 0);
    in_pieces(&mut client, &"x".repeat(1_500_000), 8).await;
    assert_eq!(client.closes().await, 4413);
}

#[actix_web::test]
async fn too_many_frames_close_with_4429() {
    let bed = Bed::with(|settings| settings.receive.frames_per_sec_max = 1);
    let bob = bed.hub.registered("bob").await;
    let (mut client, _) = bed.connect(&bob).await;
    for _ in 0..20 {
        client.say(json!({ "t": "credit", "n": 1 })).await;
    }
    assert_eq!(client.closes().await, 4429);
}

#[actix_web::test]
async fn envelopes_are_sent_over_the_socket_and_refusals_come_back() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let (mut client, _) = bed.connect(&alice).await;
    let read = |from, to, number| {
        serde_json::from_slice::<Value>(&bed.hub.envelope(from, to, number).to_wire()).unwrap()
    };
    let good = read(&alice, &bob, 1);
    for (reference, status) in [("r-1", "stored"), ("r-2", "duplicate")] {
        client
            .say(json!({ "t": "send", "ref": reference, "envelope": good }))
            .await;
        let sent = client.frame_of("sent").await;
        assert_eq!(
            (&sent["ref"], &sent["status"], &sent["seq"]),
            (&json!(reference), &json!(status), &json!(1))
        );
        assert_eq!(sent["id"], good["id"]);
    }
    // Row 29: the socket is alice's, the envelope bob's.
    client
        .say(json!({ "t": "send", "ref": "r-3", "envelope": read(&bob, &alice, 2) }))
        .await;
    let refused = client.frame_of("sent").await;
    assert_eq!(
        (&refused["ref"], &refused["status"]),
        (&json!("r-3"), &json!("refused"))
    );
    assert!(
        refused["code"].is_string() && refused["detail"].is_string(),
        "{refused}"
    );
    client
        .say(json!({ "t": "send", "ref": "r-4", "envelope": [1] }))
        .await;
    assert_eq!(client.frame_of("sent").await["status"], "refused");
}

#[actix_web::test]
async fn sends_are_answered_and_stored_in_order() {
    let bed = Bed::new();
    let (alice, bob) = (bed.hub.registered("alice").await, bed.hub.registered("bob").await);
    let (mut client, _) = bed.connect(&alice).await;
    for number in 1..=50 {
        let envelope: Value =
            serde_json::from_slice(&bed.hub.envelope(&alice, &bob, number).to_wire()).unwrap();
        client
            .say(json!({ "t": "send", "ref": number.to_string(), "envelope": envelope }))
            .await;
    }
    for number in 1..=50 {
        let sent = client.frame_of("sent").await;
        assert_eq!(
            (&sent["ref"], &sent["seq"]),
            (&json!(number.to_string()), &json!(number)),
            "{sent}"
        );
    }
}
