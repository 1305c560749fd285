//! Peers in memory.

mod histories;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use aip_federation::limits::{
    AUDIT_LINES_MAX, EPOCHS_PER_PEER_MAX, EVIDENCE_PER_PEER_MAX, REFUSALS_PER_EPOCH_MAX,
};
use aip_federation::peers::{
    AuditEntry, Evidence, HistoryCaps, HistoryStore, KnownHistory, Noted, PeerChange, PeerLimits, PeerRecord,
    PeerStore, ReceivedStore, RecordStore, Stance, StoreError,
};
use aip_protocol::error::ErrorCode;
use aip_protocol::json::Json;
use aip_protocol::name::{Did, Domain};
use aip_protocol::peer::Known;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use super::MemoryStore;
use crate::limits::NONCES_DROPPED_PER_USE;
use crate::peers::{OPERATOR, Window, nonce_key, page, plain, step, whole};
use histories::Histories;

/// Everything about peers.
#[derive(Debug, Default)]
pub(super) struct Peers {
    records: BTreeMap<Domain, PeerRecord>,
    leases: BTreeMap<Domain, (String, Timestamp)>,
    /// Of each peer its epochs, in the order in which they came.
    windows: HashMap<Domain, Vec<Received>>,
    nonces: HashMap<String, Timestamp>,
    histories: Histories,
    evidence: Log<Evidence>,
    audit: Log<AuditEntry>,
}

/// What came from a peer in one epoch.
#[derive(Debug, Default)]
struct Received {
    epoch: String,
    window: Window,
    refused: BTreeMap<u64, ErrorCode>,
}

impl Received {
    fn known(&self, peer_seq: u64) -> Known {
        match self.refused.get(&peer_seq) {
            Some(code) => Known::Refused(*code),
            None if self.window.has(peer_seq) => Known::Duplicate,
            None => Known::New,
        }
    }

    fn note(&mut self, noted: &[Noted]) {
        for new in self.window.note(noted) {
            if let Some(code) = new.refused {
                self.refused.insert(new.peer_seq, code);
            }
        }
        while self.refused.len() as u64 > REFUSALS_PER_EPOCH_MAX {
            self.refused.pop_first();
        }
    }
}

/// Lines with numbers.
#[derive(Debug)]
struct Log<T> {
    last: u64,
    lines: BTreeMap<u64, T>,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self {
            last: 0,
            lines: BTreeMap::new(),
        }
    }
}

impl<T: Clone> Log<T> {
    fn add(&mut self, line: impl FnOnce(u64) -> T) {
        self.last += 1;
        self.lines.insert(self.last, line(self.last));
    }

    fn page(&self, after: u64, limit: u32, is_asked: impl Fn(&T) -> bool) -> Vec<T> {
        let later = self.lines.range((Bound::Excluded(after), Bound::Unbounded));
        let asked = later.map(|(_, line)| line).filter(|line| is_asked(line));
        asked.take(page(limit) as usize).cloned().collect()
    }
}

impl Peers {
    fn epoch(&self, peer: &Domain, epoch: &str) -> Option<&Received> {
        self.windows.get(peer)?.iter().find(|known| known.epoch == epoch)
    }

    /// Has something done to a window, which is made if it is not there.
    fn settle(&mut self, peer: &Domain, epoch: &str, change: impl FnOnce(&mut Received)) -> u64 {
        let epochs = self.windows.entry(peer.clone()).or_default();
        if !epochs.iter().any(|known| known.epoch == epoch) {
            epochs.push(Received {
                epoch: epoch.to_owned(),
                ..Received::default()
            });
            if epochs.len() as u64 > EPOCHS_PER_PEER_MAX {
                epochs.remove(0);
            }
        }
        let Some(known) = epochs.iter_mut().find(|known| known.epoch == epoch) else {
            return 0;
        };
        change(known);
        known.window.floor()
    }

    fn forget_dead(&mut self, before: Timestamp, limit: u32) -> Vec<Domain> {
        let witnessed: BTreeSet<_> = self.evidence.lines.values().map(|line| &line.peer).collect();
        let is_past = |moment: Option<Timestamp>| moment.is_none_or(|moment| moment < before);
        let is_dead = |peer: &&PeerRecord| {
            is_past(Some(peer.first_seen))
                && is_past(peer.last_in)
                && is_past(peer.last_out)
                && (peer.stance, peer.limits) == (Stance::default(), PeerLimits::default())
                && peer.frozen.is_none()
                && !witnessed.contains(&peer.domain)
        };
        let dead = self.records.values().filter(is_dead);
        let dead: Vec<_> = dead
            .map(|peer| peer.domain.clone())
            .take(page(limit) as usize)
            .collect();
        self.leases.retain(|_, (_, until)| *until >= before);
        self.forget(&dead);
        dead
    }

