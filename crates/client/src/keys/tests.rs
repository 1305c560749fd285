//! Key files: permissions, passphrases, crashes, and that nothing prints a secret.

use std::fs;

use aip_protocol::identity::{Keys, OperationDraft};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::*;

const CHEAP: KdfCost = KdfCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};

fn did() -> Did {
    Did::parse("did:aip:localhost%3A8080:alice").unwrap()
}

fn keys() -> AgentKeys {
    AgentKeys::generate(did(), &Entropy::system()).at_hub("http://localhost:8080")
}

fn secrets(keys: &AgentKeys) -> Vec<[u8; 32]> {
    let opening = keys.sealing.iter().map(|key| *key.seed());
    [*keys.signing.seed(), *keys.rotation.seed()]
        .into_iter()
        .chain(opening)
        .collect()
}

#[test]
fn comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let entropy = Entropy::system();
    for file in [
        KeyFile::at(folder.path().join("plain")),
        KeyFile::at(folder.path().join("sealed"))
            .with_passphrase("open sesame")
            .with_cost(CHEAP),
    ] {
        let mut keys = keys();
        file.create(&keys, &entropy).unwrap();
        keys.sealing.insert(0, new_opening(&entropy));
        file.save(&keys, &entropy).unwrap();
        let back = file.load().unwrap();
        assert_eq!(secrets(&back), secrets(&keys));
        assert_eq!((back.did(), back.hub()), (keys.did(), keys.hub()));
    }
}

#[test]
fn an_existing_file_is_never_overwritten_by_create() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"));
    let first = keys();
    file.create(&first, &Entropy::system()).unwrap();
    assert!(matches!(
        file.create(&keys(), &Entropy::system()),
        Err(KeyFileError::Exists(_))
    ));
    assert_eq!(secrets(&file.load().unwrap()), secrets(&first));
}

#[cfg(unix)]
#[test]
fn a_file_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"));
    file.create(&keys(), &Entropy::system()).unwrap();
    assert_eq!(
        fs::metadata(file.path()).unwrap().permissions().mode() & 0o777,
        0o600
    );
    for mode in [0o640, 0o604, 0o660, 0o644] {
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        let refused = file.load().unwrap_err();
        assert!(
            matches!(refused, KeyFileError::Permissions { mode: found, .. } if found == mode),
            "{refused}"
        );
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
    }
}

#[test]
fn a_missing_file_says_what_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let refused = KeyFile::at(folder.path().join("none")).load().unwrap_err();
    assert!(refused.to_string().ends_with("run `aip register`"), "{refused}");
}

#[test]
fn a_sealed_file_needs_its_passphrase_and_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    let file = KeyFile::at(&path).with_passphrase("right").with_cost(CHEAP);
    file.create(&keys(), &Entropy::system()).unwrap();
    assert!(matches!(
        KeyFile::at(&path).load(),
        Err(KeyFileError::PassphraseNeeded(_))
    ));
    let wrong = KeyFile::at(&path).with_passphrase("wrong").load();
    assert!(matches!(wrong, Err(KeyFileError::PassphraseWrong(_))));
    assert!(KeyFile::at(&path).is_sealed().unwrap());
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        !text.contains("\"secrets\"") && text.contains("argon2id"),
        "{text}"
    );
}

#[test]
fn a_sealed_file_cannot_be_moved_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"))
        .with_passphrase("p")
        .with_cost(CHEAP);
    file.create(&keys(), &Entropy::system()).unwrap();
    let text = fs::read_to_string(file.path()).unwrap();
    fs::write(file.path(), text.replace(":alice", ":mallory")).unwrap();
    assert!(matches!(file.load(), Err(KeyFileError::PassphraseWrong(_))));
}

#[test]
fn a_file_may_not_ask_for_all_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"))
        .with_passphrase("p")
        .with_cost(CHEAP);
    file.create(&keys(), &Entropy::system()).unwrap();
    let text = fs::read_to_string(file.path()).unwrap();
    fs::write(
        file.path(),
        text.replace("\"memory_kib\": 64", "\"memory_kib\": 4000000000"),
    )
    .unwrap();
    assert!(matches!(file.load(), Err(KeyFileError::PassphraseWrong(_))));
}

#[test]
fn what_is_wrong_is_said_without_quoting_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"));
    let keys = keys();
    file.create(&keys, &Entropy::system()).unwrap();
    let text = fs::read_to_string(file.path()).unwrap();
    let secret = text.split('"').find(|part| part.len() == 43).unwrap().to_owned();
    fs::write(file.path(), text.replace(&secret, &format!("{secret}AAAA"))).unwrap();
    let refused = format!("{:?} {0}", file.load().unwrap_err());
    assert!(!refused.contains(&secret), "{refused}");
}

#[test]
fn debug_shows_public_halves_only() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let keys = keys();
    let shown = format!("{keys:?} {:?}", KeyFile::at("k").with_passphrase("open sesame"));
    assert!(!shown.contains("sesame"), "{shown}");
    for secret in secrets(&keys) {
        assert!(!shown.contains(&format!("{secret:?}")) && !shown.contains(&URL_SAFE_NO_PAD.encode(secret)));
    }
}

/// A change of the identity that replaces every key.
fn begin_change(keys: &mut AgentKeys, entropy: &Entropy) {
    let fresh = FreshKeys {
        signing: new_signing(entropy),
        opening: new_opening(entropy),
        rotation: new_signing(entropy),
    };
    let lists = Keys {
        signing: vec![fresh.signing.public().clone()],
        sealing: vec![fresh.opening.public().clone()],
        rotation: vec![fresh.rotation.public().clone()],
    };
    let draft = OperationDraft::genesis(did(), Timestamp::UNIX_EPOCH, lists);
    let operation = draft.sign(&fresh.rotation).unwrap();
    keys.pending = Some(Pending { operation, fresh });
}

#[test]
fn a_change_under_way_survives_in_the_file_and_opens_already() {
    let folder = tempfile::tempdir().unwrap();
    let (file, entropy) = (KeyFile::at(folder.path().join("k")), Entropy::system());
    let mut keys = keys();
    begin_change(&mut keys, &entropy);
    file.create(&keys, &entropy).unwrap();
    let mut back = file.load().unwrap();
    assert!(back.has_unfinished_change());
    let fresh = back.opening().next().unwrap().public().clone();
    assert!(back.opener(&format!("{}#{fresh}", did())).is_some());
    assert_eq!(
        back.kid(),
        keys.kid(),
        "it signs with the old key until the change is confirmed"
    );
    back.settle();
    assert_eq!(back.sealing[0].public(), &fresh);
    assert_ne!(back.kid(), keys.kid());
    keys.abandon();
    assert_eq!(keys.opening().count(), 1);
}

#[test]
fn a_settled_change_keeps_the_old_opening_keys_up_to_a_bound() {
    let (entropy, mut keys) = (Entropy::system(), keys());
    let first = keys.sealing[0].public().clone();
    for changes in 1..SEALING_KEYS_KEPT_MAX + 3 {
        begin_change(&mut keys, &entropy);
        keys.settle();
        assert_eq!(keys.sealing.len(), (changes + 1).min(SEALING_KEYS_KEPT_MAX));
    }
    assert!(
        keys.sealing.iter().all(|key| *key.public() != first),
        "the oldest goes in the end"
    );
}
