//! The store in memory against the contract suites; the registry's tests do the same with those in databases.

use std::future::{Ready, ready};
use std::sync::Arc;

use aip_market::store::MemoryMarket;

fn open() -> Ready<(Arc<MemoryMarket>, ())> {
    ready((Arc::new(MemoryMarket::new()), ()))
}

aip_market::stamp_market!(open());
