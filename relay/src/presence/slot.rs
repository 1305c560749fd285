//! The slot of one agent, and the guards that keep it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use tokio::sync::Notify;

use super::{Bell, CloseReason, Counters, Inside, Line, Presence, StatusUpdate, lock};
use crate::limits::READERS_PER_AGENT_MAX;
use crate::mailbox::MailboxId;
use crate::session::{Effect, Elsewhere, Event, Position, SessionId};

/// Everything about one agent that is connected.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    inside: Mutex<Inside>,
    /// Wakes long polls and event streams.
    readers: Notify,
    /// The highest message stored while the slot was there.
    stored: AtomicU64,
}

impl Slot {
    /// Something happened that is no session's doing.
    pub(super) fn tell(&self, counters: &Counters, now: Timestamp, what: Elsewhere) {
        lock(&self.inside).handle(counters, now, Event::Elsewhere(what));
    }

    pub(super) fn wake_readers(&self, seq: u64) {
        self.stored.fetch_max(seq, Ordering::AcqRel);
        self.readers.notify_waiters();
    }

    pub(super) fn queue_status(&self, counters: &Counters, update: &Arc<StatusUpdate>) {
        lock(&self.inside).queue_status(counters, update);
    }

    pub(super) fn close(&self, reason: CloseReason) {
        let mut inside = lock(&self.inside);
        inside.lines.iter_mut().for_each(|line| line.end(reason));
        inside.closings += 1;
        drop(inside);
        self.readers.notify_waiters();
    }

    pub(super) fn has_sessions(&self) -> bool {
        lock(&self.inside).lines.iter().any(|line| line.close.is_none())
    }
}

/// Keeps an agent's slot alive; the last guard to go removes it.
#[derive(Debug)]
pub(crate) struct Attached {
    presence: Arc<Presence>,
    mailbox: MailboxId,
    /// Always there until the drop.
    slot: Option<Arc<Slot>>,
}

impl Attached {
    pub(super) fn new(presence: Arc<Presence>, mailbox: MailboxId, slot: Arc<Slot>) -> Self {
        Self {
            presence,
            mailbox,
            slot: Some(slot),
        }
    }

    pub(crate) fn mailbox(&self) -> &MailboxId {
        &self.mailbox
    }

    fn inside<T>(&self, act: impl FnOnce(&mut Inside) -> T) -> Option<T> {
        self.slot.as_ref().map(|slot| act(&mut lock(&slot.inside)))
    }

    /// How long a newcomer should wait before it takes over.
    pub(crate) fn takeover_pause(&self, now: Timestamp) -> Option<Duration> {
        self.inside(|inside| inside.delivery.takeover_pause(now))
            .flatten()
    }

    /// Begins a session: from here on its bell rings.
    pub(crate) fn join(
        &self,
        now: Timestamp,
        session: SessionId,
        share: bool,
        credit: u32,
        position: Position,
    ) -> (Arc<Bell>, Vec<Effect>) {
        let bell = Arc::<Bell>::default();
        let line = Line {
            session,
            bell: Arc::clone(&bell),
            statuses: std::collections::VecDeque::new(),
            close: None,
        };
        let counters = &self.presence.counters;
        counters.sessions.fetch_add(1, Ordering::Relaxed);
        let effects = self.inside(|inside| {
            inside.lines.push(line);
            inside.handle(
                counters,
                now,
                Event::Join {
                    session,
                    share,
                    credit,
                    position,
                },
            )
        });
        (bell, effects.unwrap_or_default())
    }

    /// Feeds an event of a session; returns what that session is to do.
    pub(crate) fn handle(&self, now: Timestamp, event: Event) -> Vec<Effect> {
        self.inside(|inside| inside.handle(&self.presence.counters, now, event))
            .unwrap_or_default()
    }

    /// Ends a session, and only this one.
    pub(crate) fn leave(&self, now: Timestamp, session: SessionId) {
        self.presence.counters.sessions.fetch_sub(1, Ordering::Relaxed);
        self.inside(|inside| {
            inside.lines.retain(|line| line.session != session);
            inside.handle(&self.presence.counters, now, Event::Leave { session })
        });
    }

    pub(crate) fn next_due(&self, now: Timestamp, session: SessionId) -> Option<Duration> {
        self.inside(|inside| inside.delivery.next_due(now, session))
            .flatten()
    }

    pub(crate) fn is_backlogged(&self) -> bool {
        self.inside(|inside| inside.delivery.is_backlogged())
            .unwrap_or_default()
    }

    /// Whether `seq` is there but was not offered, as far as the machine knows.
    pub(crate) fn is_offer_unknown(&self, seq: u64) -> bool {
        self.inside(|inside| inside.delivery.is_offer_unknown(seq))
            .unwrap_or_default()
    }

    pub(crate) fn close_reason(&self, session: SessionId) -> Option<CloseReason> {
        let own = |inside: &mut Inside| inside.lines.iter().find(|line| line.session == session)?.close;
        self.inside(own).flatten()
    }

    pub(crate) fn next_status(&self, session: SessionId) -> Option<Arc<StatusUpdate>> {
        let own = |inside: &mut Inside| {
            inside
                .lines
                .iter_mut()
                .find(|line| line.session == session)?
                .statuses
                .pop_front()
        };
        self.inside(own).flatten()
    }

    /// Begins a long poll or an event stream; `None` when the agent has too many.
    pub(crate) fn read(self) -> Option<Reading> {
        let closings = self.inside(|inside| {
            (inside.readers < READERS_PER_AGENT_MAX).then(|| {
                inside.readers += 1;
                inside.closings
            })
        })??;
        self.presence.counters.readers.fetch_add(1, Ordering::Relaxed);
        Some(Reading {
            attached: self,
            closings,
            seen: 0,
        })
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        drop(self.slot.take());
        // Guards clone the reference under the map's lock only, so that one left means: nobody.
        self.presence
            .slots
            .remove_if(&self.mailbox, |_, slot| Arc::strong_count(slot) == 1);
    }
}

/// One long poll or event stream.
#[derive(Debug)]
pub(crate) struct Reading {
    attached: Attached,
    closings: u64,
    seen: u64,
}

impl Reading {
    pub(crate) fn attached(&self) -> &Attached {
        &self.attached
    }

    /// To be called before each look into the store: [`Self::changed`] then waits for what comes after it.
    pub(crate) fn look(&mut self) {
        self.seen = self
            .attached
            .slot
            .as_ref()
            .map_or(0, |slot| slot.stored.load(Ordering::Acquire));
    }

    /// Whether the agent's waits were ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.attached
            .inside(|inside| inside.closings)
            .is_none_or(|closings| closings != self.closings)
    }

    /// Waits until a message was stored after the last [`Self::look`], or the wait is ended.
    pub(crate) async fn changed(&self) {
        let Some(slot) = &self.attached.slot else { return };
        loop {
            let mut notified = std::pin::pin!(slot.readers.notified());
            notified.as_mut().enable();
            if slot.stored.load(Ordering::Acquire) > self.seen || self.is_closed() {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.attached.inside(|inside| inside.readers -= 1);
        self.attached
            .presence
            .counters
            .readers
            .fetch_sub(1, Ordering::Relaxed);
    }
}
