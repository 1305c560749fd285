//! Tells the hubs that sell here when this one sells something else than before, so that they need not wait for their next look.
//! An announcement is an invitation to look, and nothing else.

use std::sync::Arc;

use aip_federation::egress::{Exchange, Limits, Method, Request};
use aip_market::offer::Source;
use aip_market::peers::MarketPeer;
use aip_protocol::market::announce::AnnounceDraft;
use aip_protocol::multikey::SigningKey;
use futures_util::StreamExt as _;
use futures_util::stream;
use sha2::{Digest as _, Sha256};

use super::Book;
use super::pace::Pace;
use crate::market::limits::{
    ANNOUNCE_ANSWER_BYTES_MAX, ANNOUNCE_PAUSE, ANNOUNCE_TICK, ANNOUNCE_TIMEOUT, ANNOUNCED_TO_MAX,
    CRAWLS_AT_ONCE_MAX, TOOLS_MAX,
};
use crate::market::shelf::Shelf;

/// Where it is announced, below the address of a hub.
const PATH: &str = "/ai-market/v2/federation/announce";

/// Tells others.
pub(super) struct Announcer {
    pub(super) own_url: String,
    pub(super) name: String,
    pub(super) key: SigningKey,
    pub(super) exchange: Arc<dyn Exchange>,
    pub(super) book: Arc<Book>,
    pub(super) shelf: Arc<Shelf>,
}

impl std::fmt::Debug for Announcer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announcer")
            .field("own_url", &self.own_url)
            .finish_non_exhaustive()
    }
}

impl Announcer {
    /// Looks whether something has changed and tells it, until it is dropped.
    pub(super) async fn run(&self, pace: &Pace) {
        let mut told = None;
        loop {
            tokio::time::sleep(ANNOUNCE_TICK + pace.part_of(ANNOUNCE_TICK)).await;
            let (print, count) = self.sold();
            if told == Some(print) {
                continue;
            }
            if self.tell(count).await > 0 {
                told = Some(print);
                tokio::time::sleep(ANNOUNCE_PAUSE).await;
            }
        }
    }

    /// What is sold here, in 32 bytes, and how much that is.
    fn sold(&self) -> ([u8; 32], u64) {
        let mut hash = Sha256::new();
        let mut count = 0;
        for offer in self.shelf.sold(TOOLS_MAX).offers {
            if offer.source == Source::Local {
                hash.update(&offer.id);
                hash.update(offer.version.to_be_bytes());
                count += 1;
            }
        }
        (hash.finalize().into(), count)
    }

    /// Tells all that sell here; how many there were.
    pub(super) async fn tell(&self, count: u64) -> usize {
        let draft = AnnounceDraft {
            hub_url: &self.own_url,
            well_known_url: &format!("{}/.well-known/ai-market.json", self.own_url),
            capabilities_count: count,
            hub_name: &self.name,
        };
        let body = match draft.sign(&self.key) {
            Ok(announcement) => announcement.to_bytes(),
            Err(refusal) => {
                tracing::warn!(%refusal, "This hub cannot be announced: its address cannot be signed");
                return 0;
            }
        };
        let mut peers = self.book.active();
        peers.retain(|peer| peer.is_hub());
        peers.truncate(ANNOUNCED_TO_MAX);
        let told = peers.len();
        stream::iter(peers)
            .for_each_concurrent(CRAWLS_AT_ONCE_MAX, |peer| {
                let body = body.clone();
                async move { self.tell_one(&peer, body).await }
            })
            .await;
        told
    }

    async fn tell_one(&self, peer: &MarketPeer, body: Vec<u8>) {
        let request = Request {
            method: Method::Post,
            url: format!("{}{PATH}", peer.url),
            headers: vec![
                ("content-type", "application/json".to_owned()),
                ("accept", "application/json".to_owned()),
            ],
            body: body.into(),
        };
        let limits = Limits {
            timeout: ANNOUNCE_TIMEOUT,
            answer_bytes_max: ANNOUNCE_ANSWER_BYTES_MAX,
        };
        match self.exchange.exchange(request, limits).await {
            Ok(answer) => {
                let status = answer.status;
                tracing::debug!(peer = %peer.url, status, "A hub was told that something has changed");
            }
            // It looks by itself in a while.
            Err(error) => {
                tracing::debug!(peer = %peer.url, %error, "A hub was not told that something has changed");
            }
        }
    }
}
