//! The pure checks, each with its edges.

use aip_protocol::envelope::{EnvelopeDraft, new_id};
use aip_protocol::identity::{Keys, OperationDraft};
use aip_protocol::json::Json;
use aip_protocol::multikey::{OpeningKey, SigningKey};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

const NOW_MS: i64 = 1_796_000_000_000;
const BYTES_MAX: usize = 4096;

fn now() -> Timestamp {
    Timestamp::from_unix_millis(NOW_MS)
}

fn did(text: &str) -> Did {
    Did::parse(text).unwrap()
}

fn domain() -> Domain {
    Domain::parse("hub.example").unwrap()
}

/// An envelope from alice to bob, made so many milliseconds from now, sealed for a key of nobody.
fn envelope_at(from: &str, to: &str, offset_ms: i64, expires_in_ms: Option<i64>) -> Envelope {
    let mut rng = StdRng::seed_from_u64(1);
    let created_at = Timestamp::from_unix_millis(NOW_MS + offset_ms);
    let mut draft = EnvelopeDraft::new(new_id(&mut rng), did(from), did(to), "aip.message", created_at);
    draft.expires_at = expires_in_ms.map(|millis| Timestamp::from_unix_millis(NOW_MS + millis));
    let signing = SigningKey::from_seed([7; 32]);
    draft
        .seal(&signing, OpeningKey::from_seed([8; 32]).public(), b"{}", &mut rng)
        .unwrap()
}

fn envelope() -> Envelope {
    envelope_at("did:aip:hub.example:alice", "did:aip:hub.example:bob", 0, None)
}

fn inspect_wire(wire: &[u8], door: &Door) -> Result<Candidate, ErrorCode> {
    let wire = Bytes::copy_from_slice(wire);
    inspect(&wire, door, &domain(), BYTES_MAX, now()).map_err(|refusal| refusal.code)
}

#[test]
fn row_83_the_size_counts_white_space_and_ends_exactly_at_the_limit() {
    let mut wire = envelope().to_wire();
    wire.resize(BYTES_MAX, b' ');
    let candidate = inspect_wire(&wire, &Door::Home).unwrap();
    assert_eq!(candidate.wire, envelope().to_wire());
    wire.push(b' ');
    assert_eq!(
        inspect_wire(&wire, &Door::Home).unwrap_err(),
        ErrorCode::EnvelopeTooLarge
    );
}

#[test]
fn only_white_space_around_is_taken_off() {
    let text = "{\"b\" : [ 1 ] , \"a\":\"  é \"}";
    for (before, after) in [("", ""), (" \n", "\r\n\t "), ("", "  "), ("\t", "")] {
        let wire = Bytes::from(format!("{before}{text}{after}"));
        assert_eq!(trimmed(&wire), text);
    }
    assert_eq!(trimmed(&Bytes::new()), "");
    assert_eq!(trimmed(&Bytes::from_static(b" \n ")), "");
    // No other space is JSON's.
    assert_eq!(
        trimmed(&Bytes::from_static(b"\x0b{}\xc2\xa0")),
        &b"\x0b{}\xc2\xa0"[..]
    );
}

#[test]
fn row_23_the_window_ends_exactly_at_300_s_ahead_and_900_s_behind() {
    let window = |offset_ms| {
        let envelope = envelope_at(
            "did:aip:hub.example:alice",
            "did:aip:hub.example:bob",
            offset_ms,
            None,
        );
        inspect_wire(&envelope.to_wire(), &Door::Home).map(|candidate| candidate.remember_until)
    };
    // t - c = -300 s .. 900 s, both ends included; c = t - offset.
    assert_eq!(window(300_000).unwrap().unix_millis(), NOW_MS + 1_200_000);
    assert_eq!(window(300_001).unwrap_err(), ErrorCode::CreatedAtOutOfWindow);
    assert_eq!(window(-900_000).unwrap().unix_millis(), NOW_MS);
    assert_eq!(window(-900_001).unwrap_err(), ErrorCode::CreatedAtOutOfWindow);
    for offset_secs in [-299, 299, -301] {
        assert!(window(offset_secs * 1000).is_ok(), "{offset_secs}");
    }
    assert_eq!(window(301_000).unwrap_err(), ErrorCode::CreatedAtOutOfWindow);
}

#[test]
fn row_24_a_refusal_for_time_names_both_clocks() {
    let envelope = envelope_at(
        "did:aip:hub.example:alice",
        "did:aip:hub.example:bob",
        -600_000 - 300_001,
        None,
    );
    let wire = Bytes::from(envelope.to_wire());
    let refusal = inspect(&wire, &Door::Home, &domain(), BYTES_MAX, now()).unwrap_err();
    assert!(
        refusal.detail.contains(&envelope.created_at.to_string()),
        "{}",
        refusal.detail
    );
    assert!(refusal.detail.contains(&now().to_string()), "{}", refusal.detail);
}

