//! The store in memory against the contract suites; the registry's tests do the same with those in databases.

use std::future::{Ready, ready};
use std::sync::Arc;

use aip_market::limits::OPEN_CHANNELS_MAX;
use aip_market::store::{Channels, Earnings, MemoryMarket, Opened};
use aip_market::testsuite::fixtures::{at, channel_id, new_channel};

fn open() -> Ready<(Arc<MemoryMarket>, ())> {
    ready((Arc::new(MemoryMarket::new()), ()))
}

aip_market::stamp_market!(open());

/// One that has ended makes room.
#[tokio::test]
async fn channels_that_are_open_are_bounded() {
    let store = MemoryMarket::new();
    let open = async |n: u64| {
        let new = new_channel(&n.to_string(), None, "0.01");
        store.open_channel(new, at(0)).await.expect("answered")
    };
    for n in 0..OPEN_CHANNELS_MAX {
        assert!(matches!(open(n).await, Opened::Done(_)), "channel {n}");
    }
    assert_eq!(open(OPEN_CHANNELS_MAX).await, Opened::TooMany);
    assert!(matches!(open(7).await, Opened::Done(_)), "it is open already");
    let seventh = channel_id("7");
    store.close_channel(&seventh, at(1)).await.expect("closed");
    assert!(matches!(open(OPEN_CHANNELS_MAX).await, Opened::Done(_)));
    assert_eq!(open(OPEN_CHANNELS_MAX + 1).await, Opened::TooMany);
    assert!(store.totals().await.expect("read").balance());
}
