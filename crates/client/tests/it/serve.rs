//! Selling over the relay: the hub's agent asks, and only it; the answer is given before the call is settled.

use std::sync::Arc;
use std::time::Duration;

use aip_client::protocol::clock::{Clock as _, ManualClock};
use aip_client::{
    Client, Draft, Incoming, KIND_CANCEL, KIND_INVOKE, KIND_INVOKED, KIND_PROGRESS, Registration, Served,
    SystemClock,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use crate::aip::Aip;
use crate::fake::{FakeHub, Fault};
use crate::support::{agent, builder, eventually, listen, next, within};

const ID: &str = "00112233-4455-4677-8899-aabbccddeeff";

fn asking(hub: &FakeHub, input: &Value) -> Draft {
    let body = json!({"id": ID, "product_id": "shop", "capability_id": "echo@v1", "input": input});
    let to = format!("bob#{}", hub.domain);
    Draft::json(to, body)
        .kind(KIND_INVOKE)
        .thread("t1")
        .expires_in(Duration::from_mins(5))
}

/// Bob, who sells; what became of each message comes over the line, as a word.
fn serving(
    bob: &Client,
) -> (
    JoinHandle<aip_client::Result<()>>,
    mpsc::Receiver<String>,
    Arc<Notify>,
) {
    let (told, heard) = mpsc::channel(64);
    let stop = Arc::new(Notify::new());
    let (bob, until) = (bob.clone(), stop.clone());
    let task = tokio::spawn(async move {
        let mut listener = listen(&bob);
        let handler = |call: aip_client::ServedCall| async move {
            match call.input["refuse"].as_str() {
                Some(why) => Err(why.to_owned()),
                None if call.input == "huge" => Ok(Value::from("x".repeat(400_000))),
                None => Ok(call.input),
            }
        };
        let tell = |served: &Served| {
            let shown = format!("{served:?}");
            let word = shown.split(['(', ' ']).next().unwrap().to_owned();
            told.try_send(word).unwrap();
        };
        let outcome = bob.serve(&mut listener, handler, tell, until.notified()).await;
        listener.close().await;
        outcome
    });
    (task, heard, stop)
}

fn body(message: &Incoming) -> Value {
    message.content.as_json().cloned().unwrap()
}

#[tokio::test]
async fn a_call_of_the_hub_is_answered_and_settled() {
    let hub = FakeHub::start().await;
    let (asker, bob) = (agent(&hub, "hub").await, agent(&hub, "bob").await);
    let (task, mut heard, stop) = serving(&bob);
    let mut answers = listen(&asker);
    let sent = asker
        .send(&asking(&hub, &json!({"town": "Köln", "t": 0.5})))
        .await
        .unwrap();
    let answer = next(&mut answers).await;
    assert_eq!(
        (answer.kind.as_str(), answer.thread.as_deref()),
        (KIND_INVOKED, Some("t1"))
    );
    assert_eq!(answer.reply_to, Some(sent.id.to_string()));
    assert_eq!(
        body(&answer),
        json!({"id": ID, "ok": true, "result": {"town": "Köln", "t": 0.5}})
    );
    assert!(answer.envelope.expires_at.is_some());
    answers.ack(&answer).await.unwrap();
    asker
        .send(&asking(&hub, &json!({"refuse": "out of tea"})))
        .await
        .unwrap();
    let answer = next(&mut answers).await;
    assert_eq!(
        body(&answer),
        json!({"id": ID, "ok": false, "error": "out of tea"})
    );
    answers.ack(&answer).await.unwrap();
    asker.send(&asking(&hub, &json!("huge"))).await.unwrap();
    let answer = next(&mut answers).await;
    assert_eq!(
        body(&answer),
        json!({"id": ID, "ok": false, "error": "the result does not fit into a message"})
    );
    for expected in ["Answered", "Refused", "Refused"] {
        assert_eq!(within(heard.recv()).await.unwrap(), expected);
    }
    stop.notify_one();
    within(task).await.unwrap().unwrap();
    eventually("all is settled", || hub.state().mailboxes["bob"].pending() == 0).await;
}

#[tokio::test]
async fn calls_of_strangers_are_not_carried_out_and_other_mail_is_left() {
    let hub = FakeHub::start().await;
    let (asker, bob) = (agent(&hub, "hub").await, agent(&hub, "bob").await);
    let thief = agent(&hub, "thief").await;
    thief.send(&asking(&hub, &json!(1))).await.unwrap();
    let to = format!("bob#{}", hub.domain);
    thief.send(&Draft::text(&to, "hello")).await.unwrap();
    asker
        .send(&Draft::json(&to, json!({"id": "x"})).kind(KIND_INVOKE))
        .await
        .unwrap();
    let (task, mut heard, stop) = serving(&bob);
    let mut words = Vec::new();
    for _ in 0..3 {
        words.push(within(heard.recv()).await.unwrap());
    }
    words.sort_unstable();
    assert_eq!(words, ["Left", "Rejected", "Rejected"]);
    stop.notify_one();
    within(task).await.unwrap().unwrap();
    assert_eq!(hub.frames("reject").len(), 2);
    let mailbox = |name: &str| {
        hub.state()
            .mailboxes
            .get(name)
            .map_or(0, crate::fake::Mailbox::pending)
    };
    assert_eq!(
        (mailbox("bob"), mailbox("thief"), mailbox("hub")),
        (1, 0, 0),
        "nobody was answered"
    );
}

#[tokio::test]
async fn nobody_waits_for_a_call_whose_time_is_over() {
    let hub = FakeHub::start().await;
    let asker = agent(&hub, "hub").await;
    let later = ManualClock::new(SystemClock.now() + Duration::from_hours(1));
    let bob = builder(&hub).clock(Arc::new(later)).build().unwrap();
    bob.register("bob", Registration::default()).await.unwrap();
    asker.send(&asking(&hub, &json!(1))).await.unwrap();
    let (task, mut heard, stop) = serving(&bob);
    assert_eq!(within(heard.recv()).await.unwrap(), "Late");
    stop.notify_one();
    within(task).await.unwrap().unwrap();
    assert!(!hub.state().mailboxes.contains_key("hub"));
}

#[tokio::test]
async fn an_answer_that_the_hub_refuses_leaves_the_call_for_another_time() {
    let hub = FakeHub::start().await;
    let (asker, bob) = (agent(&hub, "hub").await, agent(&hub, "bob").await);
    asker.send(&asking(&hub, &json!(1))).await.unwrap();
    let full = json!({"status": 507, "code": "mailbox_full", "detail": "Full."});
    hub.fail("/api/v1/messages", [Fault::Answer(507, full)]);
    let (task, mut heard, stop) = serving(&bob);
    assert_eq!(within(heard.recv()).await.unwrap(), "Unanswered");
    assert_eq!(within(heard.recv()).await.unwrap(), "Answered");
    stop.notify_one();
    within(task).await.unwrap().unwrap();
    assert_eq!(hub.state().mailboxes["hub"].pending(), 1);
}

#[tokio::test]
async fn the_command_sells_what_a_program_does() {
    let hub = FakeHub::start().await;
    let asker = agent(&hub, "hub").await;
    let bob = Aip::registered(&hub, "bob").await;
    assert!(
        bob.fails(2, &["serve", "--exec", "no-such-program-here"])
            .await
            .contains("cannot be run")
    );
    let mut answers = listen(&asker);
    asker.send(&asking(&hub, &json!({"a": 1.5}))).await.unwrap();
    let said = bob.succeeds(&["serve", "--exec", "cat", "--count", "1"]).await;
    assert_eq!(said.trim(), format!("{ID} echo@v1 answered"));
    assert_eq!(
        body(&next(&mut answers).await),
        json!({"id": ID, "ok": true, "result": {"a": 1.5}})
    );
    asker.send(&asking(&hub, &json!({}))).await.unwrap();
    let said = bob
        .succeeds(&[
            "--json",
            "serve",
            "--exec",
            "echo no tea >&2; exit 1",
            "--count",
            "1",
        ])
        .await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["status"], &said["error"]),
        (&json!("refused"), &json!("no tea"))
    );
    asker.send(&asking(&hub, &json!({}))).await.unwrap();
    let said = bob
        .succeeds(&[
            "serve",
            "--exec",
            "cat",
            "--capability",
            "other@v1",
            "--count",
            "1",
        ])
        .await;
    assert!(
        said.contains("refused: this capability is not served now"),
        "{said}"
    );
}

