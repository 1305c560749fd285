//! Changes of a cursor: queued, merged, and written by one task at a time.
//!
//! While a write is under way, what comes in waits for the next one: under load one small publish carries the acks
//! of many. Whoever waits has its answer when its change is durable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::{self, Settled, StoreError};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::Mailbox;
use super::memory::Known;
use crate::cursor::{Attempts, Cursor, DeadPlace};
use crate::entry::Head;
use crate::limits;
use crate::nats::{Published, expecting};
use crate::room::Fate;

/// What shall become of a cursor.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Everything up to `upto` and each of `also` is acked.
    Ack {
        upto: u64,
        also: Vec<u64>,
        now: Timestamp,
    },
    /// Those of `seqs` that have ended are expired.
    Expire { seqs: Vec<u64>, now: Timestamp },
    /// Each of these leaves an outbox, with its fate.
    Leave {
        fates: BTreeMap<u64, mailbox::Fate>,
        now: Timestamp,
    },
    /// Is given up; its dead letter lies at `place`.
    Bury {
        seq: u64,
        code: String,
        place: DeadPlace,
        now: Timestamp,
    },
    /// A dead letter is pending again.
    Unbury { seq: u64, place: DeadPlace },
    /// Those of `seqs` that are dead letters whose time has come are dropped.
    DropDead { seqs: Vec<u64>, now: Timestamp },
    /// Offered once more, in this session.
    Offer { seqs: Vec<u64>, session: u64 },
    /// Entries up to `upto` are gone.
    Lost { upto: u64 },
}

/// What a change did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Applied {
    /// The floor afterwards.
    pub(crate) floor: u64,
    /// What it settled, in order.
    pub(crate) settled: Vec<Settled>,
    /// The counts after an offer, in the order asked.
    pub(crate) attempts: Vec<Attempts>,
    /// Dead letters that left the list.
    pub(crate) dropped: u64,
}

type Answer = Result<Applied, StoreError>;

/// A change and who waits for it.
#[derive(Debug)]
pub(super) struct Job {
    change: Change,
    answer: oneshot::Sender<Answer>,
}

/// What a change does to one cursor, before it is written.
#[derive(Debug, Default)]
struct Draft {
    /// In which the heads were met.
    era: u64,
    changed: bool,
    heads: Vec<Head>,
    attempts: Vec<Attempts>,
    dropped: u64,
}

impl Mailbox {
    /// Makes a change; it is durable when this returns.
    pub(crate) async fn change(self: &Arc<Self>, change: Change) -> Answer {
        let answer = self.enqueue(change)?.await;
        answer.unwrap_or_else(|_| Err(unknown("the writer of the cursor is gone")))
    }

    /// Makes a change soon.
    pub(super) fn enqueue(self: &Arc<Self>, change: Change) -> Result<oneshot::Receiver<Answer>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let mut memory = self.memory();
        if memory.queue.len() >= limits::CHANGES_QUEUED_MAX {
            return Err(StoreError::Unavailable(
                "too many changes of this mailbox wait".into(),
            ));
        }
        memory.queue.push(Job { change, answer });
        if !memory.writing {
            memory.writing = true;
            tokio::spawn(Writer(Arc::clone(self)).run());
        }
        Ok(answered)
    }
}

/// The task that writes; there is at most one a mailbox.
struct Writer(Arc<Mailbox>);

impl Drop for Writer {
    /// After a panic the next change starts another one; whoever waits learns that the outcome is unknown.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut memory = self.0.memory();
            memory.writing = false;
            memory.queue.clear();
        }
    }
}

