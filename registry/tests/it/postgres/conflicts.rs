//! Others in the way: deadlocks, locks, time-outs, transactions that the server takes back.

use std::sync::Arc;

use aip_engines::{Postgres, Proxy};
use aip_registry::directory::{AgentChange, CreateOutcome};
use aip_registry::testsuite::fixtures::{name, newcomer};
use aip_registry::{Directory, PostgresOptions, SqlStore, Standing, StoreError};
use sqlx::{Connection, PgConnection};

use super::{LONG, eventually};
use crate::kit;
use crate::place::migrating;

async fn store(options: &PostgresOptions) -> Arc<SqlStore> {
    Arc::new(
        SqlStore::open_postgres(options, &kit::domain())
            .await
            .expect("opened"),
    )
}

/// Makes every registration, or its commit, run `action` the first `times` times.
fn hinder(url: &str, when: &str, times: u32, action: &str) {
    let trigger = match when {
        "in the statement" => "CREATE TRIGGER hindrance AFTER INSERT ON agents",
        _ => "CREATE CONSTRAINT TRIGGER hindrance AFTER INSERT ON agents DEFERRABLE INITIALLY DEFERRED",
    };
    // A sequence counts on where a transaction is taken back.
    Postgres::shared().sql(
        url,
        &format!(
            "CREATE SEQUENCE hindrances; \
             CREATE FUNCTION hinder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('hindrances') <= {times} THEN {action} END IF; RETURN NULL; END $$; \
             {trigger} FOR EACH ROW EXECUTE FUNCTION hinder()"
        ),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_takes_back_is_run_again() {
    // Serialization failure, deadlock, no lock in time, cancelled; then: shutting down, starting up.
    for (code, lost) in [
        ("40001", false),
        ("40P01", false),
        ("55P03", false),
        ("57014", false),
        ("57P01", true),
        ("57P03", true),
        ("08006", true),
    ] {
        let url = Postgres::shared().database("registry");
        let store = store(&migrating(&url)).await;
        hinder(
            &url,
            "in the statement",
            2,
            &format!("RAISE EXCEPTION USING ERRCODE = '{code}';"),
        );
        let created = store.create(newcomer("alice")).await;
        assert_eq!(created.expect(code), CreateOutcome::Created);
        let figures = store.figures();
        let (conflicts, connections) = if lost { (0, 2) } else { (2, 0) };
        assert_eq!(
            (figures.conflicts, figures.connections_lost),
            (conflicts, connections),
            "{code}"
        );
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_taken_back_is_run_again() {
    let url = Postgres::shared().database("registry");
    let store = store(&migrating(&url)).await;
    hinder(
        &url,
        "at the commit",
        2,
        "RAISE EXCEPTION USING ERRCODE = '40001';",
    );
    assert_eq!(
        store.create(newcomer("alice")).await.expect("created"),
        CreateOutcome::Created
    );
    assert_eq!(
        (store.figures().conflicts, store.figures().outcomes_unknown),
        (2, 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_the_way_each_time_ends_the_change_and_not_the_writer() {
    let url = Postgres::shared().database("registry");
    let store = store(&migrating(&url)).await;
    hinder(
        &url,
        "in the statement",
        1_000,
        "RAISE EXCEPTION USING ERRCODE = '40P01';",
    );
    let nobody = name("nobody");
    let (one, other, update) = tokio::join!(
        store.create(newcomer("alice")),
        store.create(newcomer("bob")),
        store.update(&nobody, AgentChange::Standing(Standing::Active)),
    );
    assert!(matches!(one, Err(StoreError::Unavailable(_))), "{one:?}");
    assert!(matches!(other, Err(StoreError::Unavailable(_))), "{other:?}");
    assert!(
        !update.expect("goes its own way when each does"),
        "nobody is there"
    );
    Postgres::shared().sql(&url, "DROP TRIGGER hindrance ON agents");
    assert_eq!(
        store.create(newcomer("alice")).await.expect("created"),
        CreateOutcome::Created
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_with_a_stranger_is_got_out_of() {
    let url = Postgres::shared().database("registry");
    let store = store(&migrating(&url)).await;
    for agent in ["alice", "bob"] {
        store.create(newcomer(agent)).await.expect("created");
    }
    // The stranger has bob and will want alice; he never gives up first.
    let mut stranger = PgConnection::connect(&url).await.expect("connected");
    sqlx::raw_sql("SET deadlock_timeout = '1min'; BEGIN; UPDATE agents SET seq = seq WHERE name = 'bob'")
        .execute(&mut stranger)
        .await
        .expect("bob");
    let suspend = AgentChange::Standing(Standing::Suspended);
    let both = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let (alice, bob) = (name("alice"), name("bob"));
            tokio::join!(store.update(&alice, suspend), store.update(&bob, suspend))
        }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("the store waits for bob", async || {
        Postgres::shared().sql(&url, waits) == "1"
    })
    .await;
    sqlx::raw_sql("UPDATE agents SET seq = seq WHERE name = 'alice'; COMMIT")
        .execute(&mut stranger)
        .await
        .expect("alice, too");
    let (alice, bob) = tokio::time::timeout(LONG, both)
        .await
        .expect("ends")
        .expect("joined");
    assert!(alice.expect("alice") && bob.expect("bob"));
    assert!(store.figures().conflicts >= 1);
    assert_eq!(store.counts().await.expect("read").suspended, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_connection_dies_has_an_unknown_outcome() {
    let url = Postgres::shared().database("registry");
    let store = store(&migrating(&url)).await;
    hinder(
        &url,
        "at the commit",
        1,
        "PERFORM pg_terminate_backend(pg_backend_pid());",
    );
    let unknown = store.create(newcomer("alice")).await;
    assert!(
        matches!(unknown, Err(StoreError::OutcomeUnknown(_))),
        "{unknown:?}"
    );
    assert_eq!(store.figures().outcomes_unknown, 1);
    assert_eq!(
        store.create(newcomer("alice")).await.expect("told"),
        CreateOutcome::Created
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_has_an_unknown_outcome_and_stands() {
    let url = Postgres::shared().database("registry");
    let proxy = Proxy::to(Postgres::shared().address());
    let store = store(&migrating(&proxy.url(&url))).await;
    hinder(&url, "at the commit", 1, "PERFORM pg_sleep(1);");
    let create = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.create(newcomer("alice")).await }
    });
    let commits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND state = 'active' AND query = 'COMMIT'";
    eventually("the commit is on its way", async || {
        Postgres::shared().sql(&url, commits) == "1"
    })
    .await;
    proxy.cut();
    let unknown = tokio::time::timeout(LONG, create)
        .await
        .expect("ends")
        .expect("joined");
    assert!(
        matches!(unknown, Err(StoreError::OutcomeUnknown(_))),
        "{unknown:?}"
    );
    proxy.heal();
    assert_eq!(
        store.create(newcomer("alice")).await.expect("told"),
        CreateOutcome::Exists
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_finds_every_connection_busy_hears_so() {
    let url = Postgres::shared().database("registry");
    let mut options = migrating(&url);
    (options.connections_max, options.wait_timeout_secs) = (2, 1);
    let store = store(&options).await;
    let mut stranger = PgConnection::connect(&url).await.expect("connected");
    let lock = sqlx::raw_sql("BEGIN; LOCK TABLE agents IN ACCESS EXCLUSIVE MODE");
    lock.execute(&mut stranger).await.expect("locked");
    let reads = [(); 2].map(|()| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.get(&name("alice")).await })
    });
    let mut failures = Vec::new();
    for read in reads {
        failures.push(
            tokio::time::timeout(LONG, read)
                .await
                .expect("ends")
                .expect("joined")
                .expect_err("locked"),
        );
    }
    let told = format!("{failures:?}");
    assert!(
        told.contains("are busy") && told.contains("lock timeout"),
        "{told}"
    );
    sqlx::raw_sql("COMMIT")
        .execute(&mut stranger)
        .await
        .expect("released");
    assert_eq!(store.get(&name("alice")).await.expect("read"), None);
}
