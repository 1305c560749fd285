//! Details of what is offered: asked, answered, refused; what is not asked for stays where it is.

use std::sync::Arc;
use std::time::Duration;

use aip_client::{AnsweredOffer, AskedOffer, Client, Draft, Error, KIND_OFFER};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};

use crate::fake::FakeHub;
use crate::support::{agent, listen, within};

const WAIT: Duration = Duration::from_secs(20);

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
            told.try_send(shown.split(['(', ' ']).next().unwrap().to_owned()).unwrap();
        };
        let outcome = client.serve_offers(&mut listener, handler, tell, until.notified()).await;
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
    let to = format!("bob#{}", hub.domain);
    let answer = within(alice.ask_offer(&to, "lst_flat", Some("a balcony?"), WAIT)).await.unwrap();
    assert_eq!((answer.status.as_str(), &answer.details["details"]), ("offered", &json!({ "rooms": 2 })));
    assert_eq!((&answer.details["echo"], &answer.details["media"]), (&json!("a balcony?"), &json!([])));
    let unknown = within(alice.ask_offer(&to, "lst_none", None, WAIT)).await.unwrap_err();
    assert!(matches!(&unknown, Error::Refused(problem) if problem.code == "not_found"), "{unknown:?}");
    for wrong in [json!({}), json!({ "item_id": "" }), json!({ "item_id": "x".repeat(300) }), json!("lst_flat")] {
        alice.send(&Draft::json(&to, wrong).kind(KIND_OFFER)).await.unwrap();
    }
    alice.send(&Draft::text(&to, "hello")).await.unwrap();
    let mut words: Vec<String> = Vec::new();
    for _ in 0..7 {
        words.push(within(heard.recv()).await.unwrap());
    }
    assert_eq!(words.iter().filter(|word| *word == "Rejected").count(), 4, "{words:?}");
    assert_eq!(words.iter().filter(|word| *word == "Left").count(), 1, "{words:?}");
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
    assert_eq!(elsewhere.ask.map(|party| party.handle), Some("shop#hub.example".to_owned()));
    assert_eq!(elsewhere.details, Map::<String, Value>::new());
}
