//! What a peer sells, as listings of this hub: put there, renewed, and taken away. From there on it is found, shown and sold as
//! what the agents of this hub offer, until nobody has renewed it for a while.

use std::collections::{BTreeMap, BTreeSet};

use aip_market::limits::{PEER_FRESH, PEER_RENEWED_BEFORE};
use aip_market::peers::MarketPeer;
use aip_protocol::error::Refusal;
use aip_protocol::json::{Json, Object};
use aip_protocol::listing::{ListingKind, Offer};
use aip_protocol::name::{Did, Domain, HUB_NAME, Handle, Name};
use aip_protocol::time::Timestamp;
use aip_registry::StoreError;
use aip_registry::limits::LISTINGS_PAGE_MAX;
use aip_registry::listings::{Listings, NewListing, Origin, StoredListing, listing_id};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::error::CrawlError;
use super::row::Row;
use crate::catalog::flags;
use crate::market::limits::LISTINGS_PER_HOST_MAX;

/// The end of a domain that is nobody's (RFC 6761), for peers whose host is none.
const NO_DOMAIN: &str = "invalid";
/// Hexadecimal digits of a hash in a name.
const NAME_DIGITS: usize = 16;
/// Those of a listing's id.
const ID_DIGITS: usize = 40;
/// What differs between two listings that say the same.
const FRAME: [&str; 3] = ["version", "created_at", "expires_at"];

/// Puts listings of peers where those of this hub are.
#[derive(Debug)]
pub(super) struct Shelving<'a> {
    pub(super) listings: &'a dyn Listings,
    /// The domain of this hub, which is no peer's.
    pub(super) own: &'a Domain,
    pub(super) now: Timestamp,
}

impl Shelving<'_> {
    /// Makes the listings of a peer these, and no others; says how many changed.
    ///
    /// # Errors
    /// The store. Some of them may have changed; the next time does the rest.
    pub(super) async fn shelve(&self, peer: &MarketPeer, rows: &[Row]) -> Result<usize, CrawlError> {
        let agent = agent_of(&peer.url, self.own)?;
        let held = self.held(&agent, &peer.url, rows).await?;
        let mut new = Vec::new();
        let mut kept = BTreeSet::new();
        for row in rows {
            let own_id = own_id(&peer.url, row);
            let id = listing_id(&agent, &own_id);
            let wanted = self.wanted(peer, &agent, own_id, row);
            if let Some(listing) = wanted.against(held.get(&id), self.now) {
                new.push(listing);
            }
            kept.insert(id);
        }
        let gone = held
            .values()
            .filter(|stored| !stored.deleted && !kept.contains(&stored.id));
        new.extend(gone.map(deletion));
        Ok(self.put(&new).await?)
    }

    /// Takes away all that a peer sold here; says how much.
    ///
    /// # Errors
    /// The store.
    pub(super) async fn take_down(&self, url: &str) -> Result<usize, CrawlError> {
        let agent = agent_of(url, self.own)?;
        let held = self.held(&agent, url, &[]).await?;
        let gone: Vec<_> = held
            .values()
            .filter(|stored| !stored.deleted)
            .map(deletion)
            .collect();
        Ok(self.put(&gone).await?)
    }

    async fn put(&self, new: &[NewListing]) -> Result<usize, StoreError> {
        if !new.is_empty() {
            // How many each peer may have was decided before. This bounds what is remembered of what it took away, too.
            self.listings
                .put_many(new, LISTINGS_PER_HOST_MAX, self.now)
                .await?;
        }
        Ok(new.len())
    }

    /// What is stored of the peer: its listings, and the tombstones of these rows.
    async fn held(
        &self,
        agent: &Did,
        url: &str,
        rows: &[Row],
    ) -> Result<BTreeMap<String, StoredListing>, StoreError> {
        let ids: Vec<_> = rows
            .iter()
            .map(|row| listing_id(agent, &own_id(url, row)))
            .collect();
        let mut held: Vec<StoredListing> = self.listings.get_many(&ids).await?;
        let mut after = None;
        loop {
            let page = self
                .listings
                .of_agent(agent, after.as_deref(), LISTINGS_PAGE_MAX)
                .await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            // Peers at one host share an agent.
            let its = |stored: &StoredListing| matches!(&stored.origin, Origin::Peer { hub } if hub == url);
            held.extend(page.into_iter().filter(its));
        }
        Ok(held
            .into_iter()
            .map(|stored| (stored.id.clone(), stored))
            .collect())
    }

    fn wanted(&self, peer: &MarketPeer, agent: &Did, own_id: String, row: &Row) -> Wanted {
        let mut offer = Offer::new(ListingKind::Capability, own_id, row.name.as_str());
        offer.description.clone_from(&row.description);
        offer.price = Some(row.price.to_string());
        offer.currency = Some("USD".to_owned());
        offer.expires_at = Some(self.now + PEER_FRESH);
        let attributes = [
            ("product_id", Some(row.product_id.as_str())),
            ("capability_id", Some(row.capability_id.as_str())),
            ("category", row.category.as_deref()),
            ("source_hub", Some(peer.url.as_str())),
        ];
        for (name, value) in attributes {
            if let Some(value) = value {
                offer.attributes.insert(name, value);
            }
        }
        offer
            .extra
            .insert("invoke", Json::from([("peer", Json::from(true))]));
        offer.extra.insert("source_hub_name", peer.name());
        for (name, schema) in [
            ("input_schema", &row.input_schema),
            ("output_schema", &row.output_schema),
        ] {
            if let Some(schema) = schema {
                offer.extra.insert(name, spelled(schema));
            }
        }
        Wanted {
            agent: agent.clone(),
            hub: peer.url.clone(),
            offer,
        }
    }
}

