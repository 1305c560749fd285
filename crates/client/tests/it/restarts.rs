//! Several hub processes behind one address: they restart one after the other, die, and are restored. For an agent all of
//! it is a reconnect, and nothing is lost or done twice.

use std::sync::Arc;
use std::time::Duration;

use aip_client::inbox::MemoryInbox;
use aip_client::{Draft, Error, Inbox, Registration, Rotation, SentStatus, SessionState};
use serde_json::{Value, json};

use crate::fake::{FakeHub, Fault};
use crate::support::{
    agent, builder, eventually, listen, next, nothing_before_marker, options, send, take, texts, two, within,
};

const MESSAGES: &str = "/api/v1/messages";
const TOKEN: &str = "/api/v1/auth/token";

/// What a proxy says that has no hub to ask: a page for people, and no problem document.
fn page(status: u16) -> Fault {
    Fault::Answer(status, Value::from("<html>sorry</html>"))
}

fn refusal(status: u16, code: &str) -> Fault {
    Fault::Answer(
        status,
        json!({"status": status, "code": code, "detail": "as scripted", "retry_after_s": 0}),
    )
}

#[tokio::test]
async fn a_proxy_without_a_hub_is_waited_out_at_the_handshake() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..2).await;
    hub.state().upgrades.extend([
        page(502),
        page(503),
        page(504),
        page(520),
        refusal(503, "unavailable"),
        refusal(429, "rate_limited"),
        Fault::HangUp,
    ]);
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 2).await, texts(0..2));
    assert_eq!(hub.state().upgrades_asked, 8);
}

#[tokio::test]
async fn once_open_a_listener_does_not_give_up_for_what_a_proxy_says() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let mut listener = listen(&bob);
    within(listener.ready()).await.unwrap();
    let moved = Fault::Answer(302, json!({"location": "https://sorry.example/"}));
    hub.state()
        .upgrades
        .extend([page(404), page(403), moved, page(500)]);
    hub.kick(1001);
    send(&hub, &alice, 0..1).await;
    assert_eq!(take(&mut listener, 1).await, texts(0..1));
    assert_eq!(hub.state().upgrades_asked, 6);
}

#[tokio::test]
async fn a_url_that_never_was_a_hub_s_is_not_tried_for_ever() {
    let hub = FakeHub::start().await;
    let bob = agent(&hub, "bob").await;
    hub.state().upgrades.extend([page(404)]);
    let refused = within(listen(&bob).next()).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().code, "http_404");
}

#[tokio::test]
async fn a_process_that_dies_or_says_goodbye_is_followed_by_the_next() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let mut listener = listen(&bob);
    within(listener.ready()).await.unwrap();
    for (n, code) in [1001, 0, 1006, 1011, 1012, 0].into_iter().enumerate() {
        let before = hub.state().sessions;
        hub.kick(code);
        send(&hub, &alice, n..=n).await;
        assert_eq!(take(&mut listener, 1).await, texts(n..n + 1));
        assert!(hub.state().sessions > before);
    }
    nothing_before_marker(&hub, &mut listener, "bob").await;
}

#[tokio::test]
async fn a_sender_waits_out_the_proxy_with_the_same_bytes() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = two(&hub).await;
    hub.fail(
        MESSAGES,
        [
            page(502),
            page(503),
            page(504),
            page(520),
            refusal(503, "outcome_unknown"),
            Fault::LoseAnswer,
            refusal(503, "outcome_unknown"),
        ],
    );
    let sent = alice
        .send(&Draft::text(format!("bob#{}", hub.domain), "once"))
        .await
        .unwrap();
    assert_eq!((sent.status, sent.seq), (SentStatus::Duplicate, Some(1)));
    let mut bodies = hub.bodies(MESSAGES);
    assert_eq!(bodies.len(), 8);
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "the same bytes each time");
}

