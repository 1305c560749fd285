//! Stores the rows of a provider, step by step, and says of each what became of it.

use std::collections::{BTreeSet, HashMap, HashSet};

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_registry::StoreError;
use aip_registry::listings::{Listings, NewListing, Origin, Put, StoredListing, listing_id};

use super::{Held, Quarantine, Row};

/// A provider at work.
#[derive(Debug)]
pub struct Ingest<'a> {
    /// Where listings lie.
    pub listings: &'a dyn Listings,
    /// Whose listings they are.
    pub agent: &'a Did,
    /// The provider's name, which stays with the listings.
    pub provider: &'a str,
    /// Listings that the agent may have.
    pub max_per_agent: u32,
    /// Which listings wait for the operator.
    pub quarantine: Quarantine,
}

/// What became of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The number that the row was given with.
    pub number: u64,
    /// Of the listing that it is about.
    pub listing_id: String,
    /// What was done, or why nothing was.
    pub done: Result<Done, Refusal>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The hub's id of the listing.
    pub id: String,
    /// The version that the hub holds now.
    pub version: u64,
    /// `stored`, `unchanged` or `deleted`.
    pub status: &'static str,
    /// What is odd about it.
    pub flags: Vec<String>,
    /// Whether it is kept from those who search and buy.
    pub held: Held,
}

/// What the store holds of a listing.
#[derive(Debug, Clone)]
struct Known {
    version: u64,
    /// `None` when it was deleted.
    digest: Option<[u8; 32]>,
    is_signed: bool,
    flags: Vec<String>,
    held: Held,
}

/// What is to be done about a row.
enum Plan {
    Nothing(Result<Done, Refusal>),
    Store(NewListing),
}

impl Ingest<'_> {
    /// Stores rows, in one transaction where no listing is named twice and they are not too large; each may be refused
    /// alone. Given again, they change nothing.
    ///
    /// # Errors
    /// The store failed. The last of these rows are not stored, or it is not known.
    pub async fn store(&self, rows: Vec<(u64, Row)>, now: Timestamp) -> Result<Vec<Outcome>, StoreError> {
        let mut outcomes = Vec::with_capacity(rows.len());
        let (mut part, mut named) = (Vec::new(), HashSet::new());
        for (number, row) in rows {
            if !named.insert(row.listing_id.clone()) {
                // It is judged by what became of the row before, which the store may refuse.
                outcomes.extend(self.store_distinct(std::mem::take(&mut part), now).await?);
                named = HashSet::from([row.listing_id.clone()]);
            }
            part.push((number, row));
        }
        outcomes.extend(self.store_distinct(part, now).await?);
        Ok(outcomes)
    }

    /// Stores rows that are about a listing each.
    async fn store_distinct(
        &self,
        rows: Vec<(u64, Row)>,
        now: Timestamp,
    ) -> Result<Vec<Outcome>, StoreError> {
        let held = self.held(&rows).await?;
        let (mut outcomes, mut new, mut waiting) = (Vec::with_capacity(rows.len()), Vec::new(), Vec::new());
        for (number, row) in rows {
            let id = listing_id(self.agent, &row.listing_id);
            let listing_name = row.listing_id.clone();
            let done = match self.plan(row, &id, held.get(&id)) {
                Plan::Nothing(done) => Some(done),
                Plan::Store(listing) => {
                    waiting.push((outcomes.len(), id, listing.version, listing.deleted));
                    new.push(listing);
                    None
                }
            };
            outcomes.push((number, listing_name, done));
        }
        if !new.is_empty() {
            let puts = self.listings.put_many(&new, self.max_per_agent, now).await?;
            for ((at, id, version, deleted), put) in waiting.into_iter().zip(puts) {
                if let Some((_, _, done)) = outcomes.get_mut(at) {
                    *done = Some(self.settled(id, version, deleted, put));
                }
            }
        }
        let unanswered = || Err(Refusal::new(ErrorCode::Internal, "The row was not answered for."));
        let outcome = |(number, listing_id, done): (u64, String, Option<_>)| Outcome {
            number,
            listing_id,
            done: done.unwrap_or_else(unanswered),
        };
        Ok(outcomes.into_iter().map(outcome).collect())
    }

    async fn held(&self, rows: &[(u64, Row)]) -> Result<HashMap<String, Known>, StoreError> {
        let ids: BTreeSet<String> = rows
            .iter()
            .map(|(_, row)| listing_id(self.agent, &row.listing_id))
            .collect();
        let stored = self.listings.get_many(&Vec::from_iter(ids)).await?;
        let held = |stored: StoredListing| (stored.id.clone(), Known::of(&stored, &self.quarantine));
        Ok(stored.into_iter().map(held).collect())
    }

    fn plan(&self, row: Row, id: &str, held: Option<&Known>) -> Plan {
        let live = held.is_some_and(|held| held.digest.is_some());
        let next = held.map_or(1, |held| held.version.saturating_add(1));
        match &row.offer {
            None if !live => {
                let detail = "There is no such listing to delete.";
                return Plan::Nothing(Err(Refusal::new(ErrorCode::NotFound, detail)));
            }
            // Its deletion too: what the agent took away, a feed does not bring back.
            _ if held.is_some_and(|held| held.is_signed) => {
                let detail =
                    "The agent signed this listing, or its deletion, itself: only the agent changes it.";
                return Plan::Nothing(Err(Refusal::new(ErrorCode::NotYours, detail)));
            }
            Some(offered) if held.is_some_and(|held| held.digest == Some(offered.digest)) => {
                return Plan::Nothing(Ok(Done {
                    id: id.to_owned(),
                    version: next.saturating_sub(1),
                    status: "unchanged",
                    flags: held.map(|held| held.flags.clone()).unwrap_or_default(),
                    held: held.map_or(Held::No, |held| held.held),
                }));
            }
            _ => {}
        }
        let version = row.version.unwrap_or(next);
        Plan::Store(row.into_listing(self.agent, version, self.provider))
    }

    fn settled(&self, id: String, version: u64, deleted: bool, put: Put) -> Result<Done, Refusal> {
        let (status, stored) = match put {
            Put::Stored { listing, .. } if deleted => ("deleted", listing),
            Put::Stored { listing, .. } => ("stored", listing),
            Put::Unchanged(listing) => ("unchanged", listing),
            Put::Conflict { version } => return Err(super::conflict(version)),
            Put::TooMany { max } => return Err(super::full(max)),
        };
        let held = if deleted {
            Held::No
        } else {
            self.quarantine.of(&stored)
        };
        let flags = stored.flags;
        Ok(Done {
            id,
            version,
            status,
            flags,
            held,
        })
    }
}

impl Known {
    fn of(stored: &StoredListing, quarantine: &Quarantine) -> Self {
        Self {
            version: stored.version,
            digest: (!stored.deleted).then_some(stored.digest),
            is_signed: stored.origin == Origin::Signed,
            flags: stored.flags.clone(),
            held: quarantine.of(stored),
        }
    }
}
