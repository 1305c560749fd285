//! The changes of windows. Each takes the row of its window first.

use aip_federation::limits::EPOCHS_PER_PEER_MAX;
use aip_federation::peers::Noted;
use aip_protocol::name::Domain;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::{rows, statements};
use crate::limits::SEQS_PER_STATEMENT_MAX;
use crate::peers::Window;
use crate::sql::dialect::Dialect;
use crate::sql::rows::{broken, count, to_i64};
use crate::sql::writer::{Subject, Write};

/// Items of a peer that are settled from now on; says through where everything is.
pub(super) struct Settle {
    pub(super) dialect: Dialect,
    pub(super) peer: Domain,
    /// Its hash.
    pub(super) epoch: String,
    pub(super) settled: Settled,
}

/// Which items those are.
pub(super) enum Settled {
    Items(Vec<Noted>),
    Through(u64),
}

impl Write for Settle {
    type Outcome = u64;

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Window(self.peer.as_str(), &self.epoch))
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<u64> {
        let mut window = match self.lock(conn).await? {
            Some((window, _)) => window,
            None => self.add(conn).await?,
        };
        let before = window.clone();
        match &self.settled {
            Settled::Items(noted) => {
                let new = window.note(noted);
                self.add_refusals(conn, &new).await?;
            }
            Settled::Through(through) => window.pass_over(*through),
        }
        if window != before {
            let set = sqlx::query(statements::SET_WINDOW)
                .bind(self.peer.as_str())
                .bind(self.epoch.as_str())
                .bind(to_i64(window.floor()))
                .bind(window.above_text());
            set.execute(conn).await?;
        }
        Ok(window.floor())
    }
}

impl Settle {
    /// The window and which epoch of its peer it is, if it is there.
    async fn lock(&self, conn: &mut AnyConnection) -> sqlx::Result<Option<(Window, u64)>> {
        let lock = sqlx::query(AssertSqlSafe(statements::lock_window(self.dialect.for_update())))
            .bind(self.peer.as_str())
            .bind(self.epoch.as_str());
        let Some(row) = lock.fetch_optional(conn).await? else {
            return Ok(None);
        };
        let window = rows::window(&row).map_err(broken)?;
        Ok(Some((window, count(&row, "number").map_err(broken)?)))
    }

    /// Makes the window, and forgets the oldest one where there are too many.
    async fn add(&self, conn: &mut AnyConnection) -> sqlx::Result<Window> {
        let add = sqlx::query(statements::ADD_WINDOW)
            .bind(self.peer.as_str())
            .bind(self.epoch.as_str());
        add.execute(&mut *conn).await?;
        let (window, number) = self.lock(conn).await?.ok_or(sqlx::Error::RowNotFound)?;
        if number > EPOCHS_PER_PEER_MAX {
            for drop in [
                statements::DROP_REFUSALS_OF_OLD_EPOCHS,
                statements::DROP_OLD_EPOCHS,
            ] {
                let drop = sqlx::query(drop)
                    .bind(self.peer.as_str())
                    .bind(to_i64(number - EPOCHS_PER_PEER_MAX));
                drop.execute(&mut *conn).await?;
            }
        }
        Ok(window)
    }

    /// Remembers the codes of those that were refused.
    async fn add_refusals(&self, conn: &mut AnyConnection, new: &[Noted]) -> sqlx::Result<()> {
        let refused = new
            .iter()
            .filter_map(|one| one.refused.map(|code| (one.peer_seq, code)));
        let refused: Vec<_> = refused.collect();
        for some in refused.chunks(SEQS_PER_STATEMENT_MAX) {
            let mut add = sqlx::query(AssertSqlSafe(statements::add_refusals(some.len())));
            for (peer_seq, code) in some {
                add = add
                    .bind(self.peer.as_str())
                    .bind(self.epoch.as_str())
                    .bind(to_i64(*peer_seq))
                    .bind(code.as_str());
            }
            add.execute(&mut *conn).await?;
        }
        if refused.is_empty() {
            return Ok(());
        }
        let drop = sqlx::query(statements::DROP_OLD_REFUSALS.as_str())
            .bind(self.peer.as_str())
            .bind(self.epoch.as_str());
        drop.execute(conn).await.map(|_| ())
    }
}