#[tokio::test]
async fn a_socket_that_does_not_know_the_outcome_is_followed_by_the_same_bytes() {
    let hub = FakeHub::start().await;
    let (alice, _bob) = two(&hub).await;
    let listener = listen(&alice);
    within(listener.ready()).await.unwrap();
    let sealed = alice
        .seal(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap();
    hub.state().refuse_sends.push_back("outcome_unknown");
    let unknown = within(listener.submit(&sealed)).await.unwrap_err();
    assert!(unknown.is_transient(), "{unknown}");
    assert_eq!(alice.submit(&sealed).await.unwrap().status, SentStatus::Stored);
    let bodies = hub.bodies(MESSAGES);
    assert_eq!(bodies, [sealed.wire().to_vec()]);
}

#[tokio::test]
async fn a_hub_that_was_never_reached_leaves_no_doubt() {
    let hub = FakeHub::start().await;
    let (_alice, bob) = two(&hub).await;
    let sealed = bob
        .seal(&Draft::text(format!("alice#{}", hub.domain), "x"))
        .await
        .unwrap();
    // A port that nobody listens on: bound, and given back.
    let port = {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        taken.local_addr().unwrap().port()
    };
    let away = aip_client::Client::builder(format!("http://127.0.0.1:{port}"))
        .send_window(Duration::ZERO)
        .build()
        .unwrap();
    let error = away.submit(&sealed).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_challenge_of_another_process_is_asked_for_anew() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let foreign = || refusal(401, "challenge_invalid");
    hub.fail(TOKEN, [foreign(), foreign()]);
    alice.token().await.unwrap();
    assert_eq!((hub.count("/api/v1/auth/challenge"), hub.count(TOKEN)), (3, 3));
    let bob = agent(&hub, "bob").await;
    hub.fail(TOKEN, std::iter::repeat_with(foreign).take(9));
    assert!(bob.token().await.is_err());
    assert_eq!(hub.count(TOKEN), 3 + 4, "but not for ever");
}

#[tokio::test]
async fn a_token_of_another_process_is_replaced() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..1).await;
    let inbox = MemoryInbox::new();
    bob.token().await.unwrap();
    hub.fail("/api/v1/inbox", [refusal(401, "token_invalid")]);
    let page = bob.poll(&inbox, 10, Duration::ZERO).await.unwrap();
    assert_eq!(page.len(), 1);
    hub.fail("/api/v1/inbox/ack", [refusal(401, "token_invalid")]);
    bob.settle(&inbox, &page).await.unwrap();
    assert_eq!(hub.state().mailboxes["bob"].floor(), 1);
}

/// The store is restored while the session stays open: the first word of the old epoch ends it, and `ready` tells.
#[tokio::test]
async fn an_epoch_that_changes_behind_the_session_ends_it_and_nothing_is_done_twice() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let inbox: Arc<dyn Inbox> = Arc::new(MemoryInbox::new());
    send(&hub, &alice, 0..5).await;
    let mut listener = bob.listen(Arc::clone(&inbox), options());
    assert_eq!(take(&mut listener, 3).await, texts(0..3));
    eventually("acked", || hub.state().mailboxes["bob"].floor() == 3).await;
    hub.restore_behind_the_session();
    // Offered in the old epoch, acknowledged in the new one.
    assert_eq!(take(&mut listener, 2).await, texts(3..5));
    nothing_before_marker(&hub, &mut listener, "bob").await;
    eventually("everything is settled where it lies now", || {
        hub.state().mailboxes["bob"].floor() == 5
    })
    .await;
    assert_eq!(inbox.cursor().await.unwrap().unwrap().epoch, "epoch-1");
    assert_eq!(hub.state().sessions, 2);
}

#[tokio::test]
async fn a_message_of_a_new_epoch_in_an_old_session_is_taken_in_the_next() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..1).await;
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 1).await, texts(0..1));
    eventually("acked", || hub.state().mailboxes["bob"].floor() == 1).await;
    hub.restore_behind_the_session();
    send(&hub, &alice, 1..2).await;
    assert_eq!(take(&mut listener, 1).await, texts(1..2));
    nothing_before_marker(&hub, &mut listener, "bob").await;
    assert_eq!(hub.state().sessions, 2);
}

/// What the application has in hand while the store is restored is settled where it lies afterwards.
#[tokio::test]
async fn a_message_in_hand_is_settled_at_its_new_place() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..3).await;
    let mut listener = listen(&bob);
    let in_hand = next(&mut listener).await;
    assert_eq!((in_hand.epoch.as_str(), in_hand.seq), ("epoch-0", 1));
    hub.restore();
    // The others are handed over once, although they lie in the queue twice.
    let mut rest = take(&mut listener, 2).await;
    rest.sort();
    assert_eq!(rest, texts(1..3));
    nothing_before_marker(&hub, &mut listener, "bob").await;
    listener.ack(&in_hand).await.unwrap();
    eventually("settled in the new epoch", || {
        hub.state().mailboxes["bob"].floor() == 3
    })
    .await;
}

