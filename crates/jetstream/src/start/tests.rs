//! Starts on real servers: new streams and old ones, many processes at once, and what is refused.

use aip_engines::NatsOptions;
use async_nats::HeaderMap;
use async_nats::jetstream::stream::StorageType;

use super::*;
use crate::config::Login;
use crate::testing::{fresh, options};

fn shared(prefix: &str) -> Options {
    options(&aip_engines::Nats::shared().url(), prefix)
}

#[tokio::test]
async fn ten_processes_that_start_together_agree() {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..10 {
        let mut options = shared("start-ten");
        // Whoever is first decides.
        options.streams = if n % 2 == 0 { 4 } else { 2 };
        tasks.spawn(async move { start(options, &fresh(n)).await.expect("opens") });
    }
    let stores = tasks.join_all().await;
    let first = &stores[0].record;
    for store in &stores {
        assert_eq!(store.record.epoch, first.epoch);
        assert_eq!(store.record.secret, first.secret);
        assert_eq!(store.record.shards, first.shards);
    }
}

/// Of three copies each: a stream that one of them has just made has no leader yet when the others look.
#[tokio::test]
async fn processes_that_start_together_on_three_servers_agree() {
    let cluster = aip_engines::NatsCluster::start(3, false);
    for round in 0..3 {
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..3 {
            let options = Options {
                urls: cluster.urls(),
                replicas: 3,
                ..shared(&format!("start-three-{round}"))
            };
            tasks.spawn(async move { start(options, &fresh(n)).await.expect("opens") });
        }
        let stores = tasks.join_all().await;
        let epochs: Vec<_> = stores.iter().map(|store| store.record.epoch.as_str()).collect();
        assert!(epochs.iter().all(|epoch| *epoch == epochs[0]), "{epochs:?}");
    }
}

/// A server that is away when the first process comes is waited for: three copies need all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_made_once_all_servers_are_there() {
    let mut cluster = aip_engines::NatsCluster::start(3, false);
    cluster.kill(2);
    let options = Options {
        urls: cluster.urls(),
        replicas: 3,
        ..shared("start-late")
    };
    let opening = tokio::spawn(async move { start(options, &fresh(1)).await });
    tokio::time::sleep(limits::START_PAUSE).await;
    tokio::task::block_in_place(|| cluster.restart(2));
    opening.await.unwrap().expect("opens");
}

#[tokio::test]
async fn a_store_opens_again_as_it_was() {
    let first = start(shared("start-again"), &fresh(7)).await.expect("opens");
    let mut other = shared("start-again");
    other.streams = 8;
    let again = start(other, &fresh(8)).await.expect("opens");
    assert_eq!(again.record.epoch, first.record.epoch);
    assert_eq!(again.layout.mailbox_streams().len(), 2);
    assert_eq!(first.record.epoch.as_str(), "0000000000000007");
}

#[tokio::test]
async fn the_report_says_what_could_be_safer() {
    let server = aip_engines::Nats::start(NatsOptions::default());
    let with = async |server: &aip_engines::Nats| {
        let mut options = options(&server.url(), "start-report");
        options.monitoring_url = Some(server.monitor_url());
        let report = start(options, &fresh(1)).await.expect("opens").report;
        let codes: Vec<_> = report.warnings.iter().map(|warning| warning.code).collect();
        (report.sync, codes)
    };
    let (sync, codes) = with(&server).await;
    assert!(matches!(sync, server::Sync::Every(_)), "{sync:?}");
    assert_eq!(codes, ["one_replica", "lazy_sync"]);
    let careful = aip_engines::Nats::start(NatsOptions {
        sync_always: true,
        ..NatsOptions::default()
    });
    assert_eq!(with(&careful).await, (server::Sync::Always, vec!["one_replica"]));
}

#[tokio::test]
async fn a_server_without_jetstream_is_refused() {
    let server = aip_engines::Nats::start(NatsOptions {
        without_jetstream: true,
        ..NatsOptions::default()
    });
    let refused = start(options(&server.url(), "start-none"), &fresh(1)).await;
    assert!(matches!(refused, Err(StartError::NoJetStream(_))), "{refused:?}");
}

