//! The slot of one agent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aip_protocol::time::Timestamp;
use tokio::sync::{Notify, OnceCell};

use super::{CloseReason, Counters, Desk, Inside, StatusUpdate, lock};
use crate::mailbox::MailboxId;
use crate::session::{Elsewhere, Event};

/// Everything about one agent that is connected.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(super) inside: Mutex<Inside>,
    /// Filled when the agent is known to other processes.
    pub(super) arrived: OnceCell<()>,
    /// Wakes long polls and event streams.
    pub(super) readers: Notify,
    /// How often there was news for them.
    pub(super) news: AtomicU64,
}

impl Slot {
    /// Something happened that is no session's doing.
    pub(super) fn tell(&self, desk: &Desk, mailbox: &MailboxId, now: Timestamp, what: Elsewhere) {
        lock(&self.inside).handle(desk, mailbox, now, Event::Elsewhere(what));
    }

    pub(super) fn wake_readers(&self) {
        self.news.fetch_add(1, Ordering::AcqRel);
        self.readers.notify_waiters();
    }

    pub(super) fn queue_status(&self, counters: &Counters, update: &Arc<StatusUpdate>) -> bool {
        lock(&self.inside).queue_status(counters, update)
    }

    pub(super) fn close(&self, reason: CloseReason) {
        let mut inside = lock(&self.inside);
        inside.lines.iter_mut().for_each(|line| line.end(reason));
        inside.closings += 1;
        drop(inside);
        self.readers.notify_waiters();
    }

    pub(super) fn has_sessions(&self) -> bool {
        lock(&self.inside).lines.iter().any(super::Line::is_open)
    }
}
