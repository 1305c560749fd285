//! §3: operations, histories, forks, key validity, DID documents.

use aip_protocol::document::{did_document, did_web_document};
use aip_protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_protocol::json::Json;
use serde_json::Value;
use sha2::Digest as _;

use crate::support::{hex_bytes, identity, json, operations, read, run, text, time};

#[test]
fn operations_zero() {
    run("operations", 27, |vector, _| {
        let wire = serde_json::to_vec(&vector.input).unwrap();
        let operation = Operation::parse(&wire, EndpointPolicy::default());
        vector.expect(operation.and_then(Identity::genesis), |identity, expected| {
            assert_eq!(identity.head_hash(), text(&expected["hash"]), "{}", vector.name);
            assert_eq!(identity.genesis_hash(), identity.head_hash());
            assert_eq!(Value::from(identity.head().json.clone()), vector.input);
        });
    });
}

#[test]
fn an_http_endpoint_needs_the_hubs_permission() {
    run("operations", 27, |vector, _| {
        if vector.name == "operations/direct-http" {
            let policy = EndpointPolicy { allow_http: true };
            let operation = Operation::from_json(json(&vector.input), policy).unwrap();
            assert!(Identity::genesis(operation).is_ok());
        }
    });
}

#[test]
fn histories() {
    run("histories", 14, |vector, _| {
        let replayed = Identity::replay(operations(&vector.input));
        if let Err(refusal) = &replayed {
            let index = refusal.members.iter().find(|(name, _)| *name == "index");
            assert_eq!(
                index.map(|(_, index)| index),
                vector.expected.get("index"),
                "{}",
                vector.name
            );
        }
        vector.expect(replayed, |identity, expected| {
            assert_eq!(identity.seq(), expected["seq"], "{}", vector.name);
            assert_eq!(identity.genesis_hash(), text(&expected["genesis"]));
            assert_eq!(identity.head_hash(), text(&expected["head"]));
            assert_eq!(identity.is_deactivated(), expected["deactivated"]);
            let summary = ["seq", "genesis", "head"].map(|name| identity.summary().get(name).cloned());
            assert_eq!(
                summary.map(|member| member.map(Value::from)),
                ["seq", "genesis", "head"].map(|name| expected.get(name).cloned())
            );
        });
    });
}

#[test]
fn forks() {
    run("forks", 7, |vector, _| {
        let cached = &vector.input["cached"];
        let later = identity(&vector.input["operations"]);
        let (genesis, head) = (text(&cached["genesis"]), text(&cached["head"]));
        let result = later.check_extends(cached["seq"].as_u64().unwrap(), genesis, head);
        vector.expect(result, |(), expected| assert_eq!(expected["ok"], true));
    });
}

#[test]
fn key_validity() {
    run("key_validity", 14, |vector, file| {
        let identity = identity(&file["history"]);
        let (kid, at) = (text(&vector.input["kid"]), time(&vector.input["at"]));
        let at_that_moment = identity.signing_key_accepted(kid, at, at);
        assert_eq!(
            at_that_moment.is_some(),
            vector.expected["valid"],
            "{}",
            vector.name
        );
        // A first hub that knows the whole history differs in one case: what was revoked later
        // is refused whatever `created_at` says.
        let first_hub = identity.signing_key(kid, at);
        let is_revoked_later = vector.name == "key_validity/stolen-before";
        assert_eq!(
            first_hub.is_some(),
            at_that_moment.is_some() && !is_revoked_later,
            "{}",
            vector.name
        );
    });
}

#[test]
fn did_documents() {
    run("did_documents", 4, |vector, _| {
        let operation = Operation::from_json(
            json(&vector.input["operation"]),
            EndpointPolicy { allow_http: true },
        );
        let operation = operation.unwrap();
        let hub_url = text(&vector.input["hub"]);
        assert_eq!(
            Value::from(did_document(&operation, hub_url)),
            vector.expected,
            "{}",
            vector.name
        );
        check_did_web(&operation, hub_url, &vector.expected);
    });
}

/// The `did:web` form differs by the id throughout, and by what it is also known as.
fn check_did_web(operation: &Operation, hub_url: &str, did_aip: &Value) {
    let (aip, web) = (operation.did.as_str(), operation.did.did_web());
    let mut expected: Value = serde_json::from_str(&did_aip.to_string().replace(aip, &web)).unwrap();
    expected["alsoKnownAs"] = Value::from(vec![aip]);
    assert_eq!(Value::from(did_web_document(operation, hub_url)), expected);
}

/// The hash of an operation is the multihash `sha2-256` of the multiformats tables.
#[test]
fn operation_hashes_are_multihashes() {
    run("operations", 27, |vector, _| {
        let Some(hash) = vector.expected.get("hash") else {
            return;
        };
        let bytes = bs58::decode(text(hash).strip_prefix('z').unwrap())
            .into_vec()
            .unwrap();
        assert_eq!(bytes[..2], [0x12, 0x20]);
        let canonical: Json = json(&vector.input);
        assert_eq!(bytes[2..], sha2::Sha256::digest(canonical.to_jcs())[..]);
    });
    let table = String::from_utf8(read("multiformats/multihash/test_cases.csv")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("sha2-256,256,"));
    let mut ran = 0;
    for row in rows {
        let multihash = hex_bytes(&Value::from(row.rsplit(',').next().unwrap().trim()));
        assert_eq!(
            (multihash.len(), &multihash[..2]),
            (34, &[0x12, 0x20][..]),
            "{row}"
        );
        ran += 1;
    }
    assert_ne!(ran, 0);
}
