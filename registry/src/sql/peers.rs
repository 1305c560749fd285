//! Peers in the database: the questions, and where the changes begin.
//!
//! A change of a peer's record is one statement. One of a window takes its row first and keeps it until the commit, and one
//! that adds a line to a log, or keeps or forgets a history, does so with the row of `peer_log`: so each may read before it
//! decides.

mod histories;
mod rows;
pub(super) mod statements;
mod windows;
mod writes;

use std::collections::HashMap;

use aip_federation::peers::{
    AuditEntry, Evidence, HistoryCaps, HistoryStore, KnownHistory, Noted, PeerChange, PeerRecord, PeerStore,
    ReceivedStore, RecordStore, StoreError,
};
use aip_protocol::error::ErrorCode;
use aip_protocol::json::Json;
use aip_protocol::name::{Did, Domain};
use aip_protocol::peer::Known;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use sqlx::any::AnyRow;

use super::SqlStore;
use super::rows::{Bind, to_i64};
use crate::limits::SEQS_PER_STATEMENT_MAX;
use crate::peers::{Window, epoch_key, list_text, nonce_key, page, plain, whole};
use histories::{ForgetHistory, KeepHistory};
use windows::{Settle, Settled};
use writes::{AddEvidence, AddLine, ChangePeer, ForgetDead, ForgetStrangers, Lease, Release, UseNonce};

type Answer<T> = Result<T, StoreError>;

/// The most that a page has.
fn page_bind(limit: u32) -> Bind<'static> {
    Bind::Number(i64::from(page(limit)))
}

impl SqlStore {
    async fn window_of(&self, peer: &Domain, epoch_key: &str) -> Answer<Option<Window>> {
        let values = [Bind::Text(peer.as_str()), Bind::Text(epoch_key)];
        let found = self.readers.rows(statements::GET_WINDOW, &values).await?;
        Ok(found.first().map(rows::window).transpose()?)
    }

    /// With which codes some of these items were refused.
    async fn refusals(
        &self,
        peer: &Domain,
        epoch_key: &str,
        seqs: &[u64],
    ) -> Answer<HashMap<u64, ErrorCode>> {
        let mut refused = HashMap::new();
        for some in seqs.chunks(SEQS_PER_STATEMENT_MAX) {
            // No item has the number 0.
            let padded = some.iter().copied().chain(std::iter::repeat(0));
            let numbers = padded
                .take(SEQS_PER_STATEMENT_MAX)
                .map(|seq| Bind::Number(to_i64(seq)));
            let names = [Bind::Text(peer.as_str()), Bind::Text(epoch_key)];
            let values: Vec<_> = names.into_iter().chain(numbers).collect();
            for row in self.readers.rows(&statements::GET_REFUSALS, &values).await? {
                let (peer_seq, code) = rows::refusal(&row)?;
                refused.insert(peer_seq, code);
            }
        }
        Ok(refused)
    }

    async fn settle(&self, peer: &Domain, epoch: &str, settled: Settled) -> Answer<u64> {
        let settle = Settle {
            dialect: self.target.dialect,
            peer: peer.clone(),
            epoch: epoch_key(epoch),
            settled,
        };
        Ok(self.write(settle).await?)
    }

