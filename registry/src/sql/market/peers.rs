//! Peers that sell, in the database: their rows, their log, and the questions about them.

use std::sync::LazyLock;

use aip_market::peers::{Found, MarketPeer, PeerStatus, RouteMode};
use aip_market::store::steps::{ChangePeer, ForgetPeer, ForgetSilentPeers, TakeDuePeers};
use aip_market::store::{
    MarketPeers, PeerChange, PeerChanged, PeerLine, PeerNote, PreviewRow, StoreError as MarketError,
};
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use sqlx::any::AnyRow;

use super::page_bind;
use crate::error::StoreError;
use crate::sql::SqlStore;
use crate::sql::rows::{Bind, can_be_there, column, count, number, optional_time, time, to_i64};

/// All but the preview, which is read alone.
const PEER: &str = "url, status, mode, pinned, shown, found, depth, declared, first_ms, due_ms, tried_ms, crawled_ms, \
     failures, error, capabilities";
const LINE: &str = "number, peer, actor, action, detail, at_ms";
/// What a peer without a preview has in its place.
const NO_PREVIEW: &str = "[]";

fn select(rest: &str) -> String {
    format!("SELECT {PEER} FROM market_peers WHERE {rest}")
}

pub(super) static GET: LazyLock<String> = LazyLock::new(|| select("url = $1"));

static LIST: LazyLock<String> = LazyLock::new(|| select("url > $1 ORDER BY url LIMIT $2"));

pub(super) static WITH_KEY: LazyLock<String> =
    LazyLock::new(|| select("pinned = $1 AND status IN ('active', 'key_mismatch') ORDER BY url LIMIT $2"));

pub(super) static DUE: LazyLock<String> = LazyLock::new(|| {
    select(
        "due_ms <= $1 AND status <> 'blocked' \
         ORDER BY CASE status WHEN 'pending' THEN 1 ELSE 0 END, due_ms, url LIMIT $2",
    )
});

pub(super) static SILENT: LazyLock<String> = LazyLock::new(|| {
    select(
        "status = 'pending' AND first_ms < $1 AND (crawled_ms IS NULL OR crawled_ms < $1) \
         AND found NOT IN ('seed', 'operator') ORDER BY first_ms, url LIMIT $2",
    )
});

pub(super) const COUNT_PENDING: &str = "SELECT COUNT(*) AS peers FROM market_peers WHERE status = 'pending'";

pub(super) static PUT: LazyLock<String> = LazyLock::new(|| {
    let columns: Vec<_> = PEER.split(", ").collect();
    let values: Vec<_> = (1..=columns.len()).map(|number| format!("${number}")).collect();
    let set = columns.iter().skip(1);
    let set: Vec<_> = set.map(|name| format!("{name} = excluded.{name}")).collect();
    format!(
        "INSERT INTO market_peers ({PEER}, preview) VALUES ({}, '{NO_PREVIEW}') ON CONFLICT (url) DO UPDATE SET {}",
        values.join(", "),
        set.join(", ")
    )
});

pub(super) const SET_PREVIEW: &str = "UPDATE market_peers SET preview = $2 WHERE url = $1";

const GET_PREVIEW: &str = "SELECT preview FROM market_peers WHERE url = $1";

pub(super) const DROP: &str = "DELETE FROM market_peers WHERE url = $1";

pub(super) const LAST_LINE: &str = "SELECT COALESCE(MAX(number), 0) AS number FROM market_peer_lines";

pub(super) static ADD_LINE: LazyLock<String> =
    LazyLock::new(|| format!("INSERT INTO market_peer_lines ({LINE}) VALUES ($1, $2, $3, $4, $5, $6)"));

static LIST_LINES: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {LINE} FROM market_peer_lines WHERE number < $1 ORDER BY number DESC LIMIT $2")
});

fn damaged(text: &str, what: &str) -> StoreError {
    StoreError::Corrupt(format!("{text:?} {what}"))
}

fn key(row: &AnyRow, name: &str) -> Result<Option<VerifyingKey>, StoreError> {
    let text: Option<String> = column(row, name)?;
    let read = |text: String| VerifyingKey::parse(&text).map_err(|_refusal| damaged(&text, "is not a key"));
    text.map(read).transpose()
}

/// How it is written where a peer comes from; an address has a colon in it.
fn found_text(found: &Found) -> &str {
    match found {
        Found::Seed => "seed",
        Found::Operator => "operator",
        Found::Announced => "announced",
        Found::Named(by) => by,
    }
}

fn found(text: String) -> Found {
    match text.as_str() {
        "seed" => Found::Seed,
        "operator" => Found::Operator,
        "announced" => Found::Announced,
        _ => Found::Named(text),
    }
}

