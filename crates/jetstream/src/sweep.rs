//! The sweep: what has ended is settled, by one process at a time.
//!
//! Messages that end with their mailbox's retention end in the order of their stream, which is walked from where
//! the last sweep stopped. Those that end earlier are found through the expiry index. Dead letters end in the
//! order of their stream, too. All of it may be done twice: a mailbox settles a message once.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::{MailboxId, Settled, StoreError, Swept};
use async_trait::async_trait;
use tokio::sync::Mutex;

use self::positions::Positions;
use crate::expiry::Expiries;
use crate::lease::Lease;
use crate::limits;
use crate::nats::{Nats, Stored};
use crate::streams::Layout;

mod positions;

/// The name of the lease.
const SWEEPER: &str = "sweeper";

/// Something in a stream that ends at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) mailbox: MailboxId,
    pub(crate) seq: u64,
    /// The latest moment up to which it may have to be there: for a message the later of its expiry and the end
    /// of the retention, for a dead letter its own end.
    pub(crate) at: Timestamp,
}

/// What the sweep needs of the mailboxes.
#[async_trait]
pub(crate) trait Mortal: Send + Sync + Debug {
    /// When an entry of a mailbox ends; `None` for one that never waits, or is unreadable.
    fn message_end(&self, stored: &Stored) -> Option<End>;

    /// When a dead letter ends; `None` for an unreadable one.
    fn dead_end(&self, stored: &Stored) -> Option<End>;

    /// Settles as expired those of `seqs` that are pending and have expired at `now`; tells them in sequence
    /// order. The senders' statuses are written.
    async fn settle_expired(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError>;

    /// Forgets those dead letters of `seqs` that have ended at `now`; tells how many.
    async fn drop_dead(&self, mailbox: &MailboxId, seqs: &[u64], now: Timestamp) -> Result<u64, StoreError>;
}

/// What ends in one mailbox, by mailbox in a fixed order.
type Ended = BTreeMap<MailboxId, Vec<u64>>;

/// The sweeper.
#[derive(Debug)]
pub(crate) struct Sweep {
    nats: Nats,
    layout: Arc<Layout>,
    expiries: Arc<Expiries>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lease: Lease,
    positions: Positions,
}

/// What one call may still do.
struct Budget {
    entries: usize,
    swept: Swept,
}

impl Sweep {
    /// `holder` tells this process from all others: a random number.
    pub(crate) fn new(nats: Nats, layout: Arc<Layout>, expiries: Arc<Expiries>, holder: u64) -> Self {
        let state = State {
            lease: Lease::new(nats.clone(), &layout.names, SWEEPER, holder),
            positions: Positions::new(nats.clone(), &layout),
        };
        Self {
            nats,
            layout,
            expiries,
            state: Mutex::new(state),
        }
    }

    /// Does a bounded amount of work, if it is this process's turn: nothing while another one holds the lease.
    ///
    /// What was settled before a failure is told; the failure comes with the next call, if it persists.
    pub(crate) async fn run(&self, mailboxes: &dyn Mortal, now: Timestamp) -> Result<Swept, StoreError> {
        let mut state = self.state.lock().await;
        if !state.lease.hold(now).await? {
            state.positions.forget();
            return Ok(Swept::default());
        }
        state.positions.load().await?;
        let mut budget = Budget {
            entries: aip_relay::limits::SWEEP_ENTRIES_MAX,
            swept: Swept::default(),
        };
        let outcome = self
            .sweep(mailboxes, &mut state.positions, &mut budget, now)
            .await;
        let saved = state.positions.save().await;
        let told = !budget.swept.expired.is_empty() || budget.swept.dead_letters > 0;
        match outcome.and(saved) {
            Err(error) if !told => Err(error),
            Err(error) => {
                tracing::warn!(%error, "a sweep stopped on its way");
                budget.swept.more = true;
                Ok(budget.swept)
            }
            Ok(()) => Ok(budget.swept),
        }
    }

    /// Lets another process sweep at once. Best effort.
    pub(crate) async fn release(&self) {
        self.state.lock().await.lease.release().await;
    }

