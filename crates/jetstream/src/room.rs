//! What all mailboxes of a process share: the way to the servers, what is written behind their backs, and counts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::dedup::{Accepted, DedupWindow, Remember, Seen, SharedWindow};
use aip_relay::limits::{OUTBOX_RETENTION_SECS, STATUS_SECS};
use aip_relay::mailbox::{self, Epoch, MailboxId, Settled, Status, StatusRecord, StoreError, Upkeep};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::clock::Clock;
use crate::counters::Counters;
use crate::entry::{Entry, Head, Kind};
use crate::expiry::{self, Early, Expiries};
use crate::nats::Nats;
use crate::purge::Purge;
use crate::shards::Follower;
use crate::statuses::Statuses;
use crate::streams::Layout;

/// The dedup window of one process, with its sweep: the embedded store, or the one in memory.
pub trait LocalWindow: DedupWindow + Upkeep {}

impl<W: DedupWindow + Upkeep> LocalWindow for W {}

/// What a number of the generator `SplitMix64` has more than the one before, before they are mixed.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Numbers that no other publish has, as good as certainly.
#[derive(Debug)]
pub(crate) struct Stamps(AtomicU64);

impl Stamps {
    /// Processes with different seeds have different numbers, also when the seeds are not random.
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(mixed(mixed(seed.wrapping_add(1)))))
    }

    /// The next one.
    pub(crate) fn next(&self) -> u64 {
        mixed(self.0.fetch_add(STEP, Ordering::Relaxed))
    }
}

/// The mixing of `SplitMix64`: one to one, and every bit depends on all.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// What became of a message that is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate<'a> {
    Acked,
    Expired,
    Dead(&'a str),
    /// It has left an outbox, and its sender was told before.
    Left(&'a mailbox::Fate),
}

/// See the module.
pub(crate) struct Room {
    pub(crate) nats: Nats,
    pub(crate) layout: Arc<Layout>,
    pub(crate) follower: Follower,
    pub(crate) epoch: Epoch,
    pub(crate) retention_secs: u64,
    pub(crate) statuses: Statuses,
    pub(crate) expiries: Arc<Expiries>,
    pub(crate) purge: Purge,
    pub(crate) window: Arc<dyn LocalWindow>,
    pub(crate) shared: Arc<dyn SharedWindow>,
    /// To be remembered in the window of this process.
    pub(crate) notes: mpsc::Sender<Remember>,
    pub(crate) stamps: Stamps,
    pub(crate) counters: Counters,
    /// Heads that all mailboxes together keep in memory.
    pub(crate) heads: Arc<AtomicUsize>,
    pub(crate) clock: Clock,
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("nats", &self.nats)
            .finish_non_exhaustive()
    }
}

impl Room {
    /// What is known of a dedup key without asking the stream.
    pub(crate) async fn seen(
        &self,
        key: [u8; 16],
        digest: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<Seen>, StoreError> {
        if let Some(seen) = self.window.seen(key, *digest, now).await? {
            return Ok(Some(seen));
        }
        Ok(self.recall(key, digest, now).await)
    }

    /// What other processes have told of a dedup key.
    pub(crate) async fn recall(&self, key: [u8; 16], digest: &[u8; 32], now: Timestamp) -> Option<Seen> {
        let accepted = self.shared.recall(key).await?;
        (accepted.until >= now).then(|| {
            if accepted.digest == *digest {
                Seen::Duplicate {
                    seq: accepted.seq,
                    route: accepted.route,
                }
            } else {
                Seen::Reused
            }
        })
    }

    /// A message is durable: remembers it, tells its status, indexes its end. Nobody waits for any of that.
    pub(crate) fn stored(&self, mailbox: MailboxId, entry: &Entry, now: Timestamp) {
        self.clock.tick(now);
        if entry.kind != Kind::Redriven {
            self.remember(entry, now);
        }
        let status = match entry.kind {
            Kind::Direct => Status::Delivered,
            Kind::Message | Kind::Redriven => Status::Stored,
            Kind::Peer => Status::Queued,
        };
        let (seq, _) = entry.answer();
        let record = StatusRecord {
            to: entry.recipient.clone(),
            status,
            code: None,
            accepted_at: entry.accepted_at,
            at: now,
            seq,
        };
        self.tell(&entry.sender, entry.id, record);
        // The streams keep the order of acceptance, which a redriven message is not in. What waits for a peer for all of
        // its time is given up before that, and may be found a little late.
        let retention_secs = match entry.kind {
            Kind::Peer => self.retention_secs.min(OUTBOX_RETENTION_SECS),
            _ => self.retention_secs,
        };
        let early = entry.kind == Kind::Redriven
            || expiry::is_early(entry.accepted_at, entry.expires_at, retention_secs);
        if let Some(seq) = seq.filter(|_| early) {
            self.expiries.note(Early {
                mailbox,
                seq,
                expires_at: entry.expires_at,
            });
        }
    }

    /// Notes an accepted envelope in the windows of this process and of all. What does not fit is dropped: the
    /// stream knows it too.
    pub(crate) fn remember(&self, entry: &Entry, now: Timestamp) {
        let (seq, route) = entry.answer();
        let remember = Remember {
            key: entry.dedup_key,
            digest: entry.digest,
            until: entry.until,
            now,
            seq,
            route,
        };
        if self.notes.try_send(remember).is_err() {
            self.nats.stats().notes_dropped.one();
        }
        let accepted = Accepted {
            digest: entry.digest,
            until: entry.until,
            seq,
            route,
        };
        self.shared.note(entry.dedup_key, accepted);
    }

    /// A message is settled, durably: tells and counts its fate.
    pub(crate) fn settled(&self, head: Head, fate: Fate<'_>, now: Timestamp) -> Settled {
        self.clock.tick(now);
        let (told, counter) = match fate {
            Fate::Acked => (Some((Status::Acked, None)), &self.counters.acked),
            Fate::Expired => (Some((Status::Expired, Some("expired"))), &self.counters.expired),
            Fate::Dead(code) => (Some((Status::Dead, Some(code))), &self.counters.dead),
            Fate::Left(fate) => (None, self.counters.left(fate)),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some((status, code)) = told {
            let record = StatusRecord {
                to: head.recipient.clone(),
                status,
                code: code.map(ToOwned::to_owned),
                accepted_at: head.accepted_at,
                at: now,
                seq: Some(head.seq),
            };
            self.tell(&head.sender, head.id, record);
        }
        Settled {
            seq: head.seq,
            sender: head.sender,
            recipient: head.recipient,
            id: head.id,
        }
    }

    /// A dead letter is pending again, durably.
    pub(crate) fn redriven(&self, mailbox: MailboxId, entry: &Entry, now: Timestamp) {
        self.counters.redriven.fetch_add(1, Ordering::Relaxed);
        self.stored(mailbox, entry, now);
    }

    /// Writes a status soon, unless the message is too old to have one (a dead letter may outlive it).
    fn tell(&self, sender: &Did, id: Uuid, record: StatusRecord) {
        if record.accepted_at + Duration::from_secs(STATUS_SECS) >= record.at {
            self.statuses.note(sender, id, record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn processes_with_neighbouring_seeds_have_different_stamps() {
        let seeds = (0..50_u64).flat_map(|seed| [seed, seed.wrapping_mul(STEP)]);
        let seeds: HashSet<u64> = seeds.collect();
        let stamps = seeds.iter().map(|seed| Stamps::new(*seed));
        let all: HashSet<u64> = stamps
            .flat_map(|stamps| (0..100).map(move |_| stamps.next()))
            .collect();
        assert_eq!(all.len(), seeds.len() * 100);
    }
}
