//! Listings and providers in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use super::MemoryStore;
use crate::error::StoreError;
use crate::limits::LISTINGS_PAGE_MAX;
use crate::listings::{
    Holding, Ledger, ListingCounts, Listings, NewListing, NewProvider, Provider, Put, Reviewed,
    StoredListing, Verdict, listing_id,
};
use crate::secret::SecretHash;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    ledger: Ledger,
    /// Which listing changed at which place.
    log: BTreeMap<u64, String>,
    /// The last place whose tombstone was forgotten.
    forgotten_seq: u64,
    providers: BTreeMap<String, (SecretHash, Provider)>,
}

impl Shelf {
    fn put(&mut self, new: &NewListing, max_per_agent: u32, now: Timestamp) -> Put {
        let id = listing_id(&new.agent, &new.listing_id);
        let before = self.ledger.rows.get(&id).map(|stored| stored.change_seq);
        let put = self.ledger.put(new, max_per_agent, now);
        if let Put::Stored { listing, .. } = &put {
            before.map(|seq| self.log.remove(&seq));
            self.log.insert(listing.change_seq, id);
        }
        put
    }

    fn review(&mut self, id: &str, version: Option<u64>, verdict: Option<Verdict>) -> Reviewed {
        let before = self.ledger.rows.get(id).map(|stored| stored.change_seq);
        let reviewed = self.ledger.review(id, version, verdict);
        if let Reviewed::Done(listing) = &reviewed {
            before.map(|seq| self.log.remove(&seq));
            self.log.insert(listing.change_seq, id.to_owned());
        }
        reviewed
    }

    /// Gives the listings of an agent new places, and has `change` done to them.
    fn move_up(&mut self, agent: &Did, change: impl Fn(&mut StoredListing)) -> u64 {
        let Ledger { log, rows, .. } = &mut self.ledger;
        let mut moved = 0;
        let of_agent = |stored: &&mut StoredListing| stored.agent == *agent && !stored.deleted;
        for stored in rows.values_mut().filter(of_agent) {
            self.log.remove(&stored.change_seq);
            stored.change_seq = log.next_change();
            self.log.insert(stored.change_seq, stored.id.clone());
            change(stored);
            moved += 1;
        }
        moved
    }

    fn forget_deleted(&mut self, before: Timestamp, limit: u32) -> u64 {
        let rows = &self.ledger.rows;
        let tombstones = self
            .log
            .iter()
            .filter_map(|(seq, id)| rows.get(id).map(|row| (*seq, row)));
        let old = tombstones.filter(|(_, row)| row.deleted && row.stored_at < before);
        let Some((last, _)) = old.take(limit as usize).last() else {
            return 0;
        };
        let Ledger { rows, holdings, .. } = &mut self.ledger;
        let forgotten: Vec<_> = rows
            .extract_if(.., |_, row| row.deleted && row.change_seq <= last)
            .collect();
        for (_, row) in &forgotten {
            self.log.remove(&row.change_seq);
            if let Some(holding) = holdings.get_mut(&row.agent) {
                holding.deleted = holding.deleted.saturating_sub(1);
            }
        }
        holdings.retain(|_, holding| *holding != Holding::default());
        self.forgotten_seq = last;
        forgotten.len() as u64
    }
}

/// As many as a page may have.
fn page(limit: u32) -> usize {
    limit.min(LISTINGS_PAGE_MAX) as usize
}

#[async_trait]
impl Listings for MemoryStore {
    async fn put(&self, new: &NewListing, max_per_agent: u32, now: Timestamp) -> Result<Put, StoreError> {
        Ok(self.state().shelf.put(new, max_per_agent, now))
    }

    async fn put_many(
        &self,
        new: &[NewListing],
        max_per_agent: u32,
        now: Timestamp,
    ) -> Result<Vec<Put>, StoreError> {
        let shelf = &mut self.state().shelf;
        Ok(new.iter().map(|new| shelf.put(new, max_per_agent, now)).collect())
    }

    async fn get(&self, id: &str) -> Result<Option<StoredListing>, StoreError> {
        Ok(self.state().shelf.ledger.rows.get(id).cloned())
    }

    async fn get_many(&self, ids: &[String]) -> Result<Vec<StoredListing>, StoreError> {
        let rows = &self.state().shelf.ledger.rows;
        let found = ids.iter().filter_map(|id| rows.get_key_value(id));
        let found: BTreeMap<_, _> = found.collect();
        Ok(found.into_values().cloned().collect())
    }

