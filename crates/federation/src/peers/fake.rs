//! A store of peers in plain maps, for the tests of this room and of those above it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::error::ErrorCode;
use aip_protocol::json::Json;
use aip_protocol::name::{Did, Domain};
use aip_protocol::peer::Known;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use super::{
    AuditEntry, Evidence, HistoryCaps, HistoryStore, KnownHistory, Noted, PeerChange, PeerLimits, PeerRecord,
    PeerStore, ReceivedStore, RecordStore, Stance, StoreError,
};
use crate::limits::{EVIDENCE_PER_PEER_MAX, PEERS_PAGE_MAX};

/// A [`FederationStore`](super::FederationStore) that keeps what the contract promises, and fails when told to.
#[derive(Debug, Default)]
pub struct FakeStore {
    kept: Mutex<Kept>,
    fails: AtomicBool,
    reads: AtomicUsize,
    writes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Kept {
    peers: BTreeMap<Domain, PeerRecord>,
    leases: BTreeMap<Domain, (String, Timestamp)>,
    windows: BTreeMap<(Domain, String), Window>,
    nonces: BTreeMap<(Domain, String), Timestamp>,
    histories: BTreeMap<Did, KnownHistory>,
    evidence: Vec<Evidence>,
    audit: Vec<AuditEntry>,
}

/// What came in from one peer in one epoch.
#[derive(Debug, Default)]
struct Window {
    floor: u64,
    above: BTreeSet<u64>,
    refused: BTreeMap<u64, ErrorCode>,
}

impl Window {
    fn known(&self, seq: u64) -> Known {
        match self.refused.get(&seq) {
            Some(code) => Known::Refused(*code),
            None if seq <= self.floor || self.above.contains(&seq) => Known::Duplicate,
            None => Known::New,
        }
    }

    fn note(&mut self, noted: Noted) {
        if self.known(noted.peer_seq) != Known::New {
            return;
        }
        if let Some(code) = noted.refused {
            self.refused.insert(noted.peer_seq, code);
        }
        self.above.insert(noted.peer_seq);
        self.close_up();
    }

    fn pass_over(&mut self, through: u64) {
        self.floor = self.floor.max(through);
        self.above.retain(|seq| *seq > through);
        self.close_up();
    }

    fn close_up(&mut self) {
        while self.above.first() == Some(&(self.floor + 1)) {
            self.above.pop_first();
            self.floor += 1;
        }
    }
}

impl FakeStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on every call fails, or no longer does.
    pub fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    /// How many calls that only read were made.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// How many calls that may change something were made.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    fn read(&self) -> Result<MutexGuard<'_, Kept>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.open()
    }

    fn write(&self) -> Result<MutexGuard<'_, Kept>, StoreError> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.open()
    }

    fn open(&self) -> Result<MutexGuard<'_, Kept>, StoreError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError("the test told the store to fail".into()));
        }
        Ok(self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// To the whole millisecond, as every store keeps times.
fn kept_time(at: Timestamp) -> Timestamp {
    Timestamp::from_unix_millis(at.unix_millis())
}

fn page(limit: u32) -> usize {
    usize::try_from(limit.min(PEERS_PAGE_MAX)).unwrap_or(usize::MAX)
}

fn met(domain: &Domain, now: Timestamp) -> PeerRecord {
    PeerRecord {
        domain: domain.clone(),
        pinned: Vec::new(),
        document: None,
        fresh_until: None,
        frozen: None,
        stance: Stance::Undecided,
        limits: PeerLimits::default(),
        first_seen: now,
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
            record.fresh_until = Some(kept_time(fresh_until));
        }
        PeerChange::Stale => record.fresh_until = None,
        PeerChange::Frozen(mut frozen) => {
            frozen.since = kept_time(frozen.since);
            record.frozen.get_or_insert(frozen);
        }
        PeerChange::Repinned => {
            record.pinned.clear();
            record.fresh_until = None;
            record.frozen = None;
        }
        PeerChange::Stance(stance) => record.stance = stance,
        PeerChange::Limits(limits) => record.limits = limits,
        PeerChange::CameIn { good_items } => {
            record.last_in = record.last_in.max(Some(now));
            record.good_items += good_items;
        }
        PeerChange::WentOut => record.last_out = record.last_out.max(Some(now)),
    }
}

