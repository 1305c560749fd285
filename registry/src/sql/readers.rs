//! The connections that read: a few, lent for one statement each.
//!
//! A connection goes back only when its statement was answered well. One that failed, fell silent or
//! whose caller went away is dropped, so that nothing ever waits for a server to take a connection
//! back; and since a read changes nothing, one that lost its connection is asked again on another.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Connection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::connect::{Target, bounded};
use super::dialect::{Role, Verdict};
use super::rows::{Bind, query};
use super::tally::Tally;
use super::writer::unavailable;
use crate::error::StoreError;
use crate::limits::{IDLE_CONNECTION_SECS, RETRY_PAUSE_MS};

/// The pool.
#[derive(Debug)]
pub(super) struct Readers {
    target: Target,
    tally: Arc<Tally>,
    turns: Semaphore,
    idle: Mutex<Vec<Rested>>,
}

impl Readers {
    /// Connections are made when they are needed.
    pub(super) fn new(target: Target, tally: Arc<Tally>) -> Self {
        let turns = usize::try_from(target.readers_max).unwrap_or(usize::MAX);
        Self {
            target,
            tally,
            turns: Semaphore::new(turns.min(Semaphore::MAX_PERMITS)),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// The rows that a statement answers with, in bounded time.
    pub(super) async fn rows(
        &self,
        statement: &'static str,
        values: &[Bind<'_>],
    ) -> Result<Vec<AnyRow>, StoreError> {
        let mut last = None;
        let ask = self.ask(statement, values, &mut last);
        let Some(limit) = self.target.dialect.read_limit() else {
            return ask.await;
        };
        match tokio::time::timeout(limit, ask).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(last.map_or_else(
                || StoreError::unavailable("the registry's database did not answer in time"),
                unavailable,
            )),
        }
    }

    async fn ask(
        &self,
        statement: &'static str,
        values: &[Bind<'_>],
        last: &mut Option<sqlx::Error>,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let _turn = self.turn().await?;
        loop {
            match self.try_once(statement, values).await {
                Ok(rows) => return Ok(rows),
                Err(error) if self.target.dialect.verdict(&error) == Verdict::Lost => {
                    tracing::debug!(%error, "a connection to the registry's database was lost, another one is made");
                    self.tally.lost();
                    *last = Some(error);
                }
                Err(error) => return Err(unavailable(error)),
            }
            tokio::time::sleep(Duration::from_millis(RETRY_PAUSE_MS)).await;
        }
    }

    async fn try_once(&self, statement: &'static str, values: &[Bind<'_>]) -> sqlx::Result<Vec<AnyRow>> {
        let mut conn = match self.take() {
            Some(conn) => conn,
            None => self.target.connect(Role::Reader).await?,
        };
        let asked = query(statement, values).fetch_all(&mut conn);
        let rows = bounded(self.target.dialect.answer_limit(), asked).await?;
        self.idle().push(Rested::now(conn));
        Ok(rows)
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        let limit = self.target.dialect.turn_limit();
        match tokio::time::timeout(limit, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_closed)) => Err(StoreError::unavailable("the database is closed")),
            Err(_elapsed) => Err(StoreError::unavailable(
                "all connections to the registry's database are busy",
            )),
        }
    }

    /// A connection that was used lately; those that were not may be dead without knowing it.
    fn take(&self) -> Option<AnyConnection> {
        let mut idle = self.idle();
        let conn = idle.pop()?.wake(&self.target);
        if conn.is_none() {
            // It was the one that rested least.
            idle.clear();
        }
        conn
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Rested>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets those who read finish, and closes every connection. Later reads fail.
    pub(super) async fn close(&self) {
        let all = self.turns.acquire_many(self.target.readers_max).await;
        self.turns.close();
        drop(all);
        let idle = std::mem::take(&mut *self.idle());
        for rested in idle {
            let close = bounded(self.target.dialect.answer_limit(), rested.conn.close());
            if let Err(error) = close.await {
                tracing::debug!(%error, "a connection to the registry's database did not close cleanly");
            }
        }
    }
}

/// A connection that nobody uses.
#[derive(Debug)]
pub(super) struct Rested {
    conn: AnyConnection,
    since: Instant,
}

impl Rested {
    pub(super) fn now(conn: AnyConnection) -> Self {
        Self {
            conn,
            since: Instant::now(),
        }
    }

    /// The connection, unless it rested for so long that something between here and the server may
    /// have forgotten it.
    pub(super) fn wake(self, target: &Target) -> Option<AnyConnection> {
        let is_stale = target.dialect.loses_idle_connections()
            && self.since.elapsed() > Duration::from_secs(IDLE_CONNECTION_SECS);
        (!is_stale).then_some(self.conn)
    }

    pub(super) fn into_inner(self) -> AnyConnection {
        self.conn
    }
}
