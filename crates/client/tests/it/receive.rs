//! Receiving: everything arrives, in order, once; and what is not good goes away by itself.

use std::sync::Arc;

use aip_client::inbox::{FileInbox, MemoryInbox};
use aip_client::protocol::clock::Clock as _;
use aip_client::protocol::envelope::EnvelopeDraft;
use aip_client::protocol::multikey::{OpeningKey, SigningKey};
use aip_client::{
    AgentKeys, Content, Draft, Entropy, Error, Inbox, ListenOptions, OnReplaced, Registration, Rotation,
    SealedEnvelope, SessionState, SystemClock, parse_agent,
};
use serde_json::Value;

use crate::fake::FakeHub;
use crate::support::{
    agent, builder, eventually, listen, next, nothing_before_marker, options, send, take, texts, two, within,
};

#[tokio::test]
async fn a_message_arrives_verified_opened_and_is_acknowledged() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let mut listener = listen(&bob);
    let ready = within(listener.ready()).await.unwrap();
    assert!(matches!(
        ready,
        SessionState::Connected {
            pending: 0,
            session: 1,
            ..
        }
    ));
    let draft = Draft::json(format!("bob#{}", hub.domain), serde_json::json!({"n": 1}))
        .kind("a.b")
        .thread("t");
    let sent = alice.send(&draft).await.unwrap();
    let message = next(&mut listener).await;
    assert_eq!((message.id, message.seq, message.attempt), (sent.id, 1, 1));
    assert_eq!(
        (message.kind.as_str(), message.thread.as_deref()),
        ("a.b", Some("t"))
    );
    assert_eq!(Some(message.from.clone()), alice.did());
    assert_eq!(message.content, Content::json(serde_json::json!({"n": 1})));
    let reply = Draft::reply(&message, Content::text("yes"));
    listener.ack(&message).await.unwrap();
    bob.send(&reply).await.unwrap();
    listener.close().await;
    assert_eq!(
        hub.state().mailboxes["bob"].floor(),
        1,
        "close waits for the acknowledgement"
    );
    assert_eq!(hub.state().mailboxes["alice"].pending(), 1);
}

#[tokio::test]
async fn row_39_everything_that_waited_is_delivered_in_order() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let drafts: Vec<Draft> = (0..500)
        .map(|n| Draft::text(format!("bob#{}", hub.domain), n.to_string()))
        .collect();
    assert!(alice.send_batch(&drafts).await.unwrap().iter().all(Result::is_ok));
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 500).await, texts(0..500));
    listener.close().await;
    assert_eq!(hub.state().mailboxes["bob"].floor(), 500);
}

#[tokio::test]
async fn row_28_what_was_not_acknowledged_comes_again_to_the_next_listener() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..1).await;
    let mut listener = listen(&bob);
    let first = next(&mut listener).await;
    drop(listener);
    let mut listener = listen(&bob);
    let again = next(&mut listener).await;
    assert_eq!((again.id, again.seq), (first.id, first.seq));
    assert!(again.attempt > first.attempt);
}

#[tokio::test]
async fn row_48_a_session_that_breaks_resumes_where_it_was() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..5).await;
    hub.state().break_sessions_after.extend([2]);
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 5).await, texts(0..5));
    nothing_before_marker(&hub, &mut listener, "bob").await;
    assert_eq!(hub.state().sessions, 2);
}

#[tokio::test]
async fn row_43_twenty_broken_sessions_lose_nothing_and_repeat_nothing() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    hub.state()
        .break_sessions_after
        .extend(std::iter::repeat_n(1, 20));
    let mut listener = listen(&bob);
    for n in 0..20 {
        send(&hub, &alice, n..=n).await;
        assert_eq!(take(&mut listener, 1).await, texts(n..n + 1));
    }
    nothing_before_marker(&hub, &mut listener, "bob").await;
    assert!(hub.state().sessions >= 21, "{} sessions", hub.state().sessions);
}

