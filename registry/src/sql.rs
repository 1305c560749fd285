//! The store in a database: SQLite or PostgreSQL, and made so that another SQL engine needs only its dialect.
//!
//! One task writes and commits in batches (`writer.rs`, `transaction.rs`), a few connections read
//! (`readers.rs`); the SQL text (`statements.rs`) and the row types (`rows.rs`) are the same for every
//! engine, and what differs is in `dialect.rs`.

mod backup;
mod connect;
mod copy;
mod dialect;
mod facts;
mod listings;
mod market;
mod peers;
mod postgres;
mod readers;
mod reads;
mod rows;
mod schema;
mod statements;
mod tables;
mod tally;
mod transaction;
mod upkeep;
mod writer;
mod writes;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aip_protocol::name::{Domain, Name};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::agent::AgentSummary;
use crate::directory::{
    AgentChange, AgentRecord, AppendOutcome, Counts, CreateOutcome, Directory, NewAgent, NextOperation,
};
use crate::error::StoreError;
use crate::grants::{Grants, Invite, InviteGrant, InviteId, TokenGrant, TokenOutcome, TokenRecord};
use crate::secret::SecretHash;
use connect::Target;
use readers::Readers;
use tally::Tally;
use writer::Writer;
use writes::{Revoke, Sweep, Update};

pub use backup::Backup;
pub use copy::Digest;
pub use facts::Fact;
pub use postgres::PostgresOptions;
pub use schema::Migrated;
pub use tally::SqlFigures;

/// Agents, tokens, invites, listings, providers, peers and the market's money in an SQL database.
///
/// On PostgreSQL several processes can share one database. Every call is answered in bounded time:
/// a read within [`PostgresOptions::wait_timeout_secs`] and a statement's time, a change within
/// [`WRITE_RETRY_SECS`](crate::limits::WRITE_RETRY_SECS) and an attempt's time, after it got its turn.
/// A lost connection, a restarted server, a deadlock are met by trying again within these bounds.
#[derive(Debug)]
pub struct SqlStore {
    target: Target,
    domain: Domain,
    readers: Readers,
    tally: Arc<Tally>,
    /// `None` once the store was closed.
    writer: Mutex<Option<(Writer, JoinHandle<()>)>>,
}

impl SqlStore {
    /// Opens a SQLite file, which is made if it does not exist and migrated if it is older.
    ///
    /// # Errors
    ///
    /// [`StoreError::SchemaNewer`] if a newer hub made it, [`StoreError::OtherDomain`] if it is not
    /// `domain`'s, [`StoreError::Open`] or [`StoreError::Unavailable`] if it cannot be used.
    pub async fn open_sqlite(path: &Path, domain: &Domain) -> Result<Self, StoreError> {
        Self::open(Target::sqlite(path)?, domain).await
    }

    /// Opens a database of a PostgreSQL server. An older schema is migrated if
    /// [`PostgresOptions::migrate`] says so, and refused otherwise, as is an empty database. A server
    /// that does not answer yet is waited for, up to [`OPEN_WAIT_SECS`](crate::limits::OPEN_WAIT_SECS).
    ///
    /// # Errors
    ///
    /// [`StoreError::SchemaOlder`] if it has to be migrated first, [`StoreError::SchemaNewer`] if a
    /// newer hub made it, [`StoreError::OtherDomain`] if it is not `domain`'s, [`StoreError::Open`] or
    /// [`StoreError::Unavailable`] if it cannot be used.
    pub async fn open_postgres(options: &PostgresOptions, domain: &Domain) -> Result<Self, StoreError> {
        Self::open(Target::postgres(options)?, domain).await
    }

    /// Makes or migrates a SQLite file, and leaves it closed.
    ///
    /// # Errors
    ///
    /// Those of [`Self::open_sqlite`].
    pub async fn migrate_sqlite(path: &Path, domain: &Domain) -> Result<Migrated, StoreError> {
        Target::sqlite(path)?.migrate(domain).await
    }

