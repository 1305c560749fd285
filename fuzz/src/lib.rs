//! What is fuzzed: one function per parser that reads strangers' bytes.
//!
//! Each takes any bytes, must not panic by itself, and asserts what has to hold of whatever was
//! accepted. The stable tests of `crates/protocol` run the same functions on generated input.

use aip_protocol::envelope::Envelope;
use aip_protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_protocol::json::Json;
use aip_protocol::multikey::{SealingKey, VerifyingKey};
use aip_protocol::name::{Did, Domain, Handle, Name, parse_identifier};
use aip_protocol::signature::Signature;
use aip_protocol::time::Timestamp;

/// Strict JSON: what is accepted has one canonical form, which is accepted too.
pub fn json(data: &[u8]) {
    if let Ok(json) = Json::parse(data) {
        assert!(json.check().is_ok());
        let canonical = json.to_jcs();
        assert_eq!(Json::parse(&canonical), Ok(json));
    }
}

/// Envelopes: the canonical form is the same envelope.
pub fn envelope(data: &[u8]) {
    if let Ok(envelope) = Envelope::parse(data) {
        let again = Envelope::parse(&envelope.to_wire());
        assert!(again.is_ok_and(|again| {
            again.digest() == envelope.digest() && again.dedup_key() == envelope.dedup_key()
        }));
    }
}

/// Operations: the hash belongs to the canonical form.
pub fn operation(data: &[u8]) {
    if let Ok(operation) = Operation::parse(data, EndpointPolicy { allow_http: true }) {
        let again = Operation::parse(&operation.json.to_jcs(), EndpointPolicy { allow_http: true });
        assert!(again.is_ok_and(|again| again.hash() == operation.hash()));
        // Whether it is signed is for the replay to say.
        drop(Identity::genesis(operation));
    }
}

/// Names, domains, handles and path segments print as they parse.
pub fn identifier(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(name) = Name::parse(text) {
        assert_eq!(Name::parse(name.as_str()), Ok(name));
    }
    if let Ok(domain) = Domain::parse(text) {
        assert_eq!(Domain::parse(domain.as_str()), Ok(domain));
    }
    for handle in [Handle::parse(text), parse_identifier(text)]
        .into_iter()
        .flatten()
    {
        assert_eq!(Handle::parse(&handle.to_string()), Ok(handle.clone()));
        assert_eq!(parse_identifier(&handle.encoded()), Ok(handle.clone()));
        assert_eq!(parse_identifier(&handle.did().encoded()), Ok(handle));
    }
}

/// DIDs: accepted text is canonical, byte for byte.
pub fn did(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(did) = Did::parse(text) {
        assert_eq!(did.as_str(), text);
        assert_eq!(did.handle().did(), did);
    }
    if let Ok(did) = Did::parse_input(text) {
        assert_eq!(Did::parse(did.as_str()), Ok(did));
    }
}

/// Multikeys: accepted text is the only spelling of its key.
pub fn multikey(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(key) = VerifyingKey::parse(text) {
        assert_eq!(
            VerifyingKey::from_bytes(key.as_bytes()).map(|key| key.to_string()),
            Ok(text.to_owned())
        );
    }
    if let Ok(key) = SealingKey::parse(text) {
        assert_eq!(
            SealingKey::from_bytes(key.as_bytes()).map(|key| key.to_string()),
            Ok(text.to_owned())
        );
    }
}

/// Times: accepted text is the moment it prints as, to the millisecond.
pub fn timestamp(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(time) = Timestamp::parse(text) {
        let printed = Timestamp::parse(&time.to_string());
        assert!(printed.is_ok_and(|printed| printed.unix_millis() == time.unix_millis() && printed <= time));
    }
}

/// Signatures: accepted text is the only spelling of its bytes.
pub fn signature(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(signature) = Signature::parse(text) {
        assert_eq!(signature.to_string(), text);
    }
}
