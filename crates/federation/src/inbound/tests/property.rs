//! Whatever the order, the repeats and the failures in between: each item is delivered once, and nothing that is not settled
//! is acknowledged.

use futures_util::future::join_all;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const ITEMS: u64 = 24;

/// Batches that are on their way at the same time: the numbers of their items, and who has no room meanwhile.
type Round = (Vec<Vec<u64>>, bool, bool);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let batch = vec(1..=ITEMS, 1..8);
    let batches = vec(batch, 1..4);
    vec((batches, any::<bool>(), any::<bool>()), 1..10)
}

fn full(is_full: bool) -> Option<Reception> {
    is_full.then_some(Reception::Retry {
        code: ErrorCode::MailboxFull,
        after_secs: 1,
    })
}

/// Items for bob, carol and nobody in turn.
fn items(world: &World, carol: &Did) -> BTreeMap<u64, (Uuid, String)> {
    let nobody = Did::parse("did:aip:own.example:nobody").unwrap();
    let item = |seq: u64| {
        let to = match seq % 3 {
            0 => &nobody,
            1 => &world.bob,
            _ => carol,
        };
        let (id, envelope) = world.envelope(&world.alice, to);
        (seq, (id, world.item(seq, &envelope)))
    };
    (1..=ITEMS).map(item).collect()
}

async fn run(rounds: Vec<Round>) {
    let world = World::new();
    let carol = Did::parse("did:aip:own.example:carol").unwrap();
    let items = items(&world, &carol);
    let mut settled = BTreeSet::new();
    let everything = vec![(1..=ITEMS).collect()];
    for (batches, bob_is_full, carol_is_full) in rounds.into_iter().chain([(everything, false, false)]) {
        world.local.tell(&world.bob, full(bob_is_full));
        world.local.tell(&carol, full(carol_is_full));
        let pushes = batches.into_iter().map(|seqs| {
            let seqs: BTreeSet<u64> = seqs.into_iter().collect();
            let batch: Vec<String> = seqs.iter().map(|seq| items[seq].1.clone()).collect();
            let world = &world;
            async move { world.push(&batch).await.unwrap() }
        });
        let answers = join_all(pushes).await;
        for result in answers.iter().flat_map(|answer| &answer.results) {
            let is_settled = !matches!(result.reception, Reception::Retry { .. });
            assert!(is_settled || !settled.contains(&result.peer_seq), "{result:?}");
            if result.peer_seq % 3 == 0 {
                assert_eq!(result.reception, refused(ErrorCode::RecipientUnknown));
            }
            if is_settled {
                settled.insert(result.peer_seq);
            }
        }
        let contiguous = (1..=ITEMS).take_while(|seq| settled.contains(seq)).count();
        for answer in answers {
            assert!(answer.acked_through <= u64::try_from(contiguous).unwrap());
        }
    }
    assert_eq!(world.push(&[]).await.unwrap().acked_through, ITEMS);
    let mut delivered = world.local.ids();
    let mut expected: Vec<Uuid> = items
        .iter()
        .filter(|(seq, _)| *seq % 3 != 0)
        .map(|(_, item)| item.0)
        .collect();
    delivered.sort();
    expected.sort();
    assert_eq!(delivered, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_item_once_and_no_ack_too_early(rounds in rounds()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(rounds));
    }
}
