//! What the contract means for whole sessions: two processes over one store.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::timeout;
use uuid::Uuid;

use super::{PATIENCE, did, mailbox};
use crate::inbox::{Inbox, Item, Join, Link, Output, Reader};
use crate::mailbox::memory::MemoryMailboxes;
use crate::mailbox::{Append, AppendOutcome, Epoch, Live, MailboxId, MailboxStore, Quota, Route};
use crate::neighbours::{Ears, Neighbours};
use crate::presence::{CloseReason, Presence, StatusUpdate};
use crate::session::SessionId;

mod news;
mod sharing;
mod takeovers;

pub use self::news::*;
pub use self::sharing::*;
pub use self::takeovers::*;

/// Who is to hear of new messages of whom.
type Watching = Mutex<HashMap<MailboxId, HashSet<usize>>>;

/// News of what the processes store.
#[derive(Debug)]
struct Watch {
    watching: Arc<Watching>,
    number: usize,
}

#[async_trait]
impl Live for Watch {
    async fn watch(&self, mailbox: &MailboxId) {
        tokio::task::yield_now().await;
        let mut watching = self.watching.lock().unwrap();
        watching.entry(*mailbox).or_default().insert(self.number);
    }

    fn unwatch(&self, mailbox: &MailboxId) {
        let mut watching = self.watching.lock().unwrap();
        if let Some(processes) = watching.get_mut(mailbox) {
            processes.remove(&self.number);
            if processes.is_empty() {
                watching.remove(mailbox);
            }
        }
    }
}

/// One process.
#[derive(Debug)]
pub struct Process {
    /// Who is connected.
    pub presence: Arc<Presence>,
    /// Where agents fetch.
    pub inbox: Inbox,
}

/// Two processes of a hub, and the store that they share.
#[derive(Debug)]
pub struct Town {
    /// The processes.
    pub processes: [Process; 2],
    store: Arc<dyn MailboxStore>,
    watching: Arc<Watching>,
    clock: Arc<ManualClock>,
    _ground: Box<dyn Any + Send + Sync>,
}

impl Town {
    /// `listen` connects the ears of a process to its neighbours; `ground` is what has to live as long as the town.
    pub fn new(
        neighbours: [Arc<dyn Neighbours>; 2],
        listen: impl Fn(usize, Weak<dyn Ears>, Arc<dyn Clock>),
        ground: impl Any + Send + Sync,
    ) -> Self {
        let store: Arc<dyn MailboxStore> = Arc::new(MemoryMailboxes::new(Epoch::parse("e1").unwrap()));
        let start = Timestamp::parse("2026-11-29T20:15:30Z").unwrap();
        let clock = Arc::new(ManualClock::new(start));
        let watching = Arc::<Watching>::default();
        let mut number = 0;
        let processes = neighbours.map(|neighbours| {
            let live = Watch {
                watching: Arc::clone(&watching),
                number,
            };
            let presence = Presence::among(neighbours, Arc::new(live));
            let ears: Arc<dyn Ears> = Arc::<Presence>::clone(&presence);
            listen(number, Arc::downgrade(&ears), Arc::<ManualClock>::clone(&clock));
            number += 1;
            let inbox = Inbox::new(
                Arc::clone(&store),
                Arc::clone(&presence),
                Arc::<ManualClock>::clone(&clock),
            );
            Process { presence, inbox }
        });
        Self {
            processes,
            store,
            watching,
            clock,
            _ground: Box::new(ground),
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Alice writes message `n` to bob at some process; returns its sequence number.
    async fn send(&self, n: u64) -> u64 {
        let now = self.now();
        let mut key = [0; 16];
        key[..8].copy_from_slice(&n.to_be_bytes());
        let append = Append {
            recipient: did("bob"),
            sender: did("alice"),
            id: Uuid::from_u64_pair(7, n),
            dedup_key: key,
            digest: [7; 32],
            remember_until: now + Duration::from_mins(15),
            accepted_at: now,
            expires_at: now + Duration::from_hours(24),
            wire: Bytes::from(format!("{{\"n\":{n}}}")),
            route: Route::Mailbox,
            quota: Quota {
                sender_messages: 1_000,
                ..Quota::default()
            },
        };
        let Ok(AppendOutcome::Stored { seq: Some(seq) }) = self.store.append(append).await else {
            panic!("message {n} was not stored")
        };
        let watching = self.watching.lock().unwrap().get(&mailbox("bob")).cloned();
        for number in watching.unwrap_or_default() {
            self.processes[number].presence.wake(&mailbox("bob"), seq, now);
        }
        seq
    }

    /// Runs something while time passes.
    async fn in_time<T>(&self, running: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                self.clock.advance(Duration::from_millis(10));
            }
        };
        tokio::select! {
            outcome = running => outcome,
            () = passing => unreachable!("time does not end"),
        }
    }

    async fn join(&self, process: usize, name: &str, session: u64, share: bool, credit: u32) -> Link {
        let session = SessionId::from_random(session);
        let join = Join {
            session,
            share,
            credit,
        };
        let joined = self.processes[process].inbox.join(did(name), join);
        timeout(PATIENCE, joined).await.unwrap().unwrap().0
    }

    async fn read(&self, process: usize, session: u64) -> Reader {
        let session = SessionId::from_random(session);
        let reader = self.processes[process].inbox.reader(did("bob"), None, session);
        reader.await.unwrap().unwrap()
    }

    /// That nothing is left of anybody.
    fn assert_empty(&self) {
        for process in &self.processes {
            let counts = process.presence.counts();
            assert_eq!((counts.agents, counts.sessions, counts.readers), (0, 0, 0));
        }
        assert!(self.watching.lock().unwrap().is_empty());
    }
}

/// The next output, which must come.
async fn next(link: &mut Link) -> Output {
    timeout(PATIENCE, link.next()).await.unwrap()
}

async fn message(link: &mut Link) -> Item {
    match next(link).await {
        Output::Message(item) => item,
        other => panic!("no message but {other:?}"),
    }
}

async fn status(link: &mut Link) -> Arc<StatusUpdate> {
    match next(link).await {
        Output::Status(update) => update,
        other => panic!("no status but {other:?}"),
    }
}

async fn closed(link: &mut Link) -> CloseReason {
    loop {
        match next(link).await {
            Output::Close(reason) => return reason,
            Output::Message(_) => {}
            other => panic!("no end but {other:?}"),
        }
    }
}