    /// Migrates a database of a PostgreSQL server, which must exist. Of several processes that do it
    /// at once one migrates, and the others wait for it and find it done.
    ///
    /// # Errors
    ///
    /// [`StoreError::SchemaNewer`] if a newer hub made it, [`StoreError::OtherDomain`] if it is not
    /// `domain`'s, [`StoreError::Open`] or [`StoreError::Unavailable`] if it cannot be used.
    pub async fn migrate_postgres(
        options: &PostgresOptions,
        domain: &Domain,
    ) -> Result<Migrated, StoreError> {
        Target::postgres(options)?.migrate(domain).await
    }

    async fn open(target: Target, domain: &Domain) -> Result<Self, StoreError> {
        let conn = target.open(domain).await?;
        let tally = Arc::new(Tally::default());
        let writer = Writer::start(target.clone(), conn, Arc::clone(&tally));
        Ok(Self {
            readers: Readers::new(target.clone(), Arc::clone(&tally)),
            target,
            domain: domain.clone(),
            tally,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Ends the writer after what it has in hand, and closes every connection. Later calls fail
    /// with [`StoreError::Unavailable`].
    pub async fn close(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((writer, task)) = writer {
            drop(writer);
            if let Err(error) = task.await {
                tracing::error!(%error, "the registry's writer did not end well");
            }
        }
        self.readers.close().await;
    }

    /// What happened since the store was opened, for metrics.
    pub fn figures(&self) -> SqlFigures {
        self.tally.figures()
    }

    /// Transactions committed since the store was opened. Far fewer than changes under load, since
    /// those that wait together share one.
    pub fn commits(&self) -> u64 {
        self.figures().commits
    }

    /// Whether the database answers right now, in bounded time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.readers.rows(statements::PING, &[]).await.map(drop)
    }

    fn writer(&self) -> Result<Writer, StoreError> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (writer, _) = writer
            .as_ref()
            .ok_or_else(|| StoreError::unavailable("the database is closed"))?;
        Ok(writer.clone())
    }

    async fn write<W: writer::Write>(&self, write: W) -> Result<W::Outcome, StoreError> {
        self.writer()?.write(write).await
    }
}

#[async_trait]
impl Directory for SqlStore {
    async fn create(&self, agent: NewAgent) -> Result<CreateOutcome, StoreError> {
        self.write(agent).await
    }

    async fn append(&self, next: NextOperation) -> Result<AppendOutcome, StoreError> {
        self.write(next).await
    }

    async fn get(&self, name: &Name) -> Result<Option<AgentRecord>, StoreError> {
        reads::agent(&self.readers, name).await
    }

    async fn history(&self, name: &Name, from_seq: u64, limit: u32) -> Result<Vec<String>, StoreError> {
        reads::history(&self.readers, name, from_seq, limit).await
    }

    async fn list(&self, after: Option<&Name>, limit: u32) -> Result<Vec<AgentSummary>, StoreError> {
        reads::agents(&self.readers, after, limit).await
    }

    async fn update(&self, name: &Name, change: AgentChange) -> Result<bool, StoreError> {
        self.write(Update {
            name: name.clone(),
            change,
        })
        .await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        reads::counts(&self.readers).await
    }
}

#[async_trait]
impl Grants for SqlStore {
    async fn issue_token(&self, grant: TokenGrant) -> Result<TokenOutcome, StoreError> {
        self.write(grant).await
    }

    async fn find_token(&self, hash: &SecretHash) -> Result<Option<TokenRecord>, StoreError> {
        reads::token(&self.readers, hash).await
    }

    async fn create_invite(&self, invite: InviteGrant) -> Result<(), StoreError> {
        self.write(invite).await
    }

    async fn list_invites(&self, after: Option<&InviteId>, limit: u32) -> Result<Vec<Invite>, StoreError> {
        reads::invites(&self.readers, after, limit).await
    }

    async fn revoke_invite(&self, id: &InviteId, now: Timestamp) -> Result<bool, StoreError> {
        self.write(Revoke { id: id.clone(), now }).await
    }

    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let dialect = self.target.dialect;
        self.write(Sweep { dialect, now, limit }).await
    }
}