#[tokio::test]
async fn a_restore_that_lost_mail_goes_on_with_what_comes_under_old_numbers() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..6).await;
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 6).await, texts(0..6));
    eventually("acked", || hub.state().mailboxes["bob"].floor() == 6).await;
    // The newest three are gone, and their numbers are given out again in the new epoch.
    hub.state().mailboxes.get_mut("bob").unwrap().forget_newest(3);
    hub.restore();
    send(&hub, &alice, 6..9).await;
    assert_eq!(take(&mut listener, 3).await, texts(6..9));
    nothing_before_marker(&hub, &mut listener, "bob").await;
}

/// In one epoch the inbox's floor stays, whatever lower one a hub names after it lost acknowledgements.
#[tokio::test]
async fn a_hub_behind_the_inbox_repeats_nothing() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..4).await;
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 4).await, texts(0..4));
    eventually("acked", || hub.state().mailboxes["bob"].floor() == 4).await;
    hub.lose_acks();
    let mut state = listener.state();
    let behind = |state: &SessionState| {
        matches!(
            state,
            SessionState::Connected {
                floor: 0,
                session: 2,
                ..
            }
        )
    };
    within(state.wait_for(behind)).await.unwrap();
    nothing_before_marker(&hub, &mut listener, "bob").await;
    assert!(hub.state().mailboxes["bob"].floor() >= 4, "settled again");
}

/// Attempts count up within a store, and start anew in a restored one: neither makes a message another one.
#[tokio::test]
async fn attempts_may_go_up_and_down() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..1).await;
    hub.state().break_sessions_after.extend([1, 1]);
    let mut listener = listen(&bob);
    eventually("offered in three sessions", || hub.state().sessions == 3).await;
    let mut message = next(&mut listener).await;
    let mut attempts = vec![message.attempt];
    for _ in 0..2 {
        listener.nak(&message).await.unwrap();
        message = next(&mut listener).await;
        attempts.push(message.attempt);
    }
    assert!(attempts.is_sorted(), "{attempts:?}");
    hub.restore();
    listener.nak(&message).await.unwrap();
    let again = next(&mut listener).await;
    assert_eq!(again.id, message.id);
    listener.ack(&again).await.unwrap();
    nothing_before_marker(&hub, &mut listener, "bob").await;
}

#[tokio::test]
async fn a_poll_between_two_epochs_settles_later() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..2).await;
    let inbox = MemoryInbox::new();
    let page = bob.poll(&inbox, 10, Duration::ZERO).await.unwrap();
    hub.restore();
    bob.settle(&inbox, &page).await.unwrap();
    assert_eq!(
        hub.state().mailboxes["bob"].pending(),
        2,
        "nothing to acknowledge there"
    );
    assert!(bob.poll(&inbox, 10, Duration::ZERO).await.unwrap().is_empty());
    assert_eq!(
        hub.state().mailboxes["bob"].pending(),
        0,
        "known by id, and settled now"
    );
}

/// A look-up that a proxy answers says nothing about a sender: the message waits.
#[tokio::test]
async fn a_proxy_does_not_make_a_sender_unknown() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    send(&hub, &alice, 0..1).await;
    hub.fail("/api/v1/agents/alice/history", [page(404), page(503)]);
    let mut listener = listen(&bob);
    assert_eq!(take(&mut listener, 1).await, texts(0..1));
    assert!(hub.frames("reject").is_empty());
    assert_eq!(hub.frames("nak").len(), 2);
}

/// An answer was lost, then the key was replaced: the message is sealed again under its id, and is still one message.
#[tokio::test]
async fn sealing_again_after_a_lost_answer_is_not_called_a_refusal() {
    let hub = FakeHub::start().await;
    let _bob = agent(&hub, "bob").await;
    let folder = tempfile::tempdir().unwrap();
    let file = aip_client::KeyFile::at(folder.path().join("k"));
    let first = builder(&hub).key_file(file.clone()).unwrap().build().unwrap();
    first.register("alice", Registration::default()).await.unwrap();
    let second = builder(&hub).key_file(file).unwrap().build().unwrap();
    second.rotate(Rotation::default()).await.unwrap();
    hub.fail(
        MESSAGES,
        [
            Fault::LoseAnswer,
            refusal(401, "key_unknown"),
            refusal(409, "id_reused"),
        ],
    );
    let unknown = first
        .send(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap_err();
    assert!(matches!(unknown, Error::OutcomeUnknown { .. }), "{unknown}");
    assert_eq!(hub.state().mailboxes["bob"].pending(), 1);
}
