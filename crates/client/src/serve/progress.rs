//! How far a call is, told to whoever follows it.

use std::fmt;

use serde_json::Value;
use tokio::sync::mpsc;

/// A word of a handler.
#[derive(Debug)]
pub(super) struct Word {
    /// `progress` or `chunk`.
    pub(super) kind: &'static str,
    pub(super) data: Value,
}

/// Tells who follows a call how far it is. Where nobody does, it tells nobody. Cheap to clone.
///
/// A word is a message of its own, sent once: the hub takes so many of an agent in a second, and one that is too many, or of
/// more than 16 KiB, is missing. The result is not touched by that.
#[derive(Clone, Default)]
pub struct CallProgress(Option<mpsc::Sender<Word>>);

impl CallProgress {
    /// To where words go.
    pub(super) fn to(words: mpsc::Sender<Word>) -> Self {
        Self(Some(words))
    }

    /// Whether somebody follows the call.
    pub fn is_followed(&self) -> bool {
        self.0.is_some()
    }

    /// Says how far the work is; by custom an object with `done` (0 to 1) and `message`. Waits while words before it go out.
    pub async fn progress(&self, data: impl Into<Value>) {
        self.say("progress", data.into()).await;
    }

    /// Gives a part of what the result will be. Waits while words before it go out.
    pub async fn chunk(&self, data: impl Into<Value>) {
        self.say("chunk", data.into()).await;
    }

    async fn say(&self, kind: &'static str, data: Value) {
        if let Some(words) = &self.0 {
            // Nobody waits any more for a call that is over.
            drop(words.send(Word { kind, data }).await);
        }
    }
}

impl fmt::Debug for CallProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallProgress")
            .field("is_followed", &self.is_followed())
            .finish()
    }
}
