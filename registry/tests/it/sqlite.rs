//! What only a database on a disk can do: pragmas, batches, reopening, other processes, backups.

use std::sync::Arc;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Domain;
use aip_registry::directory::CreateOutcome::{self, Created, Exists, InviteRefused};
use aip_registry::testsuite::fixtures::{genesis, invite, name, newcomer, next, successor, token};
use aip_registry::{Directory, Grants, SqlStore, StoreError};
use futures_util::future::join_all;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::task::JoinSet;

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
async fn everything_is_there_after_reopening() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    store.create_invite(invite("code", 3)).await.expect("an invite");
    store.create(newcomer("alice")).await.expect("alice");
    let operation = successor(&genesis("alice", "first"), "a");
    store
        .append(next("alice", operation.clone()))
        .await
        .expect("an operation");
    store
        .issue_token(token("alice", "challenge", "token", 0))
        .await
        .expect("a token");
    let (alice, counts) = (
        store.get(&name("alice")).await.expect("read"),
        store.counts().await.expect("read"),
    );
    store.close().await;

    let store = kit::sqlite(folder.path()).await;
    assert_eq!(store.get(&name("alice")).await.expect("read"), alice);
    assert_eq!(
        alice.expect("alice").operations,
        [genesis("alice", "first").json, operation.json]
    );
    assert_eq!(store.counts().await.expect("read"), counts);
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
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

#[tokio::test]
async fn a_closed_store_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    store.close().await;
    store.close().await;
    let refused = store.create(newcomer("alice")).await.expect_err("closed");
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert_eq!(
        store.get(&name("alice")).await.expect_err("closed").code(),
        ErrorCode::Unavailable
    );
}

#[tokio::test]
async fn registrations_that_wait_together_share_a_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    let agents: Vec<_> = (0..640).map(|n| newcomer(&format!("agent-{n}"))).collect();
    let outcomes = join_all(agents.into_iter().map(|agent| store.create(agent))).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Ok(CreateOutcome::Created)))
    );
    assert_eq!(store.counts().await.expect("read").agents, 640);
    // Autocommit would have synced 640 times; five times fewer is the least we promise.
    assert!(store.commits() <= 640 / 5, "{} commits", store.commits());
}

#[tokio::test]
async fn a_refusal_in_a_batch_harms_nobody_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    store.create_invite(invite("code", 1)).await.expect("an invite");
    let invited = |agent: &str, code: &str| {
        let invite = Some(aip_registry::secret::SecretHash::of(code));
        aip_registry::directory::NewAgent {
            invite,
            ..newcomer(agent)
        }
    };
    let before = store.commits();
    let outcomes = join_all([
        store.create(newcomer("alice")),
        store.create(newcomer("alice")),
        store.create(invited("bob", "bad")),
        store.create(invited("carol", "code")),
        store.create(invited("dora", "code")),
        store.create(newcomer("erin")),
    ])
    .await;
    let outcomes: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("no failure"))
        .collect();
    assert_eq!(
        outcomes,
        [Created, Exists, InviteRefused, Created, InviteRefused, Created]
    );
    assert_eq!(store.commits() - before, 1, "they were one batch");
    assert_eq!(store.counts().await.expect("read").agents, 3);
}

#[tokio::test]
async fn a_broken_change_fails_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    store.create_invite(invite("code", 1)).await.expect("an invite");
    // An invite whose id exists already breaks a constraint: a bug of the caller, not a refusal.
    let (first, broken, last) = tokio::join!(
        store.create(newcomer("alice")),
        store.create_invite(invite("code", 1)),
        store.create(newcomer("bob"))
    );
    assert_eq!(first.expect("alice"), CreateOutcome::Created);
    assert!(matches!(broken, Err(StoreError::Unavailable(_))));
    assert_eq!(last.expect("bob"), CreateOutcome::Created);
    assert_eq!(store.counts().await.expect("read").agents, 2);
    assert_eq!(
        store.create(newcomer("carol")).await.expect("goes on"),
        CreateOutcome::Created
    );
}

