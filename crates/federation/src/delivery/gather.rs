//! The first half of an attempt: whose turn it is, and what is to be sent.

use std::collections::BTreeMap;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::limits::TRANSIT_SECS_MAX;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;

use super::answer::Failure;
use super::batch::{Sent, expires_at};
use super::peer::{Errand, Peer};
use super::turn::Turn;
use super::{Delivery, own};
use crate::limits::{LEASE, PAGES_PER_ATTEMPT};
use crate::outbox::{Fate, OutboxItem};
use crate::peers::PeerChange;

/// What was found in the outbox.
pub(super) enum Found {
    /// Messages that go out now.
    Batch(Vec<OutboxItem>),
    /// Nothing that may go now.
    Nothing,
    /// Another process sends.
    NotOurs,
}

/// What is done with messages that were read.
#[derive(Default)]
struct Sorted {
    go: Vec<OutboxItem>,
    ended: Vec<(Sent, Fate)>,
    /// Nothing was read.
    is_empty: bool,
}

impl Delivery {
    /// Looks for messages that may go now, and ends on the way those that are too old.
    pub(super) async fn gather(&self, turn: &mut Turn) -> Result<Found, Failure> {
        if !self.hold_lease(turn).await? {
            return Ok(Found::NotOurs);
        }
        for _page in 0..PAGES_PER_ATTEMPT {
            let Some(errand) = turn.with(|peer, now, _| peer.errand(now)) else {
                break;
            };
            let items = self.read(turn, &errand).await?;
            let sorted = turn.with(|peer, now, _| sort(peer, &errand, items, now));
            let Sorted { go, ended, is_empty } = sorted.unwrap_or_default();
            let over = ended.iter().map(|(sent, _)| sent.seq);
            turn.taken = go.iter().map(|item| item.peer_seq).chain(over).collect();
            if !ended.is_empty() {
                self.end(turn, &ended).await?;
            }
            if !go.is_empty() {
                return Ok(Found::Batch(go));
            }
            if is_empty {
                break;
            }
        }
        Ok(Found::Nothing)
    }

    /// Takes out what is too old.
    async fn end(&self, turn: &Turn, ended: &[(Sent, Fate)]) -> Result<(), Failure> {
        let settled = self.settle(&turn.domain, ended).await;
        turn.with(|peer, _, _| peer.ledger.left(settled.left));
        settled.failure.map_or(Ok(()), Err)
    }

    async fn hold_lease(&self, turn: &Turn) -> Result<bool, Failure> {
        if turn.with(|peer, now, _| peer.needs_lease(now)) != Some(true) {
            return Ok(true);
        }
        let now = self.now();
        let (store, until) = (&self.seams.store, now + LEASE);
        let leased = store.lease(&turn.domain, &self.config.holder, now, until).await;
        let is_ours = leased.map_err(|error| own(&error))?;
        if is_ours {
            let is_first = turn.with(|peer, _, _| peer.leased(until)) == Some(true);
            if is_first {
                self.meet(&turn.domain).await?;
            }
        }
        Ok(is_ours)
    }

    /// A peer that is known is found by the look through all outboxes, whatever becomes of this process.
    async fn meet(&self, domain: &Domain) -> Result<(), Failure> {
        let store = &self.seams.store;
        if store.peer(domain).await.map_err(|error| own(&error))?.is_none() {
            let met = store.change(domain, PeerChange::Met, self.now()).await;
            met.map_err(|error| own(&error))?;
        }
        Ok(())
    }

    /// Reads what an errand names, in order.
    async fn read(&self, turn: &Turn, errand: &Errand) -> Result<Vec<OutboxItem>, Failure> {
        let outbox = &self.seams.outbox;
        let mut items = Vec::new();
        if !errand.due.is_empty() {
            let seqs: Vec<u64> = errand.due.iter().map(|due| due.seq).collect();
            items = outbox
                .items(&turn.domain, &seqs)
                .await
                .map_err(|error| own(&error))?;
            turn.with(|peer, _, _| peer.ledger.forget_missing(&errand.due, &items));
        }
        let bytes: usize = items.iter().map(|item| item.wire.len()).sum();
        if errand.new_max > 0 && (items.is_empty() || bytes < errand.room.bytes) {
            let room = errand.room.bytes.saturating_sub(bytes);
            let new = outbox
                .after(&turn.domain, errand.cursor, errand.new_max, room)
                .await;
            let new = new.map_err(|error| own(&error))?;
            if new.is_empty() {
                turn.with(|peer, _, _| peer.reached_end(errand));
            }
            items.extend(new);
        }
        Ok(items)
    }

    /// Nothing may go now. When the outbox is empty the lease is kept for a while, then given back.
    pub(super) async fn rest(&self, turn: &mut Turn) {
        let poll = self.config.linger_poll;
        if turn.with(|peer, now, _| peer.ran_empty(now, poll)) == Some(true) {
            self.release(&turn.domain).await;
        }
        turn.ended(|_, _, _| ());
    }

    pub(super) async fn release(&self, domain: &Domain) {
        if let Err(error) = self.seams.store.release(domain, &self.config.holder).await {
            tracing::debug!(peer = %domain, %error, "A lease was not given back; it ends by itself");
        }
    }
}

/// Sorts what was read: too old, to be sent now, or to wait.
fn sort(peer: &mut Peer, errand: &Errand, items: Vec<OutboxItem>, now: Timestamp) -> Sorted {
    let is_empty = items.is_empty();
    peer.ledger.look_at(&items);
    let mut read: BTreeMap<u64, OutboxItem> = items.into_iter().map(|item| (item.peer_seq, item)).collect();
    let ended: Vec<(Sent, Fate)> = read
        .values()
        .filter(|item| peer.ledger.is_waiting(item))
        .filter_map(|item| Some((Sent::of(item), end_of(peer, item, now)?)))
        .collect();
    let over = ended.iter().filter_map(|(sent, _)| read.get(&sent.seq));
    peer.ledger.take(over);
    let seqs = peer.ledger.choose(now, errand.room, &read);
    let go: Vec<OutboxItem> = seqs.iter().filter_map(|seq| read.remove(seq)).collect();
    peer.ledger.take(&go);
    Sorted { go, ended, is_empty }
}

/// How a message ends that was not delivered in time.
fn end_of(peer: &Peer, item: &OutboxItem, now: Timestamp) -> Option<Fate> {
    if expires_at(&item.wire).is_some_and(|expires_at| expires_at <= now) {
        return Some(Fate::Expired);
    }
    if item.accepted_at + Duration::from_secs(TRANSIT_SECS_MAX) >= now {
        return None;
    }
    let code = peer.ledger.last_code(item);
    let code = code.map(|code| code.as_str().to_owned());
    let code = code.or_else(|| peer.last_error.as_ref().map(|error| error.code.clone()));
    Some(Fate::Dead(
        code.unwrap_or_else(|| ErrorCode::TransitTooLong.as_str().to_owned()),
    ))
}
