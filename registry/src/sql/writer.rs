//! The one task that writes: it owns the only writing connection and commits many changes at once.
//!
//! Callers put a [`Write`] on a bounded queue and wait. The task takes what is there, without
//! delay, runs it in one transaction, and answers after the commit. While that commit waits for the
//! disk the next changes gather, so that a sync is shared by as many as are in a hurry; registrations
//! that stand in a row share their statements too, and so do versions of listings. Nobody else can begin, cancel or hold a
//! transaction; a caller that goes away changes nothing about it.
//!
//! What changed nothing is tried again for a while: on another connection if the old one is gone,
//! and after whoever was in the way. Then everybody who waits hears that the database is not there,
//! so that no one waits for many such whiles. A commit that was not answered is never tried again.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::{AnyConnection, Connection};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::connect::{Target, bounded};
use super::dialect::Role;
use super::readers::Rested;
use super::tally::Tally;
use super::transaction::{self, Broken, Fault, Sharing};
use crate::error::StoreError;
use crate::limits::{
    CONFLICTS_PER_BATCH_MAX, CULPRITS_PER_BATCH_MAX, RETRY_PAUSE_MS, WRITE_QUEUE_MAX, WRITE_RETRY_SECS,
    WRITES_PER_TRANSACTION_MAX,
};

/// A change. It runs inside a transaction with others and refuses by its outcome, having changed
/// nothing: an `Err` is a broken database, and rolls everybody back.
pub(super) trait Write: Send + Sync + 'static {
    /// What became of it.
    type Outcome: Send + 'static;

    /// Runs the statements. May be called again on a fresh transaction.
    fn apply(&self, conn: &mut AnyConnection) -> impl Future<Output = sqlx::Result<Self::Outcome>> + Send;

    /// Whose rows it touches, if it touches no others.
    fn subject(&self) -> Option<Subject<'_>> {
        None
    }

    /// The row that it takes which every other process may wait for until the commit, if it takes one.
    fn takes_the_log(&self) -> Option<Log> {
        None
    }
}

/// A row that all changes of a kind take first, in every process. Their order is the one in which a batch takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Log {
    /// That of the log of listings.
    Listings,
    /// That of the logs about peers.
    Peers,
    /// The money of the market.
    Market,
}

/// Whose rows a change touches. Their order is the one in which every process takes its locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject<'a> {
    /// An agent, by name.
    Agent(&'a str),
    /// A nonce of a peer, by its hash.
    Nonce(&'a str),
    /// What came from a peer, by the peer and the hash of its epoch.
    Window(&'a str, &'a str),
    /// A peer itself, by domain.
    Peer(&'a str),
    /// The turn of sending to a peer, by domain.
    Lease(&'a str),
}

/// A change that waits for its turn, without its type.
#[async_trait]
pub(super) trait Job: Any + Send {
    async fn run(&mut self, conn: &mut AnyConnection) -> sqlx::Result<()>;
    fn answer(self: Box<Self>, end: Result<(), StoreError>);
    fn subject(&self) -> Option<Subject<'_>>;
    fn takes_the_log(&self) -> Option<Log>;
}

pub(super) struct Pending<W: Write> {
    pub(super) write: W,
    pub(super) outcome: Option<W::Outcome>,
    caller: oneshot::Sender<Result<W::Outcome, StoreError>>,
}

#[async_trait]
impl<W: Write> Job for Pending<W> {
    async fn run(&mut self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        self.outcome = Some(self.write.apply(conn).await?);
        Ok(())
    }

    fn answer(self: Box<Self>, end: Result<(), StoreError>) {
        let none = || StoreError::unavailable("the change was not run");
        let Self { outcome, caller, .. } = *self;
        // The caller may have gone away; its change stands all the same.
        drop(caller.send(end.and_then(|()| outcome.ok_or_else(none))));
    }

    fn subject(&self) -> Option<Subject<'_>> {
        self.write.subject()
    }

    fn takes_the_log(&self) -> Option<Log> {
        self.write.takes_the_log()
    }
}

/// The callers' end of the queue. The task ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
}

impl Writer {
    /// Starts the task on a connection that is ready.
    pub(super) fn start(
        target: Target,
        conn: AnyConnection,
        tally: Arc<Tally>,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, jobs) = mpsc::channel(WRITE_QUEUE_MAX);
        let task = Task {
            target,
            conn: Some(Rested::now(conn)),
            jobs,
            tally,
        };
        (Self { queue }, tokio::spawn(task.work()))
    }

    /// Runs a change and waits until it is durable. A full queue is said at once.
    pub(super) async fn write<W: Write>(&self, write: W) -> Result<W::Outcome, StoreError> {
        let (caller, answer) = oneshot::channel();
        let job = Box::new(Pending {
            write,
            outcome: None,
            caller,
        });
        self.queue.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                StoreError::unavailable("too many changes wait for the database")
            }
            mpsc::error::TrySendError::Closed(_) => StoreError::unavailable("the database is closed"),
        })?;
        answer
            .await
            .unwrap_or_else(|_| Err(StoreError::unavailable("the writer ended")))
    }
}

struct Task {
    target: Target,
    /// `None` after a failure: a connection that broke once is never used again.
    conn: Option<Rested>,
    jobs: mpsc::Receiver<Box<dyn Job>>,
    tally: Arc<Tally>,
}

