//! A server that dies, stands still, or ends its sessions, under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aip_engines::{Postgres, PostgresOptions as ServerOptions, Proxy};
use aip_registry::directory::CreateOutcome;
use aip_registry::testsuite::fixtures::{name, newcomer};
use aip_registry::{Directory, PostgresOptions, SqlStore, StoreError};
use tokio::task::JoinSet;

use super::{LONG, eventually};
use crate::kit;
use crate::place::migrating;

/// Agents who register one after the other, each until he is told how it ended.
struct Load {
    store: Arc<SqlStore>,
    acknowledged: AtomicUsize,
    reads_failed: AtomicUsize,
    is_over: AtomicBool,
}

impl Load {
    const SENDERS: usize = 8;

    fn start(store: Arc<SqlStore>) -> (Arc<Self>, JoinSet<Vec<String>>) {
        let load = Arc::new(Self {
            store,
            acknowledged: AtomicUsize::new(0),
            reads_failed: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let mut senders = JoinSet::new();
        for sender in 0..Self::SENDERS {
            senders.spawn(Arc::clone(&load).send(sender));
        }
        (load, senders)
    }

    /// The names that were acknowledged.
    async fn send(self: Arc<Self>, sender: usize) -> Vec<String> {
        let mut names = Vec::new();
        for n in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                break;
            }
            let agent = format!("agent-{sender}-{n}");
            self.register(&agent).await;
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
            match self.store.get(&name(&agent)).await {
                Ok(record) => assert!(record.is_some(), "{agent} was acknowledged"),
                Err(StoreError::Unavailable(_)) => drop(self.reads_failed.fetch_add(1, Ordering::SeqCst)),
                Err(error) => panic!("{error:?}"),
            }
            names.push(agent);
        }
        names
    }

    async fn register(&self, agent: &str) {
        let mut may_exist = false;
        loop {
            match self.store.create(newcomer(agent)).await {
                Ok(CreateOutcome::Created) => break,
                Ok(CreateOutcome::Exists) if may_exist => break,
                Err(StoreError::OutcomeUnknown(_)) => may_exist = true,
                Err(StoreError::Unavailable(_)) => {}
                other => panic!("{agent}: {other:?}"),
            }
        }
    }

    /// Until so many more were acknowledged.
    async fn go_on(&self, more: usize) {
        let goal = self.acknowledged.load(Ordering::SeqCst) + more;
        eventually("registrations go on", async || {
            self.acknowledged.load(Ordering::SeqCst) >= goal
        })
        .await;
    }

    /// Ends it and finds every name that was acknowledged.
    async fn check(&self, senders: JoinSet<Vec<String>>) -> usize {
        self.is_over.store(true, Ordering::SeqCst);
        let names = tokio::time::timeout(LONG, senders.join_all())
            .await
            .expect("all end")
            .concat();
        for agent in &names {
            let record = self.store.get(&name(agent)).await.expect("read");
            assert!(record.is_some(), "{agent} was acknowledged and is gone");
        }
        assert_eq!(
            self.store.check_integrity().await.expect("checked"),
            Vec::<String>::new()
        );
        names.len()
    }
}

async fn store(options: &PostgresOptions) -> Arc<SqlStore> {
    Arc::new(
        SqlStore::open_postgres(options, &kit::domain())
            .await
            .expect("opened"),
    )
}

/// Impatient, so that the tests are not long.
fn impatient(url: &str) -> PostgresOptions {
    let mut options = migrating(url);
    options.connect_timeout_secs = 1;
    options.wait_timeout_secs = 1;
    options.statement_timeout_secs = 1;
    options
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_has_lost_nothing_acknowledged() {
    let mut server = Postgres::start(ServerOptions::default());
    let store = store(&migrating(&server.database("registry"))).await;
    let (load, senders) = Load::start(Arc::clone(&store));
    for _ in 0..3 {
        load.go_on(50).await;
        server.kill();
        server.restart();
    }
    load.go_on(50).await;
    assert!(load.check(senders).await >= 200);
    assert!(store.figures().connections_lost > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_sessions_are_replaced_without_a_word() {
    let url = Postgres::shared().database("registry");
    let store = store(&migrating(&url)).await;
    let (load, senders) = Load::start(Arc::clone(&store));
    for _ in 0..10 {
        load.go_on(20).await;
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = current_database() AND application_name = 'aip-hub'";
        Postgres::shared().sql(&url, end);
    }
    load.go_on(20).await;
    load.check(senders).await;
    assert_eq!(
        load.reads_failed.load(Ordering::SeqCst),
        0,
        "reads are asked again"
    );
    assert!(store.figures().connections_lost >= 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_is_waited_for_in_bounds() {
    let mut server = Postgres::start(ServerOptions::default());
    let store = store(&impatient(&server.database("registry"))).await;
    store.create(newcomer("alice")).await.expect("created");
    store.get(&name("alice")).await.expect("read");

    server.pause();
    let answers = async {
        let calls = (0..100).map(|n| {
            let store = Arc::clone(&store);
            async move {
                let read = store.get(&name("alice")).await.expect_err("no answer");
                let written = store
                    .create(newcomer(&format!("agent-{n}")))
                    .await
                    .expect_err("no answer");
                (read, written)
            }
        });
        futures_util::future::join_all(calls).await
    };
    for (read, written) in tokio::time::timeout(LONG, answers).await.expect("bounded") {
        assert!(matches!(read, StoreError::Unavailable(_)), "{read:?}");
        let told = matches!(
            written,
            StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)
        );
        assert!(told, "{written:?}");
    }
    server.resume();

    let alice = store.get(&name("alice")).await.expect("read at once");
    assert!(alice.is_some());
    let created = store.create(newcomer("bob")).await.expect("written at once");
    assert_eq!(created, CreateOutcome::Created);
}

/// What a cut cable looks like: no answer, no end, and the server's side of the sessions stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_network_is_waited_for_in_bounds_and_left_behind() {
    let url = Postgres::shared().database("registry");
    let proxy = Proxy::to(Postgres::shared().address());
    let store = store(&impatient(&proxy.url(&url))).await;
    let (load, senders) = Load::start(Arc::clone(&store));
    for _ in 0..2 {
        load.go_on(50).await;
        proxy.stall();
        let read = tokio::time::timeout(LONG, store.get(&name("nobody")))
            .await
            .expect("bounded");
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
        let ping = tokio::time::timeout(LONG, store.ping()).await.expect("bounded");
        assert!(matches!(ping, Err(StoreError::Unavailable(_))), "{ping:?}");
        proxy.heal();
        load.go_on(50).await;
        store.ping().await.expect("an answer");
    }
    assert!(load.check(senders).await >= 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_late_is_waited_for() {
    let mut server = Postgres::start(ServerOptions {
        without_fsync: true,
        ..ServerOptions::default()
    });
    let url = server.database("registry");
    server.kill();
    let opening = tokio::spawn(async move { store(&migrating(&url)).await });
    server.restart();
    let store = tokio::time::timeout(LONG, opening)
        .await
        .expect("opens")
        .expect("opened");
    store.create(newcomer("alice")).await.expect("created");
    store.close().await;
}