#[test]
fn an_expired_envelope_is_refused() {
    let expiring = |expires_in_ms| {
        let (from, to) = ("did:aip:hub.example:alice", "did:aip:hub.example:bob");
        let envelope = envelope_at(from, to, -60_000, Some(expires_in_ms));
        inspect_wire(&envelope.to_wire(), &Door::Home).map(|_| ())
    };
    assert_eq!(expiring(-1), Err(ErrorCode::Expired));
    assert_eq!(expiring(1), Ok(()));
}

#[test]
fn each_door_lets_in_its_own() {
    let (alice, bob, far) = (
        "did:aip:hub.example:alice",
        "did:aip:hub.example:bob",
        "did:aip:far.example:alice",
    );
    let relay = |name: &str| Door::Relay(Name::parse(name).unwrap());
    for (from, to, door, expected) in [
        (alice, bob, Door::Home, Ok(())),
        (alice, far, Door::Home, Ok(())),
        (far, bob, Door::Home, Err(ErrorCode::SenderNotLocal)),
        (alice, bob, relay("bob"), Ok(())),
        (far, bob, relay("bob"), Ok(())),
        (alice, bob, relay("carol"), Err(ErrorCode::RecipientMismatch)),
        // The right name at another domain is another agent.
        (bob, far, relay("alice"), Err(ErrorCode::RecipientMismatch)),
        (alice, bob, Door::Socket(did(alice)), Ok(())),
        (alice, bob, Door::Socket(did(bob)), Err(ErrorCode::NotYours)),
        (far, bob, Door::Socket(did(alice)), Err(ErrorCode::NotYours)),
    ] {
        let wire = envelope_at(from, to, 0, None).to_wire();
        assert_eq!(
            inspect_wire(&wire, &door).map(|_| ()),
            expected,
            "{from} {to} {door:?}"
        );
    }
}

fn agent(signing: &SigningKey) -> LocalAgent {
    let rotation = SigningKey::from_seed([9; 32]);
    let keys = Keys {
        signing: vec![signing.public().clone()],
        sealing: vec![OpeningKey::from_seed([8; 32]).public().clone()],
        rotation: vec![rotation.public().clone()],
    };
    let created_at = Timestamp::from_unix_millis(NOW_MS - 86_400_000);
    let draft = OperationDraft::genesis(did("did:aip:hub.example:alice"), created_at, keys);
    let identity = Identity::genesis(draft.sign(&rotation).unwrap()).unwrap();
    LocalAgent {
        identity,
        suspended: false,
        quota: None,
    }
}

fn deactivated(agent: &LocalAgent) -> LocalAgent {
    let mut draft = agent
        .identity
        .next_draft(Timestamp::from_unix_millis(NOW_MS - 1_000));
    draft.deactivated = true;
    let operation = draft.sign(&SigningKey::from_seed([9; 32])).unwrap();
    LocalAgent {
        identity: agent.identity.apply(operation).unwrap(),
        ..agent.clone()
    }
}

#[test]
fn the_sender_is_judged_before_its_signature() {
    let envelope = envelope();
    let known = agent(&SigningKey::from_seed([7; 32]));
    let code = |sender: Option<&LocalAgent>| {
        check_sender(&envelope, sender)
            .map(|_| ())
            .map_err(|refusal| refusal.code)
    };
    assert_eq!(code(None), Err(ErrorCode::SenderUnknown));
    assert_eq!(code(Some(&known)), Ok(()));
    assert_eq!(
        code(Some(&LocalAgent {
            suspended: true,
            ..known.clone()
        })),
        Err(ErrorCode::SenderBlocked)
    );
    assert_eq!(
        code(Some(&deactivated(&known))),
        Err(ErrorCode::SenderDeactivated)
    );
    assert_eq!(
        code(Some(&agent(&SigningKey::from_seed([1; 32])))),
        Err(ErrorCode::KeyUnknown)
    );
}

#[test]
fn a_key_is_judged_at_created_at() {
    let known = agent(&SigningKey::from_seed([7; 32]));
    let mut draft = known
        .identity
        .next_draft(Timestamp::from_unix_millis(NOW_MS - 1_200_000));
    draft.keys.signing = vec![SigningKey::from_seed([1; 32]).public().clone()];
    let operation = draft.sign(&SigningKey::from_seed([9; 32])).unwrap();
    let rotated = LocalAgent {
        identity: known.identity.apply(operation).unwrap(),
        ..known
    };
    let code = |offset_ms| {
        let envelope = envelope_at(
            "did:aip:hub.example:alice",
            "did:aip:hub.example:bob",
            offset_ms,
            None,
        );
        check_sender(&envelope, Some(&rotated))
            .map(|_| ())
            .map_err(|refusal| refusal.code)
    };
    // Dropped 1,200 s ago; good for 900 s after that.
    assert_eq!(code(-301_000), Ok(()));
    assert_eq!(code(-299_000), Err(ErrorCode::KeyUnknown));
}