    fn forget_strangers(&mut self, keep: u32, limit: u32) -> Vec<Domain> {
        let strangers = self.records.values().filter(|peer| peer.is_stranger());
        let mut strangers: Vec<_> = strangers
            .map(|peer| (Reverse(peer.last_heard()), &peer.domain))
            .collect();
        strangers.sort_unstable();
        let gone = strangers.into_iter().skip(keep as usize);
        let mut gone: Vec<_> = gone
            .map(|(_, domain)| domain.clone())
            .take(page(limit) as usize)
            .collect();
        gone.sort_unstable();
        self.forget(&gone);
        self.evidence
            .lines
            .retain(|_, line| gone.binary_search(&line.peer).is_err());
        for domain in &gone {
            self.windows.remove(domain);
        }
        gone
    }

    /// Forgets the records of peers, and lines about them. They are in order.
    fn forget(&mut self, peers: &[Domain]) {
        for domain in peers {
            self.records.remove(domain);
        }
        self.audit
            .lines
            .retain(|_, line| line.actor == OPERATOR || peers.binary_search(&line.peer).is_err());
    }
}

fn met(domain: &Domain, first_seen: Timestamp) -> PeerRecord {
    PeerRecord {
        domain: domain.clone(),
        pinned: Vec::new(),
        document: None,
        fresh_until: None,
        frozen: None,
        stance: Stance::default(),
        limits: PeerLimits::default(),
        first_seen,
        last_in: None,
        last_out: None,
        good_items: 0,
    }
}

fn apply(record: &mut PeerRecord, change: PeerChange, now: Timestamp) {
    match change {
        PeerChange::Met => {}
        PeerChange::Documented {
            document,
            pinned,
            fresh_until,
        } => {
            record.document = Some(document);
            record.pinned = pinned;
            record.fresh_until = Some(whole(fresh_until));
        }
        PeerChange::Stale => record.fresh_until = None,
        PeerChange::Frozen(mut frozen) => {
            frozen.since = whole(frozen.since);
            frozen.code = plain(&frozen.code);
            frozen.kid = plain(&frozen.kid);
            record.frozen.get_or_insert(frozen);
        }
        PeerChange::Repinned => {
            record.pinned.clear();
            record.frozen = None;
            record.fresh_until = None;
        }
        PeerChange::Stance(stance) => record.stance = stance,
        PeerChange::Limits(limits) => record.limits = limits,
        PeerChange::CameIn { good_items } => {
            record.last_in = record.last_in.max(Some(now));
            record.good_items += step(good_items);
        }
        PeerChange::WentOut => record.last_out = record.last_out.max(Some(now)),
    }
}

#[async_trait]
impl PeerStore for MemoryStore {
    async fn peer(&self, domain: &Domain) -> Result<Option<PeerRecord>, StoreError> {
        Ok(self.state().peers.records.get(domain).cloned())
    }

    async fn peers(&self, after: Option<&Domain>, limit: u32) -> Result<Vec<PeerRecord>, StoreError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let records = &self.state().peers.records;
        let later = records.range::<Domain, _>((start, Bound::Unbounded));
        let page = later.take(page(limit) as usize);
        Ok(page.map(|(_, record)| record.clone()).collect())
    }

    async fn change(
        &self,
        domain: &Domain,
        change: PeerChange,
        now: Timestamp,
    ) -> Result<PeerRecord, StoreError> {
        let (peers, now) = (&mut self.state().peers, whole(now));
        let record = peers.records.entry(domain.clone());
        let record = record.or_insert_with(|| met(domain, now));
        apply(record, change, now);
        Ok(record.clone())
    }

    async fn forget_dead(&self, before: Timestamp, limit: u32) -> Result<Vec<Domain>, StoreError> {
        Ok(self.state().peers.forget_dead(before, limit))
    }

    async fn forget_strangers(&self, keep: u32, limit: u32) -> Result<Vec<Domain>, StoreError> {
        Ok(self.state().peers.forget_strangers(keep, limit))
    }

    async fn lease(
        &self,
        domain: &Domain,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let (leases, mut until) = (&mut self.state().peers.leases, whole(until));
        match leases.get(domain) {
            Some((other, end)) if other != holder && *end > whole(now) => return Ok(false),
            Some((other, end)) if other == holder => until = until.max(*end),
            _ => {}
        }
        leases.insert(domain.clone(), (holder.to_owned(), until));
        Ok(true)
    }

    async fn release(&self, domain: &Domain, holder: &str) -> Result<(), StoreError> {
        let leases = &mut self.state().peers.leases;
        if leases.get(domain).is_some_and(|(other, _)| other == holder) {
            leases.remove(domain);
        }
        Ok(())
    }
}

