//! Every store against the contract suites.

mod memory {
    use std::future::{Ready, ready};
    use std::sync::Arc;

    use aip_registry::MemoryStore;

    fn open() -> Ready<(Arc<MemoryStore>, ())> {
        ready((Arc::new(MemoryStore::new()), ()))
    }

    aip_registry::stamp_contract!(open());
    aip_registry::stamp_peers!(open());
    aip_registry::stamp_peer_bounds!(open());
}

mod sqlite {
    use std::sync::Arc;

    use aip_registry::SqlStore;
    use tempfile::TempDir;

    use crate::kit;

    async fn open() -> (Arc<SqlStore>, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        (Arc::new(kit::sqlite(folder.path()).await), folder)
    }

    aip_registry::stamp_contract!(open());
    aip_registry::stamp_peers!(open());
    aip_registry::stamp_peer_bounds!(open());

    /// The market's suites, one of which is about peers as well.
    mod market {
        use super::open;

        aip_market::stamp_market!(open());
    }
}

mod postgres {
    use std::sync::Arc;

    use aip_registry::SqlStore;

    use crate::place::Place;

    async fn open() -> (Arc<SqlStore>, Place) {
        let place = Place::postgres();
        (Arc::new(place.open().await), place)
    }

    aip_registry::stamp_contract!(open());
    aip_registry::stamp_peers!(open());
    aip_registry::stamp_peer_bounds!(open());

    /// The market's suites, one of which is about peers as well.
    mod market {
        use super::open;

        aip_market::stamp_market!(open());
    }
}

/// The one that the federation room's own tests stand on.
mod fake {
    use std::future::{Ready, ready};
    use std::sync::Arc;

    use aip_federation::peers::fake::FakeStore;

    fn open() -> Ready<(Arc<FakeStore>, ())> {
        ready((Arc::new(FakeStore::new()), ()))
    }

    aip_registry::stamp_peers!(open());
}
