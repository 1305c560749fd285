//! A database that outlives the stores on it: a file, or one of a real PostgreSQL server.

use std::path::PathBuf;
use std::time::Duration;

use aip_engines::Postgres;
use aip_protocol::name::Domain;
use aip_registry::{PostgresOptions, SqlStore, StoreError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

use crate::kit;

/// Where the rows are.
pub(crate) enum Place {
    Sqlite(TempDir),
    /// Its address on the server that all tests share.
    Postgres(String),
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn postgres() -> Self {
        Self::Postgres(Postgres::shared().database("registry"))
    }

    /// An empty one on the same engine.
    pub(crate) fn another(&self) -> Self {
        match self {
            Self::Sqlite(_) => Self::sqlite(),
            Self::Postgres(_) => Self::postgres(),
        }
    }

    /// A store on it, which is migrated if it has to be.
    pub(crate) async fn open(&self) -> SqlStore {
        self.try_open(&kit::domain()).await.expect("a store")
    }

    pub(crate) async fn try_open(&self, domain: &Domain) -> Result<SqlStore, StoreError> {
        match self {
            Self::Sqlite(folder) => SqlStore::open_sqlite(&file(folder), domain).await,
            Self::Postgres(url) => SqlStore::open_postgres(&migrating(url), domain).await,
        }
    }

    /// Runs statements behind the back of the stores, whatever constraints say.
    pub(crate) async fn damage(&self, statements: &str) {
        match self {
            Self::Sqlite(folder) => {
                let options = SqliteConnectOptions::new()
                    .filename(file(folder))
                    .create_if_missing(true);
                let connect = options.busy_timeout(Duration::from_secs(10)).foreign_keys(false);
                let mut conn = connect.connect().await.expect("a connection");
                let run = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()));
                run.execute(&mut conn).await.expect("damaged");
                conn.close().await.expect("closed");
            }
            Self::Postgres(url) => {
                let statements = format!("SET session_replication_role = replica; {statements}");
                Postgres::shared().sql(url, &statements);
            }
        }
    }
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("registry.sqlite")
}

/// A database that opening migrates.
pub(crate) fn migrating(url: &str) -> PostgresOptions {
    let mut options = PostgresOptions::new(url).expect("an address");
    options.migrate = true;
    options
}

/// Makes one test on each engine of every function, which takes an empty [`Place`]. On one thread, what is begun
/// together waits for the writer together; on two, it arrives as it comes.
macro_rules! on_both_engines {
    (on one thread: $($names:tt)*) => {
        $crate::place::on_both_engines!(@engine sqlite, [tokio::test], $($names)*);
        $crate::place::on_both_engines!(@engine postgres, [tokio::test], $($names)*);
    };
    (on two threads: $($names:tt)*) => {
        $crate::place::on_both_engines!(
            @engine sqlite, [tokio::test(flavor = "multi_thread", worker_threads = 2)], $($names)*
        );
        $crate::place::on_both_engines!(
            @engine postgres, [tokio::test(flavor = "multi_thread", worker_threads = 2)], $($names)*
        );
    };
    (@engine $engine:ident, $test:tt, $($name:ident),* $(,)?) => {
        mod $engine {
            $(
                #$test
                async fn $name() {
                    super::$name($crate::place::Place::$engine()).await;
                }
            )*
        }
    };
}
pub(crate) use on_both_engines;