#[async_trait]
impl PeerStore for FakeStore {
    async fn peer(&self, domain: &Domain) -> Result<Option<PeerRecord>, StoreError> {
        Ok(self.read()?.peers.get(domain).cloned())
    }

    async fn peers(&self, after: Option<&Domain>, limit: u32) -> Result<Vec<PeerRecord>, StoreError> {
        let kept = self.read()?;
        let later = kept
            .peers
            .values()
            .filter(|peer| after.is_none_or(|after| peer.domain > *after));
        Ok(later.take(page(limit)).cloned().collect())
    }

    async fn change(
        &self,
        domain: &Domain,
        change: PeerChange,
        now: Timestamp,
    ) -> Result<PeerRecord, StoreError> {
        let mut kept = self.write()?;
        let now = kept_time(now);
        let record = kept
            .peers
            .entry(domain.clone())
            .or_insert_with(|| met(domain, now));
        apply(record, change, now);
        Ok(record.clone())
    }

    async fn forget_dead(&self, before: Timestamp, limit: u32) -> Result<Vec<Domain>, StoreError> {
        let mut kept = self.write()?;
        let witnessed: BTreeSet<&Domain> = kept.evidence.iter().map(|evidence| &evidence.peer).collect();
        let is_past = |moment: Option<Timestamp>| moment.is_none_or(|moment| moment < before);
        let is_dead = |peer: &&PeerRecord| {
            peer.first_seen < before
                && is_past(peer.last_in)
                && is_past(peer.last_out)
                && peer.stance == Stance::Undecided
                && peer.limits == PeerLimits::default()
                && peer.frozen.is_none()
                && !witnessed.contains(&peer.domain)
        };
        let dead = kept.peers.values().filter(is_dead).take(page(limit));
        let dead: Vec<Domain> = dead.map(|peer| peer.domain.clone()).collect();
        for domain in &dead {
            kept.peers.remove(domain);
        }
        Ok(dead)
    }

    async fn forget_strangers(&self, keep: u32, limit: u32) -> Result<Vec<Domain>, StoreError> {
        let mut kept = self.write()?;
        let strangers = kept.peers.values().filter(|peer| peer.is_stranger());
        let mut strangers: Vec<_> = strangers
            .map(|peer| (Reverse(peer.last_heard()), peer.domain.clone()))
            .collect();
        strangers.sort_unstable();
        let gone = strangers.into_iter().map(|(_, domain)| domain);
        let mut gone: Vec<_> = gone.skip(keep as usize).take(page(limit)).collect();
        gone.sort_unstable();
        kept.peers.retain(|domain, _| !gone.contains(domain));
        kept.windows.retain(|(peer, _), _| !gone.contains(peer));
        kept.evidence.retain(|one| !gone.contains(&one.peer));
        Ok(gone)
    }

    async fn lease(
        &self,
        domain: &Domain,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut kept = self.write()?;
        let is_taken = kept
            .leases
            .get(domain)
            .is_some_and(|(other, end)| other != holder && *end > kept_time(now));
        if !is_taken {
            let own = kept.leases.get(domain).filter(|(other, _)| other == holder);
            let until = own.map_or(kept_time(until), |(_, end)| kept_time(until).max(*end));
            let lease = (holder.to_owned(), until);
            kept.leases.insert(domain.clone(), lease);
        }
        Ok(!is_taken)
    }

    async fn release(&self, domain: &Domain, holder: &str) -> Result<(), StoreError> {
        let mut kept = self.write()?;
        if kept.leases.get(domain).is_some_and(|(other, _)| other == holder) {
            kept.leases.remove(domain);
        }
        Ok(())
    }
}

#[async_trait]
impl ReceivedStore for FakeStore {
    async fn known(&self, peer: &Domain, epoch: &str, seqs: &[u64]) -> Result<Vec<Known>, StoreError> {
        let kept = self.read()?;
        let window = kept.windows.get(&(peer.clone(), epoch.to_owned()));
        let known = |seq: &u64| window.map_or(Known::New, |window| window.known(*seq));
        Ok(seqs.iter().map(known).collect())
    }

    async fn note(&self, peer: &Domain, epoch: &str, noted: &[Noted]) -> Result<u64, StoreError> {
        let mut kept = self.write()?;
        let window = kept.windows.entry((peer.clone(), epoch.to_owned())).or_default();
        for item in noted {
            window.note(*item);
        }
        Ok(window.floor)
    }

