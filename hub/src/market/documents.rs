//! The signed documents about the market: what this hub is, what it sells, and for how much. Each is made anew when what it
//! says has changed, and once in a while, on a thread of its own; in between its bytes stay the same.

use std::sync::Arc;
use std::time::Duration;

use aip_market::facilitator::Terms;
use aip_protocol::clock::Clock;
use aip_protocol::market::Value;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use super::facilitator;
use super::limits::{DOCUMENT_FRESH, DOCUMENT_PAUSE, TOOLS_MAX};
use super::peers::PeerRoom;
use super::shelf::{Shelf, Sold};
use crate::config::{MarketSettings, Settings};

mod manifest;
mod prices;
mod tool;
mod well_known;

/// What the documents say that does not change while the hub runs.
#[derive(Debug)]
pub struct Facts {
    domain: String,
    base_url: String,
    key: SigningKey,
    market: MarketSettings,
    /// Where and in what providers are paid directly.
    x402: Option<Terms>,
    peers: Arc<PeerRoom>,
}

impl Facts {
    /// Of this hub.
    pub fn new(settings: &Settings, domain: &Domain, key: SigningKey, peers: Arc<PeerRoom>) -> Self {
        Self {
            domain: domain.to_string(),
            base_url: settings.public_url(),
            key,
            market: settings.market.clone(),
            x402: facilitator::terms(&settings.market_x402),
            peers,
        }
    }

    fn url(&self, path: &str) -> Value {
        Value::from(format!("{}{path}", self.base_url))
    }
}

/// A document, ready to be sent.
#[derive(Debug)]
pub struct Document {
    /// Its JSON.
    pub body: Bytes,
    /// What tells these bytes from others, in quotation marks.
    pub etag: String,
}

/// Which one.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `/.well-known/ai-market.json`
    WellKnown,
    /// `/ai-market/v2/manifest`
    Manifest,
    /// `/ai-market/v2/prices`
    Prices,
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// A bug: something in it cannot be signed.
    #[error("a document of the market cannot be signed: {0}")]
    Unsignable(aip_protocol::error::Refusal),
    /// The thread that made it has ended.
    #[error("a document of the market was not made")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// The documents as they were last made.
#[derive(Debug)]
pub struct Documents {
    facts: Arc<Facts>,
    shelf: Arc<Shelf>,
    clock: Arc<dyn Clock>,
    /// Held while one is made: the others wait for it.
    made: [Mutex<Option<Made>>; 3],
}

#[derive(Debug)]
struct Made {
    document: Arc<Document>,
    generation: (u64, u64),
    at: Timestamp,
    /// Something in it is over then.
    until: Timestamp,
}

impl Made {
    fn is_good(&self, generation: (u64, u64), now: Timestamp) -> bool {
        now < self.until && (generation == self.generation || now < self.at + DOCUMENT_PAUSE)
    }
}

impl Documents {
    /// None is made yet.
    pub fn new(facts: Facts, shelf: Arc<Shelf>, clock: Arc<dyn Clock>) -> Self {
        Self {
            facts: Arc::new(facts),
            shelf,
            clock,
            made: Default::default(),
        }
    }

    /// Changes whenever an offer or a hub that sells here does.
    fn generation(&self) -> (u64, u64) {
        (self.shelf.generation(), self.facts.peers.book.generation())
    }

    /// The document as it is now.
    ///
    /// # Errors
    /// Bugs.
    pub async fn current(&self, kind: Kind) -> Result<Arc<Document>, DocumentError> {
        let [well_known, manifest, prices] = &self.made;
        let slot = match kind {
            Kind::WellKnown => well_known,
            Kind::Manifest => manifest,
            Kind::Prices => prices,
        };
        let mut made = slot.lock().await;
        let now = self.clock.now();
        if let Some(made) = made.as_ref().filter(|made| made.is_good(self.generation(), now)) {
            return Ok(made.document.clone());
        }
        let (facts, shelf, of_peers) = (self.facts.clone(), self.shelf.clone(), self.generation().1);
        let make = move || make(kind, &facts, &shelf.sold(TOOLS_MAX), of_peers, now);
        let anew = tokio::task::spawn_blocking(make).await??;
        let document = anew.document.clone();
        *made = Some(anew);
        Ok(document)
    }
}

fn make(
    kind: Kind,
    facts: &Facts,
    sold: &Sold,
    of_peers: u64,
    now: Timestamp,
) -> Result<Made, DocumentError> {
    let value = match kind {
        Kind::WellKnown => well_known::signed(facts, sold, now),
        Kind::Manifest => manifest::signed(facts, sold, now).map_err(DocumentError::Unsignable)?,
        Kind::Prices => prices::signed(facts, sold, now),
    };
    let body = Bytes::from(value.to_bytes());
    let digest: [u8; 32] = Sha256::digest(&body).into();
    let until = now + DOCUMENT_FRESH;
    Ok(Made {
        document: Arc::new(Document {
            etag: format!("\"{}\"", hex::encode(digest.get(..16).unwrap_or_default())),
            body,
        }),
        generation: (sold.generation, of_peers),
        at: now,
        until: sold.until.map_or(until, |end| until.min(end)),
    })
}

/// How many, as a number of a document.
fn count(count: usize) -> Value {
    Value::from(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Seconds, as a number of a document.
fn secs(duration: Duration) -> Value {
    Value::from(duration.as_secs())
}