/// How a batch ended.
enum End {
    /// Each of its changes has its outcome.
    Committed,
    /// All of its changes failed alike.
    Failed(StoreError),
    /// The database is not there.
    Down(StoreError),
    /// Others were in its way each time.
    Contended(StoreError),
}

impl Task {
    async fn work(mut self) {
        let mut batch = Vec::with_capacity(WRITES_PER_TRANSACTION_MAX);
        while self.jobs.recv_many(&mut batch, WRITES_PER_TRANSACTION_MAX).await > 0 {
            let deadline = Instant::now() + Duration::from_secs(WRITE_RETRY_SECS);
            transaction::take_turns(&mut batch);
            let end = self.settle(&mut batch, deadline).await;
            match end {
                End::Contended(error) if batch.len() > 1 => {
                    self.settle_alone(&mut batch, deadline, error).await;
                }
                end => self.answer(&mut batch, end),
            }
        }
        if let Some(rested) = self.conn.take()
            && let Err(error) = bounded(self.target.dialect.answer_limit(), rested.into_inner().close()).await
        {
            tracing::warn!(%error, "the registry's database did not close cleanly");
        }
    }

    /// Each change in a transaction of its own: two such cannot wait for each other in a ring for long.
    /// Those that have no turn by the deadline end with `error`.
    async fn settle_alone(&mut self, batch: &mut Vec<Box<dyn Job>>, deadline: Instant, error: StoreError) {
        for job in std::mem::take(batch) {
            let mut alone = vec![job];
            let end = if Instant::now() < deadline {
                self.settle(&mut alone, deadline).await
            } else {
                End::Failed(error.clone())
            };
            self.answer(&mut alone, end);
        }
    }

    /// Tells everybody in a batch how it ended. Where the database is not there, those who came
    /// meanwhile hear it too.
    fn answer(&mut self, batch: &mut Vec<Box<dyn Job>>, end: End) {
        let is_down = matches!(end, End::Down(_));
        let end = match end {
            End::Committed => Ok(()),
            End::Failed(error) | End::Down(error) | End::Contended(error) => Err(error),
        };
        while is_down && let Ok(job) = self.jobs.try_recv() {
            job.answer(end.clone());
        }
        batch.drain(..).for_each(|job| job.answer(end.clone()));
    }

    /// Commits a batch, or finds out why not. A change whose statement breaks the transaction
    /// fails alone, and the others run again without it; if that happens too often, it is not the
    /// changes that are broken.
    async fn settle(&mut self, batch: &mut Vec<Box<dyn Job>>, deadline: Instant) -> End {
        let (mut sharing, mut culprits, mut conflicts) = (Sharing::Statements, 0, 0);
        while culprits < CULPRITS_PER_BATCH_MAX {
            let Err(Broken { error, fault }) = self.transact(batch, sharing).await else {
                return End::Committed;
            };
            let changes = batch.len();
            match fault {
                Fault::Somebody => {
                    tracing::warn!(%error, changes, "changes with common statements were rolled back, each runs by itself");
                    sharing = Sharing::Commit;
                    culprits += 1;
                }
                Fault::At(at) => {
                    tracing::warn!(%error, changes, "a change was rolled back, its batch runs without it");
                    batch.remove(at).answer(Err(unavailable(error)));
                    culprits += 1;
                }
                Fault::Conflict => {
                    tracing::info!(%error, changes, "changes gave way to another transaction, they run again");
                    self.tally.conflicted();
                    conflicts += 1;
                    if conflicts >= CONFLICTS_PER_BATCH_MAX || Instant::now() >= deadline {
                        return End::Contended(unavailable(error));
                    }
                }
                Fault::Lost => {
                    self.tally.lost();
                    if Instant::now() >= deadline {
                        tracing::warn!(%error, changes, "the registry's database is not there, changes are refused");
                        return End::Down(unavailable(error));
                    }
                    tracing::debug!(%error, changes, "the writer's connection was lost, another one is made");
                    tokio::time::sleep(Duration::from_millis(RETRY_PAUSE_MS)).await;
                }
                Fault::Unknown => {
                    tracing::error!(%error, changes, "a commit was not answered, its outcome is not known");
                    self.tally.unknown();
                    return End::Failed(StoreError::OutcomeUnknown(Arc::new(error)));
                }
                Fault::Refused => return End::Failed(unavailable(error)),
            }
        }
        End::Failed(StoreError::unavailable(
            "the database refuses one change after another",
        ))
    }

    async fn transact(&mut self, batch: &mut [Box<dyn Job>], sharing: Sharing) -> Result<(), Broken> {
        let dialect = self.target.dialect;
        let mut conn = match self.conn.take().and_then(|rested| rested.wake(&self.target)) {
            Some(conn) => conn,
            None => self
                .target
                .connect(Role::Writer)
                .await
                .map_err(|error| Broken::at_the_start(dialect, error))?,
        };
        transaction::run(dialect, &mut conn, batch, sharing).await?;
        self.tally.committed();
        self.conn = Some(Rested::now(conn));
        Ok(())
    }
}

/// Nothing was committed.
pub(super) fn unavailable(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(Arc::new(error))
}
