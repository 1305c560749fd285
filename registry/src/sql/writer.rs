//! The one task that writes: it owns the only writing connection and commits many changes at once.
//!
//! Callers put a [`Write`] on a bounded queue and wait. The task takes what is there, without
//! delay, runs it in one transaction, and answers after the commit. While that commit waits for the
//! disk the next changes gather, so that a sync is shared by as many as are in a hurry; registrations
//! that stand in a row share their statements too. Nobody else can begin, cancel or hold a
//! transaction; a caller that goes away changes nothing about it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use sqlx::AnyConnection;
use sqlx::{Connection, SqlSafeStr};
use tokio::sync::{mpsc, oneshot};

use super::connect::Target;
use super::dialect::{Dialect, Role};
use super::writes::create_together;
use crate::directory::NewAgent;
use crate::error::StoreError;
use crate::limits::{
    BUSY_ATTEMPTS_MAX, CULPRITS_PER_BATCH_MAX, REGISTRATIONS_PER_STATEMENT_MAX, WRITE_QUEUE_MAX,
    WRITES_PER_TRANSACTION_MAX,
};

/// A change. It runs inside a transaction with others and refuses by its outcome, having changed
/// nothing: an `Err` is a broken database, and rolls everybody back.
pub(super) trait Write: Send + Sync + 'static {
    /// What became of it.
    type Outcome: Send + 'static;

    /// Runs the statements. May be called again on a fresh transaction.
    fn apply(&self, conn: &mut AnyConnection) -> impl Future<Output = sqlx::Result<Self::Outcome>> + Send;
}

/// A change that waits for its turn, without its type.
#[async_trait]
pub(super) trait Job: Any + Send {
    async fn run(&mut self, conn: &mut AnyConnection) -> sqlx::Result<()>;
    fn answer(self: Box<Self>, end: Result<(), StoreError>);
}

struct Pending<W: Write> {
    write: W,
    outcome: Option<W::Outcome>,
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
}

/// The callers' end of the queue. The task ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    commits: Arc<AtomicU64>,
}

impl Writer {
    /// Starts the task on a connection that is ready.
    pub(super) fn start(target: Target, conn: AnyConnection) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, jobs) = mpsc::channel(WRITE_QUEUE_MAX);
        let commits = Arc::new(AtomicU64::new(0));
        let task = Task {
            target,
            conn: Some(conn),
            jobs,
            commits: Arc::clone(&commits),
        };
        (Self { queue, commits }, tokio::spawn(task.work()))
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

    /// Transactions committed since the start.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

struct Task {
    target: Target,
    /// `None` after a failure: a connection that broke once is never used again.
    conn: Option<AnyConnection>,
    jobs: mpsc::Receiver<Box<dyn Job>>,
    commits: Arc<AtomicU64>,
}

impl Task {
    async fn work(mut self) {
        let mut batch = Vec::with_capacity(WRITES_PER_TRANSACTION_MAX);
        while self.jobs.recv_many(&mut batch, WRITES_PER_TRANSACTION_MAX).await > 0 {
            self.settle(&mut batch).await;
        }
        if let Some(conn) = self.conn.take()
            && let Err(error) = conn.close().await
        {
            tracing::warn!(%error, "the registry's database did not close cleanly");
        }
    }

    /// Commits a batch and answers everybody in it. A change whose statement breaks the transaction
    /// fails alone, and the others run again without it; if that happens too often, it is not the
    /// changes that are broken.
    async fn settle(&mut self, batch: &mut Vec<Box<dyn Job>>) {
        let mut end = Err(StoreError::unavailable(
            "the database refuses one change after another",
        ));
        let mut sharing = Sharing::Statements;
        for _ in 0..CULPRITS_PER_BATCH_MAX {
            match self.transact(batch, sharing).await {
                Err(Broken {
                    error,
                    culprit: Culprit::Somebody,
                }) => {
                    tracing::warn!(%error, changes = batch.len(), "registrations were rolled back, each runs by itself");
                    sharing = Sharing::Commit;
                }
                Err(Broken {
                    error,
                    culprit: Culprit::At(at),
                }) => {
                    tracing::warn!(%error, changes = batch.len(), "a change was rolled back, its batch runs without it");
                    batch.remove(at).answer(Err(error));
                }
                Err(Broken {
                    error,
                    culprit: Culprit::Nobody,
                }) => {
                    end = Err(error);
                    break;
                }
                Ok(()) => {
                    end = Ok(());
                    break;
                }
            }
        }
        batch.drain(..).for_each(|job| job.answer(end.clone()));
    }