    async fn pass_over(&self, peer: &Domain, epoch: &str, through: u64) -> Result<u64, StoreError> {
        let mut kept = self.write()?;
        let window = kept.windows.entry((peer.clone(), epoch.to_owned())).or_default();
        window.pass_over(through);
        Ok(window.floor)
    }

    async fn window(&self, peer: &Domain, epoch: &str) -> Result<(u64, u64), StoreError> {
        let kept = self.read()?;
        let window = kept.windows.get(&(peer.clone(), epoch.to_owned()));
        let counts = |window: &Window| {
            (
                window.floor,
                u64::try_from(window.above.len()).unwrap_or(u64::MAX),
            )
        };
        Ok(window.map_or((0, 0), counts))
    }

    async fn use_nonce(
        &self,
        peer: &Domain,
        nonce: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut kept = self.write()?;
        kept.nonces.retain(|_, end| *end > kept_time(now));
        let key = (peer.clone(), nonce.to_owned());
        let is_fresh = !kept.nonces.contains_key(&key);
        if is_fresh {
            kept.nonces.insert(key, kept_time(until));
        }
        Ok(is_fresh)
    }
}

#[async_trait]
impl HistoryStore for FakeStore {
    async fn history(&self, did: &Did) -> Result<Option<KnownHistory>, StoreError> {
        Ok(self.read()?.histories.get(did).cloned())
    }

    /// There is room for all.
    async fn keep_history(&self, history: &KnownHistory, _caps: HistoryCaps) -> Result<(), StoreError> {
        let history = KnownHistory {
            fetched_at: kept_time(history.fetched_at),
            ..history.clone()
        };
        let mut kept = self.write()?;
        let age = |history: &KnownHistory| (history.operations.len(), history.fetched_at);
        let known = kept.histories.get(&history.did);
        if known.is_none_or(|known| age(known) <= age(&history)) {
            kept.histories.insert(history.did.clone(), history);
        }
        Ok(())
    }

    async fn forget_history(&self, did: &Did) -> Result<bool, StoreError> {
        Ok(self.write()?.histories.remove(did).is_some())
    }
}

#[async_trait]
impl RecordStore for FakeStore {
    async fn add_evidence(
        &self,
        peer: &Domain,
        code: &str,
        subject: &str,
        objects: &[Json],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut kept = self.write()?;
        let of_peer = || kept.evidence.iter().filter(|evidence| evidence.peer == *peer);
        let is_same = |e: &Evidence| e.code == code && e.subject == subject && e.objects == objects;
        if of_peer().any(is_same) || of_peer().count() >= page(EVIDENCE_PER_PEER_MAX) {
            return Ok(());
        }
        let number = kept.evidence.last().map_or(1, |last| last.number + 1);
        kept.evidence.push(Evidence {
            number,
            peer: peer.clone(),
            code: code.to_owned(),
            subject: subject.to_owned(),
            objects: objects.to_vec(),
            at: kept_time(now),
        });
        Ok(())
    }

    async fn evidence(
        &self,
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Evidence>, StoreError> {
        let kept = self.read()?;
        let wanted = |e: &&Evidence| e.number > after && peer.is_none_or(|peer| e.peer == *peer);
        Ok(kept
            .evidence
            .iter()
            .filter(wanted)
            .take(page(limit))
            .cloned()
            .collect())
    }

    async fn audit(
        &self,
        peer: &Domain,
        actor: &str,
        action: &str,
        detail: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut kept = self.write()?;
        let number = kept.audit.last().map_or(1, |last| last.number + 1);
        kept.audit.push(AuditEntry {
            number,
            peer: peer.clone(),
            actor: actor.to_owned(),
            action: action.to_owned(),
            detail: detail.to_owned(),
            at: kept_time(now),
        });
        Ok(())
    }

    async fn audit_log(
        &self,
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let kept = self.read()?;
        let wanted = |line: &&AuditEntry| line.number > after && peer.is_none_or(|peer| line.peer == *peer);
        Ok(kept
            .audit
            .iter()
            .filter(wanted)
            .take(page(limit))
            .cloned()
            .collect())
    }
}
