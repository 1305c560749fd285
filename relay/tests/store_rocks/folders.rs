//! The folder: who may open it, and how it is copied and restored.

use std::fs;
use std::path::Path;

use aip_relay::mailbox::rocks::{OpenError, RocksMailboxes};
use aip_relay::mailbox::suite::{bob, duplicate, stored};
use aip_relay::mailbox::{Epoch, Mailboxes, Upkeep};

use crate::ground::{Ground, copy, mail, open, pending, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_47_a_second_store_on_the_folder_is_refused() {
    let ground = Ground::new();
    let first = ground.open();
    let refused = open(&ground.path(), &ground.disk).unwrap_err();
    assert!(matches!(&refused, OpenError::Locked { dir } if *dir == ground.path()));
    let sentence = refused.to_string();
    assert!(
        sentence.contains(&ground.path().display().to_string()) && sentence.contains("in use"),
        "{sentence}"
    );
    assert_eq!(
        first.append(mail(1)).await.unwrap(),
        stored(1),
        "the first is unharmed"
    );
    drop(first);
    assert_eq!(pending(&ground.open()).await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_77_remnants_are_not_opened_as_an_empty_store() {
    let ground = Ground::new();
    ground.open().append(mail(1)).await.unwrap();
    let current = ground.path().join("db/CURRENT");
    let kept = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    let names = |dir: &Path| {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = names(&ground.path().join("db"));
    let refused = open(&ground.path(), &ground.disk).unwrap_err();
    assert!(matches!(refused, OpenError::Remnants { .. }));
    assert!(refused.to_string().contains("CURRENT"), "{refused}");
    assert_eq!(names(&ground.path().join("db")), before, "nothing was purged");
    fs::write(&current, kept).unwrap();
    assert_eq!(pending(&ground.open()).await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_is_restored_under_a_new_epoch() {
    let ground = Ground::new();
    let store = ground.open();
    for n in 1..=3 {
        store.append(mail(n)).await.unwrap();
    }
    store.ack(&bob(), 1, &[], start()).await.unwrap();
    let backup = ground.dir.path().join("backup");
    store.checkpoint(&backup).await.unwrap();
    assert!(store.checkpoint(&backup).await.is_err(), "not over another one");
    store.append(mail(4)).await.unwrap();

    let other = ground.dir.path().join("other");
    let epoch = Epoch::from_random(2);
    RocksMailboxes::restore(&backup, &other, &epoch).unwrap();
    let restored = open(&other, &ground.disk).unwrap();
    assert_eq!(restored.epoch(), epoch);
    assert_ne!(restored.epoch(), store.epoch());
    assert_eq!(pending(&restored).await, [2, 3]);
    assert_eq!(restored.append(mail(2)).await.unwrap(), duplicate(2));
    assert_eq!(
        restored.append(mail(4)).await.unwrap(),
        stored(4),
        "it came after the backup"
    );
    drop(restored);
    let again = RocksMailboxes::restore(&backup, &other, &epoch).unwrap_err();
    assert!(matches!(again, OpenError::Occupied { .. }));
    assert_eq!(
        pending(&store).await,
        [2, 3, 4],
        "the one that was copied goes on"
    );
}

/// Whatever interrupts a restore, there is a whole store or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_78_an_interrupted_restore_is_no_empty_store() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    let backup = ground.dir.path().join("backup");
    store.checkpoint(&backup).await.unwrap();
    let other = ground.dir.path().join("other");
    // As a kill in the middle leaves it.
    copy(&backup, &other.join("db.restoring"));
    fs::remove_file(other.join("db.restoring/CURRENT")).unwrap();
    let refused = open(&other, &ground.disk).unwrap_err();
    assert!(matches!(refused, OpenError::RestoreInterrupted { .. }));
    RocksMailboxes::restore(&backup, &other, &Epoch::from_random(2)).unwrap();
    assert_eq!(pending(&open(&other, &ground.disk).unwrap()).await, [1]);
    let nothing = ground.dir.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    assert!(
        RocksMailboxes::restore(&nothing, &ground.dir.path().join("third"), &Epoch::from_random(3)).is_err()
    );
}

/// Killed while it made its first files: the next start makes them anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_78_an_interrupted_creation_is_repeated() {
    let ground = Ground::new();
    fs::create_dir_all(ground.path().join("db.creating")).unwrap();
    fs::write(ground.path().join("db.creating/MANIFEST-000001"), b"half").unwrap();
    fs::create_dir_all(ground.path().join("db")).unwrap();
    assert_eq!(ground.open().append(mail(1)).await.unwrap(), stored(1));
    assert!(!ground.path().join("db.creating").exists());
}