#[tokio::test]
async fn a_call_that_is_followed_says_how_far_it_is() {
    let hub = FakeHub::start().await;
    let (asker, bob) = (agent(&hub, "hub").await, agent(&hub, "bob").await);
    let mut answers = listen(&asker);
    let followed = Draft::json(
        format!("bob#{}", hub.domain),
        json!({"id": ID, "product_id": "shop", "capability_id": "echo@v1", "input": 1, "progress": true}),
    );
    let sent = asker
        .send(
            &followed
                .kind(KIND_INVOKE)
                .thread("t1")
                .expires_in(Duration::from_mins(5)),
        )
        .await
        .unwrap();
    let stop = Arc::new(Notify::new());
    let (server, until) = (bob.clone(), stop.clone());
    let task = tokio::spawn(async move {
        let mut listener = listen(&server);
        let handler = |call: aip_client::ServedCall| async move {
            assert!(call.progress.is_followed());
            call.progress.progress(json!({"done": 0.5})).await;
            call.progress.chunk("Once").await;
            Ok(call.input)
        };
        server
            .serve(&mut listener, handler, |_| (), until.notified())
            .await
    });
    for (kind, expected) in [
        (KIND_PROGRESS, json!({"id": ID, "progress": {"done": 0.5}})),
        (KIND_PROGRESS, json!({"id": ID, "chunk": "Once"})),
        (KIND_INVOKED, json!({"id": ID, "ok": true, "result": 1})),
    ] {
        let message = next(&mut answers).await;
        assert_eq!((message.kind.as_str(), body(&message)), (kind, expected));
        assert_eq!(message.reply_to, Some(sent.id.to_string()));
        assert_eq!(message.thread.as_deref(), Some("t1"));
        answers.ack(&message).await.unwrap();
    }
    stop.notify_one();
    within(task).await.unwrap().unwrap();
}