#[tokio::test]
async fn a_message_whose_acknowledgement_was_lost_is_not_seen_again_even_after_a_restart() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let folder = tempfile::tempdir().unwrap();
    hub.state().forget_acks = true;
    send(&hub, &alice, 0..3).await;
    let inbox = Arc::new(FileInbox::open(folder.path()).unwrap());
    let mut listener = bob.listen(inbox, options());
    assert_eq!(take(&mut listener, 3).await, texts(0..3));
    eventually("three acks", || hub.frames("ack").len() >= 2).await;
    drop(listener);
    hub.state().forget_acks = false;
    let reopened = async {
        loop {
            match FileInbox::open(folder.path()) {
                Ok(inbox) => return inbox,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let inbox = Arc::new(within(reopened).await);
    let mut listener = bob.listen(inbox, options());
    nothing_before_marker(&hub, &mut listener, "bob").await;
    eventually("what is offered again is acknowledged", || {
        hub.state().mailboxes["bob"].floor() == 3
    })
    .await;
}

#[tokio::test]
async fn an_acknowledgement_never_goes_beyond_what_was_offered() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let inbox: Arc<dyn Inbox> = Arc::new(MemoryInbox::new());
    hub.state().forget_acks = true;
    send(&hub, &alice, 0..8).await;
    let mut listener = bob.listen(Arc::clone(&inbox), options());
    take(&mut listener, 8).await;
    drop(listener);
    hub.state().forget_acks = false;
    // The inbox is at 8, the hub at 0, and the new session offers one at a time.
    let mut listener = bob.listen(
        inbox,
        ListenOptions {
            credit: 1,
            ..options()
        },
    );
    nothing_before_marker(&hub, &mut listener, "bob").await;
    assert_eq!(hub.state().mailboxes["bob"].floor(), 8, "no ack was refused");
}

#[tokio::test]
async fn a_restored_mailbox_repeats_nothing() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..4).await;
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 4).await, texts(0..4));
    eventually("acked", || hub.state().mailboxes["bob"].floor() == 4).await;
    hub.restore();
    nothing_before_marker(&hub, &mut listener, "bob").await;
    assert_eq!(
        hub.state().mailboxes["bob"].floor(),
        4,
        "what was known by its id is acknowledged in the new epoch"
    );
}

#[tokio::test]
async fn row_32_a_takeover_stops_the_listener_with_a_reason_of_its_own() {
    let hub = FakeHub::start().await;
    let (_alice, bob) = two(&hub).await;
    let mut listener = listen(&bob);
    within(listener.ready()).await.unwrap();
    hub.kick(4409);
    assert!(matches!(within(listener.next()).await, Err(Error::Replaced)));
    assert_eq!(hub.state().sessions, 1, "it does not take its place back");
    assert_eq!(ListenOptions::default().on_replaced, OnReplaced::Stop);
}

#[tokio::test]
async fn a_hub_that_goes_away_is_waited_for() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let mut listener = listen(&bob);
    within(listener.ready()).await.unwrap();
    for code in [1001, 4400, 4408, 4429] {
        let before = hub.state().sessions;
        hub.kick(code);
        eventually("another session", || hub.state().sessions > before).await;
    }
    send(&hub, &alice, 7..8).await;
    assert_eq!(take(&mut listener, 1).await, texts(7..8));
}

#[tokio::test]
async fn row_11_a_sender_that_rotated_is_looked_at_once_more() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let mut listener = listen(&bob);
    send(&hub, &alice, 0..1).await;
    assert_eq!(take(&mut listener, 1).await, texts(0..1));
    let history = "/api/v1/agents/alice/history";
    alice
        .rotate(Rotation {
            rotation_key: true,
            revoke_old: true,
        })
        .await
        .unwrap();
    let before = hub.count(history);
    send(&hub, &alice, 1..2).await;
    assert_eq!(take(&mut listener, 1).await, texts(1..2));
    assert_eq!(
        hub.count(history),
        before + 1,
        "what bob remembered would have been good for minutes"
    );
    assert!(hub.frames("reject").is_empty());
}

#[tokio::test]
async fn messages_sealed_before_a_rotation_still_open() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..1).await;
    bob.rotate(Rotation::default()).await.unwrap();
    bob.rotate(Rotation {
        revoke_old: true,
        ..Rotation::default()
    })
    .await
    .unwrap();
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 1).await, texts(0..1));
}

/// A mailbox may hold anything: the hub is not trusted, and neither is who wrote to it.
#[tokio::test]
async fn what_is_not_good_goes_to_the_dead_letters_with_a_reason() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let dora = agent(&hub, "dora").await;
    let to_bob = format!("bob#{}", hub.domain);
    let of_alice = alice.seal(&Draft::text(&to_bob, "x")).await.unwrap();
    let of_dora = dora.seal(&Draft::text(&to_bob, "x")).await.unwrap();
    let signature = alice
        .seal(&Draft::text(&to_bob, "y"))
        .await
        .unwrap()
        .envelope()
        .sig
        .to_string();
    let to_alice = bob
        .seal(&Draft::text(format!("alice#{}", hub.domain), "z"))
        .await
        .unwrap();
    hub.put("bob", &changed(&of_alice, "sig", &signature));
    hub.put("bob", &changed(&of_dora, "thread", "added"));
    hub.put("bob", br#"{"not":"an envelope"}"#);
    hub.put("bob", to_alice.wire());
    hub.put("bob", &unknown_sender(&hub).await);
    hub.put("bob", &unopenable(&hub).await);
    let mut listener = listen(&bob);
    nothing_before_marker(&hub, &mut listener, "bob").await;
    let codes: Vec<Value> = hub
        .frames("reject")
        .into_iter()
        .map(|frame| frame["code"].clone())
        .collect();
    assert_eq!(
        codes,
        [
            "signature_invalid",
            "signature_invalid",
            "unreadable",
            "recipient_mismatch",
            "sender_unknown",
            "unreadable"
        ]
    );
}

