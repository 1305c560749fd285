//! What has ended is found and settled, once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex as Plain;
use std::time::Duration;

use async_nats::HeaderMap;
use uuid::Uuid;

use super::*;
use crate::background::Background;
use crate::expiry::Early;
use crate::start::Started;
use crate::testing;

const RETENTION_SECS: i64 = aip_relay::limits::RETENTION_SECS.cast_signed();

/// Mailboxes that only know what ends when: entries are the text `mailbox seq end`.
#[derive(Debug, Default)]
struct Toys {
    pending: Plain<HashMap<MailboxId, BTreeSet<u64>>>,
    dead: Plain<u64>,
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_unix_secs(1_800_000_000 + secs)
}

fn mailbox(n: u8) -> MailboxId {
    MailboxId::from_bytes([n; 16])
}

fn end(stored: &Stored) -> Option<End> {
    let text = std::str::from_utf8(&stored.payload).ok()?;
    let mut numbers = text
        .split(' ')
        .map(|number| number.parse::<i64>().expect("a number"));
    let mut next = || numbers.next();
    Some(End {
        mailbox: mailbox(u8::try_from(next()?).ok()?),
        seq: u64::try_from(next()?).ok()?,
        at: at(next()?),
    })
}

#[async_trait]
impl Mortal for Toys {
    fn message_end(&self, stored: &Stored) -> Option<End> {
        end(stored)
    }

    fn dead_end(&self, stored: &Stored) -> Option<End> {
        end(stored)
    }

    async fn settle_expired(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        _now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut pending = self.pending.lock().expect("no panic");
        let waiting = pending.entry(*mailbox).or_default();
        let settled = seqs.iter().filter(|seq| waiting.remove(seq)).map(|seq| Settled {
            seq: *seq,
            sender: testing::did("alice"),
            recipient: testing::did("bob"),
            id: Uuid::from_u128(u128::from(*seq)),
        });
        Ok(settled.collect())
    }

    async fn drop_dead(&self, _: &MailboxId, seqs: &[u64], _: Timestamp) -> Result<u64, StoreError> {
        *self.dead.lock().expect("no panic") += seqs.len() as u64;
        Ok(seqs.len() as u64)
    }
}

/// One process.
struct Process {
    store: Started,
    expiries: Arc<Expiries>,
    sweep: Sweep,
}

async fn process(prefix: &str, holder: u64) -> Process {
    let store = testing::started(prefix).await;
    let background = Arc::new(Background::start(store.nats.clone()));
    let layout = Arc::clone(&store.layout);
    let expiries = Arc::new(Expiries::new(store.nats.clone(), Arc::clone(&layout), background));
    let sweep = Sweep::new(store.nats.clone(), layout, Arc::clone(&expiries), holder);
    Process {
        store,
        expiries,
        sweep,
    }
}

impl Process {
    async fn store(&self, toys: &Toys, n: u8, seq: u64, ends_secs: i64) {
        let place = self.store.layout.mailbox_place(&mailbox(n));
        let entry = format!("{n} {seq} {ends_secs}");
        let stored = self
            .store
            .nats
            .publish(&place.entry_subject, HeaderMap::new(), entry.into());
        stored.await.expect("stored");
        toys.pending
            .lock()
            .expect("no panic")
            .entry(mailbox(n))
            .or_default()
            .insert(seq);
    }

    async fn sweep(&self, toys: &Toys, secs: i64) -> (Vec<u64>, bool) {
        let swept = self.sweep.run(toys, at(secs)).await.expect("swept");
        (
            swept.expired.iter().map(|settled| settled.seq).collect(),
            swept.more,
        )
    }
}

#[tokio::test]
async fn what_ends_with_the_retention_is_found_in_the_streams() {
    let (one, toys) = (process("sweep-walk", 1).await, Toys::default());
    for seq in 1..=3 {
        one.store(&toys, 1, seq, RETENTION_SECS + i64::try_from(seq).expect("small"))
            .await;
    }
    let never = (Vec::new(), false);
    assert_eq!(one.sweep(&toys, 0).await, never);
    assert_eq!(one.sweep(&toys, RETENTION_SECS).await, never);
    assert_eq!(one.sweep(&toys, RETENTION_SECS + 2).await, (vec![1, 2], false));
    assert_eq!(one.sweep(&toys, RETENTION_SECS + 2).await, never);
    assert_eq!(one.sweep(&toys, RETENTION_SECS + 9).await, (vec![3], false));
}

