//! Settled messages leave their streams, later and gently.
//!
//! Not before [`limits::PURGE_DELAY_SECS`]: a restarted server finds the ids it must know among what is stored.
//! Never the last message of a mailbox: its successor needs it. And only so many a second, so that purging does
//! not get in the way of storing.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::limits;
use crate::nats::Nats;
use crate::streams::Place;

/// At `due` all messages below `keep_from` can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    keep_from: u64,
    /// What is noted until then goes with this step.
    open_until: Timestamp,
    due: Timestamp,
}

/// What can go of one mailbox, and when: the next step first.
#[derive(Debug)]
struct Waiting {
    /// In which the places of its messages hold.
    era: u64,
    stream: Arc<str>,
    steps: VecDeque<Step>,
}

/// A step of one mailbox.
#[derive(Debug)]
struct Due {
    subject: Arc<str>,
    stream: Arc<str>,
    era: u64,
    step: Step,
}

#[derive(Debug, Default)]
struct Queue {
    /// By the subject of their messages.
    mailboxes: HashMap<Arc<str>, Waiting>,
    /// When the next step of each is due.
    order: BTreeSet<(Timestamp, Arc<str>)>,
}

/// The queue of what can go.
#[derive(Debug)]
pub(crate) struct Purge {
    nats: Nats,
    queue: Arc<Mutex<Queue>>,
    clock: watch::Sender<Timestamp>,
    worker: AbortHandle,
}

impl Purge {
    /// Starts the worker, which rests until [`Self::tick`] tells it the time.
    pub(crate) fn start(nats: Nats) -> Self {
        let (clock, ticks) = watch::channel(Timestamp::UNIX_EPOCH);
        let queue = Arc::new(Mutex::new(Queue::default()));
        let worker = tokio::spawn(work(nats.clone(), Arc::clone(&queue), ticks)).abort_handle();
        Self {
            nats,
            queue,
            clock,
            worker,
        }
    }

    /// Of the mailbox at `place` everything below `keep_from_stream_seq` (the stream sequence of the message at the
    /// floor, which stays) was settled at `now`, or earlier.
    pub(crate) fn note(&self, place: &Place, keep_from_stream_seq: u64, now: Timestamp) {
        if !locked(&self.queue).add(place, keep_from_stream_seq, now) {
            self.nats.stats().purges_dropped.one();
        }
    }

    /// Tells the worker the time: it purges what is due, in its own time.
    pub(crate) fn tick(&self, now: Timestamp) {
        self.clock.send_replace(now);
    }

    /// Mailboxes that wait to be purged.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        locked(&self.queue).mailboxes.len()
    }
}

impl Drop for Purge {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

fn locked(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // A purge that is queued twice or forgotten does no harm.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    /// Whether there was room.
    fn add(&mut self, place: &Place, keep_from: u64, now: Timestamp) -> bool {
        let full = self.mailboxes.len() >= limits::PURGE_QUEUE_MAX;
        let open_until = now + Duration::from_secs(limits::PURGE_STEP_SECS);
        let step = Step {
            keep_from,
            open_until,
            due: open_until + Duration::from_secs(limits::PURGE_DELAY_SECS),
        };
        // The mailbox has moved: what waited is emptied with the old stream.
        let moved = |waiting: &Waiting| waiting.era < place.era;
        if self.mailboxes.get(&place.entry_subject).is_some_and(moved) {
            self.forget(&place.entry_subject);
        }
        let Some(waiting) = self.mailboxes.get_mut(&place.entry_subject) else {
            if !full {
                self.put(Due {
                    subject: Arc::clone(&place.entry_subject),
                    stream: Arc::clone(&place.stream),
                    era: place.era,
                    step,
                });
            }
            return !full;
        };
        let many = waiting.steps.len() >= limits::PURGE_STEPS_MAX;
        if waiting.era != place.era {
            return true;
        }
        match waiting.steps.back_mut() {
            Some(last) if last.keep_from >= keep_from => {}
            Some(last) if now <= last.open_until => last.keep_from = keep_from,
            // Later than it could be, never sooner.
            Some(last) if many => {
                (last.keep_from, last.due) = (keep_from, step.due);
            }
            _ => waiting.steps.push_back(step),
        }
        true
    }

    /// The furthest step that is due at `now`, of the mailbox that waits longest.
    fn take(&mut self, now: Timestamp) -> Option<Due> {
        while let Some((due, subject)) = self.order.first().cloned() {
            if due > now {
                return None;
            }
            self.order.pop_first();
            let Some(waiting) = self.mailboxes.get_mut(&subject) else {
                continue;
            };
            let mut due = None;
            while waiting.steps.front().is_some_and(|step| step.due <= now) {
                due = waiting.steps.pop_front();
            }
            let (stream, era) = (Arc::clone(&waiting.stream), waiting.era);
            match waiting.steps.front() {
                Some(next) => {
                    self.order.insert((next.due, Arc::clone(&subject)));
                }
                None => {
                    self.mailboxes.remove(&subject);
                }
            }
            if let Some(step) = due {
                return Some(Due {
                    subject,
                    stream,
                    era,
                    step,
                });
            }
        }
        None
    }

    /// Before all other steps of the mailbox, unless it has moved since.
    fn put(&mut self, due: Due) {
        let Due {
            subject,
            stream,
            era,
            step,
        } = due;
        let waiting = self
            .mailboxes
            .entry(Arc::clone(&subject))
            .or_insert_with(|| Waiting {
                era,
                stream,
                steps: VecDeque::new(),
            });
        if waiting.era != era {
            return;
        }
        if let Some(next) = waiting.steps.front() {
            self.order.remove(&(next.due, Arc::clone(&subject)));
        }
        self.order.insert((step.due, subject));
        waiting.steps.push_front(step);
    }

    fn forget(&mut self, subject: &Arc<str>) {
        let forgotten = self.mailboxes.remove(subject);
        if let Some(next) = forgotten.as_ref().and_then(|waiting| waiting.steps.front()) {
            self.order.remove(&(next.due, Arc::clone(subject)));
        }
    }
}

async fn work(nats: Nats, queue: Arc<Mutex<Queue>>, mut ticks: watch::Receiver<Timestamp>) {
    while ticks.changed().await.is_ok() {
        let now = *ticks.borrow_and_update();
        while let Some(due) = next(&queue, now) {
            if let Err(error) = nats.purge(&due.stream, &due.subject, due.step.keep_from).await {
                tracing::debug!(%error, "a mailbox is not purged yet");
                locked(&queue).put(due);
                break;
            }
            // One worker for all streams: never above the bound of any one.
            sleep(Duration::from_secs(1) / limits::PURGES_PER_SEC).await;
        }
    }
}

fn next(queue: &Mutex<Queue>, now: Timestamp) -> Option<Due> {
    locked(queue).take(now)
}

#[cfg(test)]
mod tests;
