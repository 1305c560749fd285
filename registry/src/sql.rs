//! The store in a database: SQLite here, and made so that another SQL engine needs only its dialect.
//!
//! One task writes and commits in batches (`writer.rs`), a small pool reads (`connect.rs`); the SQL
//! text (`statements.rs`) and the row types (`rows.rs`) are the same for every engine, and what
//! differs is in `dialect.rs`.

mod connect;
mod dialect;
mod reads;
mod rows;
mod statements;
mod upkeep;
mod writer;
mod writes;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use aip_protocol::name::{Domain, Name};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use sqlx::AnyPool;
use tokio::task::JoinHandle;

use crate::agent::AgentSummary;
use crate::directory::{
    AgentChange, AgentRecord, AppendOutcome, Counts, CreateOutcome, Directory, NewAgent, NextOperation,
};
use crate::error::StoreError;
use crate::grants::{Grants, Invite, InviteGrant, InviteId, TokenGrant, TokenOutcome, TokenRecord};
use crate::secret::SecretHash;
use connect::Target;
use writer::Writer;
use writes::{Revoke, Sweep, Update};

/// Agents, tokens and invites in an SQL database.
#[derive(Debug)]
pub struct SqlStore {
    target: Target,
    readers: AnyPool,
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

    async fn open(target: Target, domain: &Domain) -> Result<Self, StoreError> {
        let conn = target.open(domain).await?;
        let readers = target.readers();
        let writer = Writer::start(target.clone(), conn);
        Ok(Self {
            target,
            readers,
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

    /// Transactions committed since the store was opened. Far fewer than changes under load, since
    /// those that wait together share one.
    pub fn commits(&self) -> u64 {
        self.writer().map_or(0, |writer| writer.commits())
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
        self.write(Sweep { now, limit }).await
    }
}
