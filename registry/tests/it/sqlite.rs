//! What only a file can be: in WAL mode, locked by another process, at an odd path.

use std::sync::Arc;

use aip_registry::directory::CreateOutcome;
use aip_registry::testsuite::fixtures::{name, newcomer};
use aip_registry::{Directory, SqlStore, StoreError};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

use crate::kit;

/// A connection of somebody else to the same file.
pub(crate) async fn stranger(folder: &std::path::Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(folder.join("registry.sqlite"));
    options
        .busy_timeout(std::time::Duration::from_secs(10))
        .connect()
        .await
        .expect("a connection")
}

#[tokio::test]
async fn the_database_is_in_wal_mode_and_holds_its_references() {
    let folder = tempfile::tempdir().expect("a folder");
    let _store = kit::sqlite(folder.path()).await;
    let mut conn = stranger(folder.path()).await;
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&mut conn)
        .await
        .expect("a mode");
    assert_eq!(mode, "wal");
    let orphan =
        sqlx::query("INSERT INTO operations (name, seq, operation, admitted_at_ms) VALUES ('x', 0, '', 0)");
    assert!(orphan.execute(&mut conn).await.is_err(), "an operation of nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_45_a_locked_database_is_waited_for_and_the_answer_is_the_real_outcome() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(kit::sqlite(folder.path()).await);
    let mut other = stranger(folder.path()).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.expect("locked");
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.create(newcomer("alice")).await }
    });
    // Readers do not wait for a writer.
    assert_eq!(store.get(&name("alice")).await.expect("read"), None);
    lock.rollback().await.expect("released");
    assert_eq!(
        waiting.await.expect("joined").expect("written"),
        CreateOutcome::Created
    );
    assert_eq!(
        store.create(newcomer("alice")).await.expect("answered"),
        CreateOutcome::Exists,
        "the retry"
    );
}

#[tokio::test]
async fn an_unusable_path_is_told_and_odd_ones_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("no such folder").join("registry.sqlite");
    let refused = SqlStore::open_sqlite(&missing, &kit::domain())
        .await
        .expect_err("refused");
    assert!(matches!(refused, StoreError::Open(_)), "{refused:?}");
    let not_a_database = folder.path().join("text");
    std::fs::write(
        &not_a_database,
        "this is no database, but it is long enough to look like one".repeat(100),
    )
    .expect("written");
    assert!(
        SqlStore::open_sqlite(&not_a_database, &kit::domain())
            .await
            .is_err()
    );

    for odd in ["with blank", "100%41", "quest?ion", "ha#sh", "ümlaut"] {
        let path = folder.path().join(odd);
        let store = SqlStore::open_sqlite(&path, &kit::domain())
            .await
            .expect("opened");
        store.create(newcomer("alice")).await.expect("written");
        assert!(path.exists(), "{odd}");
    }
}
