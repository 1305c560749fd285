//! §9: listings and rank fusion.

use std::collections::HashMap;

use aip_protocol::fusion::Fusion;
use aip_protocol::listing::{Listing, ListingDraft};
use aip_protocol::multikey::SigningKey;
use aip_protocol::signature::{Tag, verify};
use serde_json::Value;

use crate::support::{identity, json, load, run, text, time};

#[test]
fn listings() {
    run("listings", 16, |vector, file| {
        let (agent, now) = (identity(&file["history"]), time(&file["hub_clock"]));
        let listing = Listing::from_json(json(&vector.input));
        let verified = listing.and_then(|listing| listing.verify(&agent, now).map(|()| listing));
        vector.expect(verified, |listing, expected| {
            assert_eq!(expected["ok"], true, "{}", vector.name);
            assert_eq!(Value::from(listing.json), vector.input);
        });
    });
}

fn ids(leg: &Value) -> Option<Vec<&str>> {
    leg.as_array().map(|ids| ids.iter().map(text).collect())
}

fn close(a: f64, b: &Value) -> bool {
    (a - b.as_f64().unwrap()).abs() < 1e-12
}

#[test]
fn fusion() {
    run("fusion", 10, |vector, _| {
        let input = &vector.input;
        let (fts, semantic) = (ids(&input["fts"]), ids(&input["semantic"]));
        let trust: HashMap<String, f64> = serde_json::from_value(input["trust"].clone()).unwrap();
        let trust = |id: &str| trust.get(id).copied().unwrap_or(0.0);
        let rows = Fusion::default().fuse(fts.as_deref(), semantic.as_deref(), trust);
        let expected = vector.expected["results"].as_array().unwrap();
        assert_eq!(rows.len(), expected.len(), "{}", vector.name);
        for (row, expected) in rows.iter().zip(expected) {
            assert_eq!(row.id, text(&expected["id"]), "{}", vector.name);
            let rank = |leg: &str| expected["ranks"].get(leg).and_then(Value::as_u64);
            assert_eq!(row.ranks.fts.map(u64::from), rank("fts"));
            assert_eq!(row.ranks.semantic.map(u64::from), rank("semantic"));
            let numbers = [
                (row.trust_score, "trust_score"),
                (row.rrf, "rrf"),
                (row.relevance_score, "relevance_score"),
                (row.final_score, "final_score"),
            ];
            for (number, name) in numbers {
                assert!(close(number, &expected[name]), "{} {name}: {number}", vector.name);
            }
        }
    });
}

/// The seed of the agent's signing key is not among the vectors, so another key signs: every member but `kid` and `sig` is
/// that of the vector, and the signature is good for an agent that lists the key.
#[test]
fn listings_are_made_as_they_are_read() {
    let file = load("aip/listings.json");
    let key = SigningKey::from_seed([7; 32]);
    let mut made = 0;
    for vector in file["vectors"].as_array().unwrap() {
        if vector["expected"]["ok"] != true {
            continue;
        }
        let read = Listing::from_json(json(&vector["input"])).unwrap();
        let draft = ListingDraft {
            deleted: read.deleted,
            ..ListingDraft::new(
                read.agent.clone(),
                read.version,
                read.created_at,
                read.offer().unwrap(),
            )
        };
        let again = draft.sign(&key).unwrap();
        assert_eq!(
            again.json.without(&["kid", "sig"]),
            read.json.without(&["kid", "sig"]),
            "{}",
            vector["name"]
        );
        assert_eq!(again.kid, format!("{}#{}", read.agent, key.public()));
        let unsigned = again.json.without(&["sig"]);
        assert!(verify(key.public(), Tag::Listing, &unsigned, &again.sig));
        made += 1;
    }
    assert_eq!(made, 5);
}
