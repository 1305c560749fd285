//! Providers: their keys made, looked up, used and revoked.

use aip_protocol::time::Timestamp;
use sqlx::AnyConnection;

use super::rows;
use super::statements;
use crate::error::StoreError;
use crate::listings::{NewProvider, Provider};
use crate::secret::SecretHash;
use crate::sql::SqlStore;
use crate::sql::rows::{Bind, column};
use crate::sql::writer::Write;

/// A provider's row.
struct Add {
    provider: Provider,
    hash: SecretHash,
}

impl Write for Add {
    type Outcome = ();

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        let add = sqlx::query(statements::ADD_PROVIDER)
            .bind(self.provider.id.as_str())
            .bind(self.hash.to_hex())
            .bind(self.provider.name.as_str())
            .bind(self.provider.agent.as_str())
            .bind(self.provider.created_at.unix_millis());
        add.execute(conn).await.map(drop)
    }
}

/// Something that happened to a provider: its end, or its use.
struct Mark {
    statement: &'static str,
    id: String,
    at: Timestamp,
}

impl Write for Mark {
    type Outcome = bool;

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<bool> {
        let mark = sqlx::query(self.statement)
            .bind(self.id.as_str())
            .bind(self.at.unix_millis());
        Ok(mark.execute(conn).await?.rows_affected() == 1)
    }
}

pub(super) async fn add(store: &SqlStore, new: &NewProvider, now: Timestamp) -> Result<Provider, StoreError> {
    let provider = Provider::made(new, now);
    store
        .write(Add {
            provider: provider.clone(),
            hash: new.hash,
        })
        .await?;
    Ok(provider)
}

pub(super) async fn revoke(store: &SqlStore, id: &str, now: Timestamp) -> Result<bool, StoreError> {
    if !Provider::is_id(id) {
        return Ok(false);
    }
    store
        .write(Mark {
            statement: statements::REVOKE_PROVIDER,
            id: id.to_owned(),
            at: now,
        })
        .await
}

pub(super) async fn by_hash(
    store: &SqlStore,
    hash: &SecretHash,
    now: Timestamp,
) -> Result<Option<Provider>, StoreError> {
    let hex = hash.to_hex();
    let found = store
        .readers
        .rows(statements::FIND_PROVIDER, &[Bind::Text(&hex)])
        .await?;
    let Some(row) = found.first() else {
        return Ok(None);
    };
    let stored: String = column(row, "hash")?;
    let is_same = SecretHash::from_hex(&stored).is_some_and(|stored| stored.matches(hash));
    let provider = rows::provider(row)?;
    if !is_same || provider.revoked_at.is_some() {
        return Ok(None);
    }
    if provider.is_use_noted(now) {
        let used = Mark {
            statement: statements::USE_PROVIDER,
            id: provider.id.clone(),
            at: now,
        };
        // The key is good whether or not its use can be written down.
        if let Err(error) = store.write(used).await {
            tracing::warn!(%error, provider.id = %provider.id, "the use of a provider's key was not noted");
        }
    }
    Ok(Some(provider))
}
