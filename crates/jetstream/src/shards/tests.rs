//! Shards that move, on real servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aip_protocol::name::Did;
use aip_relay::dedup::{DedupWindow, Remember, Seen, Unshared};
use aip_relay::mailbox::memory::MemoryMailboxes;
use aip_relay::mailbox::{Epoch, Health, MailboxId, StoreStats, Swept, Upkeep};
use async_trait::async_trait;

use super::*;
use crate::start::{Started, start};
use crate::store::{JetStreamMailboxes, Parts};
use crate::testing::{fresh, options};

mod interrupted;
mod load;
mod moved;
mod servers;

/// The shard that moves.
const SHARD: u8 = 0x42;

/// A store of two streams on a server, and its clock.
pub(super) struct Ground {
    pub(super) options: Options,
    pub(super) started: Started,
    secs: AtomicI64,
}

impl Ground {
    async fn new(prefix: &str) -> Arc<Self> {
        Self::with(options(&aip_engines::Nats::shared().url(), prefix)).await
    }

    async fn with(options: Options) -> Arc<Self> {
        Arc::new(Self {
            started: start(options.clone(), &fresh(1)).await.unwrap(),
            options,
            secs: AtomicI64::new(1_800_000_000),
        })
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_unix_secs(self.secs.load(Ordering::Relaxed))
    }

    fn pass(&self, secs: i64) {
        self.secs.fetch_add(secs, Ordering::Relaxed);
    }

    /// A process that remembers no dedup keys: what it knows is in the streams.
    async fn process(&self) -> JetStreamMailboxes {
        let parts = Parts {
            window: Arc::new(Forgetful(MemoryMailboxes::new(Epoch::from_random(1)))),
            shared: Arc::new(Unshared),
            fresh: fresh(1),
            seed: self.secs.fetch_add(1, Ordering::Relaxed).cast_unsigned(),
            wake: Arc::new(|_, _| {}),
        };
        JetStreamMailboxes::open(self.options.clone(), parts, self.now())
            .await
            .unwrap()
    }

    /// Names at `example.org` of agents in `shard`.
    fn agents(&self, shard: u8, count: usize) -> Vec<String> {
        let names = (0..).map(|n| format!("agent{n}"));
        names
            .filter(|name| self.shard(name) == shard)
            .take(count)
            .collect()
    }

    fn shard(&self, name: &str) -> u8 {
        let mailbox = MailboxId::of(&did(name));
        self.started.layout.mailbox_place(&mailbox).shard
    }

    /// Moves the shard; every call is another mover.
    async fn move_to(&self, to: u16, told: &(dyn Fn(Route, Step) + Sync)) -> Result<u64, MoveError> {
        move_shards(
            self.options.clone(),
            &[SHARD],
            to,
            self.conduct(&|| self.now(), told),
        )
        .await
    }

    fn conduct<'a>(
        &self,
        clock: &'a (dyn Fn() -> Timestamp + Sync),
        told: &'a (dyn Fn(Route, Step) + Sync),
    ) -> Conduct<'a> {
        Conduct {
            holder: self.secs.fetch_add(1, Ordering::Relaxed).cast_unsigned(),
            clock,
            linger: Duration::ZERO,
            told,
        }
    }

    /// The number of the stream that holds the shard, and whether a move is under way.
    async fn at(&self) -> (u16, bool) {
        let found = list(self.options.clone()).await.unwrap();
        let holds = found
            .streams
            .iter()
            .find(|stream| stream.shards.contains(&SHARD))
            .unwrap();
        (holds.number, found.moving.is_some())
    }

    /// Messages of the shard in the stream number `number`.
    async fn messages(&self, number: u16) -> usize {
        let names = &self.started.layout.names;
        let (stream, subject) = (names.mailboxes(number), names.shard_subject(SHARD));
        let (mut from, mut count) = (1, 0);
        while let Some(next) = self.started.nats.next_of(&stream, &subject, from).await.unwrap() {
            (from, count) = (next.stream_seq + 1, count + 1);
        }
        count
    }
}

fn did(name: &str) -> Did {
    crate::testing::did(name)
}

/// The same number of stream for all even shards in a store of two streams.
const OLD: u16 = 0;
/// The other stream.
const OTHER: u16 = 1;
/// One that does not exist yet.
const NEW: u16 = 2;

/// A dedup window that is always empty.
#[derive(Debug)]
struct Forgetful(MemoryMailboxes);

#[async_trait]
impl DedupWindow for Forgetful {
    async fn seen(&self, _: [u8; 16], _: [u8; 32], _: Timestamp) -> Result<Option<Seen>, StoreError> {
        Ok(None)
    }

    async fn remember(&self, _: Remember) -> Result<Option<Seen>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl Upkeep for Forgetful {
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        self.0.sweep(now).await
    }

    async fn checkpoint(&self, dir: &std::path::Path) -> Result<(), StoreError> {
        self.0.checkpoint(dir).await
    }

    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    fn clock_high_water(&self) -> Option<Timestamp> {
        None
    }

    fn health(&self) -> Health {
        Health::Ready
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }
}