    async fn of_agent(
        &self,
        agent: &Did,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredListing>, StoreError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = &self.state().shelf.ledger.rows;
        let after = rows
            .range::<str, _>((start, Bound::Unbounded))
            .map(|(_, row)| row);
        let own = after.filter(|row| row.agent == *agent && !row.deleted);
        Ok(own.take(page(limit)).cloned().collect())
    }

    async fn changes(&self, after: u64, limit: u32) -> Result<Vec<StoredListing>, StoreError> {
        let shelf = &self.state().shelf;
        let log = shelf.log.range((Bound::Excluded(after), Bound::Unbounded));
        let rows = log.filter_map(|(_, id)| shelf.ledger.rows.get(id));
        Ok(rows.take(page(limit)).cloned().collect())
    }

    async fn latest_change(&self) -> Result<u64, StoreError> {
        Ok(self.state().shelf.ledger.log.change_seq)
    }

    async fn complete_from(&self) -> Result<u64, StoreError> {
        Ok(self.state().shelf.forgotten_seq)
    }

    async fn forget_deleted(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        Ok(self.state().shelf.forget_deleted(before, limit))
    }

    async fn remove_of(&self, agent: &Did, now: Timestamp) -> Result<u64, StoreError> {
        let shelf = &mut self.state().shelf;
        let stored_at = Timestamp::from_unix_millis(now.unix_millis());
        let removed = shelf.move_up(agent, |row| {
            (row.deleted, row.stored_at, row.expires_at) = (true, stored_at, None);
            row.json.clear();
            row.flags.clear();
        });
        if let Some(holding) = shelf.ledger.holdings.get_mut(agent) {
            holding.live = 0;
            holding.deleted += removed;
        }
        Ok(removed)
    }

    async fn touch_of(&self, agent: &Did) -> Result<u64, StoreError> {
        Ok(self.state().shelf.move_up(agent, |_| {}))
    }

    async fn suspects(&self, after: Option<&str>, limit: u32) -> Result<Vec<StoredListing>, StoreError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = &self.state().shelf.ledger.rows;
        let after = rows
            .range::<str, _>((start, Bound::Unbounded))
            .map(|(_, row)| row);
        let suspect =
            |row: &&StoredListing| !row.deleted && (!row.flags.is_empty() || row.trail.review.is_some());
        Ok(after.filter(suspect).take(page(limit)).cloned().collect())
    }

    async fn review(
        &self,
        id: &str,
        version: Option<u64>,
        verdict: Option<Verdict>,
    ) -> Result<Reviewed, StoreError> {
        Ok(self.state().shelf.review(id, version, verdict))
    }

    async fn count_listings(&self) -> Result<ListingCounts, StoreError> {
        let shelf = &self.state().shelf;
        let holdings = || shelf.ledger.holdings.values();
        Ok(ListingCounts {
            live: holdings().map(|holding| holding.live).sum(),
            deleted: holdings().map(|holding| holding.deleted).sum(),
            providers: shelf.providers.len() as u64,
        })
    }

    async fn add_provider(&self, new: &NewProvider, now: Timestamp) -> Result<Provider, StoreError> {
        let made = Provider::made(new, now);
        let providers = &mut self.state().shelf.providers;
        providers.insert(made.id.clone(), (new.hash, made.clone()));
        Ok(made)
    }

    async fn list_providers(&self, after: Option<&str>, limit: u32) -> Result<Vec<Provider>, StoreError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let providers = &self.state().shelf.providers;
        let range = providers.range::<str, _>((start, Bound::Unbounded));
        let page = range.take(page(limit)).map(|(_, (_, provider))| provider);
        Ok(page.cloned().collect())
    }

    async fn revoke_provider(&self, id: &str, now: Timestamp) -> Result<bool, StoreError> {
        match self.state().shelf.providers.get_mut(id) {
            Some((_, provider)) if provider.revoked_at.is_none() => {
                provider.revoked_at = Some(Timestamp::from_unix_millis(now.unix_millis()));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn provider_by_secret_hash(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<Provider>, StoreError> {
        let mut state = self.state();
        let known = state.shelf.providers.get_mut(&Provider::id_of(*hash));
        let good = known.filter(|(stored, provider)| stored.matches(hash) && provider.revoked_at.is_none());
        Ok(good.map(|(_, provider)| {
            let found = provider.clone();
            if provider.is_use_noted(now) {
                provider.last_used_at = Some(Timestamp::from_unix_millis(now.unix_millis()));
            }
            found
        }))
    }
}
