//! PostgreSQL.

use aip_engines::{Postgres, PostgresOptions};

use crate::processes::{children, folder, state};

#[test]
fn a_server_answers() {
    assert_eq!(Postgres::shared().sql("postgres", "SELECT 1"), "1");
    assert_eq!(Postgres::shared().sql("postgres", "SHOW server_encoding"), "UTF8");
    assert_eq!(Postgres::shared().sql("postgres", "SHOW lc_collate"), "C");
}

#[test]
fn databases_of_one_name_are_separate() {
    let (one, other) = (
        Postgres::shared().database("mine"),
        Postgres::shared().database("mine"),
    );
    assert_ne!(one, other);
    let begin = format!("postgres://aip@{}/mine_", Postgres::shared().address());
    assert!(one.starts_with(&begin), "{one}");
    Postgres::shared().sql(&one, "CREATE TABLE t (n int)");
    assert_eq!(Postgres::shared().sql(&one, "SELECT to_regclass('t')"), "t");
    assert_eq!(Postgres::shared().sql(&other, "SELECT to_regclass('t')"), "");
}

#[test]
#[should_panic(expected = "relation \"nothing\" does not exist")]
fn what_the_server_refuses_is_told() {
    Postgres::shared().sql("postgres", "SELECT * FROM nothing");
}

#[test]
fn committed_rows_survive_a_kill() {
    let mut postgres = Postgres::start(PostgresOptions {
        settings: vec![("max_connections".to_owned(), "7".to_owned())],
        ..PostgresOptions::default()
    });
    assert_eq!(postgres.sql("postgres", "SHOW fsync"), "on");
    assert_eq!(postgres.sql("postgres", "SHOW max_connections"), "7");
    let database = postgres.database("kept");
    postgres.sql(&database, "CREATE TABLE t AS SELECT 42 AS n");
    let pid = postgres.pid().expect("it runs");
    let family = children(pid);
    assert!(!family.is_empty());
    postgres.kill();
    assert_eq!(state(pid), None);
    assert!(
        family
            .into_iter()
            .all(|pid| matches!(state(pid), None | Some('Z')))
    );

    postgres.restart();
    assert_eq!(postgres.sql(&database, "SELECT n FROM t"), "42");
}

#[test]
fn all_of_a_paused_server_stands_still() {
    let mut postgres = Postgres::start(PostgresOptions::default());
    let pid = postgres.pid().expect("it runs");
    postgres.pause();
    assert_eq!(state(pid), Some('T'));
    for child in children(pid) {
        assert!(matches!(state(child), Some('T' | 'Z')), "{child}");
    }
    postgres.resume();
    assert_eq!(postgres.sql("postgres", "SELECT 1"), "1");
    assert!(postgres.resident_bytes().expect("it holds memory") > 1 << 20);
}

#[test]
fn nothing_is_left_of_a_dropped_server() {
    for (paused, killed) in [(false, false), (true, false), (false, true)] {
        let mut postgres = Postgres::start(PostgresOptions::default());
        let pid = postgres.pid().expect("it runs");
        let data = folder(pid);
        let segment = segment(&data);
        assert!(segments().contains(&segment));
        if paused {
            postgres.pause();
        }
        if killed {
            postgres.kill();
        }
        drop(postgres);
        assert_eq!(state(pid), None);
        assert!(!data.parent().expect("a folder").exists());
        assert!(!segments().contains(&segment), "paused {paused}, killed {killed}");
    }
}

/// The shared memory that marks the data as taken: the last number of the seventh line of its lock file.
fn segment(data: &std::path::Path) -> String {
    let lock = std::fs::read_to_string(data.join("postmaster.pid")).expect("a lock file");
    let line = lock.lines().nth(6).expect("a seventh line");
    line.split_whitespace().last().expect("a number").to_owned()
}

/// The ids of all such memory in the system.
fn segments() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").expect("a table");
    let ids = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().nth(1));
    ids.map(str::to_owned).collect()
}
