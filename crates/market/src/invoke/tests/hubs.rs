//! Other hubs, which do as they are told and remember what they were shown.

use std::sync::{Arc, Mutex};

use aip_protocol::market::Value as Exact;
use aip_protocol::market::receipt::ReceiptDraft;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use serde_json::{Value, json};

use super::desk::{Desk, offer, usd};
use crate::offer::{Offer, PeerSource, Source, Way};
use crate::peers::{Declared, Found, MarketPeer, PeerBook, PeerStatus, RouteMode};
use crate::routing::{PeerAnswer, PeerCall, PeerFailure, PeerHubs, Shown};

pub(super) const PEER: &str = "https://peer.example";
pub(super) const OTHER: &str = "https://other.example/market";

/// What a peer was asked.
#[derive(Debug, Clone)]
pub(super) struct Called {
    pub(super) hub: String,
    pub(super) listing: String,
    pub(super) shown: Shown,
    pub(super) input: Value,
}

#[derive(Debug, Default)]
pub(super) struct Hubs {
    peers: Mutex<Vec<Arc<MarketPeer>>>,
    says: Mutex<Option<Result<PeerAnswer, PeerFailure>>>,
    calls: Mutex<Vec<Called>>,
}

impl PeerBook for Hubs {
    fn peer(&self, url: &str) -> Option<Arc<MarketPeer>> {
        self.peers
            .lock()
            .unwrap()
            .iter()
            .find(|peer| peer.url == url)
            .cloned()
    }
}

#[async_trait]
impl PeerHubs for Hubs {
    async fn call(&self, call: PeerCall<'_>) -> Result<PeerAnswer, PeerFailure> {
        self.calls.lock().unwrap().push(Called {
            hub: call.peer.url.clone(),
            listing: call.offer.id.clone(),
            shown: call.shown.clone(),
            input: call.input.clone(),
        });
        let said = self.says.lock().unwrap().clone();
        said.unwrap_or_else(|| Ok(answered(Some("0.01"))))
    }
}

impl Hubs {
    pub(super) fn says(&self, said: Result<PeerAnswer, PeerFailure>) {
        *self.says.lock().unwrap() = Some(said);
    }

    pub(super) fn calls(&self) -> Vec<Called> {
        self.calls.lock().unwrap().clone()
    }

    /// The last thing that was shown.
    pub(super) fn shown(&self) -> Shown {
        self.calls().pop().unwrap().shown
    }

    /// Knows this peer, and forgets what it knew of it.
    pub(super) fn know(&self, peer: MarketPeer) {
        let mut peers = self.peers.lock().unwrap();
        peers.retain(|known| known.url != peer.url);
        peers.push(Arc::new(peer));
    }
}

pub(super) fn peer_key() -> SigningKey {
    SigningKey::from_seed([77; 32])
}

pub(super) fn peer(url: &str, mode: RouteMode) -> MarketPeer {
    let began = Timestamp::from_unix_secs(1_800_000_000);
    MarketPeer {
        url: url.to_owned(),
        status: PeerStatus::Active,
        mode,
        key: Some(peer_key().public().clone()),
        advertised_key: None,
        found: Found::Operator,
        depth: 0,
        declared: Declared::default(),
        first_seen: began,
        crawl_at: began,
        last_try: None,
        last_crawl: Some(began),
        failures: 0,
        last_error: None,
        capabilities: 1,
    }
}

/// `prod` `echo@v1` of a peer, for 0.01 there.
pub(super) fn sold_by(url: &str, price: &str) -> Offer {
    Offer {
        id: format!("of {url}"),
        agent: Did::parse("did:aip:peer.example:hub").unwrap(),
        source: Source::Peer(PeerSource {
            hub: url.to_owned(),
            name: "Peer".to_owned(),
        }),
        price: usd(price),
        way: Some(Way::Peer),
        ..offer()
    }
}

/// A desk at which a peer sells `prod` `echo@v1` for 0.01, under these rules.
pub(super) fn with_peer(desk: Desk, mode: RouteMode) -> Desk {
    desk.hubs.know(peer(PEER, mode));
    desk.shelve(vec![sold_by(PEER, "0.01")]);
    desk
}

/// A receipt of the peer for this price.
pub(super) fn receipt_for(key: &SigningKey, capability_id: &str, price: &str) -> Exact {
    let draft = ReceiptDraft {
        nonce: "rcpt_00112233445566778899aabbccddeeff",
        product_id: "prod",
        capability_id,
        price_micros: usd(price).micros(),
        list_price_micros: usd(price).micros(),
        timestamp: Timestamp::from_unix_secs(1_800_000_000),
        success: true,
        latency_ms: 7,
        sandbox: false,
    };
    draft.sign(key).unwrap()
}

/// An answer with a genuine receipt, which says that it cost this.
pub(super) fn answered(price: Option<&str>) -> PeerAnswer {
    PeerAnswer {
        result: json!({ "echo": 1 }),
        receipt: Some(receipt_for(&peer_key(), "echo@v1", price.unwrap_or("0"))),
        price: price.map(usd),
        is_trial: false,
        headers: Vec::new(),
    }
}

/// A call of what the peer sells.
pub(super) fn ask_peer(hub: &str) -> Value {
    json!({ "product_id": "prod", "capability_id": "echo@v1", "source_hub": hub, "input": { "a": 1 } })
}
