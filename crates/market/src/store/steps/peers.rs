//! The steps of peers.

use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;

use super::{Step, page, plain, whole};
use crate::limits::PENDING_PEERS_MAX;
use crate::peers::{Declared, Found, MarketPeer, PeerStatus, RouteMode};
use crate::store::rows::Rows;
use crate::store::{Crawled, PeerChange, PeerChanged, PeerLine, PeerNote, PreviewRow};

/// Peers that are looked at for one that has a key already: more cannot be active with it.
const KEY_HOLDERS_LOOKED_AT: u32 = 100;

/// See [`crate::store::MarketPeers::change_peer`].
#[derive(Debug, Clone)]
pub struct ChangePeer {
    /// Which.
    pub url: String,
    /// How.
    pub change: PeerChange,
    /// Who decided it.
    pub note: Option<PeerNote>,
    /// Now.
    pub now: Timestamp,
}

/// What a change comes to: the peer as it is then, a preview in place of the one there is, and what the hub says about it.
struct After {
    peer: MarketPeer,
    preview: Option<Vec<PreviewRow>>,
    note: Option<PeerNote>,
}

impl After {
    fn of(peer: MarketPeer) -> Self {
        Self {
            peer,
            preview: None,
            note: None,
        }
    }
}

impl Step for ChangePeer {
    type Outcome = PeerChanged;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<PeerChanged, R::Error> {
        let there = rows.peer(&self.url).await?;
        let after = match (&self.change, there) {
            (PeerChange::Met { found, .. }, Some(there)) => Ok(Self::met_again(there, found)),
            (PeerChange::Met { found, depth }, None) => self.met(rows, found, *depth).await?,
            (PeerChange::Approved { key }, there) => self.approved(rows, there, key.as_ref()).await?,
            (PeerChange::Blocked, there) => Ok(self.blocked(there)),
            (_, None) => Err(PeerChanged::Missing),
            (PeerChange::Repinned { key }, Some(there)) => self.repinned(rows, there, key.as_ref()).await?,
            (PeerChange::Crawled(crawled), Some(there)) => self.crawled(rows, there, crawled).await?,
            (change, Some(there)) => Ok(self.noted(there, change)),
        };
        let after = match after {
            Ok(after) => after,
            Err(outcome) => return Ok(outcome),
        };
        rows.put_peer(&after.peer, after.preview.as_deref()).await?;
        for note in self.note.iter().chain(&after.note) {
            add_line(rows, &self.url, note, self.now).await?;
        }
        Ok(PeerChanged::Done(after.peer))
    }
}

impl ChangePeer {
    fn new_peer(&self, status: PeerStatus, found: &Found, depth: u32) -> MarketPeer {
        MarketPeer {
            url: self.url.clone(),
            status,
            mode: RouteMode::default(),
            key: None,
            advertised_key: None,
            found: found.clone(),
            depth,
            declared: Declared::default(),
            first_seen: whole(self.now),
            crawl_at: whole(self.now),
            last_try: None,
            last_crawl: None,
            failures: 0,
            last_error: None,
            capabilities: 0,
        }
    }

    fn met_again(mut there: MarketPeer, found: &Found) -> After {
        if *found == Found::Seed && there.status == PeerStatus::Pending {
            there.status = PeerStatus::Active;
        }
        After::of(there)
    }

    async fn met<R: Rows>(
        &self,
        rows: &mut R,
        found: &Found,
        depth: u32,
    ) -> Result<Result<After, PeerChanged>, R::Error> {
        if matches!(found, Found::Seed | Found::Operator) {
            return Ok(Ok(After::of(self.new_peer(PeerStatus::Active, found, depth))));
        }
        if rows.pending_peers().await? >= PENDING_PEERS_MAX {
            return Ok(Err(PeerChanged::Full));
        }
        Ok(Ok(After::of(self.new_peer(PeerStatus::Pending, found, depth))))
    }

