//! Who is connected: one slot for each agent that has a session or a reader, removed with the last of them.
//!
//! A slot holds the agent's [`Delivery`] behind a lock that is never held across an await, and a line to each of its
//! sessions. A line carries no messages: it wakes the session, which then asks the machine what to do; so nothing
//! is lost when a session is slow, and nothing piles up. Only status frames queue here, in a bounded queue that drops
//! them when it is full. Everything is keyed by session, so the late end of a replaced socket ends only itself.
//!
//! Where the hub has several processes, what happens here is told to the others ([`Neighbours`]) and what happened
//! there is heard ([`Ears`](crate::neighbours::Ears)); a slot's first user makes the agent known to them, its last one ends that.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use dashmap::DashMap;
use tokio::sync::Notify;
use uuid::Uuid;

pub(crate) use self::attached::{Attached, Joining, Reading};
use self::slot::Slot;
use crate::limits::STATUS_QUEUE_MAX;
use crate::mailbox::{Live, MailboxId, Settled, Status};
use crate::neighbours::{Alone, Neighbours, Signal};
use crate::session::{Delivery, Effect, Elsewhere, Event, SessionId};

mod attached;
mod elsewhere;
mod slot;

/// Why the hub ends a session. The hub turns it into a close code (spec §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// 4409: a newer connection of the same agent took over.
    Replaced,
    /// 4401: the agent, its key or its token is no longer good.
    Unauthenticated,
    /// 1001: the hub goes away.
    GoingAway,
}

/// News of a message for its sender: the frame `status` of spec §5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The envelope's id.
    pub id: Uuid,
    /// Its recipient.
    pub to: Did,
    /// What became of it.
    pub status: Status,
    /// Why, where there is a why.
    pub code: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// How many there are, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PresenceCounts {
    /// Agents with a session or a reader.
    pub agents: u64,
    /// Sessions that have joined.
    pub sessions: u64,
    /// Long polls and event streams.
    pub readers: u64,
    /// Sessions that were replaced, since the start.
    pub takeovers: u64,
    /// Status frames dropped since their session was slow, since the start.
    pub statuses_dropped: u64,
}

/// The counters behind [`PresenceCounts`].
#[derive(Debug, Default)]
struct Counters {
    sessions: AtomicU64,
    readers: AtomicU64,
    takeovers: AtomicU64,
    statuses_dropped: AtomicU64,
}

/// The way to everybody else, and what is counted.
#[derive(Debug)]
struct Desk {
    neighbours: Arc<dyn Neighbours>,
    counters: Counters,
}

/// Who is connected, to this process.
#[derive(Debug)]
pub struct Presence {
    slots: DashMap<MailboxId, Arc<Slot>>,
    desk: Desk,
    live: Arc<dyn Live>,
}

impl Presence {
    /// Nobody yet, in the only process of a hub.
    pub fn new() -> Arc<Self> {
        Self::among(Arc::new(Alone), Arc::new(Alone))
    }

    /// Nobody yet, in one of several processes. `live` brings news of what they store.
    pub fn among(neighbours: Arc<dyn Neighbours>, live: Arc<dyn Live>) -> Arc<Self> {
        Arc::new(Self {
            slots: DashMap::new(),
            desk: Desk {
                neighbours,
                counters: Counters::default(),
            },
            live,
        })
    }

    /// A message was stored (durably): whoever waits for it is woken.
    pub fn wake(&self, mailbox: &MailboxId, seq: u64, now: Timestamp) {
        // The entry is not cloned out of the map: a slot's users are counted by its references.
        if let Some(slot) = self.slots.get(mailbox) {
            slot.tell(&self.desk, mailbox, now, Elsewhere::Stored(seq));
            slot.wake_readers();
        }
    }

    /// Messages may have been stored that nobody has told of: whoever waits looks again.
    pub fn look_again(&self, mailbox: &MailboxId, now: Timestamp) {
        if let Some(slot) = self.slots.get(mailbox) {
            slot.tell(&self.desk, mailbox, now, Elsewhere::Unsure);
            slot.wake_readers();
        }
    }

    /// The same for everybody who is here.
    pub fn look_again_all(&self, now: Timestamp) {
        for slot in &self.slots {
            slot.tell(&self.desk, slot.key(), now, Elsewhere::Unsure);
            slot.wake_readers();
        }
    }

    /// Another door has offered messages up to `seq`.
    pub(crate) fn offered(&self, mailbox: &MailboxId, seq: u64, now: Timestamp) {
        self.tell_here(mailbox, Elsewhere::Offered(seq), now);
        self.desk.neighbours.tell(mailbox, Signal::Offered { seq });
    }

    /// Another door has settled messages, durably.
    pub(crate) fn settled(&self, mailbox: &MailboxId, upto: u64, also: &[u64], floor: u64, now: Timestamp) {
        let also = also.to_vec();
        let here = Elsewhere::Settled {
            upto,
            also: also.clone(),
            floor,
        };
        self.tell_here(mailbox, here, now);
        let there = Signal::Settled { upto, also, floor };
        self.desk.neighbours.tell(mailbox, there);
    }

    /// A session has settled messages, durably; it tells the agent's machine itself.
    pub(crate) fn session_settled(&self, mailbox: &MailboxId, upto: u64, also: Vec<u64>, floor: u64) {
        let there = Signal::Settled { upto, also, floor };
        self.desk.neighbours.tell(mailbox, there);
    }

    /// A message has moved to the dead letters, durably.
    pub(crate) fn buried(&self, mailbox: &MailboxId, seq: u64, now: Timestamp) {
        self.tell_here(mailbox, Elsewhere::Buried(seq), now);
        self.desk.neighbours.tell(mailbox, Signal::Buried { seq });
    }

