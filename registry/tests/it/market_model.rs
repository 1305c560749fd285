//! The market's stores against a model that adds up what happened: any sequence of steps, with repetitions and crashes. After
//! each of them nothing was made or lost, and everybody has what is his.

mod steps;
mod sums;

use std::sync::LazyLock;

use aip_market::store::{MarketStore, MemoryMarket};
use aip_registry::SqlStore;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::place::Place;
use steps::{Step, step};
use sums::Sums;

/// A store that can be opened anew, and one that cannot.
trait Kept: MarketStore + Sized {
    async fn reopen(self, place: Option<&Place>) -> Self;
}

impl Kept for MemoryMarket {
    async fn reopen(self, _place: Option<&Place>) -> Self {
        self
    }
}

impl Kept for SqlStore {
    async fn reopen(self, place: Option<&Place>) -> Self {
        // As after a crash: nobody says good-bye.
        drop(self);
        place.expect("a place").open().await
    }
}

/// Does all steps, and looks at everything after each.
async fn compare<S: Kept>(steps: Vec<Step>, mut store: S, place: Option<&Place>) -> Result<S, TestCaseError> {
    let mut sums = Sums::default();
    for step in steps {
        if let Step::Crash { holder } = step {
            store = store.reopen(place).await;
            sums.lose(&store, holder).await?;
        } else {
            sums.take(&store, &step).await?;
        }
        sums.compare(&store).await?;
    }
    Ok(store)
}

async fn compare_sql(steps: Vec<Step>, place: &Place) -> Result<(), TestCaseError> {
    let store = compare(steps, place.open().await, Some(place)).await?;
    let problems = store.check_integrity().await.expect("checked");
    prop_assert_eq!(problems, Vec::<String>::new());
    store.close().await;
    Ok(())
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime").block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn memory_adds_up(steps in vec(step(), 1..80)) {
        block_on(compare(steps, MemoryMarket::new(), None))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_adds_up(steps in vec(step(), 1..50)) {
        let place = Place::sqlite();
        block_on(compare_sql(steps, &place))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn postgres_adds_up(steps in vec(step(), 1..40)) {
        static PLACE: LazyLock<Place> = LazyLock::new(Place::postgres);
        block_on(async {
            PLACE.open().await.close().await;
            PLACE
                .damage(
                    "TRUNCATE market_accounts, market_lines, market_keys, market_references, market_channels, \
                     market_invocations, market_repeats, market_trials, market_receipts, market_earnings; \
                     UPDATE market_money SET credited = 0, demo = 0",
                )
                .await;
            compare_sql(steps, &PLACE).await
        })?;
    }
}
