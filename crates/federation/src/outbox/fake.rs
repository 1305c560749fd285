//! Outboxes in plain maps, for tests: what the contract promises, and failures when told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

use super::{Fate, Outbox, OutboxError, OutboxItem, OutboxState};

/// An [`Outbox`] that remembers what became of every message.
#[derive(Debug, Default)]
pub struct FakeOutbox {
    kept: Mutex<BTreeMap<Domain, Kept>>,
    fails: AtomicBool,
    reads: AtomicUsize,
    loaded: AtomicUsize,
    settles: AtomicUsize,
}

#[derive(Debug, Default)]
struct Kept {
    head: u64,
    waiting: BTreeMap<u64, OutboxItem>,
    /// Of the envelopes of those.
    bytes: u64,
    /// Everything that has left, in the order in which it did.
    left: Vec<(u64, Fate)>,
}

impl FakeOutbox {
    /// Nothing waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on every call fails, or no longer does.
    pub fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    /// Puts a message in, accepted at this moment; returns its place. The envelope has no more members than delivery reads.
    pub fn put(&self, from: &Did, to: &Did, accepted_at: Timestamp, expires_at: Option<Timestamp>) -> u64 {
        let expires = expires_at.map_or_else(String::new, |at| format!(",\"expires_at\":\"{at}\""));
        self.put_wire(from, to, accepted_at, |id| {
            format!("{{\"id\":\"{id}\",\"from\":\"{from}\",\"to\":\"{to}\"{expires}}}")
        })
    }

    /// Puts a message in whose envelope is what `wire` makes of its id.
    pub fn put_wire(
        &self,
        from: &Did,
        to: &Did,
        accepted_at: Timestamp,
        wire: impl FnOnce(Uuid) -> String,
    ) -> u64 {
        let mut kept = self.lock();
        let outbox = kept.entry(to.domain()).or_default();
        outbox.head += 1;
        let id = Uuid::from_u128(u128::from(outbox.head));
        let item = OutboxItem {
            peer_seq: outbox.head,
            accepted_at,
            sender: from.clone(),
            recipient: to.clone(),
            id,
            wire: Bytes::from(wire(id)),
        };
        outbox.bytes += item.wire.len() as u64;
        outbox.waiting.insert(item.peer_seq, item);
        outbox.head
    }

    /// What has left a peer's outbox, in that order.
    pub fn left(&self, peer: &Domain) -> Vec<(u64, Fate)> {
        self.lock()
            .get(peer)
            .map(|outbox| outbox.left.clone())
            .unwrap_or_default()
    }

    /// What waits for a peer.
    pub fn pending(&self, peer: &Domain) -> Vec<u64> {
        let kept = self.lock();
        kept.get(peer)
            .map(|outbox| outbox.waiting.keys().copied().collect())
            .unwrap_or_default()
    }

    /// How many calls only read.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// How many messages were handed out.
    pub fn loaded(&self) -> usize {
        self.loaded.load(Ordering::SeqCst)
    }

    /// How many calls settled something.
    pub fn settles(&self) -> usize {
        self.settles.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Domain, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<(), OutboxError> {
        if self.fails.load(Ordering::SeqCst) {
            Err(OutboxError("the test told the outbox to fail".into()))
        } else {
            Ok(())
        }
    }

    fn read<R>(&self, peer: &Domain, read: impl FnOnce(&Kept) -> R) -> Result<R, OutboxError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        Ok(read(self.lock().entry(peer.clone()).or_default()))
    }
}

#[async_trait]
impl Outbox for FakeOutbox {
    fn epoch(&self) -> String {
        "epoch-1".to_owned()
    }

    async fn state(&self, peer: &Domain) -> Result<OutboxState, OutboxError> {
        self.read(peer, |outbox| {
            let lowest = outbox.waiting.first_key_value().map(|(seq, _)| *seq);
            OutboxState {
                floor: lowest.map_or(outbox.head, |lowest| lowest - 1),
                head: outbox.head,
                pending: outbox.waiting.len() as u64,
                bytes: outbox.bytes,
            }
        })
    }

    async fn after(
        &self,
        peer: &Domain,
        after: u64,
        items_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<OutboxItem>, OutboxError> {
        let items = self.read(peer, |outbox| {
            let mut bytes = 0;
            let mut fits = |item: &&OutboxItem| {
                bytes += item.wire.len();
                bytes <= bytes_max || bytes == item.wire.len()
            };
            let later = outbox.waiting.range(after + 1..).map(|(_, item)| item);
            later
                .take(items_max)
                .take_while(&mut fits)
                .cloned()
                .collect::<Vec<_>>()
        })?;
        self.loaded.fetch_add(items.len(), Ordering::SeqCst);
        Ok(items)
    }

    async fn items(&self, peer: &Domain, seqs: &[u64]) -> Result<Vec<OutboxItem>, OutboxError> {
        let items = self.read(peer, |outbox| {
            let asked: BTreeSet<u64> = seqs.iter().copied().collect();
            let items = asked.iter().filter_map(|seq| outbox.waiting.get(seq));
            items.cloned().collect::<Vec<_>>()
        })?;
        self.loaded.fetch_add(items.len(), Ordering::SeqCst);
        Ok(items)
    }

    async fn settle(&self, peer: &Domain, fates: &[(u64, Fate)]) -> Result<(), OutboxError> {
        self.settles.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        let mut kept = self.lock();
        let outbox = kept.entry(peer.clone()).or_default();
        for (seq, fate) in fates {
            if let Some(item) = outbox.waiting.remove(seq) {
                outbox.bytes -= item.wire.len() as u64;
                outbox.left.push((*seq, fate.clone()));
            }
        }
        Ok(())
    }
}
