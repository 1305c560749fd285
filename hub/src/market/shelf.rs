//! The offers of this hub in memory: made from the listings, and following their log, as the catalog does.
//!
//! Of several listings with the same product and capability one is sold: that of the agent whose name the product is, else the
//! one with the lowest number. What cannot be called stands in nobody's way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use aip_market::offer::{Asked, Offer, Offers, Source};
use aip_market::schema::Schema;
use aip_protocol::clock::Clock;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_registry::listings::{Listings, StoredListing};
use aip_registry::{Registry, RegistryError, StoreError};
use tokio::sync::Notify;

use super::limits::{
    CHANGES_AT_ONCE_MAX, HUBS_TOLD_MAX, OFFER_BYTES_MAX, OFFER_BYTES_PER_AGENT_MAX, OFFERS_MAX,
    POLL_INTERVAL, RETRY_INTERVAL, SCHEMA_VALUE_BYTES,
};
use super::offer::{NoOffer, offer};
use crate::catalog::Quarantine;

/// Why the log could not be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// The store of listings.
    #[error("the listings cannot be read")]
    Listings(#[from] StoreError),
    /// The registry.
    #[error("their agents cannot be looked up")]
    Agents(#[from] RegistryError),
}

/// The offers of this hub.
#[derive(Debug)]
pub struct Shelf {
    listings: Arc<dyn Listings>,
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    quarantine: Quarantine,
    held: RwLock<Held>,
    changed: Notify,
    /// One at a time follows the log.
    following: tokio::sync::Mutex<()>,
}

impl Shelf {
    /// An empty shelf; [`Shelf::catch_up`] fills it.
    pub fn new(listings: Arc<dyn Listings>, registry: Arc<Registry>, clock: Arc<dyn Clock>) -> Self {
        Self {
            listings,
            registry,
            clock,
            quarantine: Quarantine::default(),
            held: RwLock::default(),
            changed: Notify::new(),
            following: tokio::sync::Mutex::default(),
        }
    }

    /// The same without what waits for the operator.
    #[must_use]
    pub fn behind(self, quarantine: Quarantine) -> Self {
        Self { quarantine, ..self }
    }

    /// Says that the log has changed.
    pub fn nudge(&self) {
        self.changed.notify_one();
    }

    /// Follows the log until it is dropped.
    pub async fn follow(&self) {
        loop {
            match self.catch_up().await {
                Ok(()) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep(POLL_INTERVAL) => {}
                },
                Err(error) => {
                    tracing::warn!(%error, "The market does not follow the store of listings");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    /// Takes up all changes that there are.
    ///
    /// # Errors
    /// They cannot be read; the offers are as they were, or a part of the changes was taken up.
    pub async fn catch_up(&self) -> Result<(), FollowError> {
        let _alone = self.following.lock().await;
        if self.is_lost().await? {
            return self.begin_anew().await;
        }
        loop {
            let (applied, _) = self.place();
            let changes = self.changes(applied).await?;
            if self.is_lost().await? {
                return self.begin_anew().await;
            }
            let Some(last) = changes.last().map(|change| change.seq) else {
                return Ok(());
            };
            let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
            for change in changes {
                held.apply(change);
            }
            held.applied = last;
        }
    }

    /// Reads the whole log beside what is held, and puts it in its place.
    async fn begin_anew(&self) -> Result<(), FollowError> {
        let mut anew = Held {
            complete_from: self.listings.complete_from().await?,
            ..Held::default()
        };
        loop {
            let changes = self.changes(anew.applied).await?;
            let Some(last) = changes.last().map(|change| change.seq) else {
                break;
            };
            for change in changes {
                anew.apply(change);
            }
            anew.applied = last;
        }
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        anew.generation = held.generation + 1;
        *held = anew;
        Ok(())
    }

    /// Whether deletions were forgotten, or the store was put back, since what is held was read.
    async fn is_lost(&self) -> Result<bool, FollowError> {
        let complete_from = self.listings.complete_from().await?;
        let latest = self.listings.latest_change().await?;
        let (applied, began_complete_from) = self.place();
        Ok(latest < applied || complete_from > applied.max(began_complete_from))
    }

    fn place(&self) -> (u64, u64) {
        let held = self.read();
        (held.applied, held.complete_from)
    }

    async fn changes(&self, after: u64) -> Result<Vec<Change>, FollowError> {
        let stored = self.listings.changes(after, CHANGES_AT_ONCE_MAX).await?;
        let mut changes = Vec::with_capacity(stored.len());
        for stored in stored {
            changes.push(self.change(stored).await?);
        }
        Ok(changes)
    }

    async fn change(&self, stored: StoredListing) -> Result<Change, FollowError> {
        let offer = if stored.deleted || self.quarantine.of(&stored).is_held() {
            Err(NoOffer::OtherKind)
        } else {
            offer(&stored)
        };
        let offer = match offer {
            Ok(offer) if self.is_open(&offer).await? => Some(offer),
            _ => None,
        };
        Ok(Change {
            seq: stored.change_seq,
            number: stored.number,
            shelved: offer.map(|offer| Shelved {
                bytes: weight(&offer, stored.json.len()),
                offer: Arc::new(offer),
                expires_at: stored.expires_at,
            }),
        })
    }

    /// Whether its agent takes part. Whether another hub does is asked at each call.
    async fn is_open(&self, offer: &Offer) -> Result<bool, FollowError> {
        if offer.source != Source::Local {
            return Ok(true);
        }
        let agent = self.registry.resolve(&offer.agent).await?;
        Ok(agent.is_some_and(|agent| agent.takes_part()))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The offer that is made by the listing with this number, if it is the one that is sold, and can be invoked.
    pub fn sold_as(&self, number: u64) -> Option<Arc<Offer>> {
        let (held, now) = (self.read(), self.clock.now());
        let shelved = held.by_number.get(&number)?;
        held.is_sold(shelved, now).then(|| shelved.offer.clone())
    }

    /// What is sold now and can be invoked, first that of this hub, in the order in which it was listed; beyond the limit what was
    /// listed last is left out, so that nobody is crowded out by who comes later, and no agent of this hub by another hub.
    pub fn sold(&self, limit: usize) -> Sold {
        let (held, now) = (self.read(), self.clock.now());
        let mut sold = Sold {
            offers: Vec::new(),
            count: 0,
            local: 0,
            generation: held.generation,
            until: None,
        };
        let mut of_peers = Vec::new();
        for shelved in held
            .by_number
            .values()
            .filter(|shelved| held.is_sold(shelved, now))
        {
            let is_local = shelved.offer.source == Source::Local;
            sold.count += 1;
            sold.local += usize::from(is_local);
            let ends = [sold.until, shelved.expires_at].into_iter().flatten();
            sold.until = ends.min();
            let place = if is_local { &mut sold.offers } else { &mut of_peers };
            if place.len() < limit {
                place.push(shelved.offer.clone());
            }
        }
        let room = limit.saturating_sub(sold.offers.len());
        sold.offers.extend(of_peers.into_iter().take(room));
        sold
    }

    /// Changes whenever an offer does.
    pub fn generation(&self) -> u64 {
        self.read().generation
    }

    /// How many offers are held.
    pub fn len(&self) -> usize {
        self.read().by_number.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Offers for Shelf {
    fn find(&self, asked: &Asked<'_>) -> Option<Arc<Offer>> {
        self.read().first(asked, self.clock.now()).cloned()
    }

    fn hubs_of(&self, product_id: &str, capability_id: &str) -> Vec<String> {
        self.read().hubs_of(product_id, capability_id, self.clock.now())
    }
}

/// What is sold at a moment.
#[derive(Debug)]
pub struct Sold {
    /// The first of the offers.
    pub offers: Vec<Arc<Offer>>,
    /// How many there are.
    pub count: usize,
    /// How many of them are of this hub.
    pub local: usize,
    /// See [`Shelf::generation`].
    pub generation: u64,
    /// When the first of them ends.
    pub until: Option<Timestamp>,
}

/// A change of a listing, as it concerns the market.
struct Change {
    seq: u64,
    number: u64,
    /// `None`: it is not sold, or not any more.
    shelved: Option<Shelved>,
}

#[derive(Debug)]
struct Shelved {
    offer: Arc<Offer>,
    expires_at: Option<Timestamp>,
    /// See [`weight`].
    bytes: usize,
}

#[derive(Debug, Default)]
struct Held {
    /// The place in the log.
    applied: u64,
    /// From where on the log was complete when it was read from its beginning.
    complete_from: u64,
    generation: u64,
    by_number: BTreeMap<u64, Shelved>,
    /// Product and capability, and the numbers of the listings that name them.
    by_ids: HashMap<(String, String), BTreeSet<u64>>,
    /// What the offers of each agent weigh.
    by_agent: HashMap<Did, usize>,
    /// What all of them weigh.
    bytes: usize,
}

impl Held {
    fn apply(&mut self, change: Change) {
        let gone = self.by_number.remove(&change.number);
        if let Some(gone) = &gone {
            let ids = ids(&gone.offer);
            if let Some(numbers) = self.by_ids.get_mut(&ids) {
                numbers.remove(&change.number);
                if numbers.is_empty() {
                    self.by_ids.remove(&ids);
                }
            }
            self.lighten(gone);
        }
        let shelved = change.shelved.filter(|shelved| self.has_room(shelved));
        if gone.is_some() || shelved.is_some() {
            self.generation += 1;
        }
        if let Some(shelved) = shelved {
            self.by_ids
                .entry(ids(&shelved.offer))
                .or_default()
                .insert(change.number);
            self.bytes += shelved.bytes;
            *self.by_agent.entry(shelved.offer.agent.clone()).or_default() += shelved.bytes;
            self.by_number.insert(change.number, shelved);
        }
    }

    /// What other hubs sell is taken while half of the shelf is free: it crowds out no agent of this hub.
    fn has_room(&self, shelved: &Shelved) -> bool {
        let of_agent = self.by_agent.get(&shelved.offer.agent).copied().unwrap_or(0);
        let parts = if shelved.offer.source == Source::Local {
            1
        } else {
            2
        };
        self.by_number.len() < OFFERS_MAX / parts
            && of_agent.saturating_add(shelved.bytes) <= OFFER_BYTES_PER_AGENT_MAX
            && self.bytes.saturating_add(shelved.bytes) <= OFFER_BYTES_MAX / parts
    }

    fn lighten(&mut self, gone: &Shelved) {
        self.bytes = self.bytes.saturating_sub(gone.bytes);
        let agent = &gone.offer.agent;
        let of_agent = self.by_agent.get(agent).copied().unwrap_or(0);
        let left = of_agent.saturating_sub(gone.bytes);
        if left == 0 {
            self.by_agent.remove(agent);
        } else {
            self.by_agent.insert(agent.clone(), left);
        }
    }

    /// Whether it can be invoked, and is what its ids name.
    fn is_sold(&self, shelved: &Shelved, now: Timestamp) -> bool {
        let offer = &shelved.offer;
        let asked = Asked {
            product_id: &offer.product_id,
            capability_id: &offer.capability_id,
            hub: offer.source.hub(),
        };
        let first = self.first(&asked, now);
        offer.way.is_some() && first.is_some_and(|first| Arc::ptr_eq(first, offer))
    }

    fn first(&self, asked: &Asked<'_>, now: Timestamp) -> Option<&Arc<Offer>> {
        self.with_ids(asked.product_id, asked.capability_id, now)
            .filter(|offer| offer.source.hub() == asked.hub)
            // Of equal ones the first, which has the lowest number.
            .min_by_key(|offer| (offer.way.is_none(), offer.product_id != offer.agent.name()))
    }

    fn hubs_of(&self, product_id: &str, capability_id: &str, now: Timestamp) -> Vec<String> {
        let hubs: BTreeSet<Option<&str>> = self
            .with_ids(product_id, capability_id, now)
            .map(|offer| offer.source.hub())
            .collect();
        let names = hubs.into_iter().map(|hub| hub.unwrap_or("local").to_owned());
        names.take(HUBS_TOLD_MAX).collect()
    }

    /// What there is of these ids now, in the order in which it was listed.
    fn with_ids(
        &self,
        product_id: &str,
        capability_id: &str,
        now: Timestamp,
    ) -> impl Iterator<Item = &Arc<Offer>> {
        let numbers = self
            .by_ids
            .get(&(product_id.to_owned(), capability_id.to_owned()));
        let shelved = numbers
            .into_iter()
            .flatten()
            .filter_map(|number| self.by_number.get(number));
        shelved
            .filter(move |shelved| shelved.expires_at.is_none_or(|end| now < end))
            .map(|shelved| &shelved.offer)
    }
}

/// What an offer weighs in memory at most: its texts are in its listing, and a schema is larger than its text.
fn weight(offer: &Offer, listing_bytes: usize) -> usize {
    let schemas = [&offer.input_schema, &offer.output_schema];
    let values: u64 = schemas
        .into_iter()
        .flatten()
        .map(|schema: &Schema| schema.work(1))
        .sum();
    let values = usize::try_from(values).unwrap_or(usize::MAX);
    values
        .saturating_mul(SCHEMA_VALUE_BYTES)
        .saturating_add(listing_bytes)
}

fn ids(offer: &Offer) -> (String, String) {
    (offer.product_id.clone(), offer.capability_id.clone())
}

#[cfg(test)]
mod tests;
