//! The store: mailboxes on JetStream behind the seams of the relay.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::dedup::{DedupWindow, Remember, Seen, SharedWindow};
use aip_relay::limits::{OUTBOX_SETTLED_AT_ONCE, STATUS_SECS};
use aip_relay::mailbox::{
    AckOutcome, Append, AppendOutcome, Attempt, DeadLetter, DeadLetters, Epoch, Fate, Fetch, Health, Live,
    MailboxId, MailboxState, Mailboxes, Outboxes, Redrive, RedriveOutcome, Settled, Status, StatusRecord,
    Statuses, StoreError, StoreStats, StoredMessage, Swept, Upkeep,
};
use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use uuid::Uuid;

use self::cache::Cache;
use crate::background::Background;
use crate::clock::Clock;
use crate::config::Options;
use crate::counters::Counters;
use crate::expiry::Expiries;
use crate::limits;
use crate::live::{self, Wake};
use crate::mailbox::Mailbox;
use crate::meta::{self, Fresh, StoreRecord};
use crate::nats::Nats;
use crate::purge::Purge;
use crate::room::{LocalWindow, Room, Stamps};
use crate::server::Report;
use crate::shards::Follower;
use crate::start::{self, StartError, Started};
use crate::stats::Counts;
use crate::statuses;
use crate::streams::Layout;
use crate::sweep::Sweep;

mod cache;
mod mortal;

/// What the store is given besides its options.
#[derive(Clone)]
pub struct Parts {
    /// The dedup window of this process: a fast answer to most retries, and no more than that.
    pub window: Arc<dyn LocalWindow>,
    /// The dedup window that all processes share; [`aip_relay::dedup::Unshared`] where there is none.
    pub shared: Arc<dyn SharedWindow>,
    /// Chance for a store that does not exist yet, or needs a new epoch.
    pub fresh: Fresh,
    /// 64 random bits, drawn anew by every process at every start: what tells its publishes from those of others.
    pub seed: u64,
    /// Told of messages that any process stores in a watched mailbox.
    pub wake: Wake,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// Mailboxes on NATS JetStream; any number of processes may have the same ones open.
///
/// A publish is confirmed, refused, or its outcome is unknown
/// ([`StoreError::OutcomeUnknown`]): then a retry of the same bytes tells. Reads and writes that the servers do not
/// answer end with [`StoreError::Unavailable`] within the time-outs of [`Options`].
pub struct JetStreamMailboxes {
    mailboxes: Arc<Cache>,
    background: Arc<Background>,
    sweep: Sweep,
    live: live::Live,
    report: Report,
    noter: AbortHandle,
}

impl fmt::Debug for JetStreamMailboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JetStreamMailboxes")
            .field("room", &self.mailboxes.room)
            .finish_non_exhaustive()
    }
}

impl JetStreamMailboxes {
    /// Connects, checks the servers, makes or checks the streams, and opens the store; `now` is the hub's clock.
    ///
    /// A store that nobody has swept for [`limits::RETENTION_SLACK`] may have lost the trace of sequence numbers: it
    /// has a new epoch then.
    pub async fn open(options: Options, parts: Parts, now: Timestamp) -> Result<Self, StartError> {
        let Started {
            nats,
            record,
            layout,
            report,
        } = start::start(options, &parts.fresh).await?;
        let clock = Clock::load(nats.clone(), &layout.names).await?;
        let record = match attended(&nats, &layout, &clock, &parts.fresh, now).await? {
            Some(renewed) => renewed,
            None => record,
        };
        let background = Arc::new(Background::start(nats.clone()));
        let stored = || (nats.clone(), Arc::clone(&layout), Arc::clone(&background));
        let (expiry_nats, expiry_layout, expiry_background) = stored();
        let expiries = Arc::new(Expiries::new(expiry_nats, expiry_layout, expiry_background));
        let (status_nats, status_layout, status_background) = stored();
        let statuses = statuses::Statuses::new(status_nats, status_layout, status_background);
        let (notes, noted) = mpsc::channel(limits::NOTES_QUEUED_MAX);
        let noter = tokio::spawn(note_all(Arc::clone(&parts.window), noted)).abort_handle();
        let follower = Follower::start(nats.clone(), Arc::clone(&layout));
        let stamps = Stamps::new(parts.seed);
        let holder = stamps.next();
        let room = Room {
            follower: follower.clone(),
            epoch: record.epoch,
            retention_secs: record.retention_secs,
            clock,
            expiries: Arc::clone(&expiries),
            statuses,
            purge: Purge::start(nats.clone()),
            window: parts.window,
            shared: parts.shared,
            notes,
            stamps,
            counters: Counters::default(),
            heads: Arc::new(AtomicUsize::new(0)),
            layout: Arc::clone(&layout),
            nats: nats.clone(),
        };
        let mailboxes = Arc::new(Cache::new(Arc::new(room)));
        let heard = heard(Arc::clone(&mailboxes), parts.wake);
        Ok(Self {
            sweep: Sweep::new(nats.clone(), Arc::clone(&layout), expiries, holder),
            live: live::Live::start(nats, layout, follower, heard),
            mailboxes,
            background,
            report,
            noter,
        })
    }

