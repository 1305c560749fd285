//! The seam between SQL dialects: everything in which engines differ, and nothing else.
//!
//! Schema and statements are one text for all (`statements.rs`, `migrations/`); rows hold only text
//! and 64-bit integers. Another engine is another variant here, a constructor in [`super::SqlStore`],
//! and a run of the contract suite.

use crate::limits::SQLITE_BUSY_MS;

/// An SQL engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// SQLite in WAL mode, one file.
    Sqlite,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The only connection that changes anything.
    Writer,
    /// One of the pool that reads.
    Reader,
}

impl Dialect {
    /// What every new connection runs before anything else, in this order.
    ///
    /// On SQLite the patience comes first, since the very next statement can meet another process's
    /// lock; WAL lets readers and the writer work side by side; FULL syncs the log at every commit,
    /// so that what was answered survives a power cut.
    pub(super) fn session(self, role: Role) -> Vec<String> {
        let Self::Sqlite = self;
        let mut pragmas = vec![
            format!("PRAGMA busy_timeout = {SQLITE_BUSY_MS}"),
            "PRAGMA journal_mode = WAL".to_owned(),
            "PRAGMA synchronous = FULL".to_owned(),
            "PRAGMA foreign_keys = ON".to_owned(),
        ];
        if role == Role::Reader {
            pragmas.push("PRAGMA query_only = ON".to_owned());
        }
        pragmas
    }

    /// Begins a transaction that is going to write. A deferred one could not be upgraded once
    /// somebody else had written, however long it waits.
    pub(super) fn begin(self) -> &'static str {
        let Self::Sqlite = self;
        "BEGIN IMMEDIATE"
    }

    /// Whether a connection can die while nobody uses it, so that it has to be tried before each use.
    /// One to a file cannot.
    pub(super) fn loses_idle_connections(self) -> bool {
        let Self::Sqlite = self;
        false
    }

    /// Whether an error says that somebody else holds the database, so that trying again can help.
    pub(super) fn is_busy(self, error: &sqlx::Error) -> bool {
        let Self::Sqlite = self;
        // SQLITE_BUSY and SQLITE_LOCKED with their extended codes: the low byte is the primary code.
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        let code = code.and_then(|code| code.parse::<u32>().ok());
        code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_46_the_busy_timeout_comes_before_every_other_pragma() {
        let names = |role| -> Vec<String> {
            let word = |s: &String| s.split_whitespace().nth(1).unwrap_or_default().to_owned();
            Dialect::Sqlite.session(role).iter().map(word).collect()
        };
        assert_eq!(
            names(Role::Writer),
            ["busy_timeout", "journal_mode", "synchronous", "foreign_keys"]
        );
        assert_eq!(names(Role::Reader)[..4], names(Role::Writer));
    }
}
