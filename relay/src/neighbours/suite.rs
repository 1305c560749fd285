//! The contract of neighbours, as plain async functions: two processes of one hub, over every implementation, each time
//! fresh ones. `sessions` holds what follows from it for whole sessions.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a broken contract is to panic"
)]

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Ears, Entry, Neighbours, Signal};
use crate::mailbox::MailboxId;

mod claims;
mod entries;
pub mod sessions;
mod signals;

pub use self::claims::*;
pub use self::entries::*;
pub use self::signals::*;

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Remembers what it hears.
#[derive(Debug, Default)]
pub struct Recorder {
    heard: Mutex<Vec<(MailboxId, Signal)>>,
    news: Notify,
    reunions: Mutex<usize>,
}

impl Recorder {
    /// Waits until so many signals about a mailbox were heard; returns them all.
    pub async fn heard(&self, mailbox: &MailboxId, count: usize) -> Vec<Signal> {
        let wait = async {
            loop {
                let news = self.news.notified();
                let heard = self.about(mailbox);
                if heard.len() >= count {
                    return heard;
                }
                news.await;
            }
        };
        let heard = timeout(PATIENCE, wait).await;
        heard.unwrap_or_else(|_| panic!("of {count} only {:?} were heard", self.about(mailbox)))
    }

    /// What was heard about a mailbox so far.
    pub fn about(&self, mailbox: &MailboxId) -> Vec<Signal> {
        let heard = self.heard.lock().unwrap();
        let own = heard.iter().filter(|(about, _)| about == mailbox);
        own.map(|(_, signal)| signal.clone()).collect()
    }

    /// How often signals may have been lost.
    pub fn reunions(&self) -> usize {
        *self.reunions.lock().unwrap()
    }
}

#[async_trait]
impl Ears for Recorder {
    fn hear(&self, mailbox: &MailboxId, signal: Signal, _now: Timestamp) {
        self.heard.lock().unwrap().push((*mailbox, signal));
        self.news.notify_waiters();
    }

    async fn reunite(&self, _now: Timestamp) {
        *self.reunions.lock().unwrap() += 1;
    }
}

/// One of the processes.
#[derive(Debug)]
pub struct Side {
    /// Under test.
    pub neighbours: Arc<dyn Neighbours>,
    /// What it lets hear.
    pub ears: Arc<Recorder>,
}

/// Two processes of a hub.
#[derive(Debug)]
pub struct Context {
    /// One.
    pub one: Side,
    /// The other.
    pub other: Side,
    _ground: Box<dyn Any + Send + Sync>,
}

impl Context {
    /// `ground` is what has to live as long as the two.
    pub fn new(one: Side, other: Side, ground: impl Any + Send + Sync) -> Self {
        Self {
            one,
            other,
            _ground: Box::new(ground),
        }
    }

    /// What the other has heard up to something that one tells it last about `mailbox`.
    async fn heard_by_now(&self, mailbox: &MailboxId) -> Vec<Signal> {
        // Like nothing that a test tells.
        let last = Signal::Offered { seq: u64::MAX - 1 };
        let of_these = |heard: &[Signal]| heard.iter().filter(|signal| **signal == last).count();
        let before = of_these(&self.other.ears.about(mailbox));
        self.one.neighbours.tell(mailbox, last.clone());
        let mut count = 1;
        loop {
            let mut heard = self.other.ears.heard(mailbox, count).await;
            if of_these(&heard) > before {
                heard.retain(|signal| *signal != last);
                return heard;
            }
            count = heard.len() + 1;
        }
    }
}

fn mailbox(name: &str) -> MailboxId {
    MailboxId::of(&did(name))
}

fn did(name: &str) -> Did {
    Did::parse(&format!("did:aip:hub.example:{name}")).unwrap()
}

fn generation(entry: Entry) -> u64 {
    match entry {
        Entry::In { generation } => generation,
        Entry::Wait(pause) => panic!("a newcomer is to wait for {pause:?}"),
    }
}
