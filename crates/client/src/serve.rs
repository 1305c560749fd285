//! Selling over the relay: answering the calls that the agent's hub hands on (`aip.invoke.request`).

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::{Did, HUB_NAME, Handle, Name};
use aip_protocol::time::Timestamp;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::limits::CALLS_AT_ONCE;
use crate::listen::{Acker, Listener};
use crate::message::{Body, Content, Draft, Incoming};

/// The type of a call.
pub const KIND_INVOKE: &str = "aip.invoke.request";
/// The type of its answer.
pub const KIND_INVOKED: &str = "aip.invoke.response";

/// The code with which a call of somebody else is sent to the dead letters.
const NOT_OUR_HUB: &str = "sender_unexpected";

/// A call of a capability of this agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServedCall {
    /// The call: the same in every attempt, so that what was done is not done again.
    pub id: Uuid,
    /// Whose capability.
    pub product_id: String,
    /// Which capability.
    pub capability_id: String,
    /// What the buyer gave.
    pub input: Value,
    /// After this moment nobody waits for the answer.
    pub ends_at: Option<Timestamp>,
    /// Counts the times it was offered, from 1.
    pub attempt: u32,
}

impl ServedCall {
    /// A call as it comes the first time, with all the time there is: to try a handler out.
    pub fn new(
        id: Uuid,
        product_id: impl Into<String>,
        capability_id: impl Into<String>,
        input: Value,
    ) -> Self {
        Self {
            id,
            product_id: product_id.into(),
            capability_id: capability_id.into(),
            input,
            ends_at: None,
            attempt: 1,
        }
    }
}

/// What became of a message while serving.
#[derive(Debug)]
#[non_exhaustive]
pub enum Served {
    /// The call was carried out, and its result is with the hub.
    Answered(ServedCall),
    /// The handler said why not, and that is with the hub; nothing is charged.
    Refused(ServedCall, String),
    /// Nobody waited any more: it was not carried out, or its result came too late.
    Late(ServedCall),
    /// The answer could not be given to the hub; the call comes again while its time lasts.
    Unanswered(ServedCall, Error),
    /// It claims to be a call, and its sender is not the agent's hub, or its body is none: a dead letter.
    Rejected(Box<Incoming>),
    /// Other mail. It is left unsettled: it stays in the mailbox for another listener.
    Left(Box<Incoming>),
}

#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(with = "crate::wire::uuid_text")]
    id: Uuid,
    product_id: String,
    capability_id: String,
    input: Value,
}

impl Client {
    /// Answers calls until the listener ends: `handler` makes a result of each, or says in a sentence for the buyer why not.
    /// Several are worked on at once ([`CALLS_AT_ONCE`]). `told` hears what became of each message. After `stop` no more calls
    /// are taken, and those in hand are finished.
    ///
    /// A call is settled after its answer was given to the hub: after a crash it comes again while somebody waits for it,
    /// with the same [`ServedCall::id`]. Calls are taken from the agent's own hub only. Other mail is not touched, and takes
    /// up the listener's credit; an agent that sells had better have a name of its own.
    ///
    /// # Errors
    /// Those of [`Listener::next`].
    pub async fn serve<F, H>(
        &self,
        listener: &mut Listener,
        handler: H,
        mut told: impl FnMut(&Served),
        stop: impl Future<Output = ()>,
    ) -> Result<()>
    where
        F: Future<Output = std::result::Result<Value, String>>,
        H: Fn(ServedCall) -> F,
    {
        let server = Server {
            client: self.clone(),
            acker: listener.acker(),
            hub: hub_agent(self.keys()?.did())?,
        };
        let server = Arc::new(server);
        let (mut in_hand, mut takes_more) = (FuturesUnordered::new(), true);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop, if takes_more => takes_more = false,
                Some(served) = in_hand.next() => told(&served?),
                message = listener.next(), if takes_more && in_hand.len() < CALLS_AT_ONCE => {
                    let message = match message {
                        Err(Error::Closed) => { takes_more = false; continue; }
                        message => message?,
                    };
                    in_hand.push(Server::take(Arc::clone(&server), message, &handler));
                }
                else => return Ok(()),
            }
        }
    }
}

