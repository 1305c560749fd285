//! Making, opening and judging envelopes beyond the shared vectors.

use std::convert::Infallible;
use std::time::Duration;

use rand_core::{TryCryptoRng, TryRng};

use super::*;
use crate::multikey::SigningKey;

/// Counts upwards; good enough to tell calls apart.
pub(crate) struct Counting(u8);

impl TryRng for Counting {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64()
            .map(|word| u32::try_from(word & 0xffff).unwrap())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(1);
        Ok(u64::from(self.0))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.0 = self.0.wrapping_add(1);
        out.fill(self.0);
        Ok(())
    }
}

impl TryCryptoRng for Counting {}

fn did(text: &str) -> Did {
    Did::parse(text).unwrap()
}

fn draft() -> EnvelopeDraft {
    let id = new_id(&mut Counting(0));
    let created_at = Timestamp::parse("2026-11-29T20:15:30.000Z").unwrap();
    EnvelopeDraft::new(
        id,
        did("did:aip:a.example:alice"),
        did("did:aip:b.example:bob"),
        "aip.message",
        created_at,
    )
}

fn seal_draft(draft: EnvelopeDraft) -> Result<Envelope, Refusal> {
    let (signing, opening) = (SigningKey::from_seed([1; 32]), OpeningKey::from_seed([2; 32]));
    let plaintext = Plaintext::json(serde_json::json!({"text": "hello", "price": 1.5}));
    draft.seal(
        &signing,
        opening.public(),
        &plaintext.to_bytes(),
        &mut Counting(7),
    )
}

#[test]
fn what_is_sealed_is_read_by_the_recipient_only() {
    let envelope = seal_draft(draft()).unwrap();
    let read = Envelope::parse(&envelope.to_wire()).unwrap();
    assert_eq!(read.digest(), envelope.digest());
    assert!(read.verify(SigningKey::from_seed([1; 32]).public()));
    assert!(!read.verify(SigningKey::from_seed([3; 32]).public()));
    let opened = read.open(&OpeningKey::from_seed([2; 32])).unwrap();
    assert_eq!(opened.body["text"], "hello");
    assert_eq!(
        read.open(&OpeningKey::from_seed([3; 32])).unwrap_err(),
        OpenError::OtherKey
    );
}

#[test]
fn optional_and_unknown_members_are_signed_and_bound() {
    let mut draft = draft();
    draft.expires_at = Some(draft.created_at + Duration::from_mins(1));
    draft.thread = Some("t".repeat(128));
    draft.reply_to = Some("r".to_owned());
    draft.extra = Object::from([
        ("zz-note", Json::from(vec![1_u32])),
        ("sig", Json::from("replaced")),
    ]);
    let envelope = seal_draft(draft).unwrap();
    assert!(envelope.verify(SigningKey::from_seed([1; 32]).public()));
    assert!(envelope.open(&OpeningKey::from_seed([2; 32])).is_ok());
    let Json::Object(mut changed) = envelope.json else {
        panic!("an object")
    };
    changed.insert("thread", "other");
    let changed = Envelope::from_json(Json::Object(changed)).unwrap();
    assert!(!changed.verify(SigningKey::from_seed([1; 32]).public()));
    assert_eq!(
        changed.open(&OpeningKey::from_seed([2; 32])).unwrap_err(),
        OpenError::Failed
    );
}

#[test]
fn a_bad_draft_is_refused_where_it_is_made() {
    for change in [
        (|draft: &mut EnvelopeDraft| draft.kind = "message".to_owned()) as fn(&mut EnvelopeDraft),
        |draft| draft.thread = Some(String::new()),
        |draft| draft.reply_to = Some("é".repeat(65)),
        |draft| draft.expires_at = Some(draft.created_at),
        |draft| draft.id = Uuid::nil(),
    ] {
        let mut draft = draft();
        change(&mut draft);
        assert_eq!(seal_draft(draft).unwrap_err().code, ErrorCode::MemberInvalid);
    }
}

