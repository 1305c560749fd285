//! The windows of the stores against the protocol's own model of them, [`Received`]: in any order, with repeats and refusals,
//! and after the store was opened anew.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aip_federation::peers::{Noted, ReceivedStore};
use aip_protocol::error::ErrorCode;
use aip_protocol::peer::{Known, Received};
use aip_registry::testsuite::peers::domain;
use aip_registry::{MemoryStore, SqlStore};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::place::Place;

const CODES: [ErrorCode; 3] = [
    ErrorCode::Expired,
    ErrorCode::RecipientUnknown,
    ErrorCode::SignatureInvalid,
];

/// What is done to one of two windows. Small numbers, so that they meet.
#[derive(Debug, Clone)]
enum Step {
    Note(bool, Vec<Noted>),
    PassOver(bool, u64),
    Reopen,
}

fn noted() -> impl Strategy<Value = Noted> {
    let verdict = prop_oneof![3 => Just(None), 1 => (0..CODES.len()).prop_map(|code| Some(CODES[code]))];
    (1_u64..60, verdict).prop_map(|(peer_seq, refused)| Noted { peer_seq, refused })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (any::<bool>(), vec(noted(), 0..12)).prop_map(|(epoch, noted)| Step::Note(epoch, noted)),
        1 => (any::<bool>(), 0_u64..60).prop_map(|(epoch, through)| Step::PassOver(epoch, through)),
        1 => Just(Step::Reopen),
    ]
}

/// What the contract says about one window.
#[derive(Debug, Default)]
struct Model(Received);

impl Model {
    fn note(&mut self, noted: &[Noted]) -> u64 {
        for one in noted {
            match (self.0.known(one.peer_seq), one.refused) {
                (Known::New, Some(code)) => self.0.refuse(one.peer_seq, code),
                (Known::New, None) => self.0.settle(one.peer_seq),
                _ => {}
            }
        }
        self.0.acked_through()
    }

    fn pass_over(&mut self, through: u64) -> u64 {
        (1..=through).for_each(|seq| self.0.settle(seq));
        self.0.acked_through()
    }
}

fn epoch(is_second: bool) -> &'static str {
    if is_second { "second" } else { "first" }
}

/// A store that can be opened anew, and one that cannot.
trait Kept: ReceivedStore + Sized {
    async fn reopen(self, place: Option<&Place>) -> Self;
}

impl Kept for MemoryStore {
    async fn reopen(self, _place: Option<&Place>) -> Self {
        self
    }
}

impl Kept for SqlStore {
    async fn reopen(self, place: Option<&Place>) -> Self {
        self.close().await;
        place.expect("a place").open().await
    }
}

/// Does all steps to the model and to the store, and compares.
async fn compare<S: Kept>(steps: Vec<Step>, mut store: S, place: Option<&Place>) -> Result<S, TestCaseError> {
    let peer = domain("peer.example");
    let mut models = BTreeMap::<bool, Model>::new();
    let seqs: Vec<_> = (1..80).collect();
    for step in steps {
        match step {
            Step::Note(which, noted) => {
                let floor = store.note(&peer, epoch(which), &noted).await.expect("answered");
                prop_assert_eq!(floor, models.entry(which).or_default().note(&noted));
            }
            Step::PassOver(which, through) => {
                let floor = store
                    .pass_over(&peer, epoch(which), through)
                    .await
                    .expect("answered");
                prop_assert_eq!(floor, models.entry(which).or_default().pass_over(through));
            }
            Step::Reopen => store = store.reopen(place).await,
        }
        for (which, Model(received)) in &models {
            let window = store.window(&peer, epoch(*which)).await.expect("read");
            prop_assert_eq!(window, (received.acked_through(), received.above().len() as u64));
            let known = store.known(&peer, epoch(*which), &seqs).await.expect("read");
            let expected: Vec<_> = seqs.iter().map(|seq| received.known(*seq)).collect();
            prop_assert_eq!(known, expected);
        }
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
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn memory_does_what_the_model_says(steps in vec(step(), 1..30)) {
        block_on(compare(steps, MemoryStore::new(), None))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_does_what_the_model_says(steps in vec(step(), 1..20)) {
        let place = Place::sqlite();
        block_on(compare_sql(steps, &place))?;
    }

    #[test]
    fn postgres_does_what_the_model_says(steps in vec(step(), 1..20)) {
        static PLACE: LazyLock<Place> = LazyLock::new(Place::postgres);
        block_on(async {
            PLACE.open().await.close().await;
            PLACE.damage("TRUNCATE peer_windows, peer_refusals").await;
            compare_sql(steps, &PLACE).await
        })?;
    }
}
