//! Reads what other hubs sell: their discovery documents and manifests, signed by the keys that are pinned for them.
//!
//! A peer that sells here has its capabilities among the listings of this hub (`shelve`); of one that nobody has decided about
//! some are kept as a preview. Nothing that a peer says is an instruction: where it is called, whose its capabilities are and
//! whether they are sold is decided here. What of a manifest is taken up, `row` says.

use std::sync::Arc;

use aip_federation::egress::{Exchange, Limits, Method, Request};
use aip_market::limits::PREVIEW_ROWS_MAX;
use aip_market::peers::{Found, MarketPeer, PeerStatus};
use aip_market::store::{Crawled, MarketStore, PeerChange, PeerChanged, PreviewRow};
use aip_protocol::clock::Clock;
use aip_protocol::market::Value;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use aip_registry::listings::Listings;
use bytes::Bytes;

use super::limits::{
    PEER_DEPTH_MAX, PEER_DOCUMENT_BYTES_MAX, PEER_DOCUMENT_TIMEOUT, PEERS_NAMED_PENDING_MAX,
};
use super::peers::Book;
use super::peers::pace::Pace;

mod discovery;
mod error;
mod fresh;
mod manifest;
mod row;
mod shelve;
mod words;

use discovery::Discovery;
use error::{CrawlError, Page};
use manifest::Catalogue;
use row::Row;
use shelve::Shelving;

/// Who this hub is, so that it is not its own peer.
#[derive(Debug, Clone)]
pub struct Own {
    /// Its domain.
    pub domain: Domain,
    /// Its address.
    pub url: String,
    /// Its key, and the one before it.
    pub keys: Vec<VerifyingKey>,
}

/// What crawling needs.
#[derive(Debug)]
pub struct Crawler {
    pub(super) own: Own,
    pub(super) store: Arc<dyn MarketStore>,
    pub(super) listings: Arc<dyn Listings>,
    pub(super) exchange: Arc<dyn Exchange>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) book: Arc<Book>,
    pub(super) pace: Pace,
}

/// What a peer answered, once it is proven.
struct Read {
    discovery: Discovery,
    catalogue: Catalogue,
}

