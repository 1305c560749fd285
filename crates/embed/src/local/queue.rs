//! The calls that wait for a model: queries before passages.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use aip_catalog::{EmbedError, Purpose};
use tokio::sync::oneshot;

use crate::limits::{PASSAGE_CALLS_MAX, QUERY_CALLS_MAX, TEXT_BYTES_MAX};

/// One call: texts, and how far it is.
pub(super) struct Job {
    pub(super) purpose: Purpose,
    pub(super) texts: Vec<String>,
    /// Of the first texts.
    pub(super) vectors: Vec<Vec<f32>>,
    pub(super) reply: oneshot::Sender<Result<Vec<Vec<f32>>, EmbedError>>,
}

impl Job {
    /// A call that has not begun. What no model reads is not copied.
    pub(super) fn new(
        purpose: Purpose,
        texts: &[String],
        reply: oneshot::Sender<Result<Vec<Vec<f32>>, EmbedError>>,
    ) -> Self {
        let bounded = |text: &String| {
            let end = text.floor_char_boundary(TEXT_BYTES_MAX);
            text.get(..end).unwrap_or_default().to_owned()
        };
        Self {
            purpose,
            texts: texts.iter().map(bounded).collect(),
            vectors: Vec::with_capacity(texts.len()),
            reply,
        }
    }
}

/// Two bounded lines of calls. Its lock is held for moments only.
#[derive(Default)]
pub(super) struct Queue {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Default)]
struct Lines {
    queries: VecDeque<Job>,
    passages: VecDeque<Job>,
    is_closed: bool,
}

impl Lines {
    fn line(&mut self, purpose: Purpose) -> &mut VecDeque<Job> {
        match purpose {
            Purpose::Query => &mut self.queries,
            Purpose::Passage => &mut self.passages,
        }
    }
}

impl Queue {
    /// Puts a call at the end of its line.
    ///
    /// # Errors
    ///
    /// [`EmbedError::Unavailable`] when the line is full or the queue closed.
    pub(super) fn push(&self, job: Job) -> Result<(), EmbedError> {
        let calls_max = match job.purpose {
            Purpose::Query => QUERY_CALLS_MAX,
            Purpose::Passage => PASSAGE_CALLS_MAX,
        };
        let mut lines = self.lock();
        if lines.is_closed {
            return Err(EmbedError::Unavailable("it was stopped".to_owned()));
        }
        let line = lines.line(job.purpose);
        line.retain(|waiting| !waiting.reply.is_closed());
        if line.len() >= calls_max {
            return Err(EmbedError::Unavailable(format!("{calls_max} calls wait already")));
        }
        line.push_back(job);
        drop(lines);
        self.changed.notify_one();
        Ok(())
    }

    /// Puts a call that is half done back to the front of its line.
    pub(super) fn put_back(&self, job: Job) {
        let mut lines = self.lock();
        if !lines.is_closed {
            lines.line(job.purpose).push_front(job);
            drop(lines);
            self.changed.notify_one();
        }
    }

    /// The next call whose caller still waits; sleeps until there is one. `None` when the queue is closed.
    pub(super) fn next(&self) -> Option<Job> {
        let mut lines = self.lock();
        while !lines.is_closed {
            let job = match lines.queries.pop_front() {
                None => lines.passages.pop_front(),
                job => job,
            };
            match job {
                Some(job) if job.reply.is_closed() => {}
                Some(job) => return Some(job),
                None => lines = self.changed.wait(lines).unwrap_or_else(PoisonError::into_inner),
            }
        }
        None
    }

    /// Ends it: nobody is served any more, and whoever waits is told.
    pub(super) fn close(&self) {
        *self.lock() = Lines {
            is_closed: true,
            ..Lines::default()
        };
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
