//! What `crates/catalog` reads of a search; its stable tests run the same functions on generated input.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aip_catalog::{Change, Entry, Filter, NoTrust, Price, TextIndex, TextOptions, TextView};
use aip_protocol::listing::ListingKind;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;

/// Fewer than there are listings, so that the last places are fought for.
const DEPTH: usize = 4;

/// Listings in what people write: codes, compounds, scripts with and without spaces, nothing at all.
const NAMES: [&str; 8] = [
    "Sony PS-LX350H turntable",
    "iPhone 15 Pro Max 256GB",
    "sortes.draw@v1",
    "Draps à 12 °C, l'hôtel d'été",
    "большая лампа",
    "笔记本电脑 256",
    "red apple, green apple",
    "\u{202e}\u{0}🦀",
];

static VIEW: LazyLock<TextView> = LazyLock::new(|| {
    let index = TextIndex::open(None, &TextOptions::default()).expect("an index in memory");
    let changes: Vec<Change> = (1..)
        .zip(NAMES)
        .map(|(number, name)| change(number, name))
        .collect();
    index.apply(&changes).expect("listings are taken");
    index.view()
});

/// The text of a search: whatever it is, it is no error, the same each time, and what it finds says why.
pub fn query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let search = || VIEW.search(text, &Filter::default(), &NoTrust, now(), DEPTH);
    let found = search().expect("no text is an error");
    assert!(search().is_ok_and(|again| again == found));
    assert!(found.hits.len() <= DEPTH);
    assert!(found.hits.is_sorted_by(|one, next| one.score >= next.score));
    for share in [found.coverage, found.code_share] {
        assert!((0.0..=1.0 + 1e-9).contains(&share), "{share}");
    }
    assert!(found.evidence.is_finite() && found.evidence >= 0.0);
    for hit in &found.hits {
        assert!(hit.score.is_finite() && hit.score > 0.0, "{hit:?}");
        assert!((0.0..=1.0 + 1e-9).contains(&hit.coverage), "{hit:?}");
        assert!(VIEW.explain(hit.number, text).is_some());
    }
}

/// The prices of a search: what is accepted prints as a text that is the same price.
pub fn price(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(price) = Price::parse(text) {
        assert_eq!(Price::parse(&price.to_string()), Ok(price));
    }
}

fn change(number: u64, name: &str) -> Change {
    let entry = Entry {
        id: format!("lst_{number:06}"),
        number,
        agent: Did::parse("did:aip:shop.example:seller").expect("a DID"),
        source_hub: Domain::parse("shop.example").expect("a domain"),
        kind: ListingKind::Product,
        name: name.to_owned(),
        description: String::new(),
        lang: None,
        tags: Vec::new(),
        category: None,
        brand: None,
        price_text: None,
        currency: None,
        available: None,
        attributes: BTreeMap::new(),
        created_at: now(),
        updated_at: now(),
        expires_at: None,
    };
    Change {
        seq: number,
        number,
        entry: Some(entry),
    }
}

fn now() -> Timestamp {
    Timestamp::from_unix_secs(1_800_000_000)
}
