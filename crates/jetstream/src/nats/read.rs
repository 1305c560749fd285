//! Reading from streams: from any copy (Direct Get, which may lag), or from the leader (which does not).

use std::time::Duration;

use aip_relay::mailbox::StoreError;
use async_nats::header::{NATS_LAST_SEQUENCE, NATS_SEQUENCE};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::RawMessage;
use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::answer::{self, Answer};
use super::inbox::Replies;
use super::{Nats, Silence};
use crate::limits;

/// `Nats-Num-Pending`: what a batch leaves unread.
const NUM_PENDING: &str = "Nats-Num-Pending";
/// Which message of which stream was copied.
pub(crate) const STREAM_SOURCE: &str = "Nats-Stream-Source";
/// Error code of a message that is not there.
const NO_MESSAGE: u64 = 10037;

/// A message as a stream holds it.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) stream_seq: u64,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl Stored {
    /// Where it was first, if the servers copied it from another stream: its place there.
    pub(crate) fn origin(&self) -> Option<u64> {
        // The name of the stream, the place, and what was asked for.
        let source = self.headers.get(STREAM_SOURCE)?;
        source.as_str().split(' ').nth(1)?.parse().ok()
    }
}

/// Messages in stream order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) messages: Vec<Stored>,
    /// The copy that answered has more.
    pub(crate) more: bool,
}

#[derive(Serialize)]
struct BatchRequest<'a> {
    next_by_subj: &'a str,
    seq: u64,
    batch: usize,
    max_bytes: usize,
}

#[derive(Deserialize)]
struct Got {
    message: RawMessage,
}

#[derive(Deserialize)]
struct Purged {
    purged: u64,
}

impl Nats {
    /// The last message of `subject`, from the stream's leader: what was stored before is seen.
    pub(crate) async fn last_of(&self, stream: &str, subject: &str) -> Result<Option<Stored>, StoreError> {
        self.get(stream, &serde_json::json!({ "last_by_subj": subject }))
            .await
    }

    /// The first message of `subject` from `from_stream_seq` on, from the stream's leader.
    pub(crate) async fn next_of(
        &self,
        stream: &str,
        subject: &str,
        from_stream_seq: u64,
    ) -> Result<Option<Stored>, StoreError> {
        self.get(
            stream,
            &serde_json::json!({ "next_by_subj": subject, "seq": from_stream_seq }),
        )
        .await
    }

