//! What a provider says while it works, for whoever follows the call.
//!
//! Each call has a `Track`: where it stands, and a bounded window of the words that were told. Who follows takes them at a
//! pace of its own; what it is too slow for it misses, and sees that by the numbers. So neither an endless provider nor a
//! reader that never reads costs more than the window, and nobody who follows keeps a call waiting.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::invoke::Invoked;
use crate::limits::{
    ENDED_CALL_BYTES, PROGRESS_BYTES_MAX, PROGRESS_WINDOW_BYTES, PROGRESS_WINDOW_WORDS, PROGRESS_WORDS_MAX,
    TOLD_WORD_BYTES, WORD_BYTES_MAX,
};

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// How far the work is.
    Progress,
    /// A part of what the result will be. What is paid for is the result.
    Chunk,
}

impl WordKind {
    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Progress => "progress",
            Self::Chunk => "chunk",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Progress, Self::Chunk]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// One word of a provider at work: a stranger's, as everything of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// From 1; a gap says that words were missed.
    pub number: u64,
    /// What it is.
    pub kind: WordKind,
    /// JSON, on one line, of [`WORD_BYTES_MAX`] bytes at most.
    pub data: Bytes,
}

/// Where the words of one call go. Cheap to clone.
#[derive(Clone)]
pub struct ProgressSink(pub(crate) Arc<Track>);

impl ProgressSink {
    /// Tells a word. It never waits. `false`: it is too long, or too much was told; the call goes on without it.
    pub fn tell(&self, kind: WordKind, data: &Value) -> bool {
        self.0.tell(kind, data.to_string())
    }

    /// Whether another word can be told.
    pub fn has_room(&self) -> bool {
        self.0.state().has_room()
    }
}

impl ProgressSink {
    /// One of no call: for who calls providers without a market, as tests do.
    pub fn alone() -> Self {
        Self(Track::new(Uuid::nil(), true))
    }

    /// The last words that it was told.
    pub fn told(&self) -> Vec<Word> {
        self.0.state().window.iter().cloned().collect()
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressSink").field(&self.0.id).finish()
    }
}

/// Where a call stands.
#[derive(Debug, Clone)]
enum Stage {
    /// It was not begun.
    Waiting,
    /// It is under way.
    UnderWay,
    /// It has ended.
    Ended(Invoked),
    /// Nobody here knows any more.
    Lost,
}

/// One call, as those who follow it see it.
pub(crate) struct Track {
    pub(crate) id: Uuid,
    /// Whether somebody follows from the beginning: then the provider is asked to say how far it is.
    pub(crate) is_followed: bool,
    /// The work is not wanted any more.
    pub(crate) cancelled: CancellationToken,
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

struct State {
    stage: Stage,
    window: VecDeque<Word>,
    window_bytes: usize,
    /// Words that were told.
    told: u64,
    told_bytes: usize,
}

impl State {
    fn has_room(&self) -> bool {
        self.told < PROGRESS_WORDS_MAX && self.told_bytes < PROGRESS_BYTES_MAX
    }