    fn tell_here(&self, mailbox: &MailboxId, what: Elsewhere, now: Timestamp) {
        if let Some(slot) = self.slots.get(mailbox) {
            slot.tell(&self.desk, mailbox, now, what);
        }
    }

    /// Tells a sender, where it is connected, what became of its message.
    pub fn status(&self, sender: &MailboxId, update: StatusUpdate) {
        let update = Arc::new(update);
        let slot = self.slots.get(sender);
        let is_all = slot.is_some_and(|slot| slot.queue_status(&self.desk.counters, &update));
        if !is_all {
            let update = Arc::unwrap_or_clone(update);
            self.desk.neighbours.tell(sender, Signal::Status(update));
        }
    }

    /// The same news about several messages, each to its own sender.
    pub fn statuses(&self, settled: Vec<Settled>, status: Status, code: Option<&str>, at: Timestamp) {
        for message in settled {
            let code = code.map(str::to_owned);
            let update = StatusUpdate {
                id: message.id,
                to: message.recipient,
                status,
                code,
                at,
            };
            self.status(&MailboxId::of(&message.sender), update);
        }
    }

    /// Ends all sessions and waits of one agent, wherever they are.
    pub fn close_agent(&self, mailbox: &MailboxId, reason: CloseReason) {
        if let Some(slot) = self.slots.get(mailbox) {
            slot.close(reason);
        }
        self.desk.neighbours.tell(mailbox, Signal::Close(reason));
    }

    /// Ends all sessions and waits of this process.
    pub fn close_all(&self, reason: CloseReason) {
        for slot in &self.slots {
            slot.close(reason);
        }
    }

    /// Whether the agent has a session here.
    pub fn is_connected(&self, mailbox: &MailboxId) -> bool {
        self.slots.get(mailbox).is_some_and(|slot| slot.has_sessions())
    }

    /// How many there are.
    pub fn counts(&self) -> PresenceCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PresenceCounts {
            agents: u64::try_from(self.slots.len()).unwrap_or(u64::MAX),
            sessions: read(&self.desk.counters.sessions),
            readers: read(&self.desk.counters.readers),
            takeovers: read(&self.desk.counters.takeovers),
            statuses_dropped: read(&self.desk.counters.statuses_dropped),
        }
    }

    /// Makes the agent known, for as long as the guard lives: from here on no wake is missed.
    pub(crate) async fn attach(self: &Arc<Self>, mailbox: MailboxId) -> Attached {
        let slot = Arc::clone(self.slots.entry(mailbox).or_default().value());
        // A guard already, so that whoever gives up waiting leaves nothing behind.
        let attached = Attached::new(Arc::clone(self), mailbox, slot);
        attached.arrive().await;
        attached
    }
}

/// Wakes one session.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    notify: Notify,
    closing: AtomicBool,
}

impl Bell {
    /// Waits until it rings; rung before, it returns at once.
    pub(crate) async fn rung(&self) {
        self.notify.notified().await;
    }

    /// Whether the session is to end.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}

/// The way to one session: a wake-up, its status frames, and its end.
#[derive(Debug)]
struct Line {
    session: SessionId,
    share: bool,
    /// Orders the sessions of all processes; 0 if nobody could be asked.
    generation: u64,
    bell: Arc<Bell>,
    statuses: VecDeque<Arc<StatusUpdate>>,
    close: Option<CloseReason>,
}

impl Line {
    fn wake(&self) {
        self.bell.notify.notify_one();
    }

    fn is_open(&self) -> bool {
        self.close.is_none()
    }

    fn end(&mut self, reason: CloseReason) {
        self.close.get_or_insert(reason);
        self.bell.closing.store(true, Ordering::Release);
        self.wake();
    }
}

/// What a slot's lock guards.
#[derive(Debug, Default)]
struct Inside {
    delivery: Delivery,
    lines: Vec<Line>,
    readers: usize,
    /// The newest session of all processes, as far as is known: its generation, and whether it shares.
    newest: (u64, bool),
    /// How often all readers were told to end.
    closings: u64,
}

impl Inside {
    /// Carries out what concerns other sessions; returns the rest.
    fn handle(&mut self, desk: &Desk, mailbox: &MailboxId, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = self.delivery.handle(now, event);
        effects.retain(|effect| match effect {
            Effect::Release { seqs, after } => {
                desk.neighbours.release(mailbox, seqs, *after);
                false
            }
            Effect::Wake(session) => {
                self.lines
                    .iter()
                    .filter(|line| line.session == *session)
                    .for_each(Line::wake);
                false
            }
            Effect::Replaced(session) => {
                desk.counters.takeovers.fetch_add(1, Ordering::Relaxed);
                let replaced = self.lines.iter_mut().filter(|line| line.session == *session);
                replaced.for_each(|line| line.end(CloseReason::Replaced));
                false
            }
            _ => true,
        });
        effects
    }

    /// Returns whether no session of another process is to have it too.
    fn queue_status(&mut self, counters: &Counters, update: &Arc<StatusUpdate>) -> bool {
        let mut is_all = false;
        for line in self.lines.iter_mut().filter(|line| line.is_open()) {
            is_all |= !line.share;
            if line.statuses.len() >= STATUS_QUEUE_MAX {
                counters.statuses_dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            line.statuses.push_back(Arc::clone(update));
            line.wake();
        }
        is_all
    }
}

#[cfg(test)]
mod tests;

/// Locks, whatever happened to an earlier holder: the machine has no half-done steps to protect.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