    /// A page of one of the two logs, of one peer or of all.
    async fn lines(
        &self,
        [of_peer, of_all]: [&'static str; 2],
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Answer<Vec<AnyRow>> {
        let (after, limit) = (Bind::Number(to_i64(after)), page_bind(limit));
        Ok(match peer {
            Some(peer) => {
                let values = [Bind::Text(peer.as_str()), after, limit];
                self.readers.rows(of_peer, &values).await?
            }
            None => self.readers.rows(of_all, &[after, limit]).await?,
        })
    }
}

#[async_trait]
impl PeerStore for SqlStore {
    async fn peer(&self, domain: &Domain) -> Answer<Option<PeerRecord>> {
        let values = [Bind::Text(domain.as_str())];
        let found = self.readers.rows(&statements::GET, &values).await?;
        Ok(found.first().map(rows::peer).transpose()?)
    }

    async fn peers(&self, after: Option<&Domain>, limit: u32) -> Answer<Vec<PeerRecord>> {
        // No domain is empty, so that the empty text comes before all.
        let values = [Bind::Text(after.map_or("", Domain::as_str)), page_bind(limit)];
        let found = self.readers.rows(&statements::LIST, &values).await?;
        let peers = found.iter().map(rows::peer).collect::<Result<_, _>>();
        Ok(peers?)
    }

    async fn change(&self, domain: &Domain, change: PeerChange, now: Timestamp) -> Answer<PeerRecord> {
        if change == PeerChange::Met
            && let Some(known) = self.peer(domain).await?
        {
            return Ok(known);
        }
        let domain = domain.clone();
        Ok(self.write(ChangePeer { domain, change, now }).await?)
    }

    async fn forget_dead(&self, before: Timestamp, limit: u32) -> Answer<Vec<Domain>> {
        let forget = ForgetDead {
            dialect: self.target.dialect,
            before,
            limit: page(limit),
        };
        Ok(self.write(forget).await?)
    }

    async fn forget_strangers(&self, keep: u32, limit: u32) -> Answer<Vec<Domain>> {
        let limit = page(limit);
        Ok(self.write(ForgetStrangers { keep, limit }).await?)
    }

    async fn lease(&self, domain: &Domain, holder: &str, now: Timestamp, until: Timestamp) -> Answer<bool> {
        let lease = Lease {
            peer: domain.clone(),
            holder: plain(holder),
            now,
            until,
        };
        Ok(self.write(lease).await?)
    }

    async fn release(&self, domain: &Domain, holder: &str) -> Answer<()> {
        let release = Release {
            peer: domain.clone(),
            holder: plain(holder),
        };
        Ok(self.write(release).await?)
    }
}

#[async_trait]
impl ReceivedStore for SqlStore {
    async fn known(&self, peer: &Domain, epoch: &str, seqs: &[u64]) -> Answer<Vec<Known>> {
        let epoch = epoch_key(epoch);
        let window = self.window_of(peer, &epoch).await?.unwrap_or_default();
        // Codes are read after the window: an item that it knows has its code by then.
        let settled: Vec<_> = seqs.iter().copied().filter(|seq| window.has(*seq)).collect();
        let refused = self.refusals(peer, &epoch, &settled).await?;
        let known = |seq: &u64| match refused.get(seq) {
            Some(code) => Known::Refused(*code),
            None if window.has(*seq) => Known::Duplicate,
            None => Known::New,
        };
        Ok(seqs.iter().map(known).collect())
    }

    async fn note(&self, peer: &Domain, epoch: &str, noted: &[Noted]) -> Answer<u64> {
        self.settle(peer, epoch, Settled::Items(noted.to_vec())).await
    }

    async fn pass_over(&self, peer: &Domain, epoch: &str, through: u64) -> Answer<u64> {
        self.settle(peer, epoch, Settled::Through(through)).await
    }

    async fn window(&self, peer: &Domain, epoch: &str) -> Answer<(u64, u64)> {
        let window = self.window_of(peer, &epoch_key(epoch)).await?.unwrap_or_default();
        Ok((window.floor(), window.above_count()))
    }

    async fn use_nonce(&self, peer: &Domain, nonce: &str, now: Timestamp, until: Timestamp) -> Answer<bool> {
        let nonce = UseNonce {
            dialect: self.target.dialect,
            hash: nonce_key(peer, nonce),
            now,
            until,
        };
        Ok(self.write(nonce).await?)
    }
}

#[async_trait]
impl HistoryStore for SqlStore {
    async fn history(&self, did: &Did) -> Answer<Option<KnownHistory>> {
        let values = [Bind::Text(did.as_str())];
        let found = self.readers.rows(statements::GET_REMOTE_HISTORY, &values).await?;
        Ok(found.first().map(rows::history).transpose()?)
    }

    async fn keep_history(&self, history: &KnownHistory, caps: HistoryCaps) -> Answer<()> {
        let keep = KeepHistory {
            dialect: self.target.dialect,
            did: history.did.clone(),
            length: to_i64(history.operations.len()),
            operations: list_text(&history.operations),
            fetched_at: whole(history.fetched_at),
            caps,
        };
        Ok(self.write(keep).await?)
    }

    async fn forget_history(&self, did: &Did) -> Answer<bool> {
        let forget = ForgetHistory {
            dialect: self.target.dialect,
            did: did.clone(),
        };
        Ok(self.write(forget).await?)
    }
}

#[async_trait]
impl RecordStore for SqlStore {
    async fn add_evidence(
        &self,
        peer: &Domain,
        code: &str,
        subject: &str,
        objects: &[Json],
        now: Timestamp,
    ) -> Answer<()> {
        let add = AddEvidence {
            dialect: self.target.dialect,
            peer: peer.clone(),
            code: plain(code),
            subject: plain(subject),
            objects: list_text(objects),
            now,
        };
        Ok(self.write(add).await?)
    }

    async fn evidence(&self, peer: Option<&Domain>, after: u64, limit: u32) -> Answer<Vec<Evidence>> {
        let found = self.lines(statements::EVIDENCE, peer, after, limit).await?;
        let evidence = found.iter().map(rows::evidence).collect::<Result<_, _>>();
        Ok(evidence?)
    }

    async fn audit(
        &self,
        peer: &Domain,
        actor: &str,
        action: &str,
        detail: &str,
        now: Timestamp,
    ) -> Answer<()> {
        let add = AddLine {
            dialect: self.target.dialect,
            peer: peer.clone(),
            actor: plain(actor),
            action: plain(action),
            detail: plain(detail),
            now,
        };
        Ok(self.write(add).await?)
    }

    async fn audit_log(&self, peer: Option<&Domain>, after: u64, limit: u32) -> Answer<Vec<AuditEntry>> {
        let found = self.lines(statements::AUDIT, peer, after, limit).await?;
        let lines = found.iter().map(rows::audit_entry).collect::<Result<_, _>>();
        Ok(lines?)
    }
}
