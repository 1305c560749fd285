//! One call after the other is only how it looks: what is in hand, what ends it, and its answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use uuid::Uuid;

use super::progress::{CallProgress, Word};
use super::{KIND_CANCEL, KIND_INVOKE, KIND_INVOKED, KIND_PROGRESS, Served, ServedCall};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::limits::{LAST_WORDS_WAIT, WORDS_WAITING_MAX};
use crate::listen::Acker;
use crate::message::{Body, Content, Draft, Incoming};

/// The code with which a call of somebody else is sent to the dead letters.
const NOT_OUR_HUB: &str = "sender_unexpected";

#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(with = "crate::wire::uuid_text")]
    id: Uuid,
    product_id: String,
    capability_id: String,
    input: Value,
    #[serde(default)]
    progress: Value,
}

/// A call that was taken, and not carried out yet.
pub(super) struct Taken {
    message: Incoming,
    call: ServedCall,
    is_followed: bool,
    /// Told when nobody wants its result any more.
    cancelled: Arc<Notify>,
}

/// What a message turned out to be.
pub(super) enum Sorted {
    Call(Box<Taken>),
    /// Something that the application is told of.
    Other(Box<Served>),
    /// The word that a call is not wanted any more: whose it is hears of it.
    Heard,
}

pub(super) struct Server {
    pub(super) client: Client,
    pub(super) acker: Acker,
    pub(super) hub: Did,
    /// The calls that were taken, by their messages.
    pub(super) taken: Mutex<HashMap<Uuid, Arc<Notify>>>,
}

/// How the work of a call ended.
enum Work {
    Done(std::result::Result<Value, String>),
    Late,
    Cancelled,
}

impl Server {
    fn taken(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Notify>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what a message is.
    pub(super) async fn sorted(&self, message: Incoming) -> Result<Sorted> {
        match message.kind.as_str() {
            KIND_INVOKE => {}
            KIND_CANCEL if message.from == self.hub => {
                self.acker.ack(&message).await?;
                let question = message.reply_to.as_deref();
                let question = question.and_then(|id| Uuid::try_parse(id).ok());
                let cancelled = question.and_then(|id| self.taken().get(&id).cloned());
                if let Some(cancelled) = cancelled {
                    cancelled.notify_one();
                }
                return Ok(Sorted::Heard);
            }
            KIND_CANCEL => return self.rejected(message).await,
            _ => return Ok(Sorted::Other(Box::new(Served::Left(Box::new(message))))),
        }
        let asked = asked(&message).filter(|_| message.from == self.hub);
        let Some(Asked {
            id,
            product_id,
            capability_id,
            input,
            progress,
        }) = asked
        else {
            return self.rejected(message).await;
        };
        let call = ServedCall {
            id,
            product_id,
            capability_id,
            input,
            ends_at: message.envelope.expires_at,
            attempt: message.attempt,
            progress: CallProgress::default(),
        };
        let cancelled = Arc::new(Notify::new());
        self.taken().insert(message.envelope.id, Arc::clone(&cancelled));
        Ok(Sorted::Call(Box::new(Taken {
            message,
            call,
            is_followed: progress == Value::Bool(true),
            cancelled,
        })))
    }

    async fn rejected(&self, message: Incoming) -> Result<Sorted> {
        self.acker.reject(&message, NOT_OUR_HUB).await?;
        Ok(Sorted::Other(Box::new(Served::Rejected(Box::new(message)))))
    }

    /// Carries a call out, and answers it.
    pub(super) async fn carry_out<F, H>(self: Arc<Self>, taken: Taken, handler: &H) -> Result<Served>
    where
        F: Future<Output = std::result::Result<Value, String>>,
        H: Fn(ServedCall) -> F,
    {
        let served = self.work(&taken, handler).await;
        self.taken().remove(&taken.message.envelope.id);
        let Taken { message, call, .. } = taken;
        match served {
            (Work::Done(outcome), left) => self.answer(&message, call, outcome, left).await,
            (Work::Late, _) => {
                self.acker.ack(&message).await?;
                Ok(Served::Late(call))
            }
            (Work::Cancelled, _) => {
                self.acker.ack(&message).await?;
                Ok(Served::Cancelled(call))
            }
        }
    }

    /// The work of a call, and how long its answer was waited for when it began.
    async fn work<F, H>(&self, taken: &Taken, handler: &H) -> (Work, Duration)
    where
        F: Future<Output = std::result::Result<Value, String>>,
        H: Fn(ServedCall) -> F,
    {
        let Some(left) = left(taken.call.ends_at, self.client.now()) else {
            return (Work::Late, Duration::ZERO);
        };
        let work = async {
            if taken.is_followed {
                let (words, heard) = mpsc::channel(WORDS_WAITING_MAX);
                let mut call = taken.call.clone();
                call.progress = CallProgress::to(words);
                self.accompanied(taken, heard, handler(call)).await
            } else {
                handler(taken.call.clone()).await
            }
        };
        let work = tokio::select! {
            biased;
            () = taken.cancelled.notified() => Work::Cancelled,
            done = timeout(left, work) => done.map_or(Work::Late, Work::Done),
        };
        (work, left)
    }

    /// The work, while its words go out; the last of them right before its answer, if that does not take long.
    async fn accompanied<T>(
        &self,
        taken: &Taken,
        mut heard: mpsc::Receiver<Word>,
        work: impl Future<Output = T>,
    ) -> T {
        let speak = async {
            while let Some(word) = heard.recv().await {
                self.say(taken, word).await;
            }
        };
        tokio::pin!(work, speak);
        let mut is_speaking = true;
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    if is_speaking {
                        timeout(LAST_WORDS_WAIT, speak).await.unwrap_or_default();
                    }
                    return done;
                }
                () = &mut speak, if is_speaking => is_speaking = false,
            }
        }
    }

    /// Sends one word, once.
    async fn say(&self, taken: &Taken, word: Word) {
        let mut body = json!({"id": taken.call.id.hyphenated().to_string()});
        if let Some(members) = body.as_object_mut() {
            members.insert(word.kind.to_owned(), word.data);
        }
        let draft = Draft::reply(&taken.message, Content::json(body)).kind(KIND_PROGRESS);
        let draft = match left(taken.call.ends_at, self.client.now()) {
            Some(left) => draft.expires_in(left),
            None => return,
        };
        let sent = async {
            let sealed = self.client.seal(&draft).await?;
            self.client.submit_once(&sealed).await.map(drop)
        };
        if let Err(error) = sent.await {
            tracing::debug!(call = %taken.call.id, error = error.sentence(), "a word about a call is missing");
        }
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
fn asked(message: &Incoming) -> Option<Asked> {
    let Body::Json(body) = &message.content.body else {
        return None;
    };
    Asked::deserialize(body).ok()
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