/// All its hands are full of calls that do not end: it hears of a cancelled one all the same, also of one that waits.
#[tokio::test]
async fn a_cancelled_call_is_dropped_and_settled() {
    let hub = FakeHub::start().await;
    let (asker, bob) = (agent(&hub, "hub").await, agent(&hub, "bob").await);
    let thief = agent(&hub, "thief").await;
    let mut ids = Vec::new();
    for number in 0..=aip_client::limits::CALLS_AT_ONCE {
        ids.push(asker.send(&asking(&hub, &json!(number))).await.unwrap().id);
    }
    let (told, mut heard) = mpsc::channel(64);
    let stop = Arc::new(Notify::new());
    let (server, until) = (bob.clone(), stop.clone());
    let task = tokio::spawn(async move {
        let mut listener = listen(&server);
        let begun = told.clone();
        let handler = |call: aip_client::ServedCall| {
            let begun = begun.clone();
            async move {
                begun.try_send(format!("begun {}", call.input)).unwrap();
                std::future::pending().await
            }
        };
        let tell = |served: &Served| match served {
            Served::Cancelled(call) => told.try_send(format!("cancelled {}", call.input)).unwrap(),
            other => told.try_send(format!("{other:?}")).unwrap(),
        };
        server.serve(&mut listener, handler, tell, until.notified()).await
    });
    for number in 0..aip_client::limits::CALLS_AT_ONCE {
        assert_eq!(within(heard.recv()).await.unwrap(), format!("begun {number}"));
    }
    let withdraw = |id: uuid::Uuid| {
        Draft::json(format!("bob#{}", hub.domain), json!({"id": ID}))
            .kind(KIND_CANCEL)
            .reply_to(id.to_string())
    };
    // Of a stranger it says nothing.
    thief.send(&withdraw(ids[0])).await.unwrap();
    assert!(within(heard.recv()).await.unwrap().starts_with("Rejected"));
    let last = aip_client::limits::CALLS_AT_ONCE;
    for number in [last, 0] {
        asker.send(&withdraw(ids[number])).await.unwrap();
    }
    let mut words = [
        within(heard.recv()).await.unwrap(),
        within(heard.recv()).await.unwrap(),
    ];
    words.sort_unstable();
    assert_eq!(
        words,
        ["cancelled 0".to_owned(), format!("cancelled {last}")],
        "the last one was never begun"
    );
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    let left = || hub.state().mailboxes["bob"].pending() == aip_client::limits::CALLS_AT_ONCE - 1;
    eventually("the cancelled ones are settled", left).await;
    drop(stop);
}
