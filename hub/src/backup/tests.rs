//! Backups of plain files: complete or refused, restored wholly or recognised as unfinished.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

struct World {
    outside: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self {
            outside: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(world.at("data")).unwrap();
        fs::write(world.at("data").join("hub.key"), "secret").unwrap();
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.outside.path().join(name)
    }

    fn backup(&self) -> Manifest {
        let backup = begin(&self.at("backup")).unwrap();
        fs::write(backup.registry(), "names").unwrap();
        fs::create_dir(backup.store()).unwrap();
        fs::write(backup.store().join("000001.log"), vec![7; 100_000]).unwrap();
        let now = Timestamp::parse("2026-11-29T20:15:30Z").unwrap();
        finish(
            &DataDir::at(self.at("data")).key(),
            &backup,
            "example.org",
            "epoch1",
            now,
        )
        .unwrap()
    }

    fn restore(&self, to: &str) -> Result<Manifest, BackupError> {
        restore(&self.at("backup"), &DataDir::at(self.at(to)), |backup, folder| {
            fs::create_dir(folder.store()).unwrap();
            fs::copy(
                backup.store().join("000001.log"),
                folder.store().join("renewed.log"),
            )
            .unwrap();
            Ok(())
        })
    }
}

#[test]
fn a_backup_lists_every_file_with_its_digest() {
    let world = World::new();
    let manifest = world.backup();
    assert_eq!(
        manifest.files.keys().collect::<Vec<_>>(),
        ["hub.key", "registry.sqlite", "store/000001.log"]
    );
    let names = &manifest.files["registry.sqlite"];
    assert_eq!(names.bytes, 5);
    // printf names | sha256sum
    assert_eq!(
        names.sha256,
        "aeb24056810d3d1f1e8afee61a0bc0028556eb0fb49a215ae5eb1b970cad0315"
    );
    assert_eq!(Manifest::verify(&world.at("backup")).unwrap(), manifest);
    assert_eq!(
        fs::metadata(world.at("backup")).unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[test]
fn a_changed_missing_or_added_file_is_noticed() {
    let world = World::new();
    world.backup();
    let file = world.at("backup").join("store/000001.log");
    fs::write(&file, vec![8; 100_000]).unwrap();
    assert!(matches!(
        Manifest::verify(&world.at("backup")),
        Err(BackupError::Differs(_))
    ));
    fs::remove_file(&file).unwrap();
    assert!(matches!(
        Manifest::verify(&world.at("backup")),
        Err(BackupError::Missing(_))
    ));
    fs::write(&file, vec![7; 100_000]).unwrap();
    Manifest::verify(&world.at("backup")).unwrap();
    std::os::unix::fs::symlink("/", world.at("backup").join("link")).unwrap();
    assert!(matches!(
        Manifest::verify(&world.at("backup")),
        Err(BackupError::Unlisted(_))
    ));
}

#[test]
fn a_folder_without_a_manifest_is_no_backup() {
    let world = World::new();
    world.backup();
    fs::remove_file(world.at("backup").join(MANIFEST)).unwrap();
    assert!(matches!(world.restore("new"), Err(BackupError::NoBackup(_))));
    assert!(!world.at("new").exists());
}

#[test]
fn a_restore_gives_the_same_files_and_leaves_no_marker() {
    let world = World::new();
    let manifest = world.backup();
    assert_eq!(world.restore("new").unwrap(), manifest);
    let folder = DataDir::open(world.at("new")).unwrap();
    assert_eq!(fs::read_to_string(folder.key()).unwrap(), "secret");
    assert_eq!(
        fs::metadata(folder.key()).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let mailboxes: Vec<_> = fs::read_dir(folder.store())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(mailboxes, ["renewed.log"], "the mailboxes are theirs to restore");
}

#[test]
fn row_78_a_restore_is_all_or_nothing() {
    let world = World::new();
    world.backup();
    let folder = DataDir::at(world.at("new"));
    let killed = restore(&world.at("backup"), &folder, |_, _| {
        Err(BackupError::Missing("killed".into()))
    });
    assert!(killed.is_err());
    let refused = DataDir::open(world.at("new")).unwrap_err().to_string();
    assert!(refused.contains("did not finish"), "{refused}");
    fs::write(folder.root().join("half.sst"), "left over").unwrap();
    world.restore("new").unwrap();
    assert!(!folder.root().join("half.sst").exists());
    DataDir::open(world.at("new")).unwrap();
}

#[test]
fn a_restore_does_not_touch_a_folder_that_holds_something() {
    let world = World::new();
    world.backup();
    let refused = world.restore("data").unwrap_err().to_string();
    assert!(
        refused.contains("not empty") && refused.contains("hub.key"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(world.at("data/hub.key")).unwrap(), "secret");
}

#[test]
fn a_restore_leaves_a_folder_in_use_alone() {
    let world = World::new();
    world.backup();
    let folder = DataDir::create(world.at("new")).unwrap();
    let _running = folder.lock().unwrap();
    assert!(world.restore("new").unwrap_err().to_string().contains("in use"));
}

#[test]
fn a_backup_goes_into_a_new_folder_only() {
    let world = World::new();
    world.backup();
    assert!(matches!(
        begin(&world.at("backup")),
        Err(BackupError::NotEmpty { .. })
    ));
}

#[test]
fn the_key_that_vouches_for_the_hubs_is_in_the_backup_too() {
    let world = World::new();
    let previous = |folder: &str| hub_key::previous_file(&DataDir::at(world.at(folder)).key());
    fs::write(previous("data"), "former").unwrap();
    let manifest = world.backup();
    assert!(manifest.files.contains_key("hub.key.previous"), "{manifest:?}");
    world.restore("restored").unwrap();
    assert_eq!(fs::read_to_string(previous("restored")).unwrap(), "former");
    let mode = fs::metadata(previous("restored")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
