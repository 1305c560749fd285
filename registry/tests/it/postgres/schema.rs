//! Opening and migrating.

use aip_engines::Postgres;
use aip_registry::testsuite::fixtures::newcomer;
use aip_registry::{Directory, Migrated, PostgresOptions, SqlStore, StoreError};
use std::sync::Arc;
use tokio::task::JoinSet;

use crate::kit;
use crate::place::migrating;

fn options(url: &str) -> PostgresOptions {
    PostgresOptions::new(url).expect("an address")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_at_once_one_migrates() {
    let url = Postgres::shared().database("registry");
    let mut migrators = JoinSet::new();
    for _ in 0..10 {
        let options = options(&url);
        migrators.spawn(async move { SqlStore::migrate_postgres(&options, &kit::domain()).await });
    }
    let migrated: Vec<Migrated> = migrators
        .join_all()
        .await
        .into_iter()
        .map(|migrated| migrated.expect("migrated"))
        .collect();
    assert_eq!(migrated.iter().filter(|one| one.from == 0).count(), 1);
    assert!(migrated.iter().all(|one| one.to == migrated[0].to && one.to > 0));
    let versions = Postgres::shared().sql(
        &url,
        "SELECT count(*), count(DISTINCT version) FROM _sqlx_migrations",
    );
    assert_eq!(versions, format!("{0}|{0}", migrated[0].to));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_that_open_at_once_all_may_migrate() {
    let url = Postgres::shared().database("registry");
    let mut openers = JoinSet::new();
    for n in 0..10 {
        let options = migrating(&url);
        openers.spawn(async move {
            let store = SqlStore::open_postgres(&options, &kit::domain())
                .await
                .expect("opened");
            store
                .create(newcomer(&format!("agent-{n}")))
                .await
                .expect("written");
            store.close().await;
        });
    }
    openers.join_all().await;
    assert_eq!(Postgres::shared().sql(&url, "SELECT count(*) FROM agents"), "10");
}

#[tokio::test]
async fn an_older_schema_is_refused_with_a_sentence_and_left_alone() {
    let url = Postgres::shared().database("registry");
    let open = async || SqlStore::open_postgres(&options(&url), &kit::domain()).await;
    let refused = open().await.expect_err("empty");
    assert!(
        matches!(refused, StoreError::SchemaOlder { found: 0, .. }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("run `aip-hub migrate`"), "{refused}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(Postgres::shared().sql(&url, tables), "0");

    SqlStore::migrate_postgres(&options(&url), &kit::domain())
        .await
        .expect("migrated");
    open().await.expect("opened").close().await;
    Postgres::shared().sql(&url, "DELETE FROM _sqlx_migrations WHERE version > 1");
    let refused = open().await.expect_err("older");
    assert!(
        matches!(refused, StoreError::SchemaOlder { found: 1, .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn another_schema_of_the_same_number_is_refused() {
    let url = Postgres::shared().database("registry");
    SqlStore::migrate_postgres(&options(&url), &kit::domain())
        .await
        .expect("migrated");
    Postgres::shared().sql(
        &url,
        "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 1",
    );
    for refused in [
        SqlStore::open_postgres(&options(&url), &kit::domain())
            .await
            .expect_err("opened"),
        SqlStore::open_postgres(&migrating(&url), &kit::domain())
            .await
            .expect_err("migrated"),
    ] {
        assert!(refused.to_string().contains("has been modified"), "{refused}");
    }
}

/// A database of an operator whose server speaks English, where the underscore comes before the dot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_sort_by_bytes_whatever_the_collation_of_the_database_is() {
    let server = Postgres::shared();
    server.sql(
        "postgres",
        "CREATE DATABASE english TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'",
    );
    let url = server
        .database("registry")
        .rsplit_once('/')
        .expect("a path")
        .0
        .to_owned()
        + "/english";
    assert_eq!(server.sql(&url, "SELECT 'a_b' < 'a.b', 'B' < 'a'"), "t|f");
    let store = Arc::new(
        SqlStore::open_postgres(&migrating(&url), &kit::domain())
            .await
            .expect("opened"),
    );
    aip_registry::testsuite::directory::list_is_in_the_order_of_names(Arc::clone(&store)).await;
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
    // The list walks along the index of the names instead of sorting them all.
    let plan =
        "SET enable_seqscan = off; EXPLAIN SELECT name FROM agents WHERE name > 'a' ORDER BY name LIMIT 3";
    let plan = server.sql(&url, plan);
    assert!(plan.contains("agents_pkey") && !plan.contains("Sort"), "{plan}");

    server.sql(
        &url,
        "ALTER TABLE agents ALTER COLUMN invite TYPE TEXT COLLATE \"default\"",
    );
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        ["column agents.invite is not sorted by bytes"]
    );
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    let server = Postgres::shared();
    server.sql(
        "postgres",
        "CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII'",
    );
    let url = server
        .database("registry")
        .rsplit_once('/')
        .expect("a path")
        .0
        .to_owned()
        + "/ascii";
    let refused = SqlStore::migrate_postgres(&options(&url), &kit::domain())
        .await
        .expect_err("refused");
    assert!(refused.to_string().contains("SQL_ASCII"), "{refused}");
}

#[tokio::test]
async fn the_password_is_in_no_error_and_a_backup_is_the_servers_business() {
    let url = Postgres::shared()
        .database("registry")
        .replace("aip@", "aip:s3cret@");
    let store = SqlStore::open_postgres(&migrating(&url), &kit::domain())
        .await
        .expect("opened");
    let refused = store
        .backup_to(std::path::Path::new("/tmp/never"))
        .await
        .expect_err("refused");
    assert!(refused.to_string().contains("pg_dump"), "{refused}");
    let missing = format!("{url}-which-is-not-there");
    let failed = SqlStore::open_postgres(&options(&missing), &kit::domain())
        .await
        .expect_err("none");
    assert!(failed.to_string().contains("does not exist"), "{failed}");
    for shown in [
        format!("{failed:?} {failed}"),
        format!("{store:?}"),
        format!("{:?}", options(&url)),
    ] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    store.close().await;
}
