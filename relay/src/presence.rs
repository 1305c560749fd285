//! Who is connected: one slot for each agent that has a session or a reader, removed with the last of them.
//!
//! A slot holds the agent's [`Delivery`] behind a lock that is never held across an await, and a line to each of its
//! sessions. A line carries no messages: it wakes the session, which then asks the machine what to do; so nothing
//! is lost when a session is slow, and nothing piles up. Only status frames queue here, in a bounded queue that drops
//! them when it is full. Everything is keyed by session, so the late end of a replaced socket ends only itself.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use dashmap::DashMap;
use tokio::sync::Notify;
use uuid::Uuid;

use self::slot::Slot;
pub(crate) use self::slot::{Attached, Reading};
use crate::limits::STATUS_QUEUE_MAX;
use crate::mailbox::{MailboxId, Settled, Status};
use crate::session::{Delivery, Effect, Elsewhere, Event, SessionId};

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

/// Who is connected, to this process.
#[derive(Debug, Default)]
pub struct Presence {
    slots: DashMap<MailboxId, Arc<Slot>>,
    counters: Counters,
}

impl Presence {
    /// Nobody yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A message was stored (durably): whoever waits for it is woken.
    pub fn wake(&self, mailbox: &MailboxId, seq: u64, now: Timestamp) {
        // The entry is not cloned out of the map: a slot's users are counted by its references.
        if let Some(slot) = self.slots.get(mailbox) {
            slot.tell(&self.counters, now, Elsewhere::Stored(seq));
            slot.wake_readers(seq);
        }
    }

    /// Another door has offered messages up to `seq`.
    pub(crate) fn offered(&self, mailbox: &MailboxId, seq: u64, now: Timestamp) {
        if let Some(slot) = self.slots.get(mailbox) {
            slot.tell(&self.counters, now, Elsewhere::Offered(seq));
        }
    }

    /// Another door has settled messages, durably.
    pub(crate) fn settled(&self, mailbox: &MailboxId, upto: u64, also: &[u64], floor: u64, now: Timestamp) {
        if let Some(slot) = self.slots.get(mailbox) {
            slot.tell(
                &self.counters,
                now,
                Elsewhere::Settled {
                    upto,
                    also: also.to_vec(),
                    floor,
                },
            );
        }
    }

    /// A message has moved to the dead letters, durably.
    pub(crate) fn buried(&self, mailbox: &MailboxId, seq: u64, now: Timestamp) {
        if let Some(slot) = self.slots.get(mailbox) {
            slot.tell(&self.counters, now, Elsewhere::Buried(seq));
        }
    }

    /// Tells a sender, where it is connected, what became of its message.
    pub fn status(&self, sender: &MailboxId, update: StatusUpdate) {
        if let Some(slot) = self.slots.get(sender) {
            slot.queue_status(&self.counters, &Arc::new(update));
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

    /// Ends all sessions and waits of one agent.
    pub fn close_agent(&self, mailbox: &MailboxId, reason: CloseReason) {
        if let Some(slot) = self.slots.get(mailbox) {
            slot.close(reason);
        }
    }

    /// Ends all sessions and waits.
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
            sessions: read(&self.counters.sessions),
            readers: read(&self.counters.readers),
            takeovers: read(&self.counters.takeovers),
            statuses_dropped: read(&self.counters.statuses_dropped),
        }
    }

    /// Makes the agent known, for as long as the guard lives: from here on no wake is missed.
    pub(crate) fn attach(self: &Arc<Self>, mailbox: MailboxId) -> Attached {
        let slot = Arc::clone(self.slots.entry(mailbox).or_default().value());
        Attached::new(Arc::clone(self), mailbox, slot)
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
    bell: Arc<Bell>,
    statuses: VecDeque<Arc<StatusUpdate>>,
    close: Option<CloseReason>,
}

impl Line {
    fn wake(&self) {
        self.bell.notify.notify_one();
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
    /// How often all readers were told to end.
    closings: u64,
}

impl Inside {
    /// Carries out what concerns other sessions; returns the rest.
    fn handle(&mut self, counters: &Counters, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = self.delivery.handle(now, event);
        effects.retain(|effect| match effect {
            Effect::Wake(session) => {
                self.lines
                    .iter()
                    .filter(|line| line.session == *session)
                    .for_each(Line::wake);
                false
            }
            Effect::Replaced(session) => {
                counters.takeovers.fetch_add(1, Ordering::Relaxed);
                let replaced = self.lines.iter_mut().filter(|line| line.session == *session);
                replaced.for_each(|line| line.end(CloseReason::Replaced));
                false
            }
            _ => true,
        });
        effects
    }

    fn queue_status(&mut self, counters: &Counters, update: &Arc<StatusUpdate>) {
        for line in self.lines.iter_mut().filter(|line| line.close.is_none()) {
            if line.statuses.len() >= STATUS_QUEUE_MAX {
                counters.statuses_dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            line.statuses.push_back(Arc::clone(update));
            line.wake();
        }
    }
}

/// Locks, whatever happened to an earlier holder: the machine has no half-done steps to protect.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
