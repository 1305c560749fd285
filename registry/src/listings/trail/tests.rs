//! What is remembered of a listing, version after version.

use aip_protocol::name::Did;
use serde_json::json;

use super::*;
use crate::listings::{Ledger, Origin, Put};

/// A shop that publishes one listing again and again.
#[derive(Default)]
struct Shop {
    ledger: Ledger,
    version: u64,
}

impl Shop {
    fn put(&mut self, json: Option<&serde_json::Value>) -> StoredListing {
        self.version += 1;
        let mut digest = [0; 32];
        digest[0] = u8::try_from(self.version).expect("small");
        let new = NewListing {
            agent: Did::parse("did:aip:hub.example:shop").expect("a DID"),
            listing_id: "a".to_owned(),
            version: self.version,
            deleted: json.is_none(),
            json: json.map(|json| json.to_string().into_bytes()).unwrap_or_default(),
            digest,
            origin: Origin::Signed,
            flags: Vec::new(),
            expires_at: None,
        };
        match self.ledger.put(&new, 10, at(self.version)) {
            Put::Stored { listing, .. } => listing,
            other => unreachable!("{other:?}"),
        }
    }

    fn says(&mut self, description: &str, price: &str) -> Trail {
        self.put(Some(&listing(description, price))).trail
    }

    fn is_judged(&mut self, verdict: Verdict) {
        let stored = self.ledger.rows.values_mut().next().expect("a listing");
        assert!(stored.judge(verdict));
    }
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_unix_millis(i64::try_from(secs * 1_000).expect("small"))
}

fn listing(description: &str, price: &str) -> serde_json::Value {
    json!({ "listing_id": "a", "kind": "capability", "name": "A", "description": description, "price": price })
}

fn hash(description: &str) -> [u8; 32] {
    wording(listing(description, "1").to_string().as_bytes())
        .expect("a listing")
        .description
}

#[test]
fn a_changed_description_is_remembered_with_what_it_was() {
    let mut shop = Shop::default();
    assert_eq!(shop.says("one", "1"), Trail::default());
    assert_eq!(
        shop.says("one", "2"),
        Trail::default(),
        "a price is no description"
    );
    let changed = Some(Rewording {
        at: at(3),
        before: hash("one"),
    });
    assert_eq!(shop.says("two", "2").description, changed);
    let later = shop.says("two", "3");
    assert_eq!(
        (later.description, later.schemas),
        (changed, None),
        "it stays remembered"
    );
    let other = json!({ "listing_id": "a", "kind": "capability", "name": "A", "description": "two", "input_schema": {} });
    let schemas = shop.put(Some(&other)).trail.schemas.expect("changed");
    assert_eq!(schemas.at, at(5));
}

#[test]
fn who_deletes_and_publishes_again_has_changed_it() {
    let mut shop = Shop::default();
    shop.says("one", "1");
    let tombstone = shop.put(None);
    assert_eq!(
        tombstone.trail.last.map(|said| said.description),
        Some(hash("one"))
    );
    let back = shop.says("two", "1");
    assert_eq!(
        back.description,
        Some(Rewording {
            at: at(3),
            before: hash("one")
        })
    );
    assert_eq!(back.last, None);
}

#[test]
fn a_release_is_for_these_words_and_a_rejection_for_all() {
    let mut shop = Shop::default();
    shop.says("one", "1");
    shop.is_judged(Verdict::Released);
    let verdict = |trail: &Trail| trail.review.map(|review| review.verdict);
    assert_eq!(
        verdict(&shop.says("one", "2")),
        Some(Verdict::Released),
        "a new price is not looked at"
    );
    assert_eq!(verdict(&shop.says("two", "2")), None);
    shop.is_judged(Verdict::Rejected);
    assert_eq!(verdict(&shop.says("three", "2")), Some(Verdict::Rejected));
    shop.put(None);
    assert_eq!(
        verdict(&shop.says("four", "2")),
        Some(Verdict::Rejected),
        "a deletion washes nothing clean"
    );
}

#[test]
fn what_is_no_listing_is_not_judged() {
    let mut shop = Shop::default();
    let mut stored = shop.put(Some(&json!({ "flavour": "red" })));
    assert_eq!(stored.trail, Trail::default());
    assert!(!stored.judge(Verdict::Released));
    assert_eq!(stored.trail.review, None);
}
