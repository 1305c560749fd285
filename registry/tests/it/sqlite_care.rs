//! The file of a database: backups while writing, and what a thief of it finds.

use std::sync::Arc;

use aip_federation::peers::ReceivedStore;
use aip_protocol::error::ErrorCode;
use aip_protocol::peer::Known;
use aip_registry::testsuite::fixtures::{invite, name, newcomer, token};
use aip_registry::testsuite::peer_windows::{refused, stored};
use aip_registry::testsuite::peers::domain;
use aip_registry::{Directory, Grants, SqlStore};
use sqlx::{Connection, Row};

use crate::kit;
use crate::sqlite::stranger;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_whole_while_writing_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(kit::sqlite(folder.path()).await);
    store.create(newcomer("before")).await.expect("written");
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for n in 0..50 {
                store
                    .create(newcomer(&format!("agent-{n}")))
                    .await
                    .expect("written");
            }
        }
    });
    let copies = tempfile::tempdir().expect("a folder");
    let copy = copies.path().join("registry.sqlite");
    store.backup_to(&copy).await.expect("backed up");
    writing.await.expect("joined");
    let again = store.backup_to(&copy).await.expect_err("never overwrites");
    assert!(again.to_string().contains("never overwrites"), "{again}");

    let restored = SqlStore::open_sqlite(&copy, &kit::domain())
        .await
        .expect("opened");
    assert_eq!(
        restored.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
    assert!(restored.get(&name("before")).await.expect("read").is_some());
    for agent in restored.list(None, 1_000).await.expect("read") {
        assert!(
            restored.get(&agent.name).await.expect("read").is_some(),
            "no agent without its history"
        );
    }
    assert_eq!(store.counts().await.expect("read").agents, 51);
}

/// What was noted after the mailboxes were copied is not in their copy, so a backup does not know it either; everything else
/// in it is newer than they are.
#[tokio::test]
async fn a_backup_has_the_windows_of_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    let peer = domain("peer.example");
    let first = [stored([1])[0], refused(2, ErrorCode::Expired)];
    store.note(&peer, "e", &first).await.expect("noted");
    let backup = store.begin_backup().await.expect("begun");
    let second = [stored([3])[0], refused(4, ErrorCode::Expired)];
    store.note(&peer, "e", &second).await.expect("noted");
    store.note(&peer, "f", &second).await.expect("noted");
    store.create(newcomer("meanwhile")).await.expect("written");

    let copies = tempfile::tempdir().expect("a folder");
    let copy = copies.path().join("registry.sqlite");
    backup.write_to(&copy).await.expect("written");
    let files = std::fs::read_dir(copies.path()).expect("a folder");
    assert_eq!(files.count(), 1, "no journal beside it");
    let restored = SqlStore::open_sqlite(&copy, &kit::domain())
        .await
        .expect("opened");
    assert!(restored.get(&name("meanwhile")).await.expect("read").is_some());
    assert_eq!(
        restored.known(&peer, "e", &[1, 2, 3, 4]).await.expect("read"),
        [
            Known::Duplicate,
            Known::Refused(ErrorCode::Expired),
            Known::New,
            Known::New
        ]
    );
    assert_eq!(restored.window(&peer, "f").await.expect("read"), (0, 0));
    assert_eq!(
        restored.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
    // What comes again is taken, and what never does is passed over.
    assert_eq!(restored.note(&peer, "e", &second[..1]).await.expect("noted"), 3);
    assert_eq!(restored.pass_over(&peer, "e", 9).await.expect("noted"), 9);
    assert_eq!(
        store.window(&peer, "e").await.expect("read"),
        (4, 0),
        "the original is as it was"
    );
}

#[tokio::test]
async fn secrets_are_not_in_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    let mut grant = invite("CODE-IN-CLEAR", 1);
    "for a friend".clone_into(&mut grant.note);
    store.create_invite(grant).await.expect("an invite");
    store
        .issue_token(token("alice", "CHALLENGE-IN-CLEAR", "TOKEN-IN-CLEAR", 0))
        .await
        .expect("a token");
    let mut conn = stranger(folder.path()).await;
    let tokens = sqlx::query("SELECT hash FROM tokens")
        .fetch_one(&mut conn)
        .await
        .expect("a row");
    assert_eq!(
        tokens.get::<String, _>(0),
        aip_registry::secret::SecretHash::of("TOKEN-IN-CLEAR").to_hex()
    );
    conn.close()
        .await
        .expect("the connection ends before the files are read");
    store.close().await;
    for file in std::fs::read_dir(folder.path()).expect("a folder") {
        let bytes = std::fs::read(file.expect("a file").path()).expect("bytes");
        for secret in ["TOKEN-IN-CLEAR", "CHALLENGE-IN-CLEAR", "CODE-IN-CLEAR"] {
            assert!(
                !bytes.windows(secret.len()).any(|w| w == secret.as_bytes()),
                "{secret}"
            );
        }
    }
}
