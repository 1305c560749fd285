//! Filters hold before the best are counted.

use aip_protocol::listing::ListingKind;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;

use crate::entry::{AttributeValue, Entry};
use crate::price::Price;
use crate::query::Filter;
use crate::text::TextIndex;
use crate::trust::{NoTrust, TrustScores};

use super::{DEPTH, attribute, entry, index_of, now};

fn catalog() -> TextIndex {
    index_of(vec![
        Entry {
            price_text: Some("79000".into()),
            currency: Some("RUB".into()),
            brand: Some("Apple".into()),
            ..entry(1, "phone red")
        },
        Entry {
            price_text: Some("80000.01".into()),
            currency: Some("RUB".into()),
            available: Some(false),
            ..entry(2, "phone")
        },
        Entry {
            price_text: Some("800".into()),
            currency: Some("EUR".into()),
            category: Some("Mobile  Phones".into()),
            ..entry(3, "phone")
        },
        Entry {
            kind: ListingKind::Capability,
            source_hub: Domain::parse("other.example").unwrap(),
            lang: Some("fr-CA".into()),
            ..entry(4, "phone")
        },
        Entry {
            agent: Did::parse("did:aip:shop.example:good").unwrap(),
            updated_at: Timestamp::from_unix_secs(1_800_000_100),
            ..attribute(
                attribute(
                    entry(5, "phone"),
                    "Colour",
                    AttributeValue::Text("Dark Blue".into()),
                ),
                "sim",
                AttributeValue::Int(2),
            )
        },
        Entry {
            expires_at: Some(Timestamp::from_unix_secs(1_799_999_999)),
            ..entry(6, "phone")
        },
        Entry {
            expires_at: Some(now()),
            kind: ListingKind::Concept,
            ..entry(7, "phone")
        },
    ])
}

#[derive(Debug)]
struct Good;

impl TrustScores for Good {
    fn score(&self, agent: &Did) -> f64 {
        if agent.name() == "good" { 0.7 } else { 0.2 }
    }
}

#[expect(clippy::too_many_lines, reason = "one table of filters")]
#[test]
fn each_filter_holds_alike_for_search_admission_and_browsing() {
    let price = |text: &str| Some(Price::parse(text).unwrap());
    let all = Filter::default;
    let cases: Vec<(Filter, Vec<u64>)> = vec![
        (all(), vec![1, 2, 3, 4, 5, 7]),
        (
            Filter {
                kinds: vec![ListingKind::Capability, ListingKind::Concept],
                ..all()
            },
            vec![4, 7],
        ),
        (
            Filter {
                price_max: price("80000"),
                ..all()
            },
            vec![1, 3],
        ),
        (
            Filter {
                price_min: price("800"),
                price_max: price("800.0"),
                ..all()
            },
            vec![3],
        ),
        (
            Filter {
                price_min: price("0"),
                currency: Some("RUB".into()),
                ..all()
            },
            vec![1, 2],
        ),
        (
            Filter {
                available: Some(true),
                currency: Some("RUB".into()),
                ..all()
            },
            vec![1],
        ),
        (
            Filter {
                available: Some(false),
                ..all()
            },
            vec![2],
        ),
        (
            Filter {
                trust_min: Some(0.7),
                ..all()
            },
            vec![5],
        ),
        (
            Filter {
                trust_min: Some(0.0),
                ..all()
            },
            vec![1, 2, 3, 4, 5, 7],
        ),
        (
            Filter {
                domain: Some(Domain::parse("other.example").unwrap()),
                ..all()
            },
            vec![4],
        ),
        (
            Filter {
                category: Some("mobile phones ".into()),
                ..all()
            },
            vec![3],
        ),
        (
            Filter {
                brand: Some("APPLE".into()),
                ..all()
            },
            vec![1],
        ),
        (
            Filter {
                lang: Some("FR".into()),
                ..all()
            },
            vec![4],
        ),
        (
            Filter {
                attributes: [
                    ("colour".to_owned(), "dark blue".to_owned()),
                    ("sim".to_owned(), "2".to_owned()),
                ]
                .into(),
                ..all()
            },
            vec![5],
        ),
        (
            Filter {
                attributes: [("colour".to_owned(), "blue".to_owned())].into(),
                ..all()
            },
            vec![],
        ),
        (
            Filter {
                updated_after: Some(Timestamp::from_unix_secs(1_800_000_100)),
                ..all()
            },
            vec![5],
        ),
        (
            Filter {
                updated_after: Some(Timestamp::from_unix_nanos(1_800_000_100_000_000_001)),
                ..all()
            },
            vec![],
        ),
        (
            Filter {
                brand: Some("nobody".into()),
                ..all()
            },
            vec![],
        ),
    ];
    let view = catalog().view();
    for (filter, expected) in cases {
        let sorted = |mut numbers: Vec<u64>| {
            numbers.sort_unstable();
            numbers
        };
        let hits = view.search("phone", &filter, &Good, now(), DEPTH).unwrap().hits;
        assert_eq!(
            sorted(hits.iter().map(|hit| hit.number).collect()),
            expected,
            "{filter:?}"
        );
        let browsed = view.browse(&filter, &Good, now(), None, DEPTH).unwrap();
        assert_eq!(
            sorted(browsed.iter().map(|hit| hit.number).collect()),
            expected,
            "{filter:?}"
        );
        let admitted = view.admitted(&filter, &Good, now()).unwrap().unwrap();
        assert_eq!(admitted.iter().collect::<Vec<_>>(), expected, "{filter:?}");
        let facets = view.facets(&filter, &Good, now()).unwrap();
        assert_eq!(
            facets.kind.iter().map(|kind| kind.count).sum::<u64>(),
            expected.len() as u64,
            "{filter:?}"
        );
    }
}

