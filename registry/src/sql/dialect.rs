//! The seam between SQL dialects: everything in which engines differ, and nothing else.
//!
//! Schema and statements are one text for all (`statements.rs`, `migrations/`); rows hold only text
//! and 64-bit integers. Another engine is another variant here, a constructor in [`super::SqlStore`],
//! and a run of the contract suite.

use std::time::Duration;

use crate::limits::{ANSWER_GRACE_SECS, MIGRATION_WAIT_SECS, READ_WAIT_SECS, SQLITE_BUSY_MS};

/// An SQL engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// SQLite in WAL mode, one file.
    Sqlite,
    /// A PostgreSQL server, over a network that can fail.
    Postgres(Patience),
}

/// How long things may take on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// To make a connection.
    pub(super) connect: Duration,
    /// To wait for a free connection.
    pub(super) wait: Duration,
    /// To run one statement, or those of one change, or a commit.
    pub(super) statement: Duration,
    /// To wait for a lock within a statement.
    pub(super) lock: Duration,
    /// To be silent within a transaction, after which the server frees its locks.
    pub(super) idle_in_transaction: Duration,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The only connection that changes anything.
    Writer,
    /// One of the pool that reads.
    Reader,
    /// Changes the schema or a great many rows, and takes its time.
    Maintainer,
    /// Reads everything, and takes its time.
    Checker,
}

impl Role {
    fn only_reads(self) -> bool {
        matches!(self, Self::Reader | Self::Checker)
    }

    fn takes_its_time(self) -> bool {
        matches!(self, Self::Maintainer | Self::Checker)
    }
}

/// What an error means for what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Somebody else was in the way: the same transaction can succeed when it is run again.
    Busy,
    /// The connection, or the server behind it, is gone or going: a new one can succeed.
    Lost,
    /// It would fail again.
    Other,
}

impl Dialect {
    /// What every new connection runs before anything else, in this order.
    pub(super) fn session(self, role: Role) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite_session(role),
            Self::Postgres(patience) => vec![postgres_session(patience, role)],
        }
    }

    /// Begins a transaction that is going to write.
    ///
    /// On SQLite a deferred one could not be upgraded once somebody else had written, however long
    /// it waits. On PostgreSQL every change decides by the rows that its statement touched, which
    /// READ COMMITTED judges anew after each wait for another transaction; both are said in full, so
    /// that no default of the server changes them, and a server that became a standby says no.
    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres(_) => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        }
    }

    /// Begins a transaction that sees everything as it is at its first statement.
    pub(super) fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN DEFERRED",
            Self::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Makes a sweep leave alone what another process sweeps at the same time. SQLite has one writer.
    pub(super) fn skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres(_) => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Keeps the rows that are read until the commit. SQLite has one writer.
    pub(super) fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres(_) => " FOR UPDATE",
        }
    }

    /// How long a connection may take to be made. A file opens or it does not.
    pub(super) fn connect_limit(self) -> Option<Duration> {
        self.patience().map(|patience| patience.connect)
    }

    /// How long an answer may take here, where the server itself says no a little earlier. A file
    /// does not fall silent for longer than its disk does.
    pub(super) fn answer_limit(self) -> Option<Duration> {
        self.patience()
            .map(|patience| patience.statement + Duration::from_secs(ANSWER_GRACE_SECS))
    }

    /// How long a reader waits for its turn.
    pub(super) fn turn_limit(self) -> Duration {
        self.patience()
            .map_or(Duration::from_secs(READ_WAIT_SECS), |patience| patience.wait)
    }

    /// How long a read may take in all, its turn and every new attempt included.
    pub(super) fn read_limit(self) -> Option<Duration> {
        self.answer_limit().map(|answer| self.turn_limit() + answer)
    }

    /// Whether a connection can die while nobody uses it.
    pub(super) fn loses_idle_connections(self) -> bool {
        self.patience().is_some()
    }

    /// What an error means.
    pub(super) fn verdict(self, error: &sqlx::Error) -> Verdict {
        match self {
            Self::Sqlite if is_sqlite_busy(error) => Verdict::Busy,
            Self::Sqlite => Verdict::Other,
            Self::Postgres(_) => postgres_verdict(error),
        }
    }

    /// Whether an error of a COMMIT says that nothing was committed; any other one leaves it open.
    pub(super) fn is_rolled_back(self, error: &sqlx::Error) -> bool {
        // Class 40 is "transaction rollback", but for the one that says it is not known.
        let rolled_back = |code: String| code.starts_with("40") && code != "40003";
        self.patience().is_some() && code(error).is_some_and(rolled_back)
    }

    /// Whether an error says that there is no such table.
    pub(super) fn is_missing_table(self, error: &sqlx::Error) -> bool {
        self.patience().is_some() && code(error).as_deref() == Some("42P01")
    }

    fn patience(self) -> Option<Patience> {
        match self {
            Self::Sqlite => None,
            Self::Postgres(patience) => Some(patience),
        }
    }
}

