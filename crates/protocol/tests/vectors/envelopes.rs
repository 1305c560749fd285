//! §4 and §5: forms, admission in order, the window, dedup.

use std::collections::HashMap;

use aip_protocol::envelope::{Envelope, check_expiry, check_window};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::Identity;
use aip_protocol::limits::ENVELOPE_BYTES_MAX;
use aip_protocol::time::Timestamp;
use serde_json::Value;

use crate::support::{expect, hex_bytes, identity, json, run, text, time};

type Seen = HashMap<[u8; 16], [u8; 32]>;
type Identities = HashMap<String, Identity>;

fn directory(file: &Value) -> Identities {
    let entries = file["directory"].as_object().unwrap().iter();
    entries
        .map(|(did, history)| (did.clone(), identity(history)))
        .collect()
}

fn refuse<T>(code: ErrorCode) -> Result<T, Refusal> {
    Err(Refusal::new(code, "as the test's hub sees it"))
}

/// The order of §5, with a map for each store.
fn admit(wire: &[u8], now: Timestamp, directory: &Identities) -> Result<Envelope, Refusal> {
    if wire.len() > ENVELOPE_BYTES_MAX {
        return refuse(ErrorCode::EnvelopeTooLarge);
    }
    let envelope = Envelope::parse(wire)?;
    check_window(envelope.created_at, now)?;
    check_expiry(envelope.expires_at, now)?;
    let Some(sender) = directory.get(envelope.from.as_str()) else {
        return refuse(ErrorCode::SenderUnknown);
    };
    if sender.is_deactivated() {
        return refuse(ErrorCode::SenderDeactivated);
    }
    let key = sender.signing_key(&envelope.kid, envelope.created_at);
    let key = key.ok_or_else(|| envelope.unknown_key())?;
    if !envelope.verify(key) {
        return refuse(ErrorCode::SignatureInvalid);
    }
    match directory.get(envelope.to.as_str()) {
        None => refuse(ErrorCode::RecipientUnknown),
        Some(recipient) if recipient.is_deactivated() => refuse(ErrorCode::RecipientDeactivated),
        Some(_) => Ok(envelope),
    }
}

#[test]
fn envelopes() {
    run("envelopes", 58, |vector, file| {
        let mut wire = match vector.input.get("wire_hex") {
            Some(hex) => hex_bytes(hex),
            None => text(&vector.input["wire"]).as_bytes().to_vec(),
        };
        let spaces = vector
            .input
            .get("append_spaces")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        wire.resize(wire.len() + usize::try_from(spaces).unwrap(), b' ');
        assert_eq!(file["size_limit"], ENVELOPE_BYTES_MAX);
        vector.expect(
            admit(&wire, time(&file["hub_clock"]), &directory(file)),
            |envelope, expected| {
                assert_eq!(
                    envelope.dedup_key().as_slice(),
                    hex_bytes(&expected["dedup_key"]),
                    "{}",
                    vector.name
                );
                assert_eq!(
                    envelope.digest().as_slice(),
                    hex_bytes(&expected["digest"]),
                    "{}",
                    vector.name
                );
                assert_eq!(
                    Envelope::parse(&envelope.to_wire()).unwrap().digest(),
                    envelope.digest()
                );
            },
        );
    });
}

#[test]
fn window() {
    run("window", 8, |vector, _| {
        let result = check_window(
            time(&vector.input["created_at"]),
            time(&vector.input["hub_clock"]),
        );
        if let Err(refusal) = &result {
            let named: Vec<&str> = refusal.members.iter().map(|(name, _)| *name).collect();
            assert_eq!(
                named,
                ["created_at", "hub_time", "age_ms"],
                "both clocks and the offset are named"
            );
        }
        vector.expect(result, |remembered_until, expected| {
            assert_eq!(
                remembered_until,
                time(&expected["remembered_until"]),
                "{}",
                vector.name
            );
        });
    });
}

#[test]
fn dedup() {
    let file = crate::support::load("aip/envelopes.json");
    let directory = directory(&file);
    run("dedup", 6, |vector, _| {
        let mut seen = Seen::new();
        let steps = vector.input.as_array().unwrap();
        for (index, step) in steps.iter().enumerate() {
            let name = format!("{} step {index}", vector.name);
            let envelope = Envelope::from_json(json(&step["envelope"])).unwrap();
            assert_eq!(
                envelope.dedup_key().as_slice(),
                hex_bytes(&vector.expected["keys"][index]),
                "{name}"
            );
            assert_eq!(
                envelope.digest().as_slice(),
                hex_bytes(&vector.expected["digests"][index]),
                "{name}"
            );
            let age = step["age_s"].as_i64().unwrap();
            let now = Timestamp::from_unix_millis(envelope.created_at.unix_millis() + age * 1_000);
            let result = admit(&envelope.to_wire(), now, &directory)
                .and_then(|envelope| remember(&mut seen, &envelope));
            expect(
                &name,
                &vector.expected["steps"][index],
                result,
                |status, expected| {
                    assert_eq!(status, text(&expected["status"]), "{name}");
                },
            );
        }
    });
}

fn remember(seen: &mut Seen, envelope: &Envelope) -> Result<&'static str, Refusal> {
    match seen.insert(envelope.dedup_key(), envelope.digest()) {
        None => Ok("stored"),
        Some(digest) if digest == envelope.digest() => Ok("duplicate"),
        Some(_) => refuse(ErrorCode::IdReused),
    }
}