/// The hub's own agent.
fn hub_agent(own: &Did) -> Result<Did> {
    let (name, domain) = (Name::parse(HUB_NAME)?, own.domain());
    Ok(Handle { name, domain }.did())
}

struct Server {
    client: Client,
    acker: Acker,
    hub: Did,
}

impl Server {
    async fn take<F, H>(self: Arc<Self>, message: Incoming, handler: &H) -> Result<Served>
    where
        F: Future<Output = std::result::Result<Value, String>>,
        H: Fn(ServedCall) -> F,
    {
        if message.kind != KIND_INVOKE {
            return Ok(Served::Left(Box::new(message)));
        }
        let Some(call) = call_of(&message).filter(|_| message.from == self.hub) else {
            self.acker.reject(&message, NOT_OUR_HUB).await?;
            return Ok(Served::Rejected(Box::new(message)));
        };
        let Some(left) = left(call.ends_at, self.client.now()) else {
            self.acker.ack(&message).await?;
            return Ok(Served::Late(call));
        };
        let outcome = timeout(left, handler(call.clone())).await;
        let Ok(outcome) = outcome else {
            self.acker.ack(&message).await?;
            return Ok(Served::Late(call));
        };
        self.answer(&message, call, outcome, left).await
    }

    async fn answer(
        &self,
        message: &Incoming,
        call: ServedCall,
        outcome: std::result::Result<Value, String>,
        left: Duration,
    ) -> Result<Served> {
        let id = call.id.hyphenated().to_string();
        let (body, refused) = match outcome {
            Ok(result) => (json!({"id": id, "ok": true, "result": result}), None),
            Err(why) => (json!({"id": id, "ok": false, "error": why}), Some(why)),
        };
        let (sent, refused) = match (self.send(message, body, left).await, refused) {
            (Err(error), None) if is_too_large(&error) => {
                let why = "the result does not fit into a message".to_owned();
                let body = json!({"id": id, "ok": false, "error": why});
                (self.send(message, body, left).await, Some(why))
            }
            (sent, refused) => (sent, refused),
        };
        if let Err(error) = sent {
            self.acker.nak(message).await?;
            return Ok(Served::Unanswered(call, error));
        }
        self.acker.ack(message).await?;
        Ok(match refused {
            None => Served::Answered(call),
            Some(why) => Served::Refused(call, why),
        })
    }

    async fn send(&self, message: &Incoming, body: Value, left: Duration) -> Result<()> {
        let draft = Draft::reply(message, Content::json(body))
            .kind(KIND_INVOKED)
            .expires_in(left);
        self.client.send(&draft).await.map(drop)
    }
}

/// The call that a message asks for.
fn call_of(message: &Incoming) -> Option<ServedCall> {
    let Body::Json(body) = &message.content.body else {
        return None;
    };
    let Asked {
        id,
        product_id,
        capability_id,
        input,
    } = Asked::deserialize(body).ok()?;
    Some(ServedCall {
        id,
        product_id,
        capability_id,
        input,
        ends_at: message.envelope.expires_at,
        attempt: message.attempt,
    })
}

/// How long somebody waits still: the clocks of hub and agent may differ, so one that names no end is given a minute.
fn left(ends_at: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let Some(ends_at) = ends_at else {
        return Some(crate::limits::CALL_TIMEOUT);
    };
    let millis = u64::try_from(ends_at.millis_since(now)).ok()?;
    (millis > 0).then(|| Duration::from_millis(millis))
}

fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::Invalid(refusal) if refusal.code == ErrorCode::EnvelopeTooLarge)
        || error.is_code(ErrorCode::EnvelopeTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_when_nobody_waits_any_more() {
        let at = Timestamp::from_unix_millis;
        assert_eq!(left(Some(at(1_500)), at(1_000)), Some(Duration::from_millis(500)));
        assert_eq!(left(Some(at(1_000)), at(1_000)), None);
        assert_eq!(left(Some(at(0)), at(1_000)), None);
        assert_eq!(left(None, at(0)), Some(crate::limits::CALL_TIMEOUT));
    }
}