pub(super) fn peer(row: &AnyRow) -> Result<MarketPeer, StoreError> {
    let (status, mode): (&str, &str) = (column(row, "status")?, column(row, "mode")?);
    let declared: &str = column(row, "declared")?;
    Ok(MarketPeer {
        url: column(row, "url")?,
        status: PeerStatus::parse(status).ok_or_else(|| damaged(status, "is not the status of a peer"))?,
        mode: RouteMode::parse(mode).ok_or_else(|| damaged(mode, "is not the mode of a peer"))?,
        key: key(row, "pinned")?,
        advertised_key: key(row, "shown")?,
        found: found(column(row, "found")?),
        depth: number(row, "depth")?,
        declared: serde_json::from_str(declared)
            .map_err(|_error| damaged(declared, "is not what a peer says about itself"))?,
        first_seen: time(row, "first_ms")?,
        crawl_at: time(row, "due_ms")?,
        last_try: optional_time(row, "tried_ms")?,
        last_crawl: optional_time(row, "crawled_ms")?,
        failures: number(row, "failures")?,
        last_error: column(row, "error")?,
        capabilities: count(row, "capabilities")?,
    })
}

/// The columns of [`PEER`] and what is in them, for `put` to do something with.
pub(super) fn with_values<T>(peer: &MarketPeer, put: impl FnOnce(&[Bind<'_>]) -> T) -> T {
    let declared = serde_json::to_string(&peer.declared).unwrap_or_default();
    let optional_millis = |at: Option<Timestamp>| Bind::OptionalNumber(at.map(Timestamp::unix_millis));
    put(&[
        Bind::Text(&peer.url),
        Bind::Text(peer.status.as_str()),
        Bind::Text(peer.mode.as_str()),
        Bind::OptionalText(peer.key.as_ref().map(VerifyingKey::as_str)),
        Bind::OptionalText(peer.advertised_key.as_ref().map(VerifyingKey::as_str)),
        Bind::Text(found_text(&peer.found)),
        Bind::Number(peer.depth.into()),
        Bind::Text(&declared),
        Bind::Number(peer.first_seen.unix_millis()),
        Bind::Number(peer.crawl_at.unix_millis()),
        optional_millis(peer.last_try),
        optional_millis(peer.last_crawl),
        Bind::Number(peer.failures.into()),
        Bind::OptionalText(peer.last_error.as_deref()),
        Bind::Number(to_i64(peer.capabilities)),
    ])
}

/// How a preview is written.
pub(super) fn preview_text(rows: &[PreviewRow]) -> String {
    serde_json::to_string(rows).unwrap_or_else(|_never| NO_PREVIEW.to_owned())
}

fn preview(row: &AnyRow) -> Result<Vec<PreviewRow>, StoreError> {
    let text: &str = column(row, "preview")?;
    serde_json::from_str(text).map_err(|_error| damaged(text, "is not a preview"))
}

fn line(row: &AnyRow) -> Result<PeerLine, StoreError> {
    Ok(PeerLine {
        number: count(row, "number")?,
        peer: column(row, "peer")?,
        actor: column(row, "actor")?,
        action: column(row, "action")?,
        detail: column(row, "detail")?,
        at: time(row, "at_ms")?,
    })
}

#[async_trait]
impl MarketPeers for SqlStore {
    async fn market_peer(&self, url: &str) -> Result<Option<MarketPeer>, MarketError> {
        self.read_one(&GET, &[Bind::Text(url)], peer).await
    }

    async fn market_peers(&self, after: Option<&str>, limit: u32) -> Result<Vec<MarketPeer>, MarketError> {
        // No address is empty, so that the empty text comes before all.
        let values = [Bind::Text(after.unwrap_or_default()), page_bind(limit)];
        self.read_all(&LIST, &values, peer).await
    }

    async fn peer_preview(&self, url: &str) -> Result<Vec<PreviewRow>, MarketError> {
        let found = self.read_one(GET_PREVIEW, &[Bind::Text(url)], preview).await?;
        Ok(found.unwrap_or_default())
    }

    async fn change_peer(
        &self,
        url: &str,
        change: PeerChange,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<PeerChanged, MarketError> {
        // Nothing is kept under such an address, and nothing can be.
        if !can_be_there(&[Bind::Text(url)]) {
            return Ok(PeerChanged::Missing);
        }
        let url = url.to_owned();
        self.step(ChangePeer {
            url,
            change,
            note,
            now,
        })
        .await
    }

    async fn due_peers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MarketPeer>, MarketError> {
        self.step(TakeDuePeers { now, until, limit }).await
    }

    async fn forget_peer(
        &self,
        url: &str,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<bool, MarketError> {
        if !can_be_there(&[Bind::Text(url)]) {
            return Ok(false);
        }
        let url = url.to_owned();
        self.step(ForgetPeer { url, note, now }).await
    }

    async fn forget_silent_peers(&self, before: Timestamp, limit: u32) -> Result<u64, MarketError> {
        self.step(ForgetSilentPeers { before, limit }).await
    }

    async fn peer_lines(&self, before: Option<u64>, limit: u32) -> Result<Vec<PeerLine>, MarketError> {
        let values = [Bind::Number(before.map_or(i64::MAX, to_i64)), page_bind(limit)];
        self.read_all(&LIST_LINES, &values, line).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_numbered_through() {
        let columns = PEER.split(", ").count();
        assert!(PUT.contains(&format!("${columns}, '[]'")) && !PUT.contains(&format!("${}", columns + 1)));
    }
}