#[test]
fn row_06_dedup_keys_are_length_prefixed() {
    let key = |from: &str, to: &str| {
        let mut draft = draft();
        (draft.from, draft.to) = (did(from), did(to));
        seal_draft(draft).unwrap().dedup_key()
    };
    let pairs = [
        ("did:aip:a.example:a", "did:aip:a.example:ab"),
        ("did:aip:a.example:aa", "did:aip:a.example:b"),
        ("did:aip:a.example:ab", "did:aip:a.example:a"),
    ];
    let keys: std::collections::BTreeSet<_> = pairs.iter().map(|(from, to)| key(from, to)).collect();
    assert_eq!(keys.len(), pairs.len());
}

#[test]
fn row_18_false_empty_and_null_are_signed_as_they_are() {
    let mut draft = draft();
    draft.extra = Object::from([
        ("a", Json::from(false)),
        ("b", Json::from("")),
        ("c", Json::Array(Vec::new())),
        ("d", Json::Null),
        ("e", Json::Object(Object::new())),
    ]);
    let sent = seal_draft(draft).unwrap();
    let stored = Envelope::parse(&sent.to_wire()).unwrap();
    assert_eq!(stored.to_wire(), sent.to_wire());
    assert!(stored.verify(SigningKey::from_seed([1; 32]).public()));
}

#[test]
fn row_21_numbers_that_others_would_read_differently_are_refused() {
    let wire = String::from_utf8(seal_draft(draft()).unwrap().to_wire()).unwrap();
    for number in [
        "9007199254740993",
        "1.5",
        "1e400",
        "-0",
        "1e3",
        "18446744073709551617",
    ] {
        let poisoned = wire.replacen('{', &format!("{{\"n\":{number},"), 1);
        assert_eq!(
            Envelope::parse(poisoned.as_bytes()).unwrap_err().code,
            ErrorCode::JsonInvalid,
            "{number}"
        );
    }
}

#[test]
fn row_22_escapes_have_one_canonical_form() {
    let same = [
        r#"{"t":"A\u0000\u00e9\ud83d\ude00\/"}"#,
        "{\"t\":\"\\u0041\\u0000é😀/\"}",
    ];
    let digests = same.map(|text| Json::parse(text.as_bytes()).unwrap().to_jcs());
    assert_eq!(digests[0], digests[1]);
    for lone in [
        r#"{"t":"\ud800"}"#,
        r#"{"t":"\udc00x"}"#,
        r#"{"\ud83d":1}"#,
        r#"{"t":"\ud83d\ud83d"}"#,
    ] {
        assert_eq!(
            Json::parse(lone.as_bytes()).unwrap_err().code,
            ErrorCode::JsonInvalid,
            "{lone}"
        );
    }
}

#[test]
fn row_23_the_window_is_exact_at_both_ends() {
    let now = Timestamp::parse("2026-11-29T20:15:30.000Z").unwrap();
    for (millis, is_accepted) in [
        (-300_001, false),
        (-300_000, true),
        (-299_000, true),
        (299_000, true),
        (900_000, true),
        (900_001, false),
    ] {
        let created_at = Timestamp::from_unix_millis(now.unix_millis() - millis);
        assert_eq!(check_window(created_at, now).is_ok(), is_accepted, "{millis}");
    }
    let a_nanosecond_more = Timestamp::from_unix_nanos(now.unix_nanos() + 300_000_000_001);
    assert!(check_window(a_nanosecond_more, now).is_err());
}

#[test]
fn expiry_counts_the_moment_itself_as_good() {
    let now = Timestamp::from_unix_millis(1_000);
    assert!(check_expiry(None, now).is_ok() && check_expiry(Some(now), now).is_ok());
    let refusal = check_expiry(Some(Timestamp::from_unix_millis(999)), now).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Expired);
}

#[test]
fn a_kid_that_is_no_point_is_called_a_bad_key() {
    let Json::Object(mut object) = seal_draft(draft()).unwrap().json else {
        panic!("an object")
    };
    // Not on the curve, and of low order.
    for bytes in [[2; 32], [0; 32]] {
        let key = [&[0xed, 0x01], &bytes[..]].concat();
        let kid = format!("did:aip:a.example:alice#z{}", bs58::encode(key).into_string());
        object.insert("kid", kid);
        let envelope = Envelope::from_json(Json::Object(object.clone())).unwrap();
        assert_eq!(envelope.unknown_key().code, ErrorCode::KeyInvalid);
    }
    assert_eq!(
        seal_draft(draft()).unwrap().unknown_key().code,
        ErrorCode::KeyUnknown
    );
}
