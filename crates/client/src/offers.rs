//! Details of what is offered, by message (`aip.commerce.offer.request`): what is asked, what is answered, and answering.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::name::Did;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::limits::{CALLS_AT_ONCE, OFFER_ITEM_BYTES_MAX, OFFER_NOTE_BYTES_MAX};
use crate::listen::{Acker, Listener};
use crate::message::{Body, Content, Draft, Incoming};

/// The type of a question.
pub const KIND_OFFER: &str = "aip.commerce.offer.request";
/// The type of its answer.
pub const KIND_OFFERED: &str = "aip.commerce.offer.response";

/// The code with which a question that is none is sent to the dead letters.
const UNREADABLE: &str = "unreadable";
/// What the content type of a refusal says.
const PROBLEM_JSON: &str = "application/problem+json";
/// How long an answer is worth delivering.
const ANSWER_LIFE: Duration = Duration::from_hours(24);

/// What came of asking for an offer. Everything in it is a stranger's text.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct OfferAnswer {
    /// What was asked about.
    pub item_id: String,
    /// `offered`, or `elsewhere`: another agent answers for it.
    pub status: String,
    /// Whom to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Party>,
    /// The details, as `docs/protocol/types/aip.commerce.offer.response.json` describes them.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Party {
    /// Its DID.
    pub did: Did,
    /// Its handle.
    pub handle: String,
}

/// A question for the details of something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedOffer {
    /// The id of the item: what a hub calls the listing.
    pub item_id: String,
    /// Who asks.
    pub from: Did,
    /// What they want to know, in words.
    pub note: Option<String>,
    /// The language in which they would like the answer.
    pub lang: Option<String>,
    /// Counts the times that it was offered, from 1.
    pub attempt: u32,
}

/// What became of a message while offers are answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnsweredOffer {
    /// The details are on their way.
    Answered(AskedOffer),
    /// Nothing is offered under that id, and whoever asked is told so.
    Unknown(AskedOffer),
    /// The answer could not be sent; the question comes again.
    Unanswered(AskedOffer, Error),
    /// It claims to be a question, and its body is none: a dead letter.
    Rejected(Box<Incoming>),
    /// Other mail. It is left unsettled: it stays in the mailbox for another listener.
    Left(Box<Incoming>),
}

#[derive(Debug, Deserialize)]
struct Asked {
    item_id: String,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    lang: Option<String>,
}

impl Client {
    /// Answers questions for offers until the listener ends: `handler` gives the members of the answer (`name`, `details`,
    /// `price`, `media`, `contact` and others of the response's schema), or `None` for what is not offered. Several are worked
    /// on at once ([`CALLS_AT_ONCE`]); `told` hears what became of each message. After `stop` no more are taken, and those in
    /// hand are finished.
    ///
    /// Anybody may ask. A question is settled after its answer was given to the hub; after a crash it comes again. Other mail
    /// is not touched, and takes up the listener's credit.
    ///
    /// # Errors
    /// Those of [`Listener::next`].
    pub async fn serve_offers<F, H>(
        &self,
        listener: &mut Listener,
        handler: H,
        mut told: impl FnMut(&AnsweredOffer),
        stop: impl Future<Output = ()>,
    ) -> Result<()>
    where
        F: Future<Output = Option<Map<String, Value>>>,
        H: Fn(AskedOffer) -> F,
    {
        let desk = Arc::new(Desk {
            client: self.clone(),
            acker: listener.acker(),
        });
        let (mut in_hand, mut takes_more) = (FuturesUnordered::new(), true);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop, if takes_more => takes_more = false,
                Some(answered) = in_hand.next() => told(&answered?),
                message = listener.next(), if takes_more && in_hand.len() < CALLS_AT_ONCE => {
                    let message = match message {
                        Err(Error::Closed) => { takes_more = false; continue; }
                        message => message?,
                    };
                    in_hand.push(Desk::take(Arc::clone(&desk), message, &handler));
                }
                else => return Ok(()),
            }
        }
    }
}

struct Desk {
    client: Client,
    acker: Acker,
}

impl Desk {
    async fn take<F, H>(self: Arc<Self>, message: Incoming, handler: &H) -> Result<AnsweredOffer>
    where
        F: Future<Output = Option<Map<String, Value>>>,
        H: Fn(AskedOffer) -> F,
    {
        if message.kind != KIND_OFFER {
            return Ok(AnsweredOffer::Left(Box::new(message)));
        }
        let Some(asked) = asked(&message) else {
            self.acker.reject(&message, UNREADABLE).await?;
            return Ok(AnsweredOffer::Rejected(Box::new(message)));
        };
        let found = handler(asked.clone()).await;
        let is_known = found.is_some();
        let content = match found {
            Some(details) => Content::json(offered(&asked, details)),
            None => Content::json_as(PROBLEM_JSON, unknown(&message)),
        };
        let draft = Draft::reply(&message, content)
            .kind(KIND_OFFERED)
            .expires_in(ANSWER_LIFE);
        if let Err(error) = self.client.send(&draft).await {
            self.acker.nak(&message).await?;
            return Ok(AnsweredOffer::Unanswered(asked, error));
        }
        self.acker.ack(&message).await?;
        Ok(if is_known {
            AnsweredOffer::Answered(asked)
        } else {
            AnsweredOffer::Unknown(asked)
        })
    }
}

fn asked(message: &Incoming) -> Option<AskedOffer> {
    let Body::Json(body) = &message.content.body else {
        return None;
    };
    let Asked { item_id, note, lang } = Asked::deserialize(body).ok()?;
    let is_item = (1..=OFFER_ITEM_BYTES_MAX).contains(&item_id.len());
    is_item.then(|| AskedOffer {
        item_id,
        from: message.from.clone(),
        note: note.filter(|note| note.len() <= OFFER_NOTE_BYTES_MAX),
        lang,
        attempt: message.attempt,
    })
}

/// The answer, in which what must be there is there.
fn offered(asked: &AskedOffer, mut details: Map<String, Value>) -> Map<String, Value> {
    details.insert("item_id".to_owned(), asked.item_id.as_str().into());
    details.insert("status".to_owned(), "offered".into());
    details.insert("answered_by".to_owned(), "agent".into());
    for (name, empty) in [
        ("details", json!({})),
        ("media", json!([])),
        ("contact", json!({})),
    ] {
        details.entry(name).or_insert(empty);
    }
    details
        .entry("name")
        .or_insert_with(|| asked.item_id.as_str().into());
    details
}

fn unknown(message: &Incoming) -> Value {
    json!({
        "type": "about:blank",
        "title": "Not found",
        "status": 404,
        "detail": "This agent offers no such item: `item_id` is the `id` of a search result.",
        "code": "not_found",
        "request_id": message.id.hyphenated().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_what_its_schema_asks_for() {
        let asked = AskedOffer {
            item_id: "lst_a".to_owned(),
            from: Did::parse("did:aip:hub.example:alice").unwrap(),
            note: None,
            lang: None,
            attempt: 1,
        };
        let given = json!({ "name": "Tea", "item_id": "lst_b", "contact": { "phone": "1" } });
        let said = offered(&asked, given.as_object().unwrap().clone());
        let expected = json!({
            "item_id": "lst_a", "status": "offered", "answered_by": "agent", "name": "Tea", "details": {}, "media": [],
            "contact": { "phone": "1" },
        });
        assert_eq!(Value::from(said), expected);
    }
}
