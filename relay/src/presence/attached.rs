//! The guards that keep an agent's slot: of sessions, and of long polls and event streams.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use futures_util::future::join;

use super::slot::Slot;
use super::{Bell, CloseReason, Inside, Line, Presence, StatusUpdate, lock};
use crate::limits::READERS_PER_AGENT_MAX;
use crate::mailbox::MailboxId;
use crate::neighbours::Entry;
use crate::session::{Effect, Event, Position, SessionId};

/// How a session begins.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) session: SessionId,
    pub(crate) share: bool,
    pub(crate) credit: u32,
    pub(crate) position: Position,
    /// From [`Attached::enter`].
    pub(crate) generation: u64,
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

    /// Makes the agent known to other processes, unless another guard has: from its return on they are heard.
    pub(super) async fn arrive(&self) {
        let Some(slot) = &self.slot else { return };
        let arrive = || async {
            let Presence { desk, live, .. } = &*self.presence;
            join(live.watch(&self.mailbox), desk.neighbours.arrive(&self.mailbox)).await;
        };
        slot.arrived.get_or_init(arrive).await;
    }

    /// How long a newcomer should wait before it takes over.
    pub(crate) fn takeover_pause(&self, now: Timestamp) -> Option<Duration> {
        self.inside(|inside| inside.delivery.takeover_pause(now))
            .flatten()
    }

    /// Asks the other processes whether a session may begin.
    pub(crate) async fn enter(&self, share: bool) -> Entry {
        self.presence.desk.neighbours.join(&self.mailbox, share, 0).await
    }

    /// Begins a session: from here on its bell rings. One that is older than the newest of another process ends at once.
    pub(crate) fn join(&self, now: Timestamp, joining: Joining) -> (Arc<Bell>, Vec<Effect>) {
        let Joining {
            session,
            share,
            credit,
            position,
            generation,
        } = joining;
        let bell = Arc::<Bell>::default();
        let mut line = Line {
            session,
            share,
            generation,
            bell: Arc::clone(&bell),
            statuses: VecDeque::new(),
            close: None,
        };
        let desk = &self.presence.desk;
        desk.counters.sessions.fetch_add(1, Ordering::Relaxed);
        let effects = self.inside(|inside| {
            if inside.is_outdone(generation, share) {
                desk.counters.takeovers.fetch_add(1, Ordering::Relaxed);
                line.end(CloseReason::Replaced);
                inside.lines.push(line);
                return Vec::new();
            }
            inside.lines.push(line);
            let event = Event::Join {
                session,
                share,
                credit,
                position,
            };
            inside.handle(desk, &self.mailbox, now, event)
        });
        (bell, effects.unwrap_or_default())
    }

    /// Feeds an event of a session; returns what that session is to do.
    pub(crate) fn handle(&self, now: Timestamp, event: Event) -> Vec<Effect> {
        self.inside(|inside| inside.handle(&self.presence.desk, &self.mailbox, now, event))
            .unwrap_or_default()
    }

    /// Ends a session, and only this one.
    pub(crate) fn leave(&self, now: Timestamp, session: SessionId) {
        let desk = &self.presence.desk;
        desk.counters.sessions.fetch_sub(1, Ordering::Relaxed);
        self.inside(|inside| {
            inside.lines.retain(|line| line.session != session);
            inside.handle(desk, &self.mailbox, now, Event::Leave { session })
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
        self.presence
            .desk
            .counters
            .readers
            .fetch_add(1, Ordering::Relaxed);
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
        let Presence { slots, desk, live } = &*self.presence;
        // Guards clone the reference under the map's lock only, so that one left means: nobody. The others are told
        // under that lock too, before anybody can come again.
        slots.remove_if(&self.mailbox, |mailbox, slot| {
            let is_last = Arc::strong_count(slot) == 1;
            if is_last {
                desk.neighbours.leave(mailbox);
                live.unwatch(mailbox);
            }
            is_last
        });
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
            .map_or(0, |slot| slot.news.load(Ordering::Acquire));
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
            if slot.news.load(Ordering::Acquire) != self.seen || self.is_closed() {
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
            .desk
            .counters
            .readers
            .fetch_sub(1, Ordering::Relaxed);
    }
}