impl Writer {
    async fn run(self) {
        while let Some(jobs) = self.take() {
            match self.write(&jobs).await {
                Ok(answers) => {
                    for (job, applied) in jobs.into_iter().zip(answers) {
                        // Whoever asked may be gone; the change stands.
                        let _gone = job.answer.send(Ok(applied));
                    }
                }
                Err(error) => {
                    for job in jobs {
                        let _gone = job.answer.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    /// What waits; `None`, and the writer is done, when nothing does.
    fn take(&self) -> Option<Vec<Job>> {
        let mut memory = self.0.memory();
        let jobs = std::mem::take(&mut memory.queue);
        if jobs.is_empty() {
            memory.writing = false;
            return None;
        }
        Some(jobs)
    }

    /// Applies the jobs to the newest cursor and replaces it, until nobody else was faster.
    async fn write(&self, jobs: &[Job]) -> Result<Vec<Applied>, StoreError> {
        let mailbox = &*self.0;
        let stamp = mailbox.room.stamps.next();
        let (mut unsure, mut fresh) = (false, false);
        for try_no in 0..limits::CHANGE_TRIES_MAX {
            let known = self.known().await.map_err(|error| honest(error, unsure))?;
            let heads = self.heads(&known.cursor, jobs).await;
            let heads = heads.map_err(|error| honest(error, unsure))?;
            let mut cursor = Cursor::clone(&known.cursor);
            self.round_off(&mut cursor);
            let drafts: Vec<Draft> = jobs
                .iter()
                .map(|job| apply(&mut cursor, &job.change, &heads, mailbox.place.era))
                .collect();
            if !drafts.iter().any(|draft| draft.changed) {
                if fresh {
                    return Ok(self.finish(jobs, drafts, &known.cursor));
                }
                // Another process may have changed what this one does not know.
                fresh = true;
                let newest = mailbox.newest_cursor().await;
                newest.map_err(|error| honest(error, unsure))?;
                continue;
            }
            cursor.stamp = stamp;
            self.round_off(&mut cursor);
            match self.replace(&known, cursor).await {
                Ok(Some(cursor)) => {
                    mailbox.room.counters.batch(jobs.len());
                    return Ok(self.finish(jobs, drafts, &cursor));
                }
                Ok(None) => {}
                Err(StoreError::OutcomeUnknown(_)) => {
                    unsure = true;
                    sleep(limits::RETRY_PAUSE).await;
                }
                Err(error) => return Err(honest(error, unsure)),
            }
            let newest = mailbox.newest_cursor().await;
            let newest = newest.map_err(|error| honest(error, unsure))?;
            if newest.stamp == stamp {
                return Ok(self.finish(jobs, drafts, &newest));
            }
            mailbox.pause(try_no).await;
        }
        Err(honest(
            StoreError::Unavailable("too many processes change this mailbox at once".into()),
            unsure,
        ))
    }

    async fn known(&self) -> Result<Known, StoreError> {
        if let Some(known) = self.0.memory().known() {
            return Ok(known.clone());
        }
        self.0.newest_cursor().await?;
        Ok(self.0.memory().known().cloned().unwrap_or_default())
    }

    /// The heads of all that the jobs may settle.
    async fn heads(&self, cursor: &Cursor, jobs: &[Job]) -> Result<BTreeMap<u64, Head>, StoreError> {
        let mut seqs: Vec<u64> = Vec::new();
        for job in jobs {
            match &job.change {
                Change::Ack { upto, also, .. } => {
                    seqs.extend(cursor.unsettled(*upto));
                    seqs.extend(also);
                }
                Change::Expire { seqs: due, .. } => seqs.extend(due),
                Change::Leave { fates, .. } => seqs.extend(fates.keys()),
                Change::Bury { seq, .. } => seqs.push(*seq),
                Change::Unbury { .. }
                | Change::DropDead { .. }
                | Change::Offer { .. }
                | Change::Lost { .. } => {}
            }
        }
        seqs.retain(|seq| !cursor.is_settled(*seq));
        self.0.heads_of(seqs).await
    }

    /// Notes what this process knows besides: how far the mailbox is, and that an empty one holds no bytes.
    fn round_off(&self, cursor: &mut Cursor) {
        let memory = self.0.memory();
        let next_seq = memory.last_seq().saturating_add(1);
        cursor.given_out(next_seq);
        if let Some(total_bytes) = memory.total_bytes() {
            cursor.all_settled(next_seq, total_bytes);
        }
    }

    /// Compare and set; `None`: another process was faster.
    async fn replace(&self, known: &Known, cursor: Cursor) -> Result<Option<Arc<Cursor>>, StoreError> {
        let mailbox = &*self.0;
        let subject = &mailbox.place.cursor_subject;
        let headers = expecting(known.revision);
        let published = mailbox
            .room
            .nats
            .publish(subject, headers, cursor.encode())
            .await?;
        match published {
            Published::Stored { stream_seq } => {
                let cursor = Arc::new(cursor);
                mailbox.memory().learn(Known {
                    cursor: Arc::clone(&cursor),
                    revision: stream_seq,
                });
                Ok(Some(cursor))
            }
            Published::WrongLast { .. } | Published::Duplicate { .. } | Published::Elsewhere => Ok(None),
            Published::Full => Err(StoreError::Unavailable("the stream of cursors is full".into())),
        }
    }

    /// The changes are durable: tells the fates, counts, and lets old entries go.
    fn finish(&self, jobs: &[Job], drafts: Vec<Draft>, cursor: &Cursor) -> Vec<Applied> {
        let mailbox = &*self.0;
        let mut last = None;
        let answers = jobs.iter().zip(drafts).map(|(job, draft)| {
            let settled = draft.heads.into_iter().filter_map(|head| {
                let (fate, now) = job.change.fate(head.seq)?;
                last = Some(now);
                Some(mailbox.room.settled(head, fate, now))
            });
            Applied {
                settled: settled.collect(),
                floor: cursor.floor(),
                attempts: draft.attempts,
                dropped: draft.dropped,
            }
        });
        let answers = answers.collect();
        // The entry at the floor stays: its successor continues it.
        if let (Some(now), Some(keep_from)) = (last, cursor.read_from(mailbox.place.era).checked_sub(1)) {
            mailbox.room.purge.note(&mailbox.place, keep_from, now);
        }
        answers
    }
}

impl Change {
    /// What becomes of `seq`, and when.
    fn fate(&self, seq: u64) -> Option<(Fate<'_>, Timestamp)> {
        match self {
            Self::Ack { now, .. } => Some((Fate::Acked, *now)),
            Self::Expire { now, .. } => Some((Fate::Expired, *now)),
            Self::Leave { fates, now } => Some((Fate::Left(fates.get(&seq)?), *now)),
            Self::Bury { code, now, .. } => Some((Fate::Dead(code), *now)),
            Self::Unbury { .. } | Self::DropDead { .. } | Self::Offer { .. } | Self::Lost { .. } => None,
        }
    }
}

/// Makes one change. What is to be settled and has no head is gone from the stream: it is settled all the same,
/// but there is nobody to tell.
fn apply(cursor: &mut Cursor, change: &Change, heads: &BTreeMap<u64, Head>, era: u64) -> Draft {
    let mut draft = Draft {
        era,
        ..Draft::default()
    };
    match change {
        Change::Ack { upto, also, .. } => {
            let due: Vec<u64> = cursor.unsettled(*upto).collect();
            let also: BTreeSet<u64> = also.iter().copied().collect();
            for seq in due.into_iter().chain(also) {
                draft.settle(cursor, seq, heads.get(&seq));
            }
        }
        Change::Expire { seqs, now } => {
            let next_seq = cursor.next_seq();
            for seq in seqs.iter().filter(|seq| **seq < next_seq) {
                let head = heads.get(seq);
                if head.is_none_or(|head| head.expires_at <= *now) {
                    draft.settle(cursor, *seq, head);
                }
            }
        }
        Change::Leave { fates, .. } => {
            for seq in fates.keys() {
                if let Some(head) = heads.get(seq) {
                    draft.settle(cursor, *seq, Some(head));
                }
            }
        }
        Change::Bury { seq, place, .. } => {
            if let Some(head) = heads.get(seq)
                && draft.settle(cursor, *seq, Some(head))
            {
                cursor.bury(*seq, *place);
            }
        }
        Change::Unbury { seq, place } => {
            draft.changed = cursor.unbury(*seq, *place);
            draft.dropped = u64::from(draft.changed);
        }
        Change::DropDead { seqs, now } => {
            draft.dropped = cursor.drop_dead(seqs, *now);
            draft.changed = draft.dropped > 0;
        }
        Change::Offer { seqs, session } => {
            draft.attempts = seqs.iter().map(|seq| cursor.raise(*seq, *session)).collect();
            draft.changed = seqs.iter().any(|seq| !cursor.is_settled(*seq));
        }
        Change::Lost { upto } => {
            let gone: Vec<u64> = cursor.unsettled(*upto).collect();
            for seq in gone {
                draft.settle(cursor, seq, None);
            }
        }
    }
    draft
}

impl Draft {
    fn settle(&mut self, cursor: &mut Cursor, seq: u64, head: Option<&Head>) -> bool {
        let fresh = match head {
            Some(head) => cursor.settle(head, self.era),
            None => cursor.settle_unseen(seq),
        };
        if fresh {
            self.changed = true;
            self.heads.extend(head.cloned());
        }
        fresh
    }
}

fn unknown(what: &'static str) -> StoreError {
    StoreError::OutcomeUnknown(what.into())
}

/// After a write of unknown outcome no failure may say that nothing was changed.
fn honest(error: StoreError, unsure: bool) -> StoreError {
    if unsure {
        unknown("NATS did not confirm the cursor")
    } else {
        error
    }
}