    /// What all its mailboxes share.
    pub(crate) fn room(&self) -> &Room {
        &self.mailboxes.room
    }

    /// What was found about the servers at the start.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What was asked of the servers since the start, for metrics.
    pub fn counts(&self) -> Counts {
        self.mailboxes.room.nats.stats().counts()
    }

    /// Writes what is on its way, within a bounded time, and lets another process sweep. Mail is durable without it.
    pub async fn close(&self) {
        self.sweep.release().await;
        if let Err(error) = self.mailboxes.room.clock.save().await {
            tracing::debug!(%error, "the latest time is not written down");
        }
        if !self.background.flush(limits::CLOSE_FLUSH).await {
            tracing::warn!("some statuses were not written before the end");
        }
        self.noter.abort();
    }

    /// `stored` is written behind a message's back, and so is what became of it. When the latter got lost the mailbox
    /// knows it still, as long as the entry is there.
    async fn corrected(&self, mut record: StatusRecord, now: Timestamp) -> Result<StatusRecord, StoreError> {
        if let (Status::Stored, Some(seq)) = (record.status, record.seq) {
            let mailbox = self.mailboxes.get(&MailboxId::of(&record.to));
            if let Some(status) = mailbox.fate(seq, now).await? {
                record.status = status;
            }
        }
        Ok(record)
    }
}

impl Drop for JetStreamMailboxes {
    fn drop(&mut self) {
        self.noter.abort();
    }
}

/// Somebody is here again: the store's record as it is now, if it was there. All processes that come at the same time
/// agree on it, because the epoch is renewed before it is written down that the store is attended.
async fn attended(
    nats: &Nats,
    layout: &Layout,
    clock: &Clock,
    fresh: &Fresh,
    now: Timestamp,
) -> Result<Option<StoreRecord>, StoreError> {
    let record = match clock.neglected(now) {
        Some(since) => {
            tracing::warn!(%since, "nobody has swept the mailboxes for long: the store has a new epoch");
            let cause = format!("unattended since {since}");
            Some(meta::renew(nats, &layout.names, fresh, &cause).await?)
        }
        None => meta::find(nats, &layout.names).await?,
    };
    clock.attend(now).await?;
    Ok(record)
}

/// Notes accepted envelopes in the window of this process: all that have come while the last ones were written, at
/// once, so that the window can write them together.
async fn note_all(window: Arc<dyn LocalWindow>, mut noted: mpsc::Receiver<Remember>) {
    let mut batch = Vec::with_capacity(limits::NOTES_AT_ONCE);
    while noted.recv_many(&mut batch, limits::NOTES_AT_ONCE).await > 0 {
        let notes = batch.drain(..).map(|remember| window.remember(remember));
        for outcome in join_all(notes).await {
            if let Err(error) = outcome {
                tracing::debug!(%error, "the dedup window of this process does not take an envelope");
            }
        }
    }
}

/// Takes note of hints before they are passed on: a read that follows must not see less.
fn heard(mailboxes: Arc<Cache>, wake: Wake) -> Wake {
    Arc::new(move |id, seq| {
        if let Some(seq) = seq {
            mailboxes.get(id).heard(seq);
        }
        wake(id, seq);
    })
}

#[async_trait]
impl Mailboxes for JetStreamMailboxes {
    async fn append(&self, append: Append) -> Result<AppendOutcome, StoreError> {
        let (mailbox, append) = (append.mailbox(), &append);
        let put = |mailbox: Arc<Mailbox>| async move { mailbox.append(append.clone()).await };
        let outcome = self.mailboxes.ask(&mailbox, put).await?;
        self.mailboxes.room.counters.appended(append.route, &outcome);
        Ok(outcome)
    }

    async fn state(&self, mailbox: &MailboxId) -> Result<MailboxState, StoreError> {
        self.mailboxes
            .ask(mailbox, |mailbox| async move { mailbox.state().await })
            .await
    }

    async fn fetch(&self, mailbox: &MailboxId, fetch: Fetch) -> Result<Vec<StoredMessage>, StoreError> {
        let fetch = &fetch;
        self.mailboxes
            .ask(mailbox, |mailbox| async move { mailbox.fetch(fetch).await })
            .await
    }