#[tokio::test]
async fn what_ends_early_is_found_in_the_index() {
    let (one, toys) = (process("sweep-early", 1).await, Toys::default());
    for (seq, ends) in [(1, 10), (2, 500), (3, 10), (4, 90)] {
        one.store(&toys, 1, seq, RETENTION_SECS).await;
        one.expiries.note(Early {
            mailbox: mailbox(1),
            seq,
            expires_at: at(ends),
        });
    }
    assert_eq!(one.sweep(&toys, 9).await, (vec![], false));
    assert_eq!(one.sweep(&toys, 10).await, (vec![1, 3], false));
    assert_eq!(one.sweep(&toys, 89).await, (vec![], false));
    // Long after: the index is listed.
    assert_eq!(one.sweep(&toys, 5_000).await, (vec![4, 2], false));
    let left = one
        .store
        .nats
        .subjects(&one.store.layout.expiries, "sweep-early.ex.*")
        .await
        .expect("listed");
    assert!(left.is_empty(), "{left:?}");
    // Into the past, after a sweep has been there.
    one.store(&toys, 1, 5, RETENTION_SECS).await;
    one.expiries.note(Early {
        mailbox: mailbox(1),
        seq: 5,
        expires_at: at(20),
    });
    assert_eq!(one.sweep(&toys, 5_000).await, (vec![5], false));
}

#[tokio::test]
async fn a_sweep_is_bounded_and_goes_on() {
    let (one, toys) = (process("sweep-bound", 1).await, Toys::default());
    let many = aip_relay::limits::SWEEP_ENTRIES_MAX as u64 + 5;
    for seq in 1..=many {
        one.store(&toys, 1, seq, 0).await;
    }
    let (first, more) = one.sweep(&toys, 0).await;
    assert_eq!((first.len(), more), (aip_relay::limits::SWEEP_ENTRIES_MAX, true));
    assert_eq!(one.sweep(&toys, 0).await, (((many - 4)..=many).collect(), false));
}

#[tokio::test]
async fn one_process_sweeps_until_its_lease_is_over_or_given_back() {
    let (one, two, toys) = (
        process("sweep-lease", 1).await,
        process("sweep-lease", 2).await,
        Toys::default(),
    );
    let lease = i64::try_from(limits::LEASE_SECS).expect("small");
    one.store(&toys, 1, 1, 0).await;
    assert_eq!(one.sweep(&toys, 0).await, (vec![1], false));
    one.store(&toys, 1, 2, 0).await;
    assert_eq!(two.sweep(&toys, 0).await, (vec![], false), "not its turn");
    assert_eq!(one.sweep(&toys, lease - 1).await, (vec![2], false), "renewed");
    one.store(&toys, 1, 3, 0).await;
    assert_eq!(two.sweep(&toys, lease).await, (vec![], false));
    // The first one is gone for too long.
    assert_eq!(two.sweep(&toys, 2 * lease).await, (vec![3], false));
    one.store(&toys, 1, 4, 0).await;
    assert_eq!(one.sweep(&toys, 2 * lease).await, (vec![], false));
    two.sweep.release().await;
    assert_eq!(one.sweep(&toys, 3 * lease).await, (vec![4], false));
    // Who follows goes on where the last one stopped.
    let seen = one.store.nats.stats().counts().batch_gets;
    assert!(seen < 40, "{seen}");
}

#[tokio::test]
async fn dead_letters_end_too() {
    let (one, toys) = (process("sweep-dead", 1).await, Toys::default());
    let place = one.store.layout.mailbox_place(&mailbox(1));
    for (seq, ends) in [(1, 10), (2, 20)] {
        let entry = format!("1 {seq} {ends}");
        let stored = one
            .store
            .nats
            .publish(&place.dead_subject, HeaderMap::new(), entry.into());
        stored.await.expect("stored");
    }
    let swept = one.sweep.run(&toys, at(10)).await.expect("swept");
    assert_eq!(swept.dead_letters, 1);
    let swept = one.sweep.run(&toys, at(25)).await.expect("swept");
    assert_eq!(swept.dead_letters, 1);
    assert_eq!(*toys.dead.lock().expect("no panic"), 2);
}

#[tokio::test]
async fn a_settled_mailbox_is_purged_but_for_its_last_message() {
    let (one, toys) = (process("sweep-purge", 1).await, Toys::default());
    for seq in 1..=4 {
        one.store(&toys, 1, seq, 0).await;
    }
    let place = one.store.layout.mailbox_place(&mailbox(1));
    let nats = &one.store.nats;
    let last = nats
        .last_of(&place.stream, &place.entry_subject)
        .await
        .expect("read");
    let purge = crate::purge::Purge::start(nats.clone());
    purge.note(&place, last.expect("there").stream_seq, at(0));
    purge.tick(at(60));
    purge.tick(at(0) + Duration::from_secs(limits::PURGE_DELAY_SECS + limits::PURGE_STEP_SECS));
    testing::eventually("purged", || nats.stats().counts().purged == 3).await;
    assert_eq!(purge.waiting(), 0);
    let left = nats
        .batch(&place.stream, &place.entry_subject, 1, 10, 1_000)
        .await
        .expect("read");
    assert_eq!(left.messages.len(), 1);
    assert_eq!(left.messages[0].payload, "1 4 0");
}