#[async_trait]
impl ReceivedStore for MemoryStore {
    async fn known(&self, peer: &Domain, epoch: &str, seqs: &[u64]) -> Result<Vec<Known>, StoreError> {
        let peers = &self.state().peers;
        let window = peers.epoch(peer, epoch);
        let known = |seq: &u64| window.map_or(Known::New, |window| window.known(*seq));
        Ok(seqs.iter().map(known).collect())
    }

    async fn note(&self, peer: &Domain, epoch: &str, noted: &[Noted]) -> Result<u64, StoreError> {
        let peers = &mut self.state().peers;
        Ok(peers.settle(peer, epoch, |known| known.note(noted)))
    }

    async fn pass_over(&self, peer: &Domain, epoch: &str, through: u64) -> Result<u64, StoreError> {
        let peers = &mut self.state().peers;
        Ok(peers.settle(peer, epoch, |known| known.window.pass_over(through)))
    }

    async fn window(&self, peer: &Domain, epoch: &str) -> Result<(u64, u64), StoreError> {
        let peers = &self.state().peers;
        let known = peers.epoch(peer, epoch).map(|known| &known.window);
        Ok(known.map_or((0, 0), |window| (window.floor(), window.above_count())))
    }

    async fn use_nonce(
        &self,
        peer: &Domain,
        nonce: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let (nonces, now) = (&mut self.state().peers.nonces, whole(now));
        let key = nonce_key(peer, nonce);
        let is_used = nonces.get(&key).is_some_and(|end| *end > now);
        if !is_used {
            nonces.insert(key, whole(until));
        }
        let over: Vec<_> = nonces
            .extract_if(|_, end| *end <= now)
            .take(NONCES_DROPPED_PER_USE as usize)
            .collect();
        drop(over);
        Ok(!is_used)
    }
}

#[async_trait]
impl HistoryStore for MemoryStore {
    async fn history(&self, did: &Did) -> Result<Option<KnownHistory>, StoreError> {
        Ok(self.state().peers.histories.get(did).cloned())
    }

    async fn keep_history(&self, history: &KnownHistory, caps: HistoryCaps) -> Result<(), StoreError> {
        let Peers {
            histories, records, ..
        } = &mut self.state().peers;
        let is_stranger = |peer: &Domain| !records.get(peer).is_some_and(PeerRecord::is_acquainted);
        histories.keep(history, caps, is_stranger);
        Ok(())
    }

    async fn forget_history(&self, did: &Did) -> Result<bool, StoreError> {
        Ok(self.state().peers.histories.forget(did))
    }
}

#[async_trait]
impl RecordStore for MemoryStore {
    async fn add_evidence(
        &self,
        peer: &Domain,
        code: &str,
        subject: &str,
        objects: &[Json],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let evidence = &mut self.state().peers.evidence;
        let (code, subject) = (plain(code), plain(subject));
        let of_peer = || evidence.lines.values().filter(|line| line.peer == *peer);
        let is_same = |line: &Evidence| {
            (&line.code, &line.subject, line.objects.as_slice()) == (&code, &subject, objects)
        };
        let is_full = of_peer().count() >= EVIDENCE_PER_PEER_MAX as usize;
        if !is_full && !of_peer().any(is_same) {
            evidence.add(|number| Evidence {
                number,
                peer: peer.clone(),
                code,
                subject,
                objects: objects.to_vec(),
                at: whole(now),
            });
        }
        Ok(())
    }

    async fn evidence(
        &self,
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Evidence>, StoreError> {
        let evidence = &self.state().peers.evidence;
        Ok(evidence.page(after, limit, |line| peer.is_none_or(|peer| line.peer == *peer)))
    }

    async fn audit(
        &self,
        peer: &Domain,
        actor: &str,
        action: &str,
        detail: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let audit = &mut self.state().peers.audit;
        audit.add(|number| AuditEntry {
            number,
            peer: peer.clone(),
            actor: plain(actor),
            action: plain(action),
            detail: plain(detail),
            at: whole(now),
        });
        if actor != OPERATOR {
            let of_actor = audit
                .lines
                .values()
                .filter(|line| line.peer == *peer && line.actor == actor);
            let newest = of_actor
                .rev()
                .nth(usize::try_from(AUDIT_LINES_MAX).unwrap_or(usize::MAX));
            if let Some(number) = newest.map(|line| line.number) {
                audit.lines.remove(&number);
            }
        }
        Ok(())
    }

    async fn audit_log(
        &self,
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let audit = &self.state().peers.audit;
        Ok(audit.page(after, limit, |line| peer.is_none_or(|peer| line.peer == *peer)))
    }
}
