//! A store that can be closed and opened again, and how histories run on it.

use std::path::Path;
use std::sync::Arc;

use aip_relay::mailbox::memory::MemoryMailboxes;
use aip_relay::mailbox::rocks::{DiskGuard, RocksMailboxes, RocksOptions};
use aip_relay::mailbox::{Epoch, MailboxStore};
use proptest::prelude::ProptestConfig;

pub(crate) enum Backend {
    Memory(Arc<MemoryMailboxes>),
    Rocks(Option<RocksMailboxes>, tempfile::TempDir),
}

impl Backend {
    pub(crate) fn memory() -> Self {
        Self::Memory(Arc::new(MemoryMailboxes::new(Epoch::from_random(7))))
    }

    pub(crate) fn rocks() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::Rocks(Some(rocks(dir.path())), dir)
    }

    pub(crate) fn store(&self) -> &dyn MailboxStore {
        match self {
            Self::Memory(store) => &**store,
            Self::Rocks(store, _) => store.as_ref().unwrap(),
        }
    }

    /// Memory has nothing to open again.
    pub(crate) fn reopen(&mut self) {
        if let Self::Rocks(store, dir) = self {
            drop(store.take());
            *store = Some(rocks(dir.path()));
        }
    }
}

fn rocks(dir: &Path) -> RocksMailboxes {
    let options = RocksOptions {
        guard: DiskGuard::OFF,
        ..RocksOptions::default()
    };
    RocksMailboxes::open(dir, options, &Epoch::from_random(7)).unwrap()
}

/// Runs a history to its end.
pub(crate) fn run_to_the_end(history: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(history);
}

/// `PROPTEST_CASES` asks for more.
pub(crate) fn config(part: u32) -> ProptestConfig {
    let all = ProptestConfig::default();
    ProptestConfig {
        cases: all.cases.div_ceil(part),
        failure_persistence: None,
        ..all
    }
}
