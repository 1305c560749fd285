//! One upgraded connection: text frames out within a time, text frames in within a size.

use std::time::Duration;

use actix_web::error::PayloadError;
use actix_ws::{AggregatedMessage, AggregatedMessageStream, MessageStream, ProtocolError, Session};
use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::close::Ending;
use super::inflow::Allowance;
use crate::limits::WRITE_STALL_SECS;

/// What was heard from the agent.
pub(super) enum Heard {
    /// A text frame.
    Text(Bytes),
    /// Something that only tells that the agent is there.
    Alive,
}

/// The two halves of a WebSocket.
pub struct Wire {
    session: Session,
    stream: AggregatedMessageStream,
    allowance: Allowance,
    heard_at: Instant,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire")
            .field("heard_at", &self.heard_at)
            .finish_non_exhaustive()
    }
}

impl Wire {
    /// Takes over a connection that was just upgraded. A frame, and a message made of several, has at most
    /// `frame_bytes_max` bytes.
    pub fn new(
        session: Session,
        stream: MessageStream,
        frame_bytes_max: usize,
        allowance: Allowance,
    ) -> Self {
        let stream = stream.max_frame_size(frame_bytes_max).aggregate_continuations();
        let stream = stream.max_continuation_size(frame_bytes_max);
        Self {
            session,
            stream,
            allowance,
            heard_at: Instant::now(),
        }
    }

    /// The agent has signed in: it may say as much as it likes, in frames of the allowed size.
    pub(super) fn welcome(&self) {
        self.allowance.lift();
    }

    /// When something was heard last.
    pub(super) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// The agent was not listened to for a while; that is no silence of its own.
    pub(super) fn excuse(&mut self) {
        self.heard_at = Instant::now();
    }

    /// Sends a text frame. An agent that does not take anything for a while is given up.
    pub(super) async fn send(&mut self, text: String) -> Result<(), Ending> {
        written(self.session.text(text)).await
    }

    /// Asks whether the agent is there.
    pub(super) async fn ping(&mut self) -> Result<(), Ending> {
        written(self.session.ping(b"")).await
    }

    /// Waits for the next frame. Nothing is lost when the future is dropped.
    pub(super) async fn hear(&mut self) -> Result<Heard, Ending> {
        let message = match self.stream.recv().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(ending(&error)),
            None => return Err(Ending::Gone),
        };
        self.heard_at = Instant::now();
        match message {
            AggregatedMessage::Text(text) => Ok(Heard::Text(text.into_bytes())),
            AggregatedMessage::Ping(payload) => {
                written(self.session.pong(&payload)).await?;
                Ok(Heard::Alive)
            }
            AggregatedMessage::Pong(_) => Ok(Heard::Alive),
            AggregatedMessage::Binary(_) => Err(Ending::BadFrame),
            AggregatedMessage::Close(_) => {
                // The answer that RFC 6455 asks for.
                let _closed = timeout(Duration::from_secs(1), self.session.clone().close(None)).await;
                Err(Ending::Gone)
            }
        }
    }

    /// Says why and closes.
    pub(super) async fn close(self: Box<Self>, ending: Ending) {
        if let Some(reason) = ending.frame() {
            // Nobody may be listening any more, which is what we are about to do too.
            let _closed = written(self.session.close(Some(reason))).await;
        }
    }
}

async fn written(sending: impl Future<Output = Result<(), actix_ws::Closed>>) -> Result<(), Ending> {
    match timeout(Duration::from_secs(WRITE_STALL_SECS.into()), sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(actix_ws::Closed)) | Err(_) => Err(Ending::Gone),
    }
}

fn ending(error: &ProtocolError) -> Ending {
    let payload = match error {
        ProtocolError::Io(error) => error.get_ref().and_then(|cause| cause.downcast_ref()),
        _ => None,
    };
    match (error, payload) {
        (ProtocolError::Overflow, _) | (_, Some(PayloadError::Overflow)) => Ending::FrameTooLarge,
        // The connection broke.
        (_, Some(_)) => Ending::Gone,
        // The stream has no other word for a message of too many parts.
        (ProtocolError::Io(error), _) if error.kind() == std::io::ErrorKind::Other => Ending::FrameTooLarge,
        _ => Ending::BadFrame,
    }
}
