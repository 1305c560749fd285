//! One transaction of the writer: what it runs, and where it broke if it did.

use std::any::Any;

use sqlx::{AnyConnection, Connection, SqlSafeStr};

use super::connect::bounded;
use super::dialect::{Dialect, Verdict};
use super::writer::{Job, Pending};
use super::writes::create_together;
use crate::directory::NewAgent;
use crate::limits::REGISTRATIONS_PER_STATEMENT_MAX;

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
    /// The commit; registrations also their statements.
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

/// Puts changes of listings behind all others, which they have nothing to do with: what every process needs is taken last
/// and held for the shortest time. Puts changes that touch one agent only, and stand together, in the order of the agents' names;
/// those of one agent stay in theirs. So no outcome changes, and batches of several processes that
/// want the same names take their locks in the same order.
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
    let is_open = |job: &dyn Job| sharing == Sharing::Statements && is_open_registration(job);
    for alike in batch.chunk_by_mut(|one, next| is_open(one.as_ref()) && is_open(next.as_ref())) {
        for some in alike.chunks_mut(REGISTRATIONS_PER_STATEMENT_MAX) {
            let count = some.len();
            let (run, fault) = match some {
                [job] => (bounded(limit, job.run(conn)).await, Fault::At(at)),
                some => (bounded(limit, register(conn, some)).await, Fault::Somebody),
            };
            run.map_err(|error| Broken::at(dialect, error, fault))?;
            at += count;
        }
    }
    Ok(())
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
