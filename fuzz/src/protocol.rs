//! The parsers of `crates/protocol`; its stable tests run the same functions on generated input.

use aip_protocol::discovery::HubDocument;
use aip_protocol::envelope::Envelope;
use aip_protocol::http_signature::{SignedRequest, Target};
use aip_protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_protocol::json::Json;
use aip_protocol::limits::BATCH_ITEMS_MAX;
use aip_protocol::market::evm::{Address, EvmSignature, Word};
use aip_protocol::market::origin::Origin;
use aip_protocol::market::x402::{Payment, to_header};
use aip_protocol::market::{Number, Value, announce, document, manifest, receipt};
use aip_protocol::multikey::{SealingKey, SigningKey, VerifyingKey};
use aip_protocol::name::{Did, Domain, Handle, Name, parse_identifier};
use aip_protocol::peer::Batch;
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

/// JSON of AIMarket: its text is the same value, also through another serializer, and whatever is verified of it ends in one of
/// three states, never in a proof without a key.
pub fn market(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(number) = Number::parse(text) {
        assert_eq!(Number::parse(&number.to_string()), Some(number));
    }
    if let Ok(origin) = Origin::of(text, "https://hub.example") {
        assert_eq!(Origin::of(origin.as_str(), "").as_ref(), Ok(&origin));
    }
    let Ok(value) = Value::parse(data) else {
        return;
    };
    assert_eq!(Value::parse(&value.to_bytes()).as_ref(), Ok(&value));
    assert_eq!(Value::from(serde_json::Value::from(value.clone())), value);
    let key = SigningKey::from_seed([7; 32]);
    for keys in [&[][..], std::slice::from_ref(key.public())] {
        for check in [
            receipt::verify(&value, keys, &receipt::Expected::default()),
            manifest::verify(&value, keys),
            document::verify(&value, keys),
            announce::verify(&value, keys),
        ] {
            assert!(!check.verdict.is_true());
        }
    }
    if let Some(members) = value.as_object()
        && let Ok(signed) = receipt::sign(members.clone(), &key)
    {
        let check = receipt::verify(&signed, &[key.public().clone()], &receipt::Expected::default());
        assert!(check.verdict.is_true() && receipt::is_evidence_covered(&check));
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

/// Pushes of the hub of aigentix.org to that of etagi.ru, as in the vectors: what is admitted is from an agent of the one to an
/// agent of the other, and its envelope is the same again.
pub fn push(data: &[u8]) {
    let (Ok(peer), Ok(own)) = (Domain::parse("aigentix.org"), Domain::parse("etagi.ru")) else {
        unreachable!("both are domains");
    };
    let Ok(batch) = Json::parse(data).and_then(|json| Batch::from_json(&json, peer.as_str())) else {
        return;
    };
    assert_eq!(batch.domain, peer);
    assert!(batch.items.len() <= BATCH_ITEMS_MAX);
    for item in batch.items {
        assert!(item.peer_seq > 0);
        if let Ok(item) = item.admit(&peer, &own, now()) {
            let (from, to) = (&item.envelope.from, &item.envelope.to);
            assert_eq!((from.domain(), to.domain()), (peer.clone(), own.clone()));
            let again = Envelope::parse(&item.envelope.to_wire());
            assert!(again.is_ok_and(|again| again.digest() == item.envelope.digest()));
        }
    }
}

/// Documents of hubs: the canonical form is the same document.
pub fn hub_document(data: &[u8]) {
    if let Ok(document) = HubDocument::parse(data) {
        let again = HubDocument::parse(&document.json.to_jcs());
        assert!(again.is_ok_and(|again| again.domain == document.domain && again.keys == document.keys));
        drop(document.verify(&document.domain, now(), None));
    }
}

/// Requests of peers, as two lines, `Signature-Input` and `Signature`: what is read is remembered for as long as it counts.
pub fn request_signature(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (input, signature) = text.split_once('\n').unwrap_or((text, ""));
    let fields = [("signature-input", input), ("signature", signature)];
    let target = Target {
        method: "POST".to_owned(),
        authority: "hub.etagi.ru".to_owned(),
        path: "/federation/v1/messages".to_owned(),
        query: "?".to_owned(),
    };
    for has_body in [false, true] {
        let Ok(signed) = SignedRequest::parse(&fields, has_body, now()) else {
            continue;
        };
        assert!(!signed.nonce.is_empty() && signed.remember_until >= now());
        let key = signed.keyid.rsplit('#').next().map(VerifyingKey::parse);
        if let Some(Ok(key)) = key {
            drop(signed.verify(&target, &fields, None, &[key]));
        }
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

/// What wallets sign: an address, a number and a signature are read from what they print as, and a payment from its header.
pub fn x402(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(address) = Address::parse(text) {
        assert_eq!(Address::parse(&address.to_string()), Ok(address));
        assert!(address.lower().eq_ignore_ascii_case(text));
    }
    if let Ok(word) = Word::parse(text) {
        assert_eq!(Word::parse(&word.to_string()), Ok(word));
    }
    if let Ok(signature) = EvmSignature::parse(text) {
        assert!(signature.to_string().eq_ignore_ascii_case(text));
    }
    if let Ok(payment) = Payment::from_header(text) {
        assert_eq!(Payment::from_json(payment.json.clone()), Ok(payment));
    }
    let Some(payment) = serde_json::from_slice(data)
        .ok()
        .and_then(|json| Payment::from_json(json).ok())
    else {
        return;
    };
    assert!(payment.check(&payment.accepted, 0, u64::MAX).is_err());
    let header = to_header(&payment.json);
    assert!(Payment::from_header(&header).is_ok_and(|again| again == payment) || header.len() > 8_192);
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

/// A little after 2026-11-29T20:15:30Z, the time of the vectors.
fn now() -> Timestamp {
    Timestamp::from_unix_secs(1_795_983_335)
}
