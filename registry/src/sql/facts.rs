//! What the registry knows about its hub beside its domain: facts that are written once and compared by every process.

use sqlx::AnyConnection;

use super::SqlStore;
use super::rows::{self, Bind};
use super::statements;
use super::writer::Write;
use crate::error::StoreError;

/// The fact that holds the public half of the hub's signing key.
const KEY_FACT: &str = "hub_key";

/// A fact, unless there is one of its name already.
struct NewFact {
    key: &'static str,
    value: String,
}

impl Write for NewFact {
    type Outcome = ();

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        let add = sqlx::query(statements::ADD_FACT)
            .bind(self.key)
            .bind(self.value.as_str());
        add.execute(conn).await.map(drop)
    }
}

impl SqlStore {
    /// The public half of the key that the hub signs with, as the first process said; `None` before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the database failed.
    pub async fn hub_key(&self) -> Result<Option<String>, StoreError> {
        let values = [Bind::Text(KEY_FACT)];
        let found = self.readers.rows(statements::GET_FACT, &values).await?;
        found.first().map(|row| rows::column(row, "value")).transpose()
    }

    /// Says which key the hub signs with, unless that was said before; answers what was said first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::OutcomeUnknown`] if the database failed.
    pub async fn claim_hub_key(&self, public: &str) -> Result<String, StoreError> {
        self.write(NewFact {
            key: KEY_FACT,
            value: public.to_owned(),
        })
        .await?;
        let missing = || StoreError::Corrupt("the hub's key is not among its facts".to_owned());
        self.hub_key().await?.ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::name::Domain;

    #[tokio::test]
    async fn the_first_key_that_is_claimed_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let domain = Domain::parse("hub.example").expect("a domain");
        let store = SqlStore::open_sqlite(&folder.path().join("db"), &domain)
            .await
            .expect("a store");
        assert_eq!(store.hub_key().await.expect("an answer"), None);
        assert_eq!(store.claim_hub_key("zOne").await.expect("an answer"), "zOne");
        assert_eq!(store.claim_hub_key("zTwo").await.expect("an answer"), "zOne");
        assert_eq!(store.hub_key().await.expect("an answer"), Some("zOne".to_owned()));
        store.close().await;
    }
}
