//! Listings and providers in the database: the questions, and where the changes begin.
//!
//! Whoever changes a listing first takes the row of `listing_log` and keeps it until the commit. So changes of listings are
//! made one transaction after the other, in every process; each may read before it decides, and the log has no gap that
//! fills up later.

mod providers;
mod rows;
pub(super) mod statements;
pub(super) mod writes;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use sqlx::any::AnyRow;

use super::SqlStore;
use super::rows::{Bind, count, to_i64};
use crate::error::StoreError;
use crate::limits::{
    LISTINGS_PAGE_MAX, LISTINGS_PER_STATEMENT_MAX, LISTINGS_PER_TRANSACTION_MAX, PUT_BYTES_PER_TRANSACTION,
};
use crate::listings::{
    ListingCounts, Listings, NewListing, NewProvider, Provider, Put, Reviewed, StoredListing, Verdict,
    is_listing_id,
};
use crate::secret::SecretHash;
use writes::{Forget, MoveUp, PutListings, ReviewListing};

impl SqlStore {
    async fn listings(
        &self,
        statement: &'static str,
        values: &[Bind<'_>],
    ) -> Result<Vec<StoredListing>, StoreError> {
        let found = self.readers.rows(statement, values).await?;
        found.iter().map(rows::stored_listing).collect()
    }

    async fn log_state(&self, name: &str) -> Result<u64, StoreError> {
        count(&self.one_row(statements::GET_LOG).await?, name)
    }

    async fn one_row(&self, statement: &'static str) -> Result<AnyRow, StoreError> {
        let found = self.readers.rows(statement, &[]).await?;
        let missing = || StoreError::Corrupt("the log of listings has no row".to_owned());
        found.into_iter().next().ok_or_else(missing)
    }

    /// Moves all listings of an agent to the end of the log, page after page.
    async fn move_up(&self, agent: &Did, removed_at: Option<Timestamp>) -> Result<u64, StoreError> {
        let (mut moved, mut after) = (0, String::new());
        loop {
            let page = MoveUp {
                dialect: self.target.dialect,
                agent: agent.clone(),
                after,
                removed_at,
            };
            let Some((listings, last)) = self.write(page).await? else {
                return Ok(moved);
            };
            moved += listings;
            after = last;
        }
    }
}

/// The most that a page has.
fn page(limit: u32) -> Bind<'static> {
    Bind::Number(i64::from(limit.min(LISTINGS_PAGE_MAX)))
}

/// What comes after this text among texts without NUL, which no engine of ours needs to keep.
fn cursor(after: Option<&str>) -> Bind<'_> {
    let text = after.and_then(|after| after.split('\0').next());
    Bind::Text(text.unwrap_or_default())
}

/// Parts that are a transaction each.
fn parts(mut new: &[NewListing]) -> impl Iterator<Item = &[NewListing]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |listing: &&NewListing| {
            bytes += listing.json.len();
            bytes <= PUT_BYTES_PER_TRANSACTION
        };
        let fitting = new
            .iter()
            .take(LISTINGS_PER_TRANSACTION_MAX)
            .take_while(fits)
            .count();
        let (part, rest) = new.split_at_checked(fitting.max(1))?;
        new = rest;
        Some(part)
    })
}

#[async_trait]
impl Listings for SqlStore {
    async fn put(&self, new: &NewListing, max_per_agent: u32, now: Timestamp) -> Result<Put, StoreError> {
        let one = std::slice::from_ref(new);
        let put = self.put_many(one, max_per_agent, now).await?.pop();
        put.ok_or_else(|| StoreError::unavailable("a version of a listing was not judged"))
    }

    async fn put_many(
        &self,
        new: &[NewListing],
        max_per_agent: u32,
        now: Timestamp,
    ) -> Result<Vec<Put>, StoreError> {
        let mut puts = Vec::with_capacity(new.len());
        for part in parts(new) {
            let part = PutListings {
                dialect: self.target.dialect,
                new: part.to_vec(),
                max_per_agent,
                now,
            };
            puts.extend(self.write(part).await?);
        }
        Ok(puts)
    }