    fn push(&mut self, kind: WordKind, data: Bytes) {
        self.told += 1;
        self.told_bytes += data.len();
        self.window_bytes += data.len();
        self.window.push_back(Word {
            number: self.told,
            kind,
            data,
        });
        while self.window.len() > PROGRESS_WINDOW_WORDS || self.window_bytes > PROGRESS_WINDOW_BYTES {
            let Some(gone) = self.window.pop_front() else {
                return;
            };
            self.window_bytes = self.window_bytes.saturating_sub(gone.data.len());
        }
    }
}

impl Track {
    /// Of a call that was not begun.
    pub(crate) fn new(id: Uuid, is_followed: bool) -> Arc<Self> {
        Arc::new(Self {
            id,
            is_followed,
            cancelled: CancellationToken::new(),
            state: Mutex::new(State {
                stage: Stage::Waiting,
                window: VecDeque::new(),
                window_bytes: 0,
                told: 0,
                told_bytes: 0,
            }),
            changes: watch::Sender::new(()),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, kind: WordKind, data: String) -> bool {
        let is_told = {
            let mut state = self.state();
            let is_told = data.len() <= WORD_BYTES_MAX && state.has_room();
            if is_told {
                state.push(kind, data.into());
            }
            is_told
        };
        self.changes.send_replace(());
        is_told
    }

    fn enter(&self, next: Stage) {
        {
            let mut state = self.state();
            // The first end counts.
            if !matches!(state.stage, Stage::Ended(_)) {
                state.stage = next;
            }
        }
        self.changes.send_replace(());
    }

    /// The call is under way.
    pub(crate) fn begin(&self) {
        self.enter(Stage::UnderWay);
    }

    /// The call has ended so.
    pub(crate) fn end(&self, invoked: Invoked) {
        self.enter(Stage::Ended(invoked));
    }

    /// Nobody ends it any more.
    pub(crate) fn lose(&self) {
        self.enter(Stage::Lost);
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<Invoked> {
        match &self.state().stage {
            Stage::Ended(invoked) => Some(invoked.clone()),
            Stage::Waiting | Stage::UnderWay | Stage::Lost => None,
        }
    }

    /// How many words were told, and the last one of them.
    pub(crate) fn latest(&self) -> Option<Word> {
        self.state().window.back().cloned()
    }

    /// What is kept of it, in bytes, as an estimate: many short words take more than their letters.
    pub(crate) fn weight(&self) -> usize {
        let state = self.state();
        let answer = match &state.stage {
            Stage::Ended(invoked) => {
                let headers = invoked.headers.iter().map(|(_, value)| value.len());
                invoked.body.len() + headers.sum::<usize>()
            }
            Stage::Waiting | Stage::UnderWay | Stage::Lost => 0,
        };
        state.window_bytes + state.window.len() * TOLD_WORD_BYTES + answer + ENDED_CALL_BYTES
    }

    /// Waits until it is under way, or beyond that.
    pub(crate) async fn begun(&self) {
        let mut changes = self.changes.subscribe();
        while matches!(self.state().stage, Stage::Waiting) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Follows it, from behind the word of this number.
    pub(crate) fn follow(self: &Arc<Self>, after: u64) -> Follower {
        Follower {
            changes: self.changes.subscribe(),
            track: Arc::clone(self),
            after,
        }
    }
}

impl fmt::Debug for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Track")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// What comes next in a call that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// A word.
    Word(Word),
    /// Its end.
    Ended(Invoked),
    /// Nobody here knows any more: the store does, in time.
    Lost,
}

/// Somebody who follows a call.
#[derive(Debug)]
pub(crate) struct Follower {
    track: Arc<Track>,
    after: u64,
    changes: watch::Receiver<()>,
}

impl Follower {
    /// What comes next: words before the end. May be dropped at any moment, and nothing is missed by that.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            self.changes.borrow_and_update();
            if let Some(next) = self.ready() {
                return next;
            }
            // The track holds the sender.
            if self.changes.changed().await.is_err() {
                return Next::Lost;
            }
        }
    }

    /// Waits for the end, whatever is told before it.
    pub(crate) async fn end(&mut self) -> Option<Invoked> {
        loop {
            match self.next().await {
                Next::Word(_) => {}
                Next::Ended(invoked) => return Some(invoked),
                Next::Lost => return None,
            }
        }
    }

    fn ready(&mut self) -> Option<Next> {
        let state = self.track.state();
        let word = state.window.iter().find(|word| word.number > self.after);
        if let Some(word) = word {
            self.after = word.number;
            return Some(Next::Word(word.clone()));
        }
        match &state.stage {
            Stage::Waiting | Stage::UnderWay => None,
            Stage::Ended(invoked) => Some(Next::Ended(invoked.clone())),
            Stage::Lost => Some(Next::Lost),
        }
    }
}

#[cfg(test)]
mod tests;
