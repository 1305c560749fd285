//! What is told and what is refused about servers.

use super::*;

fn info(version: &str) -> ServerInfo {
    ServerInfo {
        version: version.to_owned(),
        jetstream: true,
        max_payload: 1024 * 1024,
        ..ServerInfo::default()
    }
}

#[test]
fn old_servers_are_refused_with_their_version() {
    let refused =
        |version| check_info(&info(version), &Options::default()).map_err(|error| error.to_string());
    assert_eq!(refused("2.14.0"), Ok(()));
    assert_eq!(refused("2.15.1"), Ok(()));
    assert_eq!(refused("3.0.0-beta.1"), Ok(()));
    let sentence = "the NATS server has version 2.12.6; mailboxes need 2.14 or later";
    assert_eq!(refused("2.12.6"), Err(sentence.to_owned()));
    assert!(refused("").is_err());
    assert!(refused("2").is_err());
}

#[test]
fn what_a_server_cannot_do_is_refused_before_it_is_tried() {
    let options = Options {
        replicas: 3,
        ..Options::default()
    };
    assert!(matches!(
        check_info(&info("2.15.1"), &options),
        Err(StartError::NoCluster { replicas: 3 })
    ));
    let clustered = ServerInfo {
        cluster: Some("c1".to_owned()),
        ..info("2.15.1")
    };
    assert!(check_info(&clustered, &options).is_ok());
    let small = ServerInfo {
        max_payload: 100_000,
        ..info("2.15.1")
    };
    let refused = check_info(&small, &Options::default());
    assert!(matches!(
        refused,
        Err(StartError::SmallPayload { found: 100_000, .. })
    ));
    let without = ServerInfo {
        jetstream: false,
        ..info("2.15.1")
    };
    assert!(matches!(
        check_info(&without, &Options::default()),
        Err(StartError::NoJetStream(_))
    ));
}

fn codes(options: &Options, sync: Sync, tls: bool) -> Vec<&'static str> {
    let report = Report {
        version: "2.15.1".to_owned(),
        cluster: None,
        sync,
        tls,
        storage_bytes: 0,
        storage_bytes_max: None,
        streams: 0,
        warnings: Vec::new(),
    };
    warnings(&report, options)
        .into_iter()
        .map(|warning| warning.code)
        .collect()
}

#[test]
fn what_could_be_safer_is_told() {
    let far = |scheme: &str| Options {
        urls: vec![format!("{scheme}://nats.example:4222")],
        replicas: 3,
        ..Options::default()
    };
    let minutes = Sync::Every(Duration::from_mins(2));
    assert_eq!(codes(&far("tls"), Sync::Always, true), Vec::<&str>::new());
    assert_eq!(codes(&far("nats"), Sync::Always, false), ["plain_text"]);
    assert_eq!(codes(&far("tls"), minutes, true), ["lazy_sync"]);
    assert_eq!(
        codes(&Options::default(), Sync::Unknown, false),
        ["one_replica", "unknown_sync"]
    );
}

#[test]
fn this_machine_is_known_by_its_names() {
    for url in [
        "nats://127.0.0.1:4222",
        "nats://u:p@localhost:4222",
        "nats://[::1]:4222",
        "127.0.0.2",
    ] {
        assert!(is_loopback(url), "{url}");
    }
    for url in [
        "nats://10.0.0.1:4222",
        "nats://localhost.example:1",
        "nats://[2001:db8::1]:4222",
    ] {
        assert!(!is_loopback(url), "{url}");
    }
}