#[tokio::test]
async fn nobody_there_is_told_without_the_password() {
    let mut options = options("nats://hub:hush@127.0.0.1:1", "start-nobody");
    options.name = "test".to_owned();
    let refused = start(options, &fresh(1))
        .await
        .expect_err("nobody there")
        .to_string();
    assert!(
        refused.contains("127.0.0.1:1") && !refused.contains("hush"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_lost_stream_is_not_replaced_in_silence() {
    let store = start(shared("start-lost"), &fresh(1)).await.expect("opens");
    let name = store.layout.names.mailboxes(1);
    store
        .nats
        .jetstream()
        .delete_stream(&name)
        .await
        .expect("deleted");
    let refused = start(shared("start-lost"), &fresh(1)).await;
    assert!(
        matches!(&refused, Err(StartError::Stream(StreamError::Lost(lost))) if *lost == name),
        "{refused:?}"
    );
    let mut options = shared("start-lost");
    options.replace_lost_streams = true;
    start(options, &fresh(1)).await.expect("opens");
}

#[tokio::test]
async fn mail_without_its_record_is_not_taken_for_a_new_store() {
    let store = start(shared("start-record"), &fresh(1)).await.expect("opens");
    let place = store
        .layout
        .mailbox_place(&aip_relay::mailbox::MailboxId::from_bytes([1; 16]));
    store
        .nats
        .publish(&place.entry_subject, HeaderMap::new(), "mail".into())
        .await
        .expect("stored");
    let meta = store.layout.names.meta();
    store
        .nats
        .jetstream()
        .delete_stream(&meta)
        .await
        .expect("deleted");
    let refused = start(shared("start-record"), &fresh(2)).await;
    assert!(
        matches!(refused, Err(StartError::RecordLost { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn streams_are_made_only_by_those_who_may() {
    let mut options = shared("start-may");
    options.create_streams = false;
    let refused = start(options.clone(), &fresh(1)).await;
    assert!(
        matches!(refused, Err(StartError::Stream(StreamError::Missing(_)))),
        "{refused:?}"
    );
    start(shared("start-may"), &fresh(1)).await.expect("opens");
    start(options, &fresh(1)).await.expect("opens");
}

#[tokio::test]
async fn a_stream_that_differs_is_changed_or_told() {
    let store = start(shared("start-differs"), &fresh(1)).await.expect("opens");
    let name = store.layout.names.mailboxes(0);
    let mut config = info(&store.nats, &name)
        .await
        .expect("read")
        .expect("there")
        .config;
    config.allow_direct = false;
    config.description = Some("ours".to_owned());
    store
        .nats
        .jetstream()
        .update_stream(&config)
        .await
        .expect("changed");
    let refused = start(shared("start-differs"), &fresh(1))
        .await
        .expect_err("differs")
        .to_string();
    assert!(
        refused.contains("allow_direct is false, and must be true"),
        "{refused}"
    );
    let mut options = shared("start-differs");
    options.update_streams = true;
    start(options.clone(), &fresh(1)).await.expect("opens");
    let config = info(&store.nats, &name)
        .await
        .expect("read")
        .expect("there")
        .config;
    assert!(config.allow_direct);
    assert_eq!(config.description.as_deref(), Some("ours"));

    let dead = store.layout.names.dead();
    let mut config = info(&store.nats, &dead)
        .await
        .expect("read")
        .expect("there")
        .config;
    store
        .nats
        .jetstream()
        .delete_stream(&dead)
        .await
        .expect("deleted");
    config.storage = StorageType::Memory;
    store.nats.jetstream().create_stream(&config).await.expect("made");
    let refused = start(options, &fresh(1)).await.expect_err("differs").to_string();
    assert!(
        refused.contains("storage is Memory, and must be File"),
        "{refused}"
    );
}

/// Opens a store on a server that asks who is there.
async fn open_as(config: &str, login: Login) -> Result<Started, StartError> {
    let server = aip_engines::Nats::start(NatsOptions {
        config: config.to_owned(),
        ..NatsOptions::default()
    });
    let mut options = options(&server.url(), "start-login");
    options.login = login;
    start(options, &fresh(1)).await
}

#[tokio::test]
async fn a_server_that_asks_is_told_who_we_are() {
    let password = |password: &str| Login::Password {
        user: "hub".to_owned(),
        password: password.to_owned(),
    };
    let users = "authorization { user: hub, password: hush }";
    assert!(open_as(users, password("hush")).await.is_ok());
    let token = "authorization { token: hush }";
    assert!(open_as(token, Login::Token("hush".to_owned())).await.is_ok());
    for (config, login) in [
        (users, password("hush!")),
        (users, Login::None),
        (token, Login::None),
    ] {
        let refused = open_as(config, login).await.expect_err("not let in");
        assert!(matches!(refused, StartError::Connect(_)), "{refused}");
        assert!(!refused.to_string().contains("hush"), "{refused}");
    }
}

#[tokio::test]
async fn a_file_of_credentials_that_cannot_be_read_is_named() {
    let mut options = shared("start-file");
    options.login = Login::CredentialsFile("/nowhere/hub.creds".into());
    let refused = start(options, &fresh(1))
        .await
        .expect_err("no such file")
        .to_string();
    assert!(refused.contains("/nowhere/hub.creds"), "{refused}");
}

/// An encrypted connection is asked for where it is required, before anything is said.
#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let mut options = shared("start-tls");
    options.tls_required = true;
    let refused = start(options, &fresh(1)).await;
    assert!(matches!(refused, Err(StartError::Connect(_))), "{refused:?}");
}
