//! The order of results: the published formula, the same every time.

use proptest::prelude::*;

use crate::catalog::{Found, FoundItem};
use crate::query::Query;
use crate::testing::{Rig, Running, did, entry, numbers, query};

/// Texts that share words in many ways.
fn mixed(count: u64) -> impl Iterator<Item = crate::entry::Entry> {
    const WORDS: [&str; 7] = ["brass", "lamp", "red", "car", "old", "light", "automobile"];
    (1..=count).map(|number| {
        let word = |step: u64| WORDS[usize::try_from(number * step % 7).unwrap()];
        entry(number, &format!("{} {} {}", word(1), word(3), word(5)))
    })
}

/// Every score is that of the formula for the ranks that are shown, and the order is that of the scores.
pub(super) fn check(found: &Found, legs: f64) {
    for item in &found.items {
        let part = |rank: Option<u32>| rank.map_or(0.0, |rank| 1.0 / (60.0 + f64::from(rank)));
        let rrf = part(item.ranks.fts) + part(item.ranks.semantic);
        assert!(item.ranks.fts.is_some() || item.ranks.semantic.is_some());
        assert_eq!(item.final_score, Some(rrf * (1.0 + 0.3 * item.trust_score)));
        assert_eq!(item.relevance_score, Some(rrf / (legs / 61.0)));
    }
    for pair in found.items.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        assert!(a.final_score >= b.final_score);
        assert!(
            a.final_score > b.final_score || a.entry.id < b.entry.id,
            "ties go by id"
        );
    }
    for ranks in [
        |item: &FoundItem| item.ranks.fts,
        |item: &FoundItem| item.ranks.semantic,
    ] {
        let mut ranks: Vec<u32> = found.items.iter().filter_map(ranks).collect();
        ranks.sort_unstable();
        let doubled = ranks.windows(2).any(|pair| pair[0] == pair[1]);
        assert!(!doubled, "a rank is given twice");
    }
}

#[tokio::test]
async fn scores_are_those_of_the_published_formula() {
    let rig = Rig::with(mixed(80));
    for (agent, trust) in [("agent1", 0.5), ("agent2", 1.0), ("agent3", 0.07)] {
        rig.trust.set(&did(agent), trust);
    }
    let running = rig.ready().await;
    for text in ["brass lamp", "red car", "лампа", "voiture automobile", "old"] {
        let found = running
            .find(&Query {
                limit: 100,
                ..query(text)
            })
            .await;
        assert!(!found.items.is_empty(), "{text}");
        check(&found, 2.0);
    }
    // All lists begin at 1.
    let found = running
        .find(&Query {
            limit: 100,
            ..query("brass lamp")
        })
        .await;
    assert!(found.items.iter().any(|item| item.ranks.fts == Some(1)));
    assert!(found.items.iter().any(|item| item.ranks.semantic == Some(1)));
}

#[tokio::test]
async fn one_list_alone_gives_its_own_scores() {
    let rig = Rig::without_meaning();
    mixed(30).for_each(|entry| rig.store.put(entry));
    let running = rig.ready().await;
    let found = running.find(&query("brass lamp")).await;
    check(&found, 1.0);
    let first = &found.items[0];
    assert_eq!(
        (first.relevance_score, first.final_score),
        (Some(1.0), Some(1.0 / 61.0))
    );
    assert_eq!(found.degraded, ["semantic"]);
}

#[tokio::test]
async fn a_list_that_holds_nothing_adds_nothing() {
    let rig = Rig::with(mixed(30));
    let running = rig.ready().await;
    // No text is in Russian: meaning alone finds.
    let found = running.find(&query("лампа")).await;
    assert!(!found.items.is_empty() && found.items.iter().all(|item| item.ranks.fts.is_none()));
    assert_eq!(found.items[0].final_score, Some(1.0 / 61.0));
    assert!(found.items[0].entry.name.contains("lamp") || found.items[0].entry.name.contains("light"));
    check(&found, 2.0);
}

