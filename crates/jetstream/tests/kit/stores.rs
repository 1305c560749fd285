//! Stores for tests: one or several processes' worth, on whatever server a test wants.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aip_jetstream::{Fresh, JetStreamMailboxes, LocalWindow, Options, Parts};
use aip_protocol::time::Timestamp;
use aip_relay::dedup::{DedupWindow, Remember, Seen, Unshared};
use aip_relay::mailbox::{Epoch, Health, StoreError, StoreStats, Swept, Upkeep};
use async_trait::async_trait;

static STORES: AtomicU64 = AtomicU64::new(1);

/// A prefix that no other test of this process has.
pub(crate) fn prefix(what: &str) -> String {
    format!("{what}-{}", STORES.fetch_add(1, Ordering::Relaxed))
}

/// A small store under `prefix` at `url`.
pub(crate) fn options(url: &str, prefix: &str) -> Options {
    Options {
        urls: vec![url.to_owned()],
        prefix: prefix.to_owned(),
        streams: 1,
        ..Options::default()
    }
}

/// With this window of its own; every call is another process.
pub(crate) fn parts(window: Arc<dyn LocalWindow>) -> Parts {
    Parts {
        window,
        shared: Arc::new(Unshared),
        fresh: Fresh {
            epoch_bits: 7,
            secret: [7; 32],
        },
        seed: STORES.fetch_add(1, Ordering::Relaxed),
        wake: Arc::new(|_, _| {}),
    }
}

/// When the clocks of tests begin.
pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-11-29T20:15:30Z").unwrap()
}

/// A process that remembers nothing: all it knows is what the streams tell.
pub(crate) async fn open_forgetful(options: Options) -> JetStreamMailboxes {
    JetStreamMailboxes::open(options, parts(Arc::new(Forgetful)), start())
        .await
        .unwrap()
}

/// A dedup window that is always empty, as after a start in a fresh folder.
#[derive(Debug)]
pub(crate) struct Forgetful;

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
    async fn sweep(&self, _: Timestamp) -> Result<Swept, StoreError> {
        Ok(Swept::default())
    }

    async fn checkpoint(&self, _: &Path) -> Result<(), StoreError> {
        Ok(())
    }

    fn epoch(&self) -> Epoch {
        Epoch::from_random(0)
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