    async fn offer(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError> {
        let offer = |mailbox: Arc<Mailbox>| async move { mailbox.offer(seqs, session).await };
        self.mailboxes.ask(mailbox, offer).await
    }

    async fn ack(
        &self,
        mailbox: &MailboxId,
        upto: u64,
        also: &[u64],
        now: Timestamp,
    ) -> Result<AckOutcome, StoreError> {
        let ack = |mailbox: Arc<Mailbox>| async move { mailbox.ack(upto, also, now).await };
        self.mailboxes.ask(mailbox, ack).await
    }
}

#[async_trait]
impl DeadLetters for JetStreamMailboxes {
    async fn bury(
        &self,
        mailbox: &MailboxId,
        seq: u64,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Settled>, StoreError> {
        let bury = |mailbox: Arc<Mailbox>| async move { mailbox.bury(seq, code, now).await };
        self.mailboxes.ask(mailbox, bury).await
    }

    async fn dead(
        &self,
        mailbox: &MailboxId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let dead = |mailbox: Arc<Mailbox>| async move { mailbox.dead(after_seq, limit).await };
        self.mailboxes.ask(mailbox, dead).await
    }

    async fn redrive(&self, mailbox: &MailboxId, redrive: Redrive) -> Result<RedriveOutcome, StoreError> {
        let redrive = |mailbox: Arc<Mailbox>| async move { mailbox.redrive(redrive).await };
        self.mailboxes.ask(mailbox, redrive).await
    }
}

#[async_trait]
impl Outboxes for JetStreamMailboxes {
    async fn settle_outbox(
        &self,
        outbox: &MailboxId,
        fates: &[(u64, Fate)],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut all = Vec::new();
        for fates in fates.chunks(OUTBOX_SETTLED_AT_ONCE) {
            let leave = |mailbox: Arc<Mailbox>| async move { mailbox.leave(fates, now).await };
            all.extend(self.mailboxes.ask(outbox, leave).await?);
        }
        Ok(all)
    }

    async fn advance_status(
        &self,
        sender: &Did,
        id: Uuid,
        to: &Did,
        status: (Status, Option<&str>),
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let (status, code) = status;
        let known = self.status(sender, id, Some(to)).await?.pop();
        let Some(known) = known.filter(|known| known.advances_to(status)) else {
            return Ok(false);
        };
        let next = StatusRecord {
            status,
            code: code.map(ToOwned::to_owned),
            at: at.max(known.at),
            ..known
        };
        let written = vec![(MailboxId::of(sender), id, next)];
        self.mailboxes.room.statuses.write(written).await?;
        Ok(true)
    }
}

#[async_trait]
impl Statuses for JetStreamMailboxes {
    async fn status(
        &self,
        sender: &Did,
        id: Uuid,
        to: Option<&Did>,
    ) -> Result<Vec<StatusRecord>, StoreError> {
        let room = &self.mailboxes.room;
        let Some(now) = room.clock.latest() else {
            return Ok(Vec::new());
        };
        let from = now - Duration::from_secs(STATUS_SECS);
        let found = room.statuses.look_up(sender, id, to, from).await?;
        let mut records = Vec::with_capacity(found.len());
        for record in found {
            records.push(self.corrected(record, now).await?);
        }
        Ok(records)
    }
}

#[async_trait]
impl DedupWindow for JetStreamMailboxes {
    async fn seen(
        &self,
        key: [u8; 16],
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Seen>, StoreError> {
        self.mailboxes.room.seen(key, &digest, now).await
    }

    /// In the window of this process: only an append, which has a mailbox, is remembered by all.
    async fn remember(&self, remember: Remember) -> Result<Option<Seen>, StoreError> {
        self.mailboxes.room.window.remember(remember).await
    }
}

#[async_trait]
impl Live for JetStreamMailboxes {
    async fn watch(&self, mailbox: &MailboxId) {
        self.live.watch(mailbox).await;
    }

    fn unwatch(&self, mailbox: &MailboxId) {
        self.live.unwatch(mailbox);
    }
}

#[async_trait]
impl Upkeep for JetStreamMailboxes {
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        let room = &self.mailboxes.room;
        room.purge.tick(now);
        let own = room.window.sweep(now).await?;
        let mut swept = self.sweep.run(&*self.mailboxes, now).await?;
        swept.more |= own.more;
        if !swept.expired.is_empty() {
            room.clock.tick(now);
        }
        room.clock.attend(now).await?;
        Ok(swept)
    }

    async fn checkpoint(&self, _dir: &Path) -> Result<(), StoreError> {
        Err(StoreError::Unavailable(
            "mailboxes on JetStream are copied with `nats stream backup`".into(),
        ))
    }

    fn epoch(&self) -> Epoch {
        self.mailboxes.room.epoch.clone()
    }

    fn clock_high_water(&self) -> Option<Timestamp> {
        self.mailboxes.room.clock.latest()
    }

    fn health(&self) -> Health {
        if self.mailboxes.room.nats.connected() {
            Health::Ready
        } else {
            Health::Unreachable {
                reason: "not connected to NATS".to_owned(),
            }
        }
    }

    fn stats(&self) -> StoreStats {
        self.mailboxes.room.counters.read()
    }
}