    async fn get(&self, id: &str) -> Result<Option<StoredListing>, StoreError> {
        if !is_listing_id(id) {
            return Ok(None);
        }
        let found = self.listings(&statements::GET, &[Bind::Text(id)]).await?;
        Ok(found.into_iter().next())
    }

    async fn get_many(&self, ids: &[String]) -> Result<Vec<StoredListing>, StoreError> {
        let mut ids: Vec<_> = ids
            .iter()
            .map(String::as_str)
            .filter(|id| is_listing_id(id))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(LISTINGS_PER_STATEMENT_MAX) {
            let padded = some.iter().copied().chain(std::iter::repeat(""));
            let values: Vec<_> = padded.take(LISTINGS_PER_STATEMENT_MAX).map(Bind::Text).collect();
            found.extend(self.listings(&statements::GET_MANY, &values).await?);
        }
        Ok(found)
    }

    async fn of_agent(
        &self,
        agent: &Did,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredListing>, StoreError> {
        let values = [Bind::Text(agent.as_str()), cursor(after), page(limit)];
        self.listings(&statements::OF_AGENT, &values).await
    }

    async fn changes(&self, after: u64, limit: u32) -> Result<Vec<StoredListing>, StoreError> {
        let values = [Bind::Number(to_i64(after)), page(limit)];
        self.listings(&statements::CHANGES, &values).await
    }

    async fn latest_change(&self) -> Result<u64, StoreError> {
        self.log_state("change_seq").await
    }

    async fn complete_from(&self) -> Result<u64, StoreError> {
        self.log_state("forgotten_seq").await
    }

    async fn forget_deleted(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let dialect = self.target.dialect;
        self.write(Forget {
            dialect,
            before,
            limit,
        })
        .await
    }

    async fn remove_of(&self, agent: &Did, now: Timestamp) -> Result<u64, StoreError> {
        self.move_up(agent, Some(now)).await
    }

    async fn touch_of(&self, agent: &Did) -> Result<u64, StoreError> {
        self.move_up(agent, None).await
    }

    async fn suspects(&self, after: Option<&str>, limit: u32) -> Result<Vec<StoredListing>, StoreError> {
        self.listings(&statements::SUSPECTS, &[cursor(after), page(limit)])
            .await
    }

    async fn review(
        &self,
        id: &str,
        version: Option<u64>,
        verdict: Option<Verdict>,
    ) -> Result<Reviewed, StoreError> {
        if !is_listing_id(id) {
            return Ok(Reviewed::Unknown);
        }
        let review = ReviewListing {
            dialect: self.target.dialect,
            id: id.to_owned(),
            version,
            verdict,
        };
        self.write(review).await
    }

    async fn count_listings(&self) -> Result<ListingCounts, StoreError> {
        let row = self.one_row(statements::COUNT).await?;
        Ok(ListingCounts {
            live: count(&row, "live")?,
            deleted: count(&row, "deleted")?,
            providers: count(&row, "providers")?,
        })
    }

    async fn add_provider(&self, new: &NewProvider, now: Timestamp) -> Result<Provider, StoreError> {
        providers::add(self, new, now).await
    }

    async fn list_providers(&self, after: Option<&str>, limit: u32) -> Result<Vec<Provider>, StoreError> {
        let found = self
            .readers
            .rows(statements::LIST_PROVIDERS, &[cursor(after), page(limit)])
            .await?;
        found.iter().map(rows::provider).collect()
    }

    async fn revoke_provider(&self, id: &str, now: Timestamp) -> Result<bool, StoreError> {
        providers::revoke(self, id, now).await
    }

    async fn provider_by_secret_hash(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<Provider>, StoreError> {
        providers::by_hash(self, hash, now).await
    }
}
