//! Publishing into streams: with an own time-out around every try, and an honest outcome.

use aip_relay::mailbox::StoreError;
use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use super::answer::ApiError;
use super::{Nats, Silence};
use crate::limits;

/// What a stream did with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// It is stored, on as many servers as the stream needs for a majority.
    Stored {
        /// Its place in the stream.
        stream_seq: u64,
    },
    /// A message of the same id is stored.
    Duplicate {
        /// That one's place in the stream.
        stream_seq: u64,
    },
    /// The subject's last message is not the expected one; nothing was stored.
    WrongLast {
        /// The place of the last message, if the server says.
        last: Option<u64>,
    },
    /// The subject holds as many messages as it may; nothing was stored.
    Full,
    /// The subject belongs to another stream than the expected one, which stored nothing.
    Elsewhere,
}

/// Headers that make a publish a compare-and-set: `last` is the stream sequence of the subject's last message,
/// 0 for none.
pub(crate) fn expecting(last: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, HeaderValue::from(last));
    headers
}

/// The same for a subject of `stream`: a place in one stream means nothing in another, so no other is to take it.
pub(crate) fn expecting_in(stream: &str, last: u64) -> HeaderMap {
    let mut headers = expecting(last);
    headers.insert(NATS_EXPECTED_STREAM, stream);
    headers
}

/// The same headers with an id, so that the publish can be repeated.
pub(crate) fn named(mut headers: HeaderMap, id: &str) -> HeaderMap {
    headers.insert(NATS_MESSAGE_ID, id);
    headers
}

#[derive(Debug, Deserialize)]
struct Ack {
    #[serde(default)]
    error: Option<ApiError>,
    #[serde(default)]
    stream: String,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    duplicate: bool,
}

impl Ack {
    /// Whether another stream than the expected one answers.
    fn is_of_another(&self, headers: &HeaderMap) -> bool {
        let expected = headers.get(NATS_EXPECTED_STREAM);
        !self.stream.is_empty() && expected.is_some_and(|expected| expected.as_str() != self.stream)
    }
}

/// How one try ended.
enum Try {
    Known(Published),
    /// Nothing was stored this time: another message is the last one of the subject in this stream.
    Overtaken {
        stream: String,
        last: Option<u64>,
    },
    /// Nothing was stored: it is another stream's subject.
    Elsewhere,
    /// Nothing was stored, and another try would fare no better.
    Refused(StoreError),
    /// Nothing was stored, but may be if tried again.
    Again,
    Unknown,
}

