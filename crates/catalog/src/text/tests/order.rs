//! The order of what is found: the same every time, in whatever parts the index is.

use aip_protocol::name::Did;

use crate::entry::Entry;
use crate::query::Filter;
use crate::source::Change;
use crate::text::{TextIndex, TextOptions};
use crate::trust::TrustScores;

use super::{DEPTH, change, entry, found, memory, now, search};

/// Listings of which many are the same but for their ids, in no order of ids.
fn alike(count: u64) -> Vec<Entry> {
    let listing = |number: u64| {
        let words = [
            "wireless mouse",
            "wireless mouse black",
            "mouse",
            "wireless keyboard with mouse 256GB",
        ];
        let name = words[usize::try_from(number % 4).unwrap()];
        Entry {
            id: format!("lst_{:05}", number * 7919 % 10_007),
            ..entry(number, name)
        }
    };
    (1..=count).map(listing).collect()
}

#[test]
fn equal_listings_are_in_the_order_of_their_ids() {
    let index = super::index_of(alike(40));
    let hits = search(&index.view(), "wireless mouse").hits;
    for pair in hits.windows(2) {
        assert!(
            pair[0].score > pair[1].score || (pair[0].score >= pair[1].score && pair[0].id < pair[1].id),
            "{pair:?}"
        );
    }
    assert_eq!(hits.len(), 40);
}

#[test]
fn the_order_is_the_same_however_often_and_in_whatever_parts() {
    let listings = alike(1_000);
    let whole = super::index_of(listings.clone());
    let parts = memory();
    for batch in listings.chunks(90).rev() {
        parts
            .apply(&batch.iter().cloned().map(change).collect::<Vec<_>>())
            .unwrap();
    }
    for text in [
        "wireless mouse",
        "mouse",
        "\"wireless mouse\"",
        "wireless keyboard 256 gb",
        "wirelss",
    ] {
        let expected = search(&whole.view(), text);
        assert_eq!(expected.hits.len(), DEPTH, "{text}");
        for _ in 0..100 {
            assert_eq!(search(&parts.view(), text), expected, "{text}");
        }
    }
    let before = search(&parts.view(), "wireless mouse");
    parts.merge();
    assert_eq!(parts.reader.searcher().segment_readers().len(), 1);
    assert_eq!(search(&parts.view(), "wireless mouse"), before);
}

#[test]
fn the_order_is_the_same_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let index = TextIndex::open(Some(dir.path()), &TextOptions::default()).unwrap();
    for batch in alike(300).chunks(70) {
        index
            .apply(&batch.iter().cloned().map(change).collect::<Vec<_>>())
            .unwrap();
    }
    let before = search(&index.view(), "wireless mouse");
    drop(index);
    let index = TextIndex::open(Some(dir.path()), &TextOptions::default()).unwrap();
    assert_eq!(search(&index.view(), "wireless mouse"), before);
}

#[test]
fn a_shorter_list_is_the_beginning_of_a_longer_one() {
    let index = super::index_of(alike(700));
    let view = index.view();
    let of = |depth| {
        view.search(
            "wireless mouse",
            &Filter::default(),
            &crate::trust::NoTrust,
            now(),
            depth,
        )
        .unwrap()
        .hits
    };
    let all = of(700);
    assert_eq!(all.len(), 700);
    for depth in [0, 1, 7, 50, 200, 699] {
        assert_eq!(of(depth), all[..depth], "{depth}");
    }
}

#[test]
fn pruned_walks_find_what_full_ones_find() {
    // Common and rare words over several windows; the same in an order that no list is pruned in.
    let listings: Vec<Entry> = (1..=9_000)
        .map(|number| {
            let rare = if number % 1_499 == 0 { "zebra" } else { "" };
            let seldom = if number % 37 == 0 { "violet lamp" } else { "" };
            entry(
                number,
                &format!(
                    "common thing {} {rare} {seldom} {}",
                    "common ".repeat((number % 3) as usize),
                    number % 11
                ),
            )
        })
        .collect();
    let index = super::index_of(listings);
    let view = index.view();
    for text in [
        "common zebra",
        "violet common thing",
        "zebra violet lamp common thing",
        "lamp",
    ] {
        let of = |depth| {
            view.search(text, &Filter::default(), &crate::trust::NoTrust, now(), depth)
                .unwrap()
                .hits
        };
        let (all, best) = (of(10_000), of(20));
        assert_eq!(best, all[..20], "{text}");
    }
}

#[derive(Debug)]
struct ByName;

impl TrustScores for ByName {
    fn score(&self, agent: &Did) -> f64 {
        match agent.name() {
            "good" => 0.9,
            "fair" => 0.5,
            "odd" => f64::NAN,
            "wild" => 7.0,
            _ => 0.0,
        }
    }
}

fn of_agent(number: u64, agent: &str) -> Entry {
    Entry {
        agent: Did::parse(&format!("did:aip:shop.example:{agent}")).unwrap(),
        ..entry(number, "a thing")
    }
}

#[test]
fn what_nothing_is_looked_for_in_is_by_trust_then_id() {
    let agents = ["fair", "odd", "good", "wild", "fair", "nobody", "good"];
    let parts = memory();
    for (number, agent) in (1..).zip(agents) {
        parts.apply(&[change(of_agent(number, agent))]).unwrap();
    }
    let view = parts.view();
    let browse = |after: Option<(f64, &str)>, limit| {
        view.browse(&Filter::default(), &ByName, now(), after, limit)
            .unwrap()
    };
    let all = browse(None, 10);
    assert_eq!(
        all.iter().map(|hit| hit.number).collect::<Vec<_>>(),
        [4, 3, 7, 1, 5, 2, 6]
    );
    let mut paged = Vec::new();
    while let Some(page) = Some(browse(
        paged
            .last()
            .map(|hit: &crate::text::Browsed| (hit.trust, hit.id.as_str())),
        2,
    ))
    .filter(|page| !page.is_empty())
    {
        paged.extend(page);
    }
    assert_eq!(paged, all);
}

#[test]
fn a_changed_listing_is_found_by_what_it_says_now() {
    let index = super::names(&["red apple", "green pear"]);
    index
        .apply(&[
            Change {
                seq: 3,
                number: 1,
                entry: Some(entry(1, "yellow plum")),
            },
            Change {
                seq: 4,
                number: 2,
                entry: None,
            },
        ])
        .unwrap();
    assert!(found(&index, "apple").is_empty() && found(&index, "pear").is_empty());
    assert_eq!(
        (found(&index, "plum"), index.view().len(), index.applied()),
        (vec![1], 1, 4)
    );
}
