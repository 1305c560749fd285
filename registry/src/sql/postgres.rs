//! Where a PostgreSQL database is, and how patient to be with it.

use std::fmt;
use std::time::Duration;

use url::Url;

use super::dialect::Patience;
use crate::error::StoreError;
use crate::limits::{
    IDLE_IN_TRANSACTION_SECS, POSTGRES_CONNECT_SECS, POSTGRES_CONNECTIONS_MAX, POSTGRES_LOCK_SECS,
    POSTGRES_STATEMENT_SECS, READ_WAIT_SECS,
};

/// What an address may carry behind its `?`. Anything else is a slip of the pen, and its value may be
/// a password.
const PARAMETERS: [&str; 12] = [
    "application_name",
    "dbname",
    "host",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// A PostgreSQL database. Its address holds a password: neither `Debug` nor any error shows it.
#[derive(Clone)]
pub struct PostgresOptions {
    url: Url,
    /// What the server shows as the name of our sessions (`pg_stat_activity.application_name`),
    /// unless the address carries one.
    pub application_name: String,
    /// Connections of this store, the writer's included; at least 2.
    pub connections_max: u32,
    /// Time for a connection to be made, in seconds.
    pub connect_timeout_secs: u64,
    /// Time that a read waits for a free connection, in seconds.
    pub wait_timeout_secs: u64,
    /// Time that a statement may take, in seconds.
    pub statement_timeout_secs: u64,
    /// Time that a statement waits for a lock, in seconds.
    pub lock_timeout_secs: u64,
    /// Time after which the server ends a session that is silent within a transaction, in seconds.
    pub idle_in_transaction_timeout_secs: u64,
    /// Whether opening migrates an older schema instead of refusing it.
    pub migrate: bool,
}

impl PostgresOptions {
    /// The database at `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with `?sslmode=verify-full`
    /// and the like; what is left out comes from libpq's environment variables and password file.
    ///
    /// # Errors
    ///
    /// [`StoreError::Open`] with a sentence that does not repeat the address.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let refused = |why: &str| {
            Err(StoreError::Open(format!(
                "its address {why} (it is not shown, as it may hold a password)"
            )))
        };
        let Ok(url) = Url::parse(url) else {
            return refused(
                "is no URL: write postgres://USER:PASSWORD@HOST:5432/DATABASE, and %-encode odd characters",
            );
        };
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return refused("does not begin with postgres://");
        }
        if let Some((key, _)) = url
            .query_pairs()
            .find(|(key, _)| !PARAMETERS.contains(&key.as_ref()) && !key.starts_with("options["))
        {
            let known = PARAMETERS.join(", ");
            return refused(&format!("has a parameter {key:?}, which is none of {known}"));
        }
        Ok(Self {
            url,
            application_name: "aip-hub".to_owned(),
            connections_max: POSTGRES_CONNECTIONS_MAX,
            connect_timeout_secs: POSTGRES_CONNECT_SECS,
            wait_timeout_secs: READ_WAIT_SECS,
            statement_timeout_secs: POSTGRES_STATEMENT_SECS,
            lock_timeout_secs: POSTGRES_LOCK_SECS,
            idle_in_transaction_timeout_secs: IDLE_IN_TRANSACTION_SECS,
            migrate: false,
        })
    }

    /// The address as the driver takes it.
    pub(super) fn address(&self) -> Url {
        let mut url = self.url.clone();
        if !url.query_pairs().any(|(key, _)| key == "application_name") {
            url.query_pairs_mut()
                .append_pair("application_name", &self.application_name);
        }
        url
    }

    pub(super) fn patience(&self) -> Patience {
        Patience {
            connect: Duration::from_secs(self.connect_timeout_secs),
            wait: Duration::from_secs(self.wait_timeout_secs),
            statement: Duration::from_secs(self.statement_timeout_secs),
            lock: Duration::from_secs(self.lock_timeout_secs),
            idle_in_transaction: Duration::from_secs(self.idle_in_transaction_timeout_secs),
        }
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("url", &"(redacted)")
            .field("connections_max", &self.connections_max)
            .field("patience", &self.patience())
            .field("migrate", &self.migrate)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_or_refused_without_repeating_it() {
        let good = PostgresOptions::new("postgres://hub:s3cret@db.example:5433/aip?sslmode=verify-full");
        let good = good.expect("an address");
        assert_eq!(
            good.address().as_str(),
            "postgres://hub:s3cret@db.example:5433/aip?sslmode=verify-full&application_name=aip-hub"
        );
        assert!(!format!("{good:?}").contains("s3cret"));
        for bad in [
            "hub:s3cret@db.example/aip",
            "mysql://hub:s3cret@db.example/aip",
            "postgres://hub:s3cret@db.example:port/aip",
            "postgres://hub@db.example/aip?pasword=s3cret",
        ] {
            let refused = PostgresOptions::new(bad).expect_err(bad).to_string();
            assert!(!refused.contains("s3cret"), "{refused}");
        }
    }

    #[test]
    fn a_name_of_the_operators_own_stays() {
        let url = "postgres:///aip?host=/run/postgresql&application_name=mine";
        assert_eq!(
            PostgresOptions::new(url).expect("an address").address().as_str(),
            url
        );
    }
}