fn changed(sealed: &SealedEnvelope, member: &str, text: &str) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(sealed.wire()).unwrap();
    value[member] = text.into();
    value.to_string().into_bytes()
}

/// Signed by an agent that this hub never knew.
async fn unknown_sender(hub: &FakeHub) -> Vec<u8> {
    let did = parse_agent(&format!("ghost#{}", hub.domain)).unwrap();
    let ghost = builder(hub)
        .keys(AgentKeys::generate(did, &Entropy::system()))
        .build()
        .unwrap();
    ghost
        .seal(&Draft::text(format!("bob#{}", hub.domain), "boo"))
        .await
        .unwrap()
        .wire()
        .to_vec()
}

/// Well signed, sealed for a key that bob does not have.
async fn unopenable(hub: &FakeHub) -> Vec<u8> {
    let entropy = Entropy::system();
    let (signing, rotation) = (
        SigningKey::from_seed(entropy.bytes()),
        SigningKey::from_seed(entropy.bytes()),
    );
    let [own, other] = [
        OpeningKey::from_seed(entropy.bytes()),
        OpeningKey::from_seed(entropy.bytes()),
    ];
    let did = parse_agent(&format!("carol#{}", hub.domain)).unwrap();
    let keys = AgentKeys::from_parts(did.clone(), signing.clone(), (own, Vec::new()), rotation);
    let carol = builder(hub).keys(keys).build().unwrap();
    carol.register("carol", Registration::default()).await.unwrap();
    let to = parse_agent(&format!("bob#{}", hub.domain)).unwrap();
    let draft = EnvelopeDraft::new(entropy.message_id(), did, to, "a.b", SystemClock.now());
    let sealed = entropy.with(|mut rng| draft.seal(&signing, other.public(), b"{}", &mut rng));
    sealed.unwrap().to_wire()
}

#[tokio::test]
async fn a_handler_that_fails_gets_the_message_again() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..2).await;
    let mut listener = listen(&bob);
    let seen = std::sync::Mutex::new(Vec::new());
    let running = listener.run(|message| {
        let text = message.content.as_text().unwrap().to_owned();
        seen.lock().unwrap().push((text.clone(), message.attempt));
        async move {
            if text == "0" && message.attempt < 3 {
                Err("not yet")
            } else {
                Ok(())
            }
        }
    });
    tokio::select! {
        ended = running => panic!("the listener ended: {ended:?}"),
        () = eventually("both processed", || hub.state().mailboxes["bob"].pending() == 0) => {}
    }
    let zero: Vec<u32> = seen
        .lock()
        .unwrap()
        .iter()
        .filter(|(text, _)| text == "0")
        .map(|(_, n)| *n)
        .collect();
    assert_eq!(zero, [1, 2, 3]);
    let naks: Vec<u64> = hub
        .frames("nak")
        .iter()
        .map(|frame| frame["retry_after_s"].as_u64().unwrap())
        .collect();
    assert_eq!(naks, [5, 10], "each pause is longer");
}

#[tokio::test]
async fn one_session_sends_too_and_tells_what_becomes_of_it() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = two(&hub).await;
    let listener = listen(&alice);
    let mut statuses = listener.statuses();
    within(listener.ready()).await.unwrap();
    let sealed = alice
        .seal(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap();
    let sent = within(listener.submit(&sealed)).await.unwrap();
    assert_eq!((sent.id, sent.seq), (sealed.id(), Some(1)));
    let status = within(statuses.recv()).await.unwrap();
    assert_eq!((status.id, status.status.as_str()), (sealed.id(), "stored"));
    assert_eq!(
        alice.submit(&sealed).await.unwrap().status,
        aip_client::SentStatus::Duplicate
    );
}

#[tokio::test]
async fn a_long_poll_gives_the_same_once() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..3).await;
    let inbox = MemoryInbox::new();
    let poll = || bob.poll(&inbox, 10, std::time::Duration::ZERO);
    let first = poll().await.unwrap();
    assert_eq!(first.len(), 3);
    bob.settle(&inbox, &first[..2]).await.unwrap();
    let rest = poll().await.unwrap();
    assert_eq!(rest.iter().map(|message| message.seq).collect::<Vec<_>>(), [3]);
    assert_eq!(hub.state().mailboxes["bob"].floor(), 2);
}
