//! Pins: what extends them, what forks from them, and what a restart remembers.

use std::time::Duration;

use aip_protocol::identity::{Keys, OperationDraft};

use super::*;
use crate::entropy::Entropy;
use crate::keys::AgentKeys;

fn did() -> Did {
    Did::parse("did:aip:aigentix.org:alice").unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_795_983_330_123)
}

fn genesis(keys: &AgentKeys) -> Operation {
    let lists = Keys {
        signing: vec![keys.signing.public().clone()],
        sealing: vec![keys.sealing[0].public().clone()],
        rotation: vec![keys.rotation.public().clone()],
    };
    OperationDraft::genesis(did(), now(), lists)
        .sign(&keys.rotation)
        .unwrap()
}

/// A history of `length` operations; `branch` tells two of the same agent apart.
fn history(keys: &AgentKeys, length: u64, branch: &str) -> History {
    let mut operations = vec![genesis(keys)];
    for _ in 1..length {
        let identity = Identity::replay(operations.clone()).unwrap();
        let mut draft = identity.next_draft(now());
        draft.profile = Json::from([("name", Json::from(branch))]);
        operations.push(draft.sign(&keys.rotation).unwrap());
    }
    History::replay(&did(), operations).unwrap()
}

#[test]
fn an_identity_is_remembered_for_a_while_and_asked_for_again_after_it() {
    let keys = AgentKeys::generate(did(), &Entropy::system());
    let identities = Identities::new(None);
    identities.admit(&did(), &history(&keys, 1, ""), now()).unwrap();
    let recall = |freshness, after| identities.recall(&did(), freshness, now() + after).is_some();
    assert!(recall(
        Freshness::Remembered,
        IDENTITY_FRESH.checked_sub(Duration::from_millis(1)).unwrap()
    ));
    assert!(!recall(Freshness::Remembered, IDENTITY_FRESH));
    assert!(!recall(Freshness::Asked, Duration::ZERO));
}

#[test]
fn a_stream_of_forgeries_is_not_a_stream_of_requests() {
    let keys = AgentKeys::generate(did(), &Entropy::system());
    let identities = Identities::new(None);
    identities.admit(&did(), &history(&keys, 1, ""), now()).unwrap();
    assert!(
        identities.may_doubt(&did(), now()),
        "the first doubt counts at once"
    );
    identities.admit(&did(), &history(&keys, 1, ""), now()).unwrap();
    assert!(!identities.may_doubt(&did(), now()));
    assert!(identities.may_doubt(&did(), now() + IDENTITY_REFRESH_MIN));
}

#[test]
fn a_longer_history_is_taken_and_a_forked_or_shorter_one_is_not() {
    let keys = AgentKeys::generate(did(), &Entropy::system());
    let folder = tempfile::tempdir().unwrap();
    let identities = Identities::new(Some(folder.path().join("pins")));
    identities.admit(&did(), &history(&keys, 2, "a"), now()).unwrap();
    assert_eq!(
        identities
            .admit(&did(), &history(&keys, 3, "a"), now())
            .unwrap()
            .seq(),
        2
    );
    for other in [
        history(&keys, 3, "b"),
        history(&keys, 1, "a"),
        history(&keys, 4, "b"),
    ] {
        let refused = identities.admit(&did(), &other, now());
        let Err(Error::Forked {
            evidence: Some(evidence),
            ..
        }) = refused
        else {
            panic!("{refused:?}")
        };
        let name = format!("fork-{}.json", other.identity.head_hash());
        let kept = std::fs::read_dir(evidence)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        assert!(
            kept.into_iter()
                .any(|file| file.to_str().unwrap().ends_with(&name))
        );
        assert_eq!(
            identities.pinned(&did()).unwrap().unwrap().seq(),
            2,
            "the pin stays"
        );
    }
}

#[test]
fn pins_outlive_the_process_and_only_repin_replaces_them() {
    let keys = AgentKeys::generate(did(), &Entropy::system());
    let folder = tempfile::tempdir().unwrap();
    let open = || Identities::new(Some(folder.path().join("pins")));
    open().admit(&did(), &history(&keys, 2, "a"), now()).unwrap();
    assert!(matches!(
        open().admit(&did(), &history(&keys, 2, "b"), now()),
        Err(Error::Forked { .. })
    ));
    open().repin(&did(), &history(&keys, 2, "b"), now()).unwrap();
    open().admit(&did(), &history(&keys, 3, "b"), now()).unwrap();
    assert!(matches!(
        open().admit(&did(), &history(&keys, 4, "a"), now()),
        Err(Error::Forked { .. })
    ));
}

#[test]
fn the_history_of_another_agent_is_refused() {
    let keys = AgentKeys::generate(did(), &Entropy::system());
    let other = Did::parse("did:aip:aigentix.org:bob").unwrap();
    assert!(matches!(
        History::replay(&other, vec![genesis(&keys)]),
        Err(Error::Unverified { .. })
    ));
    assert!(matches!(
        History::replay(&did(), Vec::new()),
        Err(Error::Unverified { .. })
    ));
}