    async fn sweep(
        &self,
        mailboxes: &dyn Mortal,
        positions: &mut Positions,
        budget: &mut Budget,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for minute in self.expiries.begun(now).await? {
            self.sweep_minute(mailboxes, minute, budget, now).await?;
        }
        for stream in self.layout.mailbox_streams() {
            self.walk(mailboxes, Walk::Messages, &stream, positions, budget, now)
                .await?;
        }
        let dead = Arc::clone(&self.layout.dead);
        self.walk(mailboxes, Walk::Dead, &dead, positions, budget, now)
            .await
    }

    /// What the index has for one minute. What is done at its beginning is forgotten.
    async fn sweep_minute(
        &self,
        mailboxes: &dyn Mortal,
        minute: u64,
        budget: &mut Budget,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (mut from, mut all_due) = (1, true);
        loop {
            if budget.spent() {
                return Ok(());
            }
            let most = limits::SWEEP_BATCH_MESSAGES.min(budget.entries);
            let (entries, more) = self.expiries.of_minute(minute, from, most).await?;
            let (mut ended, mut done_below) = (Ended::new(), None);
            for (stream_seq, early) in entries {
                from = stream_seq.saturating_add(1);
                if early.expires_at <= now {
                    ended.entry(early.mailbox).or_default().push(early.seq);
                    budget.entries = budget.entries.saturating_sub(1);
                } else {
                    all_due = false;
                }
                if all_due {
                    done_below = Some(from);
                }
            }
            settle(mailboxes, ended, budget, now).await?;
            if let Some(below) = done_below {
                self.expiries.forget(minute, below, all_due && !more).await?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Goes on through a stream until something has not ended yet.
    async fn walk(
        &self,
        mailboxes: &dyn Mortal,
        walk: Walk,
        stream: &Arc<str>,
        positions: &mut Positions,
        budget: &mut Budget,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        while positions.is_due(stream, now) {
            if budget.spent() {
                return Ok(());
            }
            let most = limits::SWEEP_BATCH_MESSAGES.min(budget.entries);
            let batch = self
                .nats
                .batch(stream, ">", positions.of(stream), most, limits::SWEEP_BATCH_BYTES)
                .await?;
            let (mut ended, mut position, mut waits) = (Ended::new(), positions.of(stream), None);
            for stored in &batch.messages {
                let end = match walk {
                    Walk::Messages => mailboxes.message_end(stored),
                    Walk::Dead => mailboxes.dead_end(stored),
                };
                match end {
                    Some(end) if end.at > now => {
                        waits = Some(end.at);
                        break;
                    }
                    Some(end) => {
                        ended.entry(end.mailbox).or_default().push(end.seq);
                        budget.entries = budget.entries.saturating_sub(1);
                    }
                    None => {}
                }
                position = stored.stream_seq.saturating_add(1);
            }
            match walk {
                Walk::Messages => settle(mailboxes, ended, budget, now).await?,
                Walk::Dead => drop_dead(mailboxes, ended, budget, now).await?,
            }
            positions.advance(stream, position, waits);
            if !batch.more {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// What a stream holds.
#[derive(Clone, Copy)]
enum Walk {
    Messages,
    Dead,
}

impl Budget {
    /// Whether this call must stop here; then there is more to do.
    fn spent(&mut self) -> bool {
        let spent = self.entries == 0;
        self.swept.more |= spent;
        spent
    }
}

async fn settle(
    mailboxes: &dyn Mortal,
    ended: Ended,
    budget: &mut Budget,
    now: Timestamp,
) -> Result<(), StoreError> {
    for (mailbox, seqs) in ended {
        let settled = mailboxes.settle_expired(&mailbox, &seqs, now).await?;
        budget.swept.expired.extend(settled);
    }
    Ok(())
}

async fn drop_dead(
    mailboxes: &dyn Mortal,
    ended: Ended,
    budget: &mut Budget,
    now: Timestamp,
) -> Result<(), StoreError> {
    for (mailbox, seqs) in ended {
        budget.swept.dead_letters += mailboxes.drop_dead(&mailbox, &seqs, now).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