#[tokio::test]
async fn a_broken_registration_fails_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    store.create(newcomer("zoe")).await.expect("zoe");
    // An operation of nobody stands where bob's first one belongs.
    let mut conn = stranger(folder.path()).await;
    for damage in [
        "PRAGMA foreign_keys = OFF",
        "INSERT INTO operations (name, seq, operation, admitted_at_ms) VALUES ('bob', 0, '', 0)",
    ] {
        sqlx::query(damage).execute(&mut conn).await.expect("damaged");
    }
    let mut other_zoe = newcomer("zoe");
    other_zoe.operation = genesis("zoe", "second");
    let mut outcomes = join_all([
        store.create(newcomer("alice")),
        store.create(newcomer("bob")),
        store.create(other_zoe),
        store.create(newcomer("carol")),
    ])
    .await;
    let broken = outcomes.remove(1);
    assert!(matches!(broken, Err(StoreError::Unavailable(_))), "{broken:?}");
    let outcomes: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("no failure"))
        .collect();
    assert_eq!(outcomes, [Created, Exists, Created]);
    assert_eq!(store.counts().await.expect("read").agents, 3);
    assert_eq!(store.get(&name("bob")).await.expect("read"), None);
}

#[tokio::test]
async fn changes_of_one_batch_run_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    let mut uninvited = newcomer("alice");
    uninvited.invite = Some(aip_registry::secret::SecretHash::of("bad"));
    let outcomes = join_all([
        store.create(uninvited.clone()),
        store.create(newcomer("alice")),
        store.create(newcomer("bob")),
        store.create(uninvited),
    ])
    .await;
    let outcomes: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("no failure"))
        .collect();
    assert_eq!(outcomes, [InviteRefused, Created, Created, Exists]);
    assert_eq!(store.commits(), 1);
}

/// More than one statement takes, with names that are wanted twice within one and across two.
#[tokio::test]
async fn of_a_crowd_each_hears_its_own_outcome() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kit::sqlite(folder.path()).await;
    let wanted: Vec<_> = (0..100).map(|n| (n * 7) % 61).collect();
    let create = |(at, n): (usize, &usize)| {
        let mut agent = newcomer(&format!("agent-{n}"));
        agent.operation = genesis(&format!("agent-{n}"), &format!("flavour-{at}"));
        store.create(agent)
    };
    let outcomes = join_all(wanted.iter().enumerate().map(create)).await;
    for (at, (n, outcome)) in wanted.iter().zip(outcomes).enumerate() {
        let first = wanted.iter().position(|other| other == n) == Some(at);
        let right = if first { Created } else { Exists };
        assert_eq!(outcome.expect("no failure"), right, "number {at}");
        let owner = store
            .get(&name(&format!("agent-{n}")))
            .await
            .expect("read")
            .expect("an agent");
        assert_eq!(owner.operations.len(), 1);
        let flavour = format!("\"flavour-{at}\"");
        assert_eq!(owner.operations[0].contains(&flavour), first, "number {at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_46_thirty_two_writers_at_start_up_all_succeed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writers = JoinSet::new();
    for n in 0..32 {
        let path = folder.path().to_owned();
        writers.spawn(async move {
            let store = kit::sqlite(&path).await;
            let outcome = store.create(newcomer(&format!("agent-{n}"))).await;
            store.close().await;
            outcome
        });
    }
    for outcome in writers.join_all().await {
        assert_eq!(outcome.expect("written"), CreateOutcome::Created);
    }
    let store = kit::sqlite(folder.path()).await;
    assert_eq!(store.counts().await.expect("read").agents, 32);
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
async fn a_newer_schema_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    kit::sqlite(folder.path()).await.close().await;
    let mut conn = stranger(folder.path()).await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (999, 'from the future', 1, x'00', 0)";
    sqlx::query(newer)
        .execute(&mut conn)
        .await
        .expect("a newer schema");
    let path = folder.path().join("registry.sqlite");
    let refused = SqlStore::open_sqlite(&path, &kit::domain())
        .await
        .expect_err("refused");
    assert!(
        matches!(refused, StoreError::SchemaNewer { found: 999, .. }),
        "{refused:?}"
    );
    assert!(
        refused.to_string().contains("start the newer hub again"),
        "{refused}"
    );
}

#[tokio::test]
async fn an_older_schema_is_migrated_on_opening() {
    let folder = tempfile::tempdir().expect("a folder");
    // The oldest one there can be: an empty database.
    let options = SqliteConnectOptions::new().filename(folder.path().join("registry.sqlite"));
    options
        .create_if_missing(true)
        .connect()
        .await
        .expect("made")
        .close()
        .await
        .expect("closed");
    let store = kit::sqlite(folder.path()).await;
    assert_eq!(
        store.create(newcomer("alice")).await.expect("written"),
        CreateOutcome::Created
    );
}

#[tokio::test]
async fn another_domains_database_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    kit::sqlite(folder.path()).await.close().await;
    let other = Domain::parse("other.example").expect("a domain");
    let refused = SqlStore::open_sqlite(&folder.path().join("registry.sqlite"), &other)
        .await
        .expect_err("refused");
    assert!(refused.to_string().contains("hub.example") && refused.to_string().contains("other.example"));
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