    async fn approved<R: Rows>(
        &self,
        rows: &mut R,
        there: Option<MarketPeer>,
        key: Option<&VerifyingKey>,
    ) -> Result<Result<After, PeerChanged>, R::Error> {
        let new = || self.new_peer(PeerStatus::Pending, &Found::Operator, 0);
        let mut peer = there.unwrap_or_else(new);
        if let Some(key) = key {
            pin(&mut peer, key);
        }
        if let Some(key) = &peer.key
            && let Some(url) = self.active_with(rows, key).await?
        {
            return Ok(Err(PeerChanged::KeyInUse { url }));
        }
        peer.status = match peer.advertised_key {
            None => PeerStatus::Active,
            Some(_) => PeerStatus::KeyMismatch,
        };
        peer.crawl_at = whole(self.now);
        Ok(Ok(After::of(peer)))
    }

    fn blocked(&self, there: Option<MarketPeer>) -> After {
        let new = || self.new_peer(PeerStatus::Blocked, &Found::Operator, 0);
        let mut peer = there.unwrap_or_else(new);
        peer.status = PeerStatus::Blocked;
        peer.capabilities = 0;
        After {
            preview: Some(Vec::new()),
            ..After::of(peer)
        }
    }

    async fn repinned<R: Rows>(
        &self,
        rows: &mut R,
        mut peer: MarketPeer,
        key: Option<&VerifyingKey>,
    ) -> Result<Result<After, PeerChanged>, R::Error> {
        let Some(key) = key.cloned().or_else(|| peer.advertised_key.clone()) else {
            return Ok(Err(PeerChanged::NoKey));
        };
        let is_active = matches!(peer.status, PeerStatus::Active | PeerStatus::KeyMismatch);
        if is_active && let Some(url) = self.active_with(rows, &key).await? {
            return Ok(Err(PeerChanged::KeyInUse { url }));
        }
        pin(&mut peer, &key);
        if peer.status == PeerStatus::KeyMismatch {
            peer.status = PeerStatus::Active;
        }
        peer.crawl_at = whole(self.now);
        Ok(Ok(After::of(peer)))
    }

    /// Another peer than this one that sells with this key.
    async fn active_with<R: Rows>(
        &self,
        rows: &mut R,
        key: &VerifyingKey,
    ) -> Result<Option<String>, R::Error> {
        let holders = rows.peers_with_key(key, KEY_HOLDERS_LOOKED_AT).await?;
        let mut others = holders.into_iter().filter(|peer| peer.url != self.url);
        let other = others.find(|peer| matches!(peer.status, PeerStatus::Active | PeerStatus::KeyMismatch));
        Ok(other.map(|peer| peer.url))
    }

    async fn crawled<R: Rows>(
        &self,
        rows: &mut R,
        mut peer: MarketPeer,
        crawled: &Crawled,
    ) -> Result<Result<After, PeerChanged>, R::Error> {
        let mut note = None;
        match &peer.key {
            // It was blocked while it was asked.
            _ if peer.status == PeerStatus::Blocked => return Ok(Ok(After::of(peer))),
            Some(pinned) if *pinned != crawled.key => {
                return Ok(Ok(self.mismatched(peer, &crawled.key, crawled.next)));
            }
            Some(_) => {}
            None => match self.active_with(rows, &crawled.key).await? {
                Some(url) => return Ok(Ok(self.is_another(peer, &url, crawled.next))),
                None => note = Some(by_hub("pin", format!("the key {} is pinned", crawled.key))),
            },
        }
        if peer.status == PeerStatus::KeyMismatch {
            peer.status = PeerStatus::Active;
            note = Some(by_hub("thaw", "it shows its pinned key again".to_owned()));
        }
        pin(&mut peer, &crawled.key);
        peer.declared = crawled.declared.clone();
        peer.capabilities = crawled.capabilities;
        (peer.last_try, peer.last_crawl) = (Some(whole(self.now)), Some(whole(self.now)));
        (peer.failures, peer.last_error) = (0, None);
        peer.crawl_at = whole(crawled.next);
        let preview = if peer.status == PeerStatus::Pending {
            crawled.preview.clone()
        } else {
            Vec::new()
        };
        Ok(Ok(After {
            peer,
            preview: Some(preview),
            note,
        }))
    }

    /// One hub at two addresses is one peer: the one that sells already.
    fn is_another(&self, mut peer: MarketPeer, url: &str, next: Timestamp) -> After {
        peer.status = PeerStatus::Pending;
        peer.capabilities = 0;
        self.has_failed(
            &mut peer,
            &format!("it is the peer at {url}, which has the same key"),
            next,
        );
        After {
            preview: Some(Vec::new()),
            ..After::of(peer)
        }
    }