/// A schema in a listing, which holds no floats: one that has some is there as text.
fn spelled(schema: &Value) -> Json {
    Json::try_from(schema.clone()).unwrap_or_else(|_refusal| Json::from(schema.to_string()))
}

/// The agent that the listings of a peer have: `hub` at its host.
///
/// # Errors
/// None: what is made here has the form of a domain and a name.
pub(super) fn agent_of(url: &str, own: &Domain) -> Result<Did, Refusal> {
    let parsed = Url::parse(url).ok();
    let place = parsed.as_ref().and_then(|url| {
        let host = url.host_str()?;
        Some(
            url.port()
                .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
        )
    });
    let domain = place.and_then(|place| Domain::parse(&place).ok());
    let domain = match domain.filter(|domain| domain != own) {
        Some(domain) => domain,
        None => Domain::parse(&format!("hub-{}.{NO_DOMAIN}", hash(&[url], NAME_DIGITS)))?,
    };
    let name = Name::parse(HUB_NAME)?;
    Ok(Handle { name, domain }.did())
}

/// A peer's listing has an id of its own, the same every time.
fn own_id(url: &str, row: &Row) -> String {
    format!(
        "peer_{}",
        hash(&[url, &row.product_id, &row.capability_id], ID_DIGITS)
    )
}

fn hash(parts: &[&str], digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    let mut text = hex::encode(hash.finalize());
    text.truncate(digits);
    text
}

/// A listing as it should be.
struct Wanted {
    agent: Did,
    hub: String,
    offer: Offer,
}

impl Wanted {
    /// The version to store over what there is; `None`: that says the same, and for long enough.
    fn against(self, held: Option<&StoredListing>, now: Timestamp) -> Option<NewListing> {
        let held_json = held
            .filter(|held| !held.deleted)
            .and_then(|held| Json::parse(&held.json).ok());
        let mut object = self.offer.to_object();
        object.insert("aip", "1");
        object.insert("agent", self.agent.as_str());
        let is_same = held_json
            .as_ref()
            .is_some_and(|held| words(held.as_object()) == words(Some(&object)));
        let is_long = held
            .and_then(|held| held.expires_at)
            .is_some_and(|end| now + PEER_RENEWED_BEFORE <= end);
        if is_same && is_long {
            return None;
        }
        let version = held.map_or(1, |held| held.version.saturating_add(1));
        object.insert("version", Json::try_from(version).unwrap_or(Json::Int(0)));
        let first = held_json
            .as_ref()
            .and_then(|held| held.get("created_at"))
            .and_then(Json::as_str);
        object.insert("created_at", first.map_or_else(|| now.to_string(), str::to_owned));
        let json = Json::Object(object).to_jcs();
        Some(NewListing {
            agent: self.agent,
            version,
            deleted: false,
            digest: Sha256::digest(&json).into(),
            json,
            origin: Origin::Peer { hub: self.hub },
            flags: flags(&self.offer),
            expires_at: self.offer.expires_at,
            listing_id: self.offer.listing_id,
        })
    }
}

/// What a listing says, without what every version has anew.
fn words(object: Option<&Object>) -> Option<Vec<u8>> {
    object.map(|object| Json::Object(object.without(&FRAME)).to_jcs())
}

fn deletion(stored: &StoredListing) -> NewListing {
    let version = stored.version.saturating_add(1);
    NewListing {
        agent: stored.agent.clone(),
        listing_id: stored.listing_id.clone(),
        version,
        deleted: true,
        json: Vec::new(),
        digest: Sha256::digest(format!("deleted {version}")).into(),
        origin: stored.origin.clone(),
        flags: Vec::new(),
        expires_at: None,
    }
}

#[cfg(test)]
mod tests;
