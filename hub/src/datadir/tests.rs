//! Permissions, locks and the files of a data folder.

use std::os::unix::fs::PermissionsExt;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::*;

fn rng() -> StdRng {
    StdRng::from_seed([7; 32])
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_folder_and_its_secrets_are_for_the_owner_alone() {
    let outside = tempfile::tempdir().unwrap();
    let folder = DataDir::create(outside.path().join("data")).unwrap();
    folder.hub_key(&mut rng()).unwrap();
    folder.operator_token(&mut rng()).unwrap();
    assert_eq!(mode(folder.root()), 0o700);
    assert_eq!(mode(&folder.key()), 0o600);
    assert_eq!(mode(&folder.operator_token_file()), 0o600);
}

#[test]
fn the_key_and_the_token_stay_the_same() {
    let outside = tempfile::tempdir().unwrap();
    let folder = DataDir::open(outside.path()).unwrap();
    let mut rng = rng();
    let key = folder.hub_key(&mut rng).unwrap();
    assert_eq!(folder.hub_key(&mut rng).unwrap().public(), key.public());
    let token = folder.operator_token(&mut rng).unwrap();
    assert_eq!(folder.operator_token(&mut rng).unwrap(), token);
    assert_eq!(token.reveal().len(), 64);
}

#[test]
fn a_key_that_others_can_read_is_refused_with_the_command_that_mends_it() {
    let outside = tempfile::tempdir().unwrap();
    let folder = DataDir::open(outside.path()).unwrap();
    folder.hub_key(&mut rng()).unwrap();
    fs::set_permissions(folder.key(), fs::Permissions::from_mode(0o640)).unwrap();
    let error = folder.hub_key(&mut rng()).unwrap_err().to_string();
    assert!(
        error.contains("chmod 600") && error.contains("hub.key"),
        "{error}"
    );
}

#[test]
fn a_damaged_key_is_refused_and_not_replaced() {
    let outside = tempfile::tempdir().unwrap();
    let folder = DataDir::open(outside.path()).unwrap();
    write_private(&folder.key(), "# nothing\n").unwrap();
    assert!(matches!(
        folder.hub_key(&mut rng()),
        Err(DataDirError::KeyInvalid(_))
    ));
    assert_eq!(fs::read_to_string(folder.key()).unwrap(), "# nothing\n");
}

#[test]
fn row_47_a_second_process_is_refused_and_told_who_has_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    let folder = DataDir::open(outside.path()).unwrap();
    let held = folder.lock().unwrap();
    let error = folder.lock().unwrap_err().to_string();
    assert!(
        error.contains("in use") && error.contains(&std::process::id().to_string()),
        "{error}"
    );
    drop(held);
    folder.lock().unwrap();
}

#[test]
fn row_78_an_unfinished_restore_is_recognised() {
    let outside = tempfile::tempdir().unwrap();
    let folder = DataDir::open(outside.path()).unwrap();
    fs::write(folder.restore_marker(), "").unwrap();
    let error = DataDir::open(outside.path()).unwrap_err().to_string();
    assert!(
        error.contains("restore") && error.contains("did not finish"),
        "{error}"
    );
}

#[test]
fn a_folder_that_is_not_there_says_how_to_make_it() {
    let outside = tempfile::tempdir().unwrap();
    let missing = outside.path().join("none");
    assert!(
        DataDir::open(&missing)
            .unwrap_err()
            .to_string()
            .contains("aip-hub init")
    );
    fs::write(&missing, "").unwrap();
    assert!(matches!(
        DataDir::open(&missing),
        Err(DataDirError::NotAFolder(_))
    ));
}

#[test]
fn a_private_file_replaces_nothing() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("file");
    write_private(&path, "first").unwrap();
    assert!(write_private(&path, "second").is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "first");
}

#[test]
fn a_bare_file_name_lies_in_the_working_folder() {
    sync_folder_of(Path::new("hub.key")).unwrap();
}
