//! A database on a disk in bad days: backups while writing, damage, forgery, and what a thief of the file finds.

use std::sync::Arc;

use aip_protocol::identity::{EndpointPolicy, Operation};
use aip_protocol::json::Json;
use aip_registry::testsuite::fixtures::{invite, name, newcomer, token};
use aip_registry::{Directory, Grants, RegistryConfig, RegistryError, SqlStore, StoreError};
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

#[tokio::test]
async fn damage_is_found_by_the_integrity_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    store.create(newcomer("alice")).await.expect("written");
    let mut conn = stranger(folder.path()).await;
    sqlx::query("PRAGMA foreign_keys = OFF")
        .execute(&mut conn)
        .await
        .expect("off");
    sqlx::query("DELETE FROM agents")
        .execute(&mut conn)
        .await
        .expect("damaged");
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        ["a row of operations refers to nothing"]
    );
}

/// An agent with three operations in a database on disk.
async fn alice_on_disk(folder: &std::path::Path) -> (Arc<SqlStore>, kit::Agent) {
    let store = Arc::new(kit::sqlite(folder).await);
    let hub = kit::Hub::over(Arc::clone(&store), RegistryConfig::default());
    let mut alice = hub.agent("alice").await;
    for _ in 0..2 {
        alice = alice.next(hub.now(), |_| {});
        let operated = hub.registry.operate(&name("alice"), &alice.wire()).await;
        operated.expect("appended");
    }
    (store, alice)
}

#[tokio::test]
async fn a_damaged_history_is_not_believed() {
    for damage in [
        "DELETE FROM operations WHERE seq = 2",
        "DELETE FROM operations WHERE seq = 1",
        "UPDATE operations SET operation = replace(operation, 'personal', 'business') WHERE seq = 0",
        "UPDATE operations SET operation = replace(operation, 'personal', 'business') WHERE seq = 2",
        "UPDATE operations SET operation = substr(operation, 2) WHERE seq = 1",
        "UPDATE agents SET head = (SELECT 'z' || head)",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, alice) = alice_on_disk(folder.path()).await;
        assert_eq!(
            store.check_histories().await.expect("checked"),
            Vec::<String>::new()
        );
        let mut conn = stranger(folder.path()).await;
        let damaged = sqlx::query(damage).execute(&mut conn).await.expect("damaged");
        assert_eq!(damaged.rows_affected(), 1, "{damage}");
        // Another registry over the same store has nothing in memory yet.
        let cold = kit::Hub::over(Arc::clone(&store), RegistryConfig::default());
        let refused = cold.registry.resolve(&alice.did).await.expect_err(damage);
        assert!(
            matches!(refused, RegistryError::Failed(StoreError::Corrupt(_))),
            "{damage}: {refused:?}"
        );
        let problems = store.check_histories().await.expect("checked");
        assert!(
            problems.len() == 1 && problems[0].contains("alice"),
            "{problems:?}"
        );
    }
}

/// Whoever can write to the database can make its hashes fit; a signature he cannot make.
#[tokio::test]
async fn a_forged_operation_is_found_by_the_check_of_histories() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, alice) = alice_on_disk(folder.path()).await;
    let Json::Object(mut forged) = alice.identity.head().json.clone() else {
        panic!("an object")
    };
    forged.insert("x-note", "forged");
    let forged = Operation::from_json(Json::Object(forged), EndpointPolicy::default()).expect("of good form");
    let mut conn = stranger(folder.path()).await;
    for (statement, value) in [
        (
            "UPDATE operations SET operation = $1 WHERE seq = 2",
            forged.json.to_string(),
        ),
        ("UPDATE agents SET head = $1", forged.hash().to_owned()),
    ] {
        let forge = sqlx::query(statement).bind(value).execute(&mut conn).await;
        forge.expect("forged");
    }
    let problems = store.check_histories().await.expect("checked");
    assert!(
        problems.len() == 1 && problems[0].contains("alice does not verify"),
        "{problems:?}"
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
