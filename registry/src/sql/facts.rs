//! What the registry knows about its hub beside its domain: facts that are written once and compared by every process.

use sqlx::AnyConnection;

use super::SqlStore;
use super::rows::{self, Bind};
use super::statements;
use super::writer::Write;
use crate::error::StoreError;

/// Something about a hub that all of its processes must agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The public half of the key that the hub signs with.
    HubKey,
    /// The epoch of the embedded store that names and mailboxes were moved from.
    MovedFrom,
    /// When that move was complete.
    MoveDone,
}

impl Fact {
    fn key(self) -> &'static str {
        match self {
            Self::HubKey => "hub_key",
            Self::MovedFrom => "moved_from",
            Self::MoveDone => "move_done",
        }
    }
}

/// A fact: unless there is one of its name already, or in its place.
struct NewFact {
    key: &'static str,
    value: String,
    statement: &'static str,
}

impl Write for NewFact {
    type Outcome = ();

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        let add = sqlx::query(self.statement)
            .bind(self.key)
            .bind(self.value.as_str());
        add.execute(conn).await.map(drop)
    }
}

impl SqlStore {
    /// A fact, as the first process said it; `None` before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the database failed.
    pub async fn fact(&self, fact: Fact) -> Result<Option<String>, StoreError> {
        let values = [Bind::Text(fact.key())];
        let found = self.readers.rows(statements::GET_FACT, &values).await?;
        found.first().map(|row| rows::column(row, "value")).transpose()
    }

    /// Says a fact, unless it was said before; answers what was said first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::OutcomeUnknown`] if the database failed.
    pub async fn claim_fact(&self, fact: Fact, value: &str) -> Result<String, StoreError> {
        self.write(NewFact {
            key: fact.key(),
            value: value.to_owned(),
            statement: statements::ADD_FACT,
        })
        .await?;
        let missing = || StoreError::Corrupt(format!("the fact {} is not there", fact.key()));
        self.fact(fact).await?.ok_or_else(missing)
    }

    /// Says a fact anew, whatever was said before: the operator's word.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::OutcomeUnknown`] if the database failed.
    pub async fn replace_fact(&self, fact: Fact, value: &str) -> Result<(), StoreError> {
        self.write(NewFact {
            key: fact.key(),
            value: value.to_owned(),
            statement: statements::REPLACE_FACT,
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::name::Domain;

    #[tokio::test]
    async fn the_first_value_that_is_claimed_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let domain = Domain::parse("hub.example").expect("a domain");
        let store = SqlStore::open_sqlite(&folder.path().join("db"), &domain)
            .await
            .expect("a store");
        let fact = Fact::HubKey;
        assert_eq!(store.fact(fact).await.expect("an answer"), None);
        assert_eq!(store.claim_fact(fact, "zOne").await.expect("an answer"), "zOne");
        assert_eq!(store.claim_fact(fact, "zTwo").await.expect("an answer"), "zOne");
        assert_eq!(
            store.fact(fact).await.expect("an answer"),
            Some("zOne".to_owned())
        );
        store.replace_fact(fact, "zTwo").await.expect("an answer");
        assert_eq!(
            store.fact(fact).await.expect("an answer").as_deref(),
            Some("zTwo")
        );
        assert_eq!(store.fact(Fact::MovedFrom).await.expect("an answer"), None);
        store.close().await;
    }
}
