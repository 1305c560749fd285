//! Rules of a history beyond the shared vectors.

use super::*;
use crate::json::Object;
use crate::multikey::{OpeningKey, SigningKey};

const T0: &str = "2026-11-29T20:15:30.000Z";

struct Alice {
    rotation: SigningKey,
    identity: Identity,
}

fn signing(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32])
}

fn after(secs: u64) -> Timestamp {
    Timestamp::parse(T0).unwrap() + Duration::from_secs(secs)
}

impl Alice {
    fn new() -> Self {
        let rotation = signing(200);
        let keys = Keys {
            signing: vec![signing(1).public().clone()],
            sealing: vec![OpeningKey::from_seed([2; 32]).public().clone()],
            rotation: vec![rotation.public().clone()],
        };
        let did = Did::parse("did:aip:localhost%3A8443:alice").unwrap();
        let operation = OperationDraft::genesis(did, after(0), keys)
            .sign(&rotation)
            .unwrap();
        Self {
            rotation,
            identity: Identity::genesis(operation).unwrap(),
        }
    }

    fn try_next(&self, secs: u64, change: impl FnOnce(&mut OperationDraft)) -> Result<Identity, Refusal> {
        let mut draft = self.identity.next_draft(after(secs));
        change(&mut draft);
        self.identity.apply(draft.sign(&self.rotation)?)
    }

    fn next(&mut self, secs: u64, change: impl FnOnce(&mut OperationDraft)) {
        self.identity = self.try_next(secs, change).unwrap();
    }

    fn kid(&self, seed: u8) -> String {
        format!("{}#{}", self.identity.did(), signing(seed).public())
    }

    fn is_good(&self, seed: u8, secs: u64) -> bool {
        self.identity.signing_key(&self.kid(seed), after(secs)).is_some()
    }
}

#[test]
fn a_dropped_key_has_900_seconds_of_grace_to_the_nanosecond() {
    let mut alice = Alice::new();
    alice.next(100, |draft| {
        draft.keys.signing = vec![signing(3).public().clone()];
    });
    assert!(alice.is_good(1, 1_000) && !alice.is_good(1, 1_001));
    let just_over = after(1_000) + Duration::from_nanos(1);
    assert!(alice.identity.signing_key(&alice.kid(1), just_over).is_none());
    assert!(!alice.is_good(3, 99) && alice.is_good(3, 100) && alice.is_good(3, 1_000_000));
    assert!(alice.identity.current_signing(&alice.kid(3)).is_some());
    assert!(alice.identity.current_signing(&alice.kid(1)).is_none());
}

#[test]
fn a_key_may_come_back_unless_it_was_revoked() {
    let mut alice = Alice::new();
    let (first, second) = (signing(1).public().clone(), signing(3).public().clone());
    alice.next(100, |draft| draft.keys.signing = vec![second.clone()]);
    alice.next(2_000, |draft| {
        draft.keys.signing = vec![first.clone(), second.clone()];
    });
    assert!(
        alice.is_good(1, 50)
            && alice.is_good(1, 1_000)
            && !alice.is_good(1, 1_500)
            && alice.is_good(1, 2_000)
    );
    alice.next(3_000, |draft| {
        draft.keys.signing = vec![second];
        draft.revoked = vec![first.to_string()];
    });
    let refusal = alice
        .try_next(4_000, |draft| draft.keys.signing.push(first))
        .unwrap_err();
    assert_eq!(refusal.code, ErrorCode::OperationInvalid);
}

#[test]
fn a_revoked_key_is_never_good_again_at_the_first_hub() {
    let mut alice = Alice::new();
    alice.next(100, |draft| {
        draft.keys.signing = vec![signing(3).public().clone()];
        draft.revoked = vec![signing(1).public().to_string()];
    });
    for secs in [0, 50, 100, 500] {
        assert!(!alice.is_good(1, secs));
    }
    // A later hop lets pass what a first hub accepted before.
    let accepted = |at| {
        alice
            .identity
            .signing_key_accepted(&alice.kid(1), after(50), after(at))
            .is_some()
    };
    assert!(accepted(99) && !accepted(100) && !accepted(101));
}

#[test]
fn revoking_ends_the_grace_of_a_key_dropped_before() {
    let mut alice = Alice::new();
    alice.next(100, |draft| {
        draft.keys.signing = vec![signing(3).public().clone()];
    });
    assert!(alice.is_good(1, 500));
    alice.next(200, |draft| draft.revoked = vec![signing(1).public().to_string()]);
    assert!(!alice.is_good(1, 500));
    // It stays revoked although the next operation does not repeat it.
    alice.next(300, |_| {});
    assert!(!alice.is_good(1, 500));
}

#[test]
fn nothing_follows_a_deactivation() {
    let mut alice = Alice::new();
    alice.next(10, |draft| draft.deactivated = true);
    assert!(alice.identity.is_deactivated());
    assert_eq!(
        alice.try_next(20, |_| {}).unwrap_err().code,
        ErrorCode::AgentDeactivated
    );
}

