//! A door that leads nowhere: records what would have been sent and answers from a script.

mod exchange;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::{Answer, EgressError, Limits, Outbound};

pub use exchange::{FakeExchange, Told};

/// One recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// The URL as it was given.
    pub url: String,
    /// The content type.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
}

/// What the fake does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Answers with this status and no body.
    Status(u16),
    /// No answer within the time limit; told at once, without waiting.
    TimedOut,
    /// An answer above the size limit.
    TooLarge,
    /// Never answers: the caller waits until it gives up.
    Hangs,
}

/// An [`Outbound`] for tests. The scripted replies are used up in order, the last one for ever.
#[derive(Debug)]
pub struct FakeOutbound {
    replies: Mutex<VecDeque<Reply>>,
    posted: Mutex<Vec<Posted>>,
}

impl FakeOutbound {
    /// A fake that gives these replies; none means 200 for ever.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: Mutex::new(replies.into_iter().collect()),
            posted: Mutex::default(),
        }
    }

    /// Replaces what is left of the script.
    pub fn set(&self, replies: impl IntoIterator<Item = Reply>) {
        *self.replies.lock().unwrap_or_else(PoisonError::into_inner) = replies.into_iter().collect();
    }

    /// Everything that was sent so far.
    pub fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next(&self) -> Reply {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let next = if replies.len() > 1 {
            replies.pop_front()
        } else {
            replies.front().copied()
        };
        next.unwrap_or(Reply::Status(200))
    }
}

#[async_trait]
impl Outbound for FakeOutbound {
    async fn post(
        &self,
        url: &str,
        content_type: &'static str,
        body: Bytes,
        limits: Limits,
    ) -> Result<Answer, EgressError> {
        let posted = Posted {
            url: url.to_owned(),
            content_type,
            body,
        };
        self.posted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(posted);
        match self.next() {
            Reply::Status(status) => Ok(Answer {
                status,
                body: Bytes::new(),
            }),
            Reply::TimedOut => Err(EgressError::TimedOut),
            Reply::TooLarge => Err(EgressError::AnswerTooLarge {
                bytes_max: limits.answer_bytes_max,
            }),
            Reply::Hangs => std::future::pending().await,
        }
    }
}