impl Nats {
    /// Publishes, and answers only what is known.
    ///
    /// With a `Nats-Msg-Id` a try of unknown outcome is repeated, under the same id, until it is known or
    /// [`crate::Options::publish_deadline`] has passed; without one it is
    /// [`StoreError::OutcomeUnknown`] at once. When the server cannot be asked, or refuses,
    /// [`StoreError::Unavailable`]: nothing was stored.
    pub(crate) async fn publish(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<Published, StoreError> {
        let mut unsure = false;
        let tries = self.publish_until_known(subject, &headers, &payload, &mut unsure);
        let outcome = match timeout(self.options().publish_deadline, tries).await {
            Ok(outcome) => outcome,
            Err(_) if unsure => Err(unknown()),
            Err(_) => Err(StoreError::Unavailable(
                "the stream did not take the message in time".into(),
            )),
        };
        self.count(&outcome);
        outcome
    }

    /// Holds `unsure` true while a try is under way, and from the first one of unknown outcome on.
    async fn publish_until_known(
        &self,
        subject: &str,
        headers: &HeaderMap,
        payload: &Bytes,
        unsure: &mut bool,
    ) -> Result<Published, StoreError> {
        let repeatable = headers.get(NATS_MESSAGE_ID).is_some();
        loop {
            let before = std::mem::replace(unsure, true);
            let pause = match self.try_publish(subject, headers, payload).await {
                Try::Known(published) => return Ok(published),
                Try::Elsewhere if !before => return Ok(Published::Elsewhere),
                Try::Elsewhere => return Err(unknown()),
                Try::Overtaken { last, .. } if !before => return Ok(Published::WrongLast { last }),
                Try::Overtaken { stream, last } => {
                    match self.stored_before(&stream, subject, headers).await {
                        // Perhaps another process's, under the same id: that is for the caller to see.
                        Ok(Some(stream_seq)) => return Ok(Published::Duplicate { stream_seq }),
                        Ok(None) => return Ok(Published::WrongLast { last }),
                        Err(_) => limits::RETRY_PAUSE,
                    }
                }
                Try::Refused(error) if !before => return Err(error),
                Try::Again => {
                    *unsure = before;
                    limits::IN_PROCESS_PAUSE
                }
                Try::Unknown if !repeatable => return Err(unknown()),
                // A refusal now says nothing about the try before it.
                Try::Refused(_) | Try::Unknown => limits::RETRY_PAUSE,
            };
            self.stats().publish_retries.one();
            sleep(pause).await;
        }
    }

    async fn try_publish(&self, subject: &str, headers: &HeaderMap, payload: &Bytes) -> Try {
        let within = self.options().publish_try;
        let request = self.request(subject.to_owned(), Some(headers.clone()), payload.clone(), within);
        match request.await {
            Err(Silence::TimedOut) => Try::Unknown,
            Err(silence) => Try::Refused(silence.into()),
            Ok(message) => match serde_json::from_slice::<Ack>(&message.payload) {
                Err(_) => Try::Unknown,
                Ok(ack) if ack.is_of_another(headers) => Try::Elsewhere,
                Ok(ack) => judge(ack),
            },
        }
    }

    /// Whether an earlier try of the same publish is what overtook this one: the stream looks at the expected
    /// last sequence before it looks at the id. A compare-and-set that succeeded is the next message of its
    /// subject after the expected one, so one read from the leader tells.
    async fn stored_before(
        &self,
        stream: &str,
        subject: &str,
        headers: &HeaderMap,
    ) -> Result<Option<u64>, StoreError> {
        let expected = headers
            .get(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE)
            .and_then(|last| last.as_str().parse::<u64>().ok())
            .unwrap_or(0);
        let next = self.next_of(stream, subject, expected.saturating_add(1)).await?;
        Ok(next
            .filter(|next| next.headers.get(NATS_MESSAGE_ID) == headers.get(NATS_MESSAGE_ID))
            .map(|next| next.stream_seq))
    }

    fn count(&self, outcome: &Result<Published, StoreError>) {
        let stats = self.stats();
        match outcome {
            Ok(Published::Stored { .. }) => stats.publishes.one(),
            Ok(Published::Duplicate { .. }) => stats.duplicates.one(),
            Ok(Published::WrongLast { .. }) => stats.cas_conflicts.one(),
            Ok(Published::Full) => stats.full.one(),
            Ok(Published::Elsewhere) => stats.elsewhere.one(),
            Err(StoreError::OutcomeUnknown(_)) => stats.unknown_outcomes.one(),
            Err(_) => {}
        }
    }
}

fn unknown() -> StoreError {
    StoreError::OutcomeUnknown("NATS did not confirm the message".into())
}

/// What the answer to a publish means. Only what is known to store nothing counts as a refusal: a store that
/// was closed under a message which the group had agreed on may still come to have it.
fn judge(ack: Ack) -> Try {
    let (stream_seq, stream) = (ack.seq, ack.stream);
    let Some(error) = ack.error else {
        return match (stream_seq, ack.duplicate) {
            (0, _) => Try::Unknown,
            (_, true) => Try::Known(Published::Duplicate { stream_seq }),
            (_, false) => Try::Known(Published::Stored { stream_seq }),
        };
    };
    match error.err_code {
        10071 => {
            let last = error.description.rsplit(' ').next();
            let last = last.and_then(|last| last.parse().ok());
            Try::Overtaken { stream, last }
        }
        10060 => Try::Elsewhere,
        10164 => Try::Overtaken { stream, last: None },
        // Its twin is being stored; the leader has not caught up yet.
        10158 | 10163 => Try::Again,
        10077 if error.description.contains("per subject") => Try::Known(Published::Full),
        10077 if error.description.contains("maximum") => Try::Refused(error.unavailable()),
        10077 | 0 => Try::Unknown,
        _ => Try::Refused(error.unavailable()),
    }
}

#[cfg(test)]
mod tests;