#[test]
fn an_admitted_history_is_held_together_by_its_hashes() {
    let mut alice = Alice::new();
    let mut history = vec![alice.identity.head().clone()];
    for secs in [10, 20] {
        alice.next(secs, |_| {});
        history.push(alice.identity.head().clone());
    }
    let head = alice.identity.head_hash().to_owned();
    let replay = |operations: &[Operation]| Identity::replay_admitted(operations.to_vec(), &head);
    let replayed = replay(&history).unwrap();
    assert_eq!(replayed.summary(), alice.identity.summary());
    assert_eq!(
        replay(&history[..2]).unwrap_err().code,
        ErrorCode::HistoryConflict
    );
    assert_eq!(
        replay(&history[1..]).unwrap_err().code,
        ErrorCode::HistoryConflict
    );
    assert!(replay(&[]).is_err());
    for index in 0..3 {
        // Of good form, and of another content: its hash is another one too.
        let Json::Object(mut object) = history[index].json.clone() else {
            panic!("an object")
        };
        object.insert("x-note", "slipped in");
        let mut changed = history.clone();
        changed[index] = Operation::from_json(Json::Object(object), EndpointPolicy::default()).unwrap();
        assert_eq!(
            replay(&changed).unwrap_err().code,
            ErrorCode::HistoryConflict,
            "{index}"
        );
    }
    let stranger = history[2].clone().json;
    let Json::Object(mut object) = stranger else {
        panic!("an object")
    };
    object.insert("kid", format!("{}#{}", alice.identity.did(), signing(7).public()));
    history[2] = Operation::from_json(Json::Object(object), EndpointPolicy::default()).unwrap();
    assert_eq!(
        replay(&history).unwrap_err().code,
        ErrorCode::RotationKeyUnknown,
        "who may sign is checked all the same"
    );
}

#[test]
fn a_conflict_names_the_head() {
    let mut alice = Alice::new();
    let late = alice.identity.next_draft(after(5)).sign(&alice.rotation).unwrap();
    alice.next(1, |_| {});
    let refusal = alice.identity.apply(late).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::HistoryConflict);
    assert_eq!(
        refusal.members,
        [("head", alice.identity.head_hash().into()), ("seq", 1.into())]
    );
}

#[test]
fn a_draft_keeps_to_the_time_of_the_head_even_below_a_millisecond() {
    let alice = Alice::new();
    let mut draft = alice.identity.next_draft(after(1));
    draft.extra = Object::from([("x-note", Json::from("kept"))]);
    let mut json = draft.sign(&alice.rotation).unwrap().json.without(&["sig"]);
    let Json::Object(object) = &mut json else {
        panic!("an object")
    };
    object.insert("created_at", "2026-11-29T20:15:31.0000001Z");
    let unsigned = Json::Object(object.clone());
    let sig = crate::signature::sign(&alice.rotation, crate::signature::Tag::Identity, &unsigned);
    object.insert("sig", sig.to_string());
    let operation = Operation::from_json(json, EndpointPolicy::default()).unwrap();
    let identity = alice.identity.apply(operation).unwrap();
    let next = identity.next_draft(after(0)).sign(&alice.rotation).unwrap();
    assert_eq!(next.created_at.to_string(), "2026-11-29T20:15:31.001Z");
    assert!(identity.apply(next).is_ok());
}

#[test]
fn an_operation_is_admitted_within_300_seconds_of_the_clock() {
    let alice = Alice::new();
    let operation = alice.identity.head();
    for secs in [0, 300] {
        assert!(operation.check_clock(after(secs)).is_ok());
        assert!(
            operation
                .check_clock(after(0) - Duration::from_secs(secs))
                .is_ok()
        );
    }
    let too_late = operation
        .check_clock(after(300) + Duration::from_millis(1))
        .unwrap_err();
    assert_eq!(too_late.code, ErrorCode::CreatedAtOutOfWindow);
    assert!(
        operation
            .check_clock(after(0) - Duration::from_millis(300_001))
            .is_err()
    );
}

#[test]
fn row_05_a_kid_with_a_port_is_found_as_it_is_written() {
    let alice = Alice::new();
    let kid = &alice.identity.head().kid;
    assert!(kid.starts_with("did:aip:localhost%3A8443:alice#z6Mk"));
    assert!(alice.is_good(1, 0));
    assert!(
        alice
            .identity
            .signing_key(&alice.kid(1).replace("%3A", ":"), after(0))
            .is_none()
    );
    assert!(
        alice
            .identity
            .signing_key(alice.identity.did().as_str(), after(0))
            .is_none()
    );
}

#[test]
fn row_13_keys_of_the_two_kinds_are_never_taken_for_each_other() {
    let alice = Alice::new();
    let head = alice.identity.head();
    let document = crate::document::did_document(head, "https://hub.example");
    let ids = |name: &str| {
        document.get(name).unwrap().as_array().unwrap()[0]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(ids("authentication"), alice.kid(1));
    assert_eq!(ids("assertionMethod"), alice.kid(1));
    assert_eq!(
        ids("keyAgreement"),
        format!("{}#{}", head.did, head.keys.sealing[0])
    );
    assert!(
        alice
            .identity
            .signing_key(&ids("keyAgreement"), after(0))
            .is_none()
    );
}

#[test]
fn bad_drafts_are_refused_where_they_are_made() {
    let alice = Alice::new();
    let refused = |change: fn(&mut OperationDraft)| alice.try_next(1, change).unwrap_err().code;
    assert_eq!(
        refused(|draft| draft.keys.signing.clear()),
        ErrorCode::MemberInvalid
    );
    assert_eq!(
        refused(|draft| draft.profile = Json::Null),
        ErrorCode::MemberInvalid
    );
    assert_eq!(
        refused(|draft| draft.route_mode = RouteMode::Direct),
        ErrorCode::MemberInvalid
    );
    assert_eq!(
        refused(|draft| draft.revoked = vec!["z6Mk".to_owned()]),
        ErrorCode::KeyInvalid
    );
    assert_eq!(
        refused(|draft| draft.profile = Json::from([("x", "y".repeat(17_000).into())])),
        ErrorCode::BodyTooLarge
    );
    let other_key = alice.identity.next_draft(after(1)).sign(&signing(1)).unwrap();
    assert_eq!(
        alice.identity.apply(other_key).unwrap_err().code,
        ErrorCode::RotationKeyUnknown
    );
}
