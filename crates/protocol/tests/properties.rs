//! Properties: what is printed parses back, what is signed verifies and nothing else does, what is
//! sealed opens with the same header only.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::convert::Infallible;
use std::time::Duration;

use aip_protocol::envelope::{Envelope, EnvelopeDraft, check_window, new_id};
use aip_protocol::fusion::{Fusion, Ranks};
use aip_protocol::http_signature::{Body, SignedRequest, Stamp, Target, sign_request};
use aip_protocol::json::{Json, Object};
use aip_protocol::multikey::{OpeningKey, SealingKey, SigningKey, VerifyingKey};
use aip_protocol::name::{Did, Domain, Handle, Name, parse_identifier};
use aip_protocol::peer::{Known, Received};
use aip_protocol::seal::{self, Plaintext};
use aip_protocol::signature::{Signature, Tag, sign, verify};
use aip_protocol::time::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use rand_core::{TryCryptoRng, TryRng};

/// An rng that gives one byte for ever, for reproducible envelopes.
struct Constant(u8);

impl TryRng for Constant {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes([self.0; 4]))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes([self.0; 8]))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        out.fill(self.0);
        Ok(())
    }
}

impl TryCryptoRng for Constant {}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-z0-9_-]{0,20}[a-z0-9])?"
}

fn domain() -> impl Strategy<Value = String> {
    let host = prop_oneof![
        Just("localhost".to_owned()),
        "[a-z]([a-z0-9]{0,10}[a-z0-9])?\\.[a-z]{2,8}"
    ];
    (host, prop::option::of(1_u16..)).prop_map(|(host, port)| match port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

fn json() -> impl Strategy<Value = Json> {
    let limit = 9_007_199_254_740_991_i64;
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (-limit..=limit).prop_map(Json::Int),
        any::<String>().prop_map(Json::Str),
        "[\\x00-\\x1f\"\\\\\u{2028}😀\u{e000}\u{fb33}]{0,6}".prop_map(Json::Str),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Json::Array),
            btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Object> {
    btree_map("[a-z]{1,6}", json(), 0..5).prop_map(|members| members.into_iter().collect())
}

fn envelope(extra: Object) -> Envelope {
    let did = |text| Did::parse(text).unwrap();
    let created_at = Timestamp::parse("2026-11-29T20:15:30.123Z").unwrap();
    let (from, to) = (
        did("did:aip:localhost%3A8080:alice"),
        did("did:aip:b.example:bob"),
    );
    let mut draft = EnvelopeDraft::new(new_id(&mut Constant(3)), from, to, "aip.message", created_at);
    draft.extra = Object::from([("x-extra", Json::Object(extra))]);
    let plaintext = Plaintext::json("hello").to_bytes();
    let recipient = OpeningKey::from_seed([2; 32]);
    draft
        .seal(
            &SigningKey::from_seed([1; 32]),
            recipient.public(),
            &plaintext,
            &mut Constant(4),
        )
        .unwrap()
}

proptest! {
    #[test]
    fn names_domains_handles_and_dids_print_as_they_parse(name in name(), domain in domain()) {
        prop_assume!(!name.contains(".."));
        let handle = Handle { name: Name::parse(&name).unwrap(), domain: Domain::parse(&domain).unwrap() };
        prop_assert_eq!(handle.to_string(), format!("{name}#{domain}"));
        prop_assert_eq!(&Handle::parse(&handle.encoded()).unwrap(), &handle);
        prop_assert_eq!(&parse_identifier(&handle.encoded()).unwrap(), &handle);
        let did = handle.did();
        prop_assert_eq!(Did::parse(did.as_str()).unwrap().to_string(), did.to_string());
        prop_assert_eq!(&parse_identifier(&did.encoded()).unwrap(), &handle);
        prop_assert_eq!(did.handle(), handle);
    }

    #[test]
    fn upper_case_input_means_the_same(name in name(), domain in domain()) {
        let handle = Handle::parse(&format!("{name}#{domain}")).unwrap();
        prop_assert_eq!(Handle::parse(&format!("{name}#{domain}").to_uppercase()).unwrap(), handle);
    }

    #[test]
    fn times_print_as_they_parse(millis in -62_167_219_200_000_i64..253_402_300_800_000, nanos in 0_u32..1_000_000) {
        let time = Timestamp::from_unix_millis(millis);
        prop_assert_eq!(Timestamp::parse(&time.to_string()).unwrap(), time);
        let exact = time + Duration::from_nanos(u64::from(nanos));
        prop_assert_eq!(exact.to_string(), time.to_string());
        prop_assert_eq!(exact - Duration::from_nanos(u64::from(nanos)), time);
    }

    #[test]
    fn canonical_json_is_a_fixed_point(json in json()) {
        let canonical = json.to_jcs();
        let parsed = Json::parse(&canonical).unwrap();
        prop_assert_eq!(&parsed, &json);
        prop_assert_eq!(parsed.to_jcs(), canonical);
        let value: serde_json::Value = json.clone().into();
        prop_assert_eq!(Json::try_from(value.clone()).unwrap(), json.clone());
        // White space, escapes and member order on the wire do not matter.
        let pretty = serde_json::to_vec_pretty(&value).unwrap();
        prop_assert_eq!(Json::parse(&pretty).unwrap(), json);
    }

    #[test]
    fn keys_and_signatures_print_as_they_parse(seed in any::<[u8; 32]>(), bytes in any::<[u8; 32]>()) {
        let signing = SigningKey::from_seed(seed);
        prop_assert_eq!(&VerifyingKey::parse(signing.public().as_str()).unwrap(), signing.public());
        let opening = OpeningKey::from_seed(seed);
        prop_assert_eq!(&SealingKey::parse(opening.public().as_str()).unwrap(), opening.public());
        let mut raw = [0; 64];
        raw[..32].copy_from_slice(&bytes);
        raw[32..].copy_from_slice(&seed);
        let signature = Signature::from_bytes(raw);
        prop_assert_eq!(Signature::parse(&signature.to_string()).unwrap(), signature);
        prop_assert_eq!(VerifyingKey::from_bytes(&bytes).is_ok_and(|key| *key.as_bytes() != bytes), false);
    }

    #[test]
    fn a_signature_is_good_for_one_key_tag_and_object(seed in any::<[u8; 32]>(), json in json(), bit in 0_usize..512) {
        let key = SigningKey::from_seed(seed);
        let signature = sign(&key, Tag::Envelope, &json);
        prop_assert!(verify(key.public(), Tag::Envelope, &json, &signature));
        prop_assert!(!verify(key.public(), Tag::Listing, &json, &signature));
        prop_assert!(!verify(key.public(), Tag::Envelope, &Json::Array(vec![json.clone()]), &signature));
        let mut flipped = *signature.as_bytes();
        flipped[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!verify(key.public(), Tag::Envelope, &json, &Signature::from_bytes(flipped)));
    }

    #[test]
    fn any_flipped_bit_of_an_envelope_is_noticed(extra in object(), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let envelope = envelope(extra);
        let key = SigningKey::from_seed([1; 32]);
        let wire = envelope.to_wire();
        prop_assert!(Envelope::parse(&wire).unwrap().verify(key.public()));
        let mut flipped = wire.clone();
        flipped[at.index(wire.len())] ^= 1 << bit;
        if let Ok(read) = Envelope::parse(&flipped) {
            prop_assert!(!read.verify(key.public()));
        }
    }

    #[test]
    fn a_body_opens_with_its_own_header_only(aad in vec(any::<u8>(), 1..64), body in vec(any::<u8>(), 0..64), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let key = OpeningKey::from_seed([9; 32]);
        let sealed = seal::seal(key.public(), &aad, &body, &mut Constant(5));
        prop_assert_eq!(&seal::open(&key, &sealed.enc, &sealed.ct, &aad).unwrap(), &body);
        let flip = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let index = at.index(bytes.len());
            bytes[index] ^= 1 << bit;
            bytes
        };
        prop_assert!(seal::open(&key, &sealed.enc, &sealed.ct, &flip(&aad)).is_err());
        prop_assert!(seal::open(&key, &sealed.enc, &flip(&sealed.ct), &aad).is_err());
        // The top bit of an X25519 key is no part of it, but it is part of what HPKE binds.
        prop_assert!(seal::open(&key, &flip(&sealed.enc), &sealed.ct, &aad).is_err());
    }

    #[test]
    fn the_window_accepts_exactly_its_interval(age in -2_000_000_i64..2_000_000) {
        let now = Timestamp::from_unix_millis(1_795_983_330_123);
        let created_at = Timestamp::from_unix_millis(now.unix_millis() - age);
        let accepted = check_window(created_at, now);
        prop_assert_eq!(accepted.is_ok(), (-300_000..=900_000).contains(&age));
        if let Ok(remembered_until) = accepted {
            let memory = remembered_until.millis_since(now);
            prop_assert!((0..=1_200_000).contains(&memory));
        }
    }

    #[test]
    fn a_signed_request_verifies_until_anything_covered_changes(path in "/[a-z/]{0,12}", body in vec(any::<u8>(), 0..64), nonce in "[A-Za-z0-9_-]{1,24}") {
        let key = SigningKey::from_seed([6; 32]);
        let keyid = format!("a.example#{}", key.public());
        let target = Target::new("POST", "hub.b.example", &path, None);
        let stamp = Stamp { created_secs: 1_000, expires_secs: 1_060, nonce: &nonce };
        let headers = sign_request(&key, &keyid, &target, Some(Body { content_type: "application/json", bytes: &body }), stamp);
        let digest = headers.content_digest.unwrap();
        let fields = [("content-type", "application/json"), ("content-digest", digest.as_str()), ("signature-input", headers.signature_input.as_str()), ("signature", headers.signature.as_str())];
        let request = SignedRequest::parse(&fields, true, Timestamp::from_unix_secs(1_030)).unwrap();
        prop_assert_eq!((request.claimed_domain(), request.nonce.as_str()), ("a.example", nonce.as_str()));
        let keys = [key.public().clone()];
        prop_assert!(request.verify(&target, &fields, Some(&body), &keys).is_ok());
        let elsewhere = Target::new("POST", "hub.c.example", &path, None);
        prop_assert!(request.verify(&elsewhere, &fields, Some(&body), &keys).is_err());
        let mut longer = body.clone();
        longer.push(0);
        prop_assert!(request.verify(&target, &fields, Some(&longer), &keys).is_err());
    }

    #[test]
    fn arbitrary_signature_fields_never_panic(input in "\\PC{0,80}", signature in "\\PC{0,40}") {
        let fields = [("signature-input", input.as_str()), ("signature", signature.as_str())];
        prop_assert!(SignedRequest::parse(&fields, false, Timestamp::UNIX_EPOCH).is_err());
    }

    #[test]
    fn trust_and_rank_only_ever_raise_a_score(rank in 1_u32..400, other in prop::option::of(1_u32..400), trust in 0.0..=1.0_f64) {
        let fusion = Fusion::default();
        let ranks = Ranks { fts: Some(rank), semantic: other };
        let better = Ranks { fts: Some(rank.saturating_sub(1).max(1)), semantic: other };
        prop_assert!(fusion.rrf(better) >= fusion.rrf(ranks));
        prop_assert!(fusion.final_score(fusion.rrf(ranks), trust) >= fusion.rrf(ranks));
        prop_assert!((0.0..=1.0).contains(&fusion.relevance(fusion.rrf(ranks), 2)));
    }

    #[test]
    fn what_was_received_is_known_for_ever(seqs in vec(1_u64..40, 0..80)) {
        let mut received = Received::default();
        for (index, seq) in seqs.iter().enumerate() {
            let is_known = seqs[..index].contains(seq);
            prop_assert_eq!(received.known(*seq) == Known::Duplicate, is_known);
            received.settle(*seq);
        }
        let floor = received.acked_through();
        prop_assert!((1..=floor).all(|seq| seqs.contains(&seq)));
        prop_assert!(!seqs.contains(&(floor + 1)));
    }
}