    async fn transact(&mut self, batch: &mut [Box<dyn Job>], sharing: Sharing) -> Result<(), Broken> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => self
                .target
                .connect(Role::Writer)
                .await
                .map_err(Broken::nothing_done)?,
        };
        run(self.target.dialect, &mut conn, batch, sharing).await?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.conn = Some(conn);
        Ok(())
    }
}

/// A transaction that did not end well.
struct Broken {
    error: StoreError,
    culprit: Culprit,
}

/// At whose statement a transaction broke.
enum Culprit {
    /// At nobody's: it did not begin, or did not commit.
    Nobody,
    /// At that of this change.
    At(usize),
    /// At one that several shared.
    Somebody,
}

/// What the changes of a batch have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// The commit; registrations also their statements.
    Statements,
    /// The commit only.
    Commit,
}

impl Broken {
    fn nothing_done(error: sqlx::Error) -> Self {
        Self {
            error: unavailable(error),
            culprit: Culprit::Nobody,
        }
    }
}

/// One transaction. Dropped before its end it is rolled back, and its connection closed.
async fn run(
    dialect: Dialect,
    conn: &mut AnyConnection,
    batch: &mut [Box<dyn Job>],
    sharing: Sharing,
) -> Result<(), Broken> {
    let mut attempt = 1;
    let mut transaction = loop {
        match conn.begin_with(dialect.begin().into_sql_str()).await {
            Ok(transaction) => break transaction,
            Err(error) if dialect.is_busy(&error) && attempt < BUSY_ATTEMPTS_MAX => attempt += 1,
            Err(error) => return Err(Broken::nothing_done(error)),
        }
    };
    let mut at = 0;
    let is_open = |job: &dyn Job| sharing == Sharing::Statements && is_open_registration(job);
    for alike in batch.chunk_by_mut(|one, next| is_open(one.as_ref()) && is_open(next.as_ref())) {
        for some in alike.chunks_mut(REGISTRATIONS_PER_STATEMENT_MAX) {
            let count = some.len();
            let (run, culprit) = match some {
                [job] => (job.run(&mut transaction).await, Culprit::At(at)),
                some => (register(&mut transaction, some).await, Culprit::Somebody),
            };
            run.map_err(|error| Broken {
                error: unavailable(error),
                culprit,
            })?;
            at += count;
        }
    }
    let commit = transaction.commit().await;
    commit.map_err(|error| Broken {
        error: StoreError::OutcomeUnknown(Arc::new(error)),
        culprit: Culprit::Nobody,
    })
}

/// Runs registrations that stand one after the other and bring no invite: every statement is a trip to
/// the database and back, which they can make together.
async fn register(conn: &mut AnyConnection, jobs: &mut [Box<dyn Job>]) -> sqlx::Result<()> {
    let mut registrations: Vec<&mut Pending<NewAgent>> = jobs.iter_mut().filter_map(as_any_mut).collect();
    let agents: Vec<_> = registrations.iter().map(|pending| &pending.write).collect();
    let outcomes = create_together(conn, &agents).await?;
    for (pending, outcome) in registrations.iter_mut().zip(outcomes) {
        pending.outcome = Some(outcome);
    }
    Ok(())
}

fn is_open_registration(job: &dyn Job) -> bool {
    let job: &dyn Any = job;
    job.downcast_ref::<Pending<NewAgent>>()
        .is_some_and(|pending| pending.write.invite.is_none())
}

fn as_any_mut<T: 'static>(job: &mut Box<dyn Job>) -> Option<&mut T> {
    let job: &mut dyn Any = job.as_mut();
    job.downcast_mut()
}

/// Nothing was committed.
pub(super) fn unavailable(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(Arc::new(error))
}