#[test]
fn without_a_filter_all_are_admitted() {
    let index = super::names(&["one", "two"]);
    assert!(
        index
            .view()
            .admitted(&Filter::default(), &NoTrust, now())
            .unwrap()
            .is_none()
    );
}

#[test]
fn what_has_expired_is_never_found() {
    let index = index_of(vec![Entry {
        expires_at: Some(now()),
        ..entry(1, "phone")
    }]);
    let view = index.view();
    let at = |moment| {
        view.search("phone", &Filter::default(), &NoTrust, moment, DEPTH)
            .unwrap()
            .hits
            .len()
    };
    assert_eq!(
        (
            at(now()),
            at(Timestamp::from_unix_millis(now().unix_millis() + 1))
        ),
        (1, 0)
    );
    assert_eq!(view.entry(1).unwrap().name, "phone");
}

#[test]
fn the_twelve_that_match_of_thousands_come_back_all() {
    let listings = (1..=2_000).map(|number| {
        // Those that pass say the word once in a long text: they are the worst of all by score.
        let passes = number % 166 == 0;
        let name = if passes {
            format!("phone and {}", "other words ".repeat(20))
        } else {
            "phone phone".to_owned()
        };
        Entry {
            category: Some(if passes { "rare" } else { "common" }.to_owned()),
            ..entry(number, &name)
        }
    });
    let index = index_of(listings.collect());
    let filter = Filter {
        category: Some("rare".to_owned()),
        ..Filter::default()
    };
    let hits = index
        .view()
        .search("phone", &filter, &NoTrust, now(), 10)
        .unwrap()
        .hits;
    assert_eq!(
        hits.iter().map(|hit| hit.number).collect::<Vec<_>>(),
        (1..=10).map(|place| place * 166).collect::<Vec<_>>()
    );
    let half = Filter {
        category: Some("common".to_owned()),
        ..Filter::default()
    };
    assert_eq!(
        index
            .view()
            .search("phone", &half, &NoTrust, now(), 3_000)
            .unwrap()
            .hits
            .len(),
        1_988
    );
}

#[test]
fn facets_count_what_passes() {
    let facets = catalog()
        .view()
        .facets(&Filter::default(), &NoTrust, now())
        .unwrap();
    let of = |counts: &[crate::text::FacetCount]| {
        counts
            .iter()
            .map(|count| (count.value.clone(), count.count))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of(&facets.kind),
        [
            ("product".to_owned(), 4),
            ("capability".to_owned(), 1),
            ("concept".to_owned(), 1)
        ]
    );
    assert_eq!(
        of(&facets.currency),
        [("RUB".to_owned(), 2), ("EUR".to_owned(), 1)]
    );
    assert_eq!(of(&facets.category), [("mobile phones".to_owned(), 1)]);
    assert_eq!(of(&facets.brand), [("apple".to_owned(), 1)]);
    assert_eq!(
        of(&facets.domain),
        [("shop.example".to_owned(), 5), ("other.example".to_owned(), 1)]
    );
    assert_eq!(of(&facets.lang), [("fr".to_owned(), 1)]);
}
