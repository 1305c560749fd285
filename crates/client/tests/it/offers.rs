//! Details of what is offered: asked, answered, refused; what is not asked for stays where it is.

use std::sync::Arc;

use aip_client::{AnsweredOffer, AskedOffer, Client, Draft, KIND_OFFER, KIND_OFFERED};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};

use crate::fake::FakeHub;
use crate::support::{agent, listen, next, within};

/// A shop that offers one thing; what became of each message comes over the line, as a word.
fn shop(client: &Client) -> (mpsc::Receiver<String>, Arc<Notify>) {
    let (told, heard) = mpsc::channel(64);
    let stop = Arc::new(Notify::new());
    let (client, until) = (client.clone(), stop.clone());
    tokio::spawn(async move {
        let mut listener = listen(&client);
        let handler = |asked: AskedOffer| async move {
            let note = asked.note.clone().unwrap_or_default();
            let details = json!({ "name": "Flat", "details": { "rooms": 2 }, "contact": { "phone": "1" }, "echo": note });
            (asked.item_id == "lst_flat").then(|| details.as_object().cloned().unwrap_or_else(Map::new))
        };
        let tell = |answered: &AnsweredOffer| {
            let shown = format!("{answered:?}");
            told.try_send(shown.split(['(', ' ']).next().unwrap().to_owned())
                .unwrap();
        };
        let outcome = client
            .serve_offers(&mut listener, handler, tell, until.notified())
            .await;
        listener.close().await;
        outcome.unwrap();
    });
    (heard, stop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_answers_for_what_it_offers() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    let (mut heard, stop) = shop(&bob);
    let mut answers = listen(&alice);
    let to = format!("bob#{}", hub.domain);
    let asking = |item: &str| {
        Draft::json(&to, json!({ "item_id": item, "note": "a balcony?" }))
            .kind(KIND_OFFER)
            .thread("t1")
    };
    let sent = alice.send(&asking("lst_flat")).await.unwrap();
    let answer = next(&mut answers).await;
    assert_eq!(
        (answer.kind.as_str(), answer.thread.as_deref()),
        (KIND_OFFERED, Some("t1"))
    );
    assert_eq!(answer.reply_to, Some(sent.id.to_string()));
    assert_eq!(
        *answer.content.as_json().unwrap(),
        json!({
            "item_id": "lst_flat", "status": "offered", "answered_by": "agent", "name": "Flat", "details": { "rooms": 2 },
            "contact": { "phone": "1" }, "media": [], "echo": "a balcony?",
        })
    );
    answers.ack(&answer).await.unwrap();
    assert_eq!(within(heard.recv()).await.unwrap(), "Answered");
    alice.send(&asking("lst_none")).await.unwrap();
    let refused = next(&mut answers).await;
    assert_eq!(refused.content.content_type, "application/problem+json");
    assert_eq!(refused.content.as_json().unwrap()["code"], "not_found");
    assert_eq!(within(heard.recv()).await.unwrap(), "Unknown");
    for wrong in [
        json!({}),
        json!({ "item_id": "" }),
        json!({ "item_id": "x".repeat(300) }),
        json!("lst_flat"),
    ] {
        alice
            .send(&Draft::json(&to, wrong).kind(KIND_OFFER))
            .await
            .unwrap();
        assert_eq!(within(heard.recv()).await.unwrap(), "Rejected");
    }
    alice.send(&Draft::text(&to, "hello")).await.unwrap();
    assert_eq!(within(heard.recv()).await.unwrap(), "Left");
    stop.notify_one();
}

/// An answer about something else is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_about_what_was_asked() {
    let answer: Result<aip_client::OfferAnswer, _> = serde_json::from_value(json!({ "status": "offered" }));
    assert!(answer.is_err());
    let elsewhere: aip_client::OfferAnswer = serde_json::from_value(json!({
        "item_id": "lst_a", "status": "elsewhere", "ask": { "did": "did:aip:hub.example:shop", "handle": "shop#hub.example" },
    }))
    .unwrap();
    assert_eq!(
        elsewhere.ask.map(|party| party.handle),
        Some("shop#hub.example".to_owned())
    );
    assert_eq!(elsewhere.details, Map::<String, Value>::new());
}