    fn mismatched(&self, mut peer: MarketPeer, shown: &VerifyingKey, next: Timestamp) -> After {
        // One that waits has nothing that could freeze: whatever strangers show, they write no lines into the log.
        let is_let_in = matches!(peer.status, PeerStatus::Active | PeerStatus::KeyMismatch);
        let is_told = is_let_in && peer.advertised_key.as_ref() != Some(shown);
        peer.advertised_key = Some(shown.clone());
        if peer.status == PeerStatus::Active {
            peer.status = PeerStatus::KeyMismatch;
        }
        self.has_failed(&mut peer, "it shows another key than the pinned one", next);
        After {
            note: is_told.then(|| by_hub("freeze", format!("it shows the key {shown}"))),
            ..After::of(peer)
        }
    }

    /// The changes of one member or two.
    fn noted(&self, mut peer: MarketPeer, change: &PeerChange) -> After {
        match change {
            PeerChange::Mode(mode) => peer.mode = *mode,
            PeerChange::CrawlAt(at) => peer.crawl_at = whole(*at),
            PeerChange::Failed { error, next } => self.has_failed(&mut peer, error, *next),
            PeerChange::Mismatched { shown, next } if peer.status != PeerStatus::Blocked => {
                return self.mismatched(peer, shown, *next);
            }
            _ => {}
        }
        After::of(peer)
    }

    fn has_failed(&self, peer: &mut MarketPeer, error: &str, next: Timestamp) {
        peer.failures = peer.failures.saturating_add(1);
        peer.last_error = Some(plain(error));
        peer.last_try = Some(whole(self.now));
        peer.crawl_at = whole(next);
    }
}

fn pin(peer: &mut MarketPeer, key: &VerifyingKey) {
    peer.key = Some(key.clone());
    peer.advertised_key = None;
}

fn by_hub(action: &'static str, detail: String) -> PeerNote {
    PeerNote {
        actor: "hub",
        action,
        detail,
    }
}

async fn add_line<R: Rows>(rows: &mut R, url: &str, note: &PeerNote, now: Timestamp) -> Result<(), R::Error> {
    let number = rows.last_peer_line().await?.saturating_add(1);
    let line = PeerLine {
        number,
        peer: url.to_owned(),
        actor: note.actor.to_owned(),
        action: note.action.to_owned(),
        detail: plain(&note.detail),
        at: whole(now),
    };
    rows.add_peer_line(&line).await
}

/// See [`crate::store::MarketPeers::due_peers`].
#[derive(Debug, Clone)]
pub struct TakeDuePeers {
    /// Now.
    pub now: Timestamp,
    /// When they are due again.
    pub until: Timestamp,
    /// At most so many.
    pub limit: u32,
}

impl Step for TakeDuePeers {
    type Outcome = Vec<MarketPeer>;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Vec<MarketPeer>, R::Error> {
        let mut due = rows.due_peers(whole(self.now), page(self.limit)).await?;
        for peer in &mut due {
            peer.crawl_at = whole(self.until);
            rows.put_peer(peer, None).await?;
        }
        Ok(due)
    }
}

/// See [`crate::store::MarketPeers::forget_peer`].
#[derive(Debug, Clone)]
pub struct ForgetPeer {
    /// Which.
    pub url: String,
    /// Who decided it.
    pub note: Option<PeerNote>,
    /// Now.
    pub now: Timestamp,
}

impl Step for ForgetPeer {
    type Outcome = bool;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<bool, R::Error> {
        let was_there = rows.drop_peer(&self.url).await?;
        if let Some(note) = self.note.as_ref().filter(|_| was_there) {
            add_line(rows, &self.url, note, self.now).await?;
        }
        Ok(was_there)
    }
}

/// See [`crate::store::MarketPeers::forget_silent_peers`].
#[derive(Debug, Clone)]
pub struct ForgetSilentPeers {
    /// Those first heard of before this.
    pub before: Timestamp,
    /// At most so many.
    pub limit: u32,
}

impl Step for ForgetSilentPeers {
    type Outcome = u64;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<u64, R::Error> {
        let silent = rows.silent_peers(whole(self.before), page(self.limit)).await?;
        let mut forgotten = 0;
        for peer in silent {
            forgotten += u64::from(rows.drop_peer(&peer.url).await?);
        }
        Ok(forgotten)
    }
}