    /// The last message of `subject`, from any copy of the stream: it may be an older one, or missing.
    pub(crate) async fn last_direct(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<Stored>, StoreError> {
        self.direct(format!("DIRECT.GET.{stream}.{subject}"), Bytes::new())
            .await
    }

    /// The message at `stream_seq`: from any copy, and when that has none from the leader.
    pub(crate) async fn at(&self, stream: &str, stream_seq: u64) -> Result<Option<Stored>, StoreError> {
        let body = serde_json::json!({ "seq": stream_seq });
        let found = self
            .direct(format!("DIRECT.GET.{stream}"), body.to_string().into())
            .await?;
        match found {
            Some(found) => Ok(Some(found)),
            None => self.get(stream, &body).await,
        }
    }

    /// Messages that match `filter`, from stream sequence `from_stream_seq` on, from any copy: the newest may be
    /// missing, but nothing before the last one returned.
    ///
    /// At most `max_messages`, and not more after `max_bytes` are reached (bounded by
    /// [`limits::BATCH_MESSAGES_MAX`] and [`limits::BATCH_BYTES_MAX`]).
    pub(crate) async fn batch(
        &self,
        stream: &str,
        filter: &str,
        from_stream_seq: u64,
        max_messages: usize,
        max_bytes: usize,
    ) -> Result<Batch, StoreError> {
        let request = BatchRequest {
            next_by_subj: filter,
            seq: from_stream_seq.max(1),
            batch: max_messages.clamp(1, limits::BATCH_MESSAGES_MAX),
            max_bytes: max_bytes.clamp(1, limits::BATCH_BYTES_MAX),
        };
        self.stats().batch_gets.one();
        if !self.connected() {
            return Err(Silence::NotConnected.into());
        }
        let batch = timeout(self.options().read_timeout, self.read_batch(stream, &request)).await;
        let batch = batch.unwrap_or_else(|_late| {
            self.stats().timeouts.one();
            Err(Silence::TimedOut.into())
        });
        if matches!(batch, Err(StoreError::Unavailable(_))) {
            self.stats().unanswered.one();
        }
        batch
    }

    async fn read_batch(&self, stream: &str, request: &BatchRequest<'_>) -> Result<Batch, StoreError> {
        let body = serde_json::to_vec(request)
            .map_err(|error| StoreError::Corrupt(format!("a request cannot be written: {error}").into()))?;
        // One more for the end of the batch.
        let mut replies = self.0.inbox.open(request.batch + 1).await;
        let subject = self.api(&format!("DIRECT.GET.{stream}"));
        self.client()
            .publish_with_reply(subject, replies.subject().to_owned(), body.into())
            .await
            .map_err(|_closed| StoreError::from(Silence::NotConnected))?;
        collect(&mut replies, request.batch).await
    }

    /// Removes the messages of `subject` with a lower stream sequence than `below_stream_seq`; tells how many.
    pub(crate) async fn purge(
        &self,
        stream: &str,
        subject: &str,
        below_stream_seq: u64,
    ) -> Result<u64, StoreError> {
        let body = serde_json::json!({ "filter": subject, "seq": below_stream_seq });
        let call = self.api(&format!("STREAM.PURGE.{stream}"));
        let message = self
            .request(call, None, body.to_string().into(), self.options().read_timeout)
            .await?;
        match answer::read::<Purged>(&message.payload)? {
            Answer::Done(Purged { purged }) => {
                self.stats().purged.add(purged);
                Ok(purged)
            }
            Answer::Refused(error) => Err(error.unavailable()),
        }
    }

    async fn get(&self, stream: &str, body: &serde_json::Value) -> Result<Option<Stored>, StoreError> {
        self.stats().leader_gets.one();
        let call = self.api(&format!("STREAM.MSG.GET.{stream}"));
        let message = self
            .request(call, None, body.to_string().into(), self.read_timeout())
            .await?;
        match answer::read::<Got>(&message.payload)? {
            Answer::Done(Got { message }) => unpacked(message).map(Some),
            Answer::Refused(error) if error.err_code == NO_MESSAGE => Ok(None),
            Answer::Refused(error) => Err(error.unavailable()),
        }
    }

    async fn direct(&self, call: String, body: Bytes) -> Result<Option<Stored>, StoreError> {
        self.stats().direct_gets.one();
        let message = self
            .request(self.api(&call), None, body, self.read_timeout())
            .await?;
        match message.status.map(|status| status.as_u16()) {
            None => stored(message).map(Some),
            Some(404) => Ok(None),
            Some(status) => Err(refused(status, &message)),
        }
    }

    fn read_timeout(&self) -> Duration {
        self.options().read_timeout
    }
}

/// Reads the replies of a batch to its end. Each message names the one before it, so a lost one is noticed.
async fn collect(replies: &mut Replies, batch_max: usize) -> Result<Batch, StoreError> {
    let mut batch = Batch::default();
    let mut last = 0;
    while let Some(message) = replies.next().await {
        match message.status.map(|status| status.as_u16()) {
            // The end of the batch.
            Some(204) => {
                batch.more = number(message.headers.as_ref(), NUM_PENDING).unwrap_or(0) > 0;
                let whole = number(message.headers.as_ref(), NATS_LAST_SEQUENCE.as_ref())
                    .is_none_or(|end| end == last);
                return if whole { Ok(batch) } else { Err(gap()) };
            }
            // Nothing matches.
            Some(404) => return Ok(batch),
            Some(status) => return Err(refused(status, &message)),
            None if batch.messages.len() >= batch_max => return Err(gap()),
            None => {
                if number(message.headers.as_ref(), NATS_LAST_SEQUENCE.as_ref())
                    .is_some_and(|before| before != last)
                {
                    return Err(gap());
                }
                let message = stored(message)?;
                last = message.stream_seq;
                batch.messages.push(message);
            }
        }
    }
    Err(gap())
}

fn gap() -> StoreError {
    StoreError::Unavailable("a reply of NATS was lost".into())
}

fn refused(status: u16, message: &Message) -> StoreError {
    if status == 503 {
        return Silence::NoResponders.into();
    }
    let why = message.description.as_deref().unwrap_or_default();
    StoreError::Unavailable(format!("NATS refuses a read: {status} {why}").into())
}

fn number(headers: Option<&HeaderMap>, name: &str) -> Option<u64> {
    headers?.get(name)?.as_str().parse().ok()
}

/// A message that came by Direct Get: its place is a header.
fn stored(message: Message) -> Result<Stored, StoreError> {
    let stream_seq = number(message.headers.as_ref(), NATS_SEQUENCE.as_ref()).ok_or(StoreError::Corrupt(
        "a message of a Direct Get has no place".into(),
    ))?;
    Ok(Stored {
        stream_seq,
        headers: message.headers.unwrap_or_default(),
        payload: message.payload,
    })
}

/// A message that came from the leader: base64 in JSON.
fn unpacked(message: RawMessage) -> Result<Stored, StoreError> {
    let message = StreamMessage::try_from(message).map_err(|error| {
        StoreError::Corrupt(format!("a message of a stream is unreadable: {error}").into())
    })?;
    Ok(Stored {
        stream_seq: message.sequence,
        headers: message.headers,
        payload: message.payload,
    })
}
