//! Requests with many replies: one subscription for all of them.
//!
//! A subscription for each request would have to be told to every server of the cluster, twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::limits;

type Waiting = Arc<Mutex<HashMap<u64, mpsc::Sender<Message>>>>;

/// Hands replies to whoever asked.
#[derive(Debug)]
pub(super) struct Inbox {
    prefix: String,
    waiting: Waiting,
    next: AtomicU64,
    places: Arc<Semaphore>,
    reader: AbortHandle,
}

impl Inbox {
    /// Subscribes.
    pub(super) async fn new(client: &Client) -> Result<Self, async_nats::SubscribeError> {
        let prefix = client.new_inbox();
        let replies = client.subscribe(format!("{prefix}.*")).await?;
        let waiting = Waiting::default();
        let reader = tokio::spawn(hand_out(replies, Arc::clone(&waiting))).abort_handle();
        Ok(Self {
            prefix,
            waiting,
            next: AtomicU64::new(0),
            places: Arc::new(Semaphore::new(limits::BATCHES_MAX)),
            reader,
        })
    }

    /// A place for at most `replies_max` replies; waits while too many are open.
    pub(super) async fn open(&self, replies_max: usize) -> Replies {
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = mpsc::channel(replies_max);
        locked(&self.waiting).insert(id, sender);
        Replies {
            id,
            subject: format!("{}.{id}", self.prefix),
            receiver,
            waiting: Arc::clone(&self.waiting),
            _place: place,
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// The replies to one request, until it is dropped.
#[derive(Debug)]
pub(super) struct Replies {
    id: u64,
    subject: String,
    receiver: mpsc::Receiver<Message>,
    waiting: Waiting,
    _place: Option<OwnedSemaphorePermit>,
}

impl Replies {
    pub(super) fn subject(&self) -> &str {
        &self.subject
    }

    /// `None`: a reply did not fit, or the connection is closed for good.
    pub(super) async fn next(&mut self) -> Option<Message> {
        self.receiver.recv().await
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        locked(&self.waiting).remove(&self.id);
    }
}

fn locked(waiting: &Waiting) -> std::sync::MutexGuard<'_, HashMap<u64, mpsc::Sender<Message>>> {
    // The map is whole between any two of its operations.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn hand_out(mut replies: Subscriber, waiting: Waiting) {
    while let Some(message) = replies.next().await {
        let id = message.subject.rsplit('.').next().and_then(|id| id.parse().ok());
        let Some(id) = id else { continue };
        let mut waiting = locked(&waiting);
        // A reply too many ends the request: it would rather fail than miss one.
        if waiting
            .get(&id)
            .is_some_and(|sender| sender.try_send(message).is_err())
        {
            waiting.remove(&id);
        }
    }
    locked(&waiting).clear();
}