impl Crawler {
    /// Asks a peer for what it sells, and notes what came of it. The word says what it was, for counters.
    pub async fn crawl(&self, peer: &MarketPeer) -> &'static str {
        let result = match self.read(peer).await {
            Ok(read) => self.take_up(peer, read).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => "ok",
            Err(error) => {
                self.note(peer, &error).await;
                error.kind()
            }
        }
    }

    /// Takes away all that a peer sold here.
    ///
    /// # Errors
    /// The store of listings, in words: its listings end by themselves within hours.
    pub async fn take_down(&self, url: &str) -> Result<usize, String> {
        let taken = self.shelving().take_down(url).await;
        taken.map_err(|error| error.to_string())
    }

    fn shelving(&self) -> Shelving<'_> {
        Shelving {
            listings: &*self.listings,
            own: &self.own.domain,
            now: self.clock.now(),
        }
    }

    async fn read(&self, peer: &MarketPeer) -> Result<Read, CrawlError> {
        if peer.url == self.own.url {
            return Err(CrawlError::Itself);
        }
        let (url, now) = (peer.url.clone(), self.clock.now());
        let body = self
            .get(Page::Discovery, format!("{url}{}", discovery::PATH))
            .await?;
        let discovery = apart(move || discovery::read(&parsed(Page::Discovery, &body)?, &url, now)).await?;
        if self.own.keys.contains(&discovery.key) {
            return Err(CrawlError::Itself);
        }
        if peer.key.as_ref().is_some_and(|pinned| *pinned != discovery.key) {
            return Err(CrawlError::OtherKey(Box::new(discovery.key)));
        }
        let body = self.get(Page::Manifest, discovery.manifest_url.clone()).await?;
        let (url, key) = (peer.url.clone(), discovery.key.clone());
        let catalogue =
            apart(move || manifest::read(&parsed(Page::Manifest, &body)?, &key, &url, now)).await?;
        Ok(Read { discovery, catalogue })
    }

    async fn get(&self, page: Page, url: String) -> Result<Bytes, CrawlError> {
        let request = Request {
            method: Method::Get,
            url,
            headers: vec![
                ("accept", "application/json".to_owned()),
                ("x-aimarket-crawler", self.own.url.clone()),
            ],
            body: Bytes::new(),
        };
        let limits = Limits {
            timeout: PEER_DOCUMENT_TIMEOUT,
            answer_bytes_max: PEER_DOCUMENT_BYTES_MAX,
        };
        let answer = self.exchange.exchange(request, limits).await;
        let answer = answer.map_err(|error| CrawlError::Unreachable(page, error))?;
        if answer.status != 200 {
            return Err(CrawlError::Status(page, answer.status));
        }
        let is_json = answer
            .content_type
            .is_some_and(|media| media == "application/json" || media.ends_with("+json"));
        is_json.then_some(answer.body).ok_or(CrawlError::NotJson(page))
    }

    /// What is said of the peer first: it may have been blocked meanwhile, or be a hub that sells here under another address.
    async fn take_up(&self, peer: &MarketPeer, read: Read) -> Result<(), CrawlError> {
        let Read { discovery, catalogue } = read;
        let now = self.clock.now();
        let is_pending = peer.status == PeerStatus::Pending;
        let preview = if is_pending {
            preview(&catalogue.rows)
        } else {
            Vec::new()
        };
        let taken = if is_pending {
            preview.len()
        } else {
            catalogue.rows.len()
        };
        let crawled = Crawled {
            key: discovery.key,
            declared: discovery.declared,
            capabilities: u64::try_from(taken).unwrap_or(u64::MAX),
            preview,
            next: self.pace.next(now, is_pending, 0),
        };
        let change = PeerChange::Crawled(crawled);
        let PeerChanged::Done(after) = self.store.change_peer(&peer.url, change, None, now).await? else {
            // It was removed meanwhile, or waits because it is another one.
            return self.take_away(&peer.url).await;
        };
        self.book.put(&after);
        if !catalogue.left_out.is_empty() {
            tracing::info!(peer = %peer.url, left_out = ?catalogue.left_out, "Some of what a hub offers is not taken up");
        }
        match after.status {
            PeerStatus::Active => {
                self.shelving().shelve(&after, &catalogue.rows).await?;
                // The operator may have decided otherwise meanwhile, and have found nothing to take down.
                let since = self.store.market_peer(&peer.url).await?;
                if since.is_none_or(|since| since.status != PeerStatus::Active) {
                    return self.take_away(&peer.url).await;
                }
                self.meet(&after, &discovery.neighbours).await?;
                Ok(())
            }
            PeerStatus::Pending => Ok(()),
            PeerStatus::KeyMismatch | PeerStatus::Blocked => self.take_away(&peer.url).await,
        }
    }

    async fn take_away(&self, url: &str) -> Result<(), CrawlError> {
        self.shelving().take_down(url).await.map(drop)
    }

    /// Hubs that an active peer names are pending, however it is trusted; so many of them at once.
    async fn meet(&self, by: &MarketPeer, neighbours: &[String]) -> Result<(), CrawlError> {
        let depth = by.depth.saturating_add(1);
        if depth > PEER_DEPTH_MAX || !self.pace.is_open {
            return Ok(());
        }
        let places = PEERS_NAMED_PENDING_MAX.saturating_sub(self.book.pending_named_by(&by.url));
        let is_new = |url: &&String| aip_market::peers::PeerBook::peer(&*self.book, url).is_none();
        for url in neighbours
            .iter()
            .filter(|url| **url != self.own.url)
            .filter(is_new)
            .take(places)
        {
            let met = PeerChange::Met {
                found: Found::Named(by.url.clone()),
                depth,
            };
            match self.store.change_peer(url, met, None, self.clock.now()).await? {
                PeerChanged::Done(peer) => self.book.put(&peer),
                PeerChanged::Full => break,
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes that it failed.
    async fn note(&self, peer: &MarketPeer, error: &CrawlError) {
        tracing::info!(peer = %peer.url, error = error as &dyn std::error::Error, "A hub was not crawled");
        let now = self.clock.now();
        let is_pending = peer.status == PeerStatus::Pending;
        let next = self.pace.next(now, is_pending, peer.failures.saturating_add(1));
        let noted = match error {
            CrawlError::Itself => self.forget_itself(&peer.url, now).await,
            CrawlError::OtherKey(shown) => {
                let shown = (**shown).clone();
                self.change(&peer.url, PeerChange::Mismatched { shown, next }, now)
                    .await
            }
            error => {
                let error = error.to_string();
                self.change(&peer.url, PeerChange::Failed { error, next }, now)
                    .await
            }
        };
        if let Err(error) = noted {
            tracing::warn!(peer = %peer.url, %error, "What came of crawling a hub was not noted; it is tried again");
        }
    }

    async fn change(&self, url: &str, change: PeerChange, now: Timestamp) -> Result<(), CrawlError> {
        if let PeerChanged::Done(after) = self.store.change_peer(url, change, None, now).await? {
            self.book.put(&after);
            if after.status == PeerStatus::KeyMismatch {
                tracing::error!(peer = %url, "A hub that sells here shows another key: it is frozen (aip-hub market peers show)");
                return self.take_away(url).await;
            }
        }
        Ok(())
    }

    /// This hub, under another address: it is no peer.
    async fn forget_itself(&self, url: &str, now: Timestamp) -> Result<(), CrawlError> {
        let note = aip_market::store::PeerNote {
            actor: "hub",
            action: "remove",
            detail: "it is this hub".to_owned(),
        };
        self.store.forget_peer(url, Some(note), now).await?;
        self.book.remove(url);
        Ok(())
    }
}

/// Some of what a peer offers, for the operator to look at.
fn preview(rows: &[Row]) -> Vec<PreviewRow> {
    let rows = rows.iter().take(PREVIEW_ROWS_MAX).map(|row| PreviewRow {
        product_id: row.product_id.clone(),
        capability_id: row.capability_id.clone(),
        name: row.name.clone(),
        description: row.description.clone(),
        price_micros: row.price.micros(),
    });
    rows.collect()
}

fn parsed(page: Page, body: &[u8]) -> Result<Value, CrawlError> {
    Value::parse(body).map_err(|_refusal| CrawlError::NotJson(page))
}

/// On a thread of its own: two megabytes of somebody's JSON take a while.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CrawlError> + Send + 'static,
) -> Result<T, CrawlError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(CrawlError::Store(Box::new(error))),
    }
}