#[tokio::test]
async fn the_order_is_the_same_every_time() {
    let rig = Rig::on_disk();
    // Many that are the same: nothing but the id tells them apart.
    (1..=60).for_each(|number| rig.store.put(entry(number, "lamp")));
    mixed(20).for_each(|mut entry| {
        entry.number += 100;
        entry.id = crate::testing::id(entry.number);
        rig.store.put(entry);
    });
    let running = rig.ready().await;
    let asked = Query {
        limit: 100,
        ..query("lamp")
    };
    let first = running.find(&asked).await;
    for _ in 0..20 {
        assert_eq!(numbers(&running.find(&asked).await), numbers(&first));
    }
    running.kill().await;
    let running = rig.ready().await;
    assert_eq!(running.find(&asked).await, first);
    // Made anew in another order of changes, it is the same index.
    let other = Rig::in_memory();
    rig.store
        .live()
        .into_values()
        .rev()
        .for_each(|entry| other.store.put(entry));
    let other = other.ready().await;
    assert_eq!(numbers(&other.find(&asked).await), numbers(&first));
}

async fn place(running: &Running, number: u64) -> Option<usize> {
    let found = running
        .find(&Query {
            limit: 100,
            ..query("brass lamp")
        })
        .await;
    numbers(&found).iter().position(|found| *found == number)
}

#[tokio::test]
async fn more_trust_never_lowers_a_place() {
    // Each agent has one listing.
    let entries: Vec<_> = mixed(40)
        .map(|mut entry| {
            entry.agent = did(&format!("agent{}", entry.number));
            entry
        })
        .collect();
    let rig = Rig::with(entries);
    let running = rig.ready().await;
    for number in [3, 9, 17, 24, 31] {
        let agent = did(&format!("agent{number}"));
        let mut before = place(&running, number).await;
        for trust in [0.1, 0.2, 0.5, 0.8, 1.0, 3.0] {
            rig.trust.set(&agent, trust);
            let after = place(&running, number).await;
            assert!(
                after <= before || before.is_none(),
                "{number} fell from {before:?} to {after:?}"
            );
            before = after;
        }
        rig.trust.set(&agent, f64::NAN);
    }
}

#[test]
fn golden_values_of_the_fusion() {
    use crate::catalog::list::fuse;
    use crate::ranking::Lists;
    use crate::text::Named;
    use aip_protocol::fusion::Fusion;

    let name = |number: u64, trust: f64| {
        (
            number,
            Named {
                id: format!("lst_{number}"),
                trust,
            },
        )
    };
    let named = [
        name(1, 0.0),
        name(2, 0.0),
        name(3, 0.5),
        name(4, 0.0),
        name(5, 0.0),
    ]
    .into();
    let lists = Lists {
        fts: vec![1, 3, 4],
        semantic: vec![2, 9, 5, 3],
    };
    let fused = fuse(&Fusion::default(), &lists, true, &named);
    let scores: Vec<(u64, f64)> = fused.iter().map(|item| (item.number, item.score)).collect();
    // 9 is in no index and takes no place.
    let expected = [
        (3, (1.0 / 62.0 + 1.0 / 63.0) * 1.15),
        (1, 1.0 / 61.0),
        (2, 1.0 / 61.0),
        (5, 1.0 / 62.0),
        (4, 1.0 / 63.0),
    ];
    assert_eq!(scores, expected);
    let alone = fuse(&Fusion::default(), &lists, false, &named);
    let expected = [(3, 61.0 / 62.0), (1, 1.0), (4, 61.0 / 63.0)];
    assert_eq!(alone.len(), expected.len());
    for (item, (number, relevance)) in alone.iter().zip(expected) {
        assert_eq!(item.number, number);
        assert!(
            (item.relevance - relevance).abs() < 1e-12,
            "{number}: {}",
            item.relevance
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the lists are, the order is total and hangs on nothing but them.
    #[test]
    fn fusion_is_deterministic(
        fts in proptest::collection::vec(0_u64..30, 0..20),
        semantic in proptest::collection::vec(0_u64..30, 0..20),
    ) {
        use crate::catalog::list::fuse;
        use crate::ranking::Lists;
        use crate::text::Named;
        let name = |number: u64| (number, Named { id: crate::testing::id(number), trust: 0.0 });
        let lists = Lists { fts, semantic };
        let forth = fuse(&aip_protocol::fusion::Fusion::default(), &lists, true, &(0..30).map(name).collect());
        let back = fuse(&aip_protocol::fusion::Fusion::default(), &lists, true, &(0..30).rev().map(name).collect());
        let ids = |listed: &[crate::catalog::list::Listed]| -> Vec<u64> {
            listed.iter().map(|item| item.number).collect()
        };
        prop_assert_eq!(ids(&forth), ids(&back));
        for pair in forth.windows(2) {
            prop_assert!(pair[0].score > pair[1].score || (pair[0].score >= pair[1].score && pair[0].id < pair[1].id));
        }
    }
}