/// The patience comes first, since the very next statement can meet another process's lock; WAL lets
/// readers and the writer work side by side; FULL syncs the log at every commit, so that what was
/// answered survives a power cut.
fn sqlite_session(role: Role) -> Vec<String> {
    let mut pragmas = vec![
        format!("PRAGMA busy_timeout = {SQLITE_BUSY_MS}"),
        "PRAGMA journal_mode = WAL".to_owned(),
        "PRAGMA synchronous = FULL".to_owned(),
        "PRAGMA foreign_keys = ON".to_owned(),
    ];
    if role.only_reads() {
        pragmas.push("PRAGMA query_only = ON".to_owned());
    }
    pragmas
}

/// One trip for all. A commit waits for the log whatever the server's default is.
fn postgres_session(patience: Patience, role: Role) -> String {
    let long = Duration::from_secs(MIGRATION_WAIT_SECS);
    let (statement, lock, idle) = if role.takes_its_time() {
        (Duration::ZERO, long, long)
    } else {
        (patience.statement, patience.lock, patience.idle_in_transaction)
    };
    let read_only = if role.only_reads() { "on" } else { "off" };
    format!(
        "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
         SET synchronous_commit = on; SET client_min_messages = warning; \
         SET default_transaction_read_only = {read_only}",
        statement.as_millis(),
        lock.as_millis(),
        idle.as_millis()
    )
}

fn code(error: &sqlx::Error) -> Option<String> {
    let code = error.as_database_error()?.code()?;
    Some(code.into_owned())
}

/// `SQLITE_BUSY` and `SQLITE_LOCKED` with their extended codes: the low byte is the primary code.
fn is_sqlite_busy(error: &sqlx::Error) -> bool {
    let code = code(error).and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// By SQLSTATE (appendix A of PostgreSQL's manual), or by the want of one.
fn postgres_verdict(error: &sqlx::Error) -> Verdict {
    let Some(code) = code(error) else {
        return match error {
            // How a certificate that is not trusted shows.
            sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => Verdict::Other,
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::BeginFailed => Verdict::Lost,
            _ => Verdict::Other,
        };
    };
    match code.as_str() {
        // Serialization failure, deadlock, no lock in time, cancelled (by the statement's time-out).
        "40001" | "40P01" | "55P03" | "57014" => Verdict::Busy,
        // Shut down, crashed, starting up, ended for its silence, no connection free, became a standby.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "53300" | "25006" => Verdict::Lost,
        code if code.starts_with("08") => Verdict::Lost,
        _ => Verdict::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        connect: Duration::from_secs(1),
        wait: Duration::from_secs(2),
        statement: Duration::from_secs(3),
        lock: Duration::from_secs(4),
        idle_in_transaction: Duration::from_secs(5),
    };

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

    #[test]
    fn a_session_on_a_server_has_its_limits_unless_it_takes_its_time() {
        let session = |role| Dialect::Postgres(PATIENCE).session(role).concat();
        let reader = session(Role::Reader);
        assert!(
            reader.contains("SET statement_timeout = 3000;") && reader.contains("SET lock_timeout = 4000;")
        );
        assert!(reader.contains("read_only = on") && session(Role::Writer).contains("read_only = off"));
        assert!(session(Role::Maintainer).contains("SET statement_timeout = 0;"));
        for role in [Role::Writer, Role::Reader, Role::Maintainer, Role::Checker] {
            assert!(session(role).contains("SET synchronous_commit = on;"), "{role:?}");
        }
    }

    #[test]
    fn what_did_not_come_from_the_server_means_that_the_connection_is_lost() {
        let io = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert_eq!(Dialect::Postgres(PATIENCE).verdict(&io), Verdict::Lost);
        assert_eq!(Dialect::Sqlite.verdict(&io), Verdict::Other);
        let configuration = sqlx::Error::Configuration("no".into());
        assert_eq!(
            Dialect::Postgres(PATIENCE).verdict(&configuration),
            Verdict::Other
        );
        assert!(!Dialect::Postgres(PATIENCE).is_rolled_back(&io));
    }

    #[test]
    fn a_read_is_bounded_by_its_turn_and_its_answer() {
        let grace = Duration::from_secs(ANSWER_GRACE_SECS);
        assert_eq!(
            Dialect::Postgres(PATIENCE).read_limit(),
            Some(Duration::from_secs(5) + grace)
        );
        assert_eq!(Dialect::Sqlite.read_limit(), None);
    }
}
