//! One transaction of the writer: what it runs, and where it broke if it did.

use std::any::Any;

use sqlx::{AnyConnection, Connection, SqlSafeStr};

use super::connect::bounded;
use super::dialect::{Dialect, Verdict};
use super::listings::writes::{PutListings, put_together};
use super::writer::{Job, Pending};
use super::writes::create_together;
use crate::directory::NewAgent;
use crate::limits::CHANGES_TOGETHER_MAX;

/// A transaction that did not end well.
pub(super) struct Broken {
    pub(super) error: sqlx::Error,
    pub(super) fault: Fault,
}

/// Where a transaction broke. But for [`Fault::Unknown`], nothing was changed.
pub(super) enum Fault {
    /// Another transaction was in its way.
    Conflict,
    /// The connection went, before the commit.
    Lost,
    /// The commit was not answered.
    Unknown,
    /// The database does not let it begin.
    Refused,
    /// At the statement of this change.
    At(usize),
    /// At a statement that several shared.
    Somebody,
}

/// What the changes of a batch have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The commit; registrations also their statements, and so do versions of listings.
    Statements,
    /// The commit only.
    Commit,
}

impl Broken {
    /// Broken before anything was asked of a change.
    pub(super) fn at_the_start(dialect: Dialect, error: sqlx::Error) -> Self {
        Self::at(dialect, error, Fault::Refused)
    }

    /// Broken before the commit, at `fault` if it would break there again.
    fn at(dialect: Dialect, error: sqlx::Error, fault: Fault) -> Self {
        let fault = match dialect.verdict(&error) {
            Verdict::Busy => Fault::Conflict,
            Verdict::Lost => Fault::Lost,
            Verdict::Other => fault,
        };
        Self { error, fault }
    }

    fn at_the_commit(dialect: Dialect, error: sqlx::Error) -> Self {
        let fault = if dialect.is_rolled_back(&error) {
            Fault::Conflict
        } else {
            Fault::Unknown
        };
        Self { error, fault }
    }
}

/// Puts changes that take the log of listings, that of peers, or the money of the market, in this order behind all others,
/// which they have nothing to do with: what every process needs is taken last and held for the shortest time. Puts changes that touch the rows of one agent or peer only,
/// and stand together, in the order of these; those of one stay in theirs. So no outcome changes, and batches of several
/// processes that want the same rows take their locks in the same order.
pub(super) fn take_turns(batch: &mut [Box<dyn Job>]) {
    batch.sort_by_key(|job| job.takes_the_log());
    for run in batch.chunk_by_mut(|one, next| one.subject().is_some() && next.subject().is_some()) {
        run.sort_by(|one, next| one.subject().cmp(&next.subject()));
    }
}

/// One transaction. Dropped before its end it is rolled back, and its connection closed.
pub(super) async fn run(
    dialect: Dialect,
    conn: &mut AnyConnection,
    batch: &mut [Box<dyn Job>],
    sharing: Sharing,
) -> Result<(), Broken> {
    let limit = dialect.answer_limit();
    let begin = bounded(limit, conn.begin_with(dialect.begin().into_sql_str()));
    let mut transaction = begin
        .await
        .map_err(|error| Broken::at_the_start(dialect, error))?;
    statements(dialect, &mut transaction, batch, sharing).await?;
    let commit = bounded(limit, transaction.commit());
    commit
        .await
        .map_err(|error| Broken::at_the_commit(dialect, error))
}

async fn statements(
    dialect: Dialect,
    conn: &mut AnyConnection,
    batch: &mut [Box<dyn Job>],
    sharing: Sharing,
) -> Result<(), Broken> {
    let (mut at, limit) = (0, dialect.answer_limit());
    let may_share = |one: &dyn Job, next: &dyn Job| {
        let kind = Together::of(one);
        sharing == Sharing::Statements && kind.is_some() && kind == Together::of(next)
    };
    for alike in batch.chunk_by_mut(|one, next| may_share(one.as_ref(), next.as_ref())) {
        for some in alike.chunks_mut(CHANGES_TOGETHER_MAX) {
            let count = some.len();
            let (run, fault) = match some {
                [job] => (bounded(limit, job.run(conn)).await, Fault::At(at)),
                some => (bounded(limit, run_together(conn, some)).await, Fault::Somebody),
            };
            run.map_err(|error| Broken::at(dialect, error, fault))?;
            at += count;
        }
    }
    Ok(())
}

/// Changes that can share their statements where they stand one after the other: every statement is a trip to the database
/// and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Together {
    /// Registrations that bring no invite.
    Registrations,
    /// Versions of listings.
    Listings,
}

impl Together {
    fn of(job: &dyn Job) -> Option<Self> {
        let any: &dyn Any = job;
        if any.is::<Pending<PutListings>>() {
            Some(Self::Listings)
        } else {
            let registration = any.downcast_ref::<Pending<NewAgent>>();
            let is_open = registration.is_some_and(|pending| pending.write.invite.is_none());
            is_open.then_some(Self::Registrations)
        }
    }
}

/// Runs changes that are all of one such kind.
async fn run_together(conn: &mut AnyConnection, jobs: &mut [Box<dyn Job>]) -> sqlx::Result<()> {
    match jobs.first().and_then(|job| Together::of(job.as_ref())) {
        Some(Together::Listings) => put(conn, jobs).await,
        _ => register(conn, jobs).await,
    }
}

async fn put(conn: &mut AnyConnection, jobs: &mut [Box<dyn Job>]) -> sqlx::Result<()> {
    let mut changes: Vec<&mut Pending<PutListings>> = jobs.iter_mut().filter_map(as_any_mut).collect();
    let new: Vec<_> = changes.iter().map(|pending| &pending.write).collect();
    let outcomes = put_together(conn, &new).await?;
    for (pending, outcome) in changes.iter_mut().zip(outcomes) {
        pending.outcome = Some(outcome);
    }
    Ok(())
}

async fn register(conn: &mut AnyConnection, jobs: &mut [Box<dyn Job>]) -> sqlx::Result<()> {
    let mut registrations: Vec<&mut Pending<NewAgent>> = jobs.iter_mut().filter_map(as_any_mut).collect();
    let agents: Vec<_> = registrations.iter().map(|pending| &pending.write).collect();
    let outcomes = create_together(conn, &agents).await?;
    for (pending, outcome) in registrations.iter_mut().zip(outcomes) {
        pending.outcome = Some(outcome);
    }
    Ok(())
}

fn as_any_mut<T: 'static>(job: &mut Box<dyn Job>) -> Option<&mut T> {
    let job: &mut dyn Any = job.as_mut();
    job.downcast_mut()
}
