//! The catalog asks what has changed; the registry's store of listings answers.

use std::sync::Arc;

use aip_catalog::{Change, Source, SourceError};
use aip_registry::listings::{Listings, Origin, StoredListing};
use aip_registry::{Registry, StoreError};
use async_trait::async_trait;

use super::{Quarantine, entry};

/// The listings of this hub, as the catalog reads them.
#[derive(Debug)]
pub struct StoredSource {
    listings: Arc<dyn Listings>,
    registry: Arc<Registry>,
    quarantine: Quarantine,
}

impl StoredSource {
    /// The listings that `listings` keeps for the agents of `registry`.
    pub fn new(listings: Arc<dyn Listings>, registry: Arc<Registry>) -> Self {
        Self {
            listings,
            registry,
            quarantine: Quarantine::default(),
        }
    }

    /// The same without those that wait for the operator.
    #[must_use]
    pub fn behind(self, quarantine: Quarantine) -> Self {
        Self { quarantine, ..self }
    }

    async fn change(&self, stored: &StoredListing) -> Result<Change, SourceError> {
        let is_hidden = stored.deleted || self.quarantine.of(stored).is_held();
        let found = if is_hidden || !self.is_offered(stored).await? {
            None
        } else {
            let unread = |refusal| {
                // Judged by an older release, or damaged: it is kept, and not found.
                tracing::warn!(listing.id = %stored.id, %refusal, "A stored listing cannot be read and is not found");
            };
            let hub = match &stored.origin {
                Origin::Peer { .. } => stored.agent.domain(),
                Origin::Signed | Origin::Ingested { .. } => self.registry.domain().clone(),
            };
            entry(stored, hub).map_err(unread).ok()
        };
        Ok(Change {
            seq: stored.change_seq,
            number: stored.number,
            entry: found,
        })
    }

    /// Whether its agent may offer anything: one that is suspended is found again when it is let back in.
    async fn is_offered(&self, stored: &StoredListing) -> Result<bool, SourceError> {
        let agent = self.registry.resolve(&stored.agent).await;
        let agent = agent.map_err(|error| SourceError(error.to_string()))?;
        Ok(agent.is_none_or(|agent| agent.takes_part()))
    }
}

#[async_trait]
impl Source for StoredSource {
    async fn changes(&self, seq: u64, limit: usize) -> Result<Vec<Change>, SourceError> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let stored = self.listings.changes(seq, limit).await.map_err(silent)?;
        let mut changes = Vec::with_capacity(stored.len());
        for stored in &stored {
            changes.push(self.change(stored).await?);
        }
        Ok(changes)
    }

    async fn latest(&self) -> Result<u64, SourceError> {
        self.listings.latest_change().await.map_err(silent)
    }

    async fn complete_from(&self) -> Result<u64, SourceError> {
        self.listings.complete_from().await.map_err(silent)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn silent(error: StoreError) -> SourceError {
    SourceError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHub;
    use aip_registry::listings::{NewListing, Origin};

    #[actix_web::test]
    async fn what_cannot_be_read_is_gone_for_searches_and_stops_nothing() {
        let hub = TestHub::new();
        let shop = hub.registered("shop").await;
        let (listings, registry) = (hub.hub.app.listings.clone(), hub.hub.app.registry.clone());
        let damaged = NewListing {
            agent: shop.did.clone(),
            listing_id: "damaged".to_owned(),
            version: 1,
            deleted: false,
            json: b"{}".to_vec(),
            digest: [1; 32],
            origin: Origin::Signed,
            flags: Vec::new(),
            expires_at: None,
        };
        let now = aip_protocol::clock::Clock::now(&*hub.clock);
        listings.put(&damaged, 10, now).await.unwrap();
        hub.publish(&hub.listing(&shop, "good", 1, |_| {})).await;
        let source = StoredSource::new(listings, registry);
        let changes = source.changes(0, 10).await.unwrap();
        assert_eq!(changes.len(), 2);
        assert_eq!(
            (changes[0].entry.is_none(), changes[1].entry.is_some()),
            (true, true)
        );
        assert_eq!(changes[1].seq, source.latest().await.unwrap());
    }
}