#[test]
fn a_changed_envelope_does_not_verify() {
    let signing = SigningKey::from_seed([7; 32]);
    let envelope = envelope();
    assert_eq!(check_signature(&envelope, signing.public()), Ok(()));
    let mut changed = envelope.json.as_object().unwrap().clone();
    changed.insert("x-hop", 1);
    let changed = Envelope::from_json(Json::Object(changed)).unwrap();
    assert_eq!(
        check_signature(&changed, signing.public()).unwrap_err().code,
        ErrorCode::SignatureInvalid
    );
    let other = SigningKey::from_seed([1; 32]);
    assert_eq!(
        check_signature(&envelope, other.public()).unwrap_err().code,
        ErrorCode::SignatureInvalid
    );
}

#[test]
fn the_recipient_exists_and_is_not_deactivated() {
    let bob = agent(&SigningKey::from_seed([7; 32]));
    assert!(check_recipient(Some(&bob)).is_ok());
    assert!(
        check_recipient(Some(&LocalAgent {
            suspended: true,
            ..bob.clone()
        }))
        .is_ok()
    );
    assert_eq!(
        check_recipient(None).unwrap_err().code,
        ErrorCode::RecipientUnknown
    );
    assert_eq!(
        check_recipient(Some(&deactivated(&bob))).unwrap_err().code,
        ErrorCode::RecipientDeactivated
    );
}

#[test]
fn the_blocklist_holds_agents_and_domains() {
    let list = Blocklist::parse(["did:aip:HUB.example:eve", "mallory#hub.example", "bad.example"]).unwrap();
    for (sender, blocked) in [
        ("did:aip:hub.example:eve", true),
        ("did:aip:hub.example:mallory", true),
        ("did:aip:bad.example:anyone", true),
        ("did:aip:hub.example:alice", false),
        ("did:aip:sub.bad.example:anyone", false),
        ("did:aip:other.example:eve", false),
    ] {
        assert_eq!(list.check(&did(sender)).is_err(), blocked, "{sender}");
    }
    assert!(Blocklist::parse(["not a domain"]).is_err());
    assert!(
        Blocklist::default()
            .check(&did("did:aip:hub.example:eve"))
            .is_ok()
    );
}

#[test]
fn the_earlier_of_expiry_and_retention_counts() {
    let offered = |expires_in_ms| {
        let (from, to) = ("did:aip:hub.example:alice", "did:aip:hub.example:bob");
        let envelope = envelope_at(from, to, 0, expires_in_ms);
        offered_until(&envelope, now(), Duration::from_secs(100)).unix_millis() - NOW_MS
    };
    assert_eq!(offered(None), 100_000);
    assert_eq!(offered(Some(99_999)), 99_999);
    assert_eq!(offered(Some(100_001)), 100_000);
}

#[test]
fn rows_21_and_22_what_would_not_verify_elsewhere_is_refused_here() {
    let text = String::from_utf8(envelope().to_wire()).unwrap();
    let body = text.strip_suffix('}').unwrap();
    for member in [
        "1.5",
        "1e400",
        "1.0",
        "-0",
        "9007199254740993",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
    ] {
        let wire = format!("{body},\"x\":{member}}}");
        assert_eq!(
            inspect_wire(wire.as_bytes(), &Door::Home).unwrap_err(),
            ErrorCode::JsonInvalid,
            "{member}"
        );
    }
    // NUL and odd but whole escapes are text like any other.
    for member in [
        "\"\\u0000\"",
        "\"\\ud83d\\ude00\"",
        "\"\\u2028\"",
        "9007199254740991",
    ] {
        let wire = format!("{body},\"x\":{member}}}");
        assert!(inspect_wire(wire.as_bytes(), &Door::Home).is_ok(), "{member}");
    }
}

proptest! {
    #[test]
    fn hostile_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(inspect_wire(&bytes, &Door::Home).is_err());
    }

    #[test]
    fn a_damaged_envelope_never_panics(at in 0_usize..900, byte in any::<u8>(), cut in any::<bool>()) {
        let mut wire = envelope().to_wire();
        let at = at % wire.len();
        if cut {
            wire.truncate(at);
        } else {
            wire[at] = byte;
        }
        for door in [Door::Home, Door::Relay(Name::parse("bob").unwrap())] {
            // Either verdict is fine; what counts is that there is one.
            let _verdict = inspect_wire(&wire, &door);
        }
    }
}
