//! The handle: everything that this room asks of a NATS server goes through here.
//!
//! Each request has a time-out of its own. The library's publish time-out is not relied on, and no answer is
//! taken for a yes: what is not known to be stored is reported as unknown, never as stored.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aip_relay::mailbox::StoreError;
use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::jetstream;
use async_nats::{Client, HeaderMap, Message, Request};
use bytes::Bytes;
use tokio::sync::watch;

pub use self::connect::ConnectError;
use self::inbox::Inbox;
pub(crate) use self::publish::{Published, expecting, expecting_in, named};
pub(crate) use self::read::{Batch, STREAM_SOURCE, Stored};
use crate::config::Options;
use crate::stats::Stats;

mod admin;
mod answer;
mod connect;
mod inbox;
mod probe;
mod publish;
mod read;

/// A connection to the servers, with JetStream on top. Clones share it.
#[derive(Clone)]
pub(crate) struct Nats(Arc<Inner>);

struct Inner {
    client: Client,
    context: jetstream::Context,
    /// `$JS.API`, or the one of the domain.
    api: Box<str>,
    options: Options,
    stats: Arc<Stats>,
    inbox: Inbox,
    disturbed: watch::Receiver<u64>,
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats")
            .field("options", &self.0.options)
            .field("connected", &self.connected())
            .finish_non_exhaustive()
    }
}

/// Why a request brought no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// It was not sent.
    NotConnected,
    /// It cannot be sent: larger than the server takes, or no valid subject.
    Unsendable,
    /// Nobody listens on the subject: no such stream, or it has no leader.
    NoResponders,
    /// Anything may have happened.
    TimedOut,
}

impl From<Silence> for StoreError {
    /// For requests that change nothing.
    fn from(silence: Silence) -> Self {
        Self::Unavailable(
            match silence {
                Silence::NotConnected => "not connected to NATS",
                Silence::Unsendable => "larger than the NATS server takes",
                Silence::NoResponders => "no JetStream server answers for the stream",
                Silence::TimedOut => "NATS did not answer in time",
            }
            .into(),
        )
    }
}

impl Nats {
    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) fn stats(&self) -> &Arc<Stats> {
        &self.0.stats
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    /// For the care of streams; entries do not go through it.
    pub(crate) fn jetstream(&self) -> &jetstream::Context {
        &self.0.context
    }

    pub(crate) fn connected(&self) -> bool {
        self.0.client.connection_state() == State::Connected
    }

    /// Changes whenever something sent to this process may have been lost: after a reconnect, and when a
    /// subscription was too slow.
    pub(crate) fn disturbed(&self) -> watch::Receiver<u64> {
        self.0.disturbed.clone()
    }

    /// The subject of a call of the JetStream API, such as `STREAM.MSG.GET.x`.
    pub(crate) fn api(&self, call: &str) -> String {
        format!("{}.{call}", self.0.api)
    }

    /// Asks once.
    pub(crate) async fn request(
        &self,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Bytes,
        within: Duration,
    ) -> Result<Message, Silence> {
        if !self.connected() {
            return Err(Silence::NotConnected);
        }
        let mut request = Request::new().payload(payload).timeout(None);
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        // The library's own time-out does not cover the wait for a place in the queue.
        let answer = tokio::time::timeout(within, self.0.client.send_request(subject, request));
        let Ok(answer) = answer.await else {
            self.0.stats.timeouts.one();
            self.0.stats.unanswered.one();
            return Err(Silence::TimedOut);
        };
        let silence = match answer {
            Ok(message) => return Ok(message),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => Silence::NoResponders,
                RequestErrorKind::TimedOut | RequestErrorKind::Other => Silence::TimedOut,
                RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                    return Err(Silence::Unsendable);
                }
            },
        };
        self.0.stats.unanswered.one();
        Err(silence)
    }
}

#[cfg(test)]
mod tests;
