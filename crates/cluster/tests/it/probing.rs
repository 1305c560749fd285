//! What an operator is told of a Redis.

use std::net::TcpListener;
use std::time::Duration;

use aip_cluster::{ConnectError, Health, Options, ProbeError, probe};
use aip_engines::{Redis, RedisOptions};

use crate::kit::{clock, options, process};

#[tokio::test]
async fn a_good_redis_is_good() {
    let probe = probe(&options(&Redis::shared().url())).await.unwrap();
    assert!(probe.version.starts_with(char::is_numeric), "{probe:?}");
    assert_eq!(probe.eviction_policy, "noeviction");
    assert!(probe.warnings.iter().any(|warning| warning.contains("maxmemory")));
}

#[tokio::test]
async fn a_redis_that_throws_keys_away_is_warned_of() {
    let settings = [("maxmemory", "64mb"), ("maxmemory-policy", "allkeys-lru")];
    let redis = Redis::start(RedisOptions {
        settings: settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..RedisOptions::default()
    });
    let probe = probe(&options(&redis.url())).await.unwrap();
    assert_eq!(probe.eviction_policy, "allkeys-lru");
    assert!(probe.warnings[0].contains("allkeys-lru"), "{probe:?}");
}

#[tokio::test]
async fn a_redis_with_a_password_lets_nobody_in_without_it() {
    let redis = Redis::start(RedisOptions::default());
    let url = redis.url();
    let client = redis::Client::open(url.as_str()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("requirepass").arg("sesame");
    set.exec_async(&mut raw).await.unwrap();
    let error = probe(&options(&url)).await.unwrap_err();
    assert!(matches!(error, ProbeError::Redis(_)), "{error}");
    let wrong = options(&url.replace("redis://", "redis://:swordfish@"));
    let error = probe(&wrong).await.unwrap_err();
    assert!(!error.to_string().contains("swordfish"), "{error}");
    let cluster = process(&wrong, &clock()).await;
    let Health::Degraded { reason } = cluster.health() else {
        panic!("a wrong password opens")
    };
    assert!(!reason.contains("swordfish"), "{reason}");
    let right = options(&url.replace("redis://", "redis://:sesame@"));
    probe(&right).await.unwrap();
    assert_eq!(process(&right, &clock()).await.health(), Health::Connected);
    assert!(!format!("{right:?}").contains("sesame"));
}

#[tokio::test]
async fn a_url_that_is_none_is_told_without_quoting_it() {
    for url in ["", "http://:secret@host", "redis:secret", "nonsense secret"] {
        let bad = options(url);
        let error = probe(&bad).await.unwrap_err();
        assert!(
            matches!(error, ProbeError::Url(ConnectError::Url)),
            "{url}: {error}"
        );
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn nobody_there_and_nobody_answering_are_told_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let quick = |url: &str| Options {
        connect_timeout: Duration::from_millis(200),
        ..options(url)
    };
    let error = probe(&quick(&format!("redis://{address}/"))).await.unwrap_err();
    assert!(
        matches!(error, ProbeError::Silent(_) | ProbeError::Redis(_)),
        "{error}"
    );
    drop(silent);
    let error = probe(&quick(&format!("redis://{address}/"))).await.unwrap_err();
    assert!(matches!(error, ProbeError::Redis(_)), "{error}");
}

#[tokio::test]
async fn tls_to_one_that_speaks_none_is_no_connection() {
    let url = Redis::shared().url().replace("redis://", "rediss://");
    let error = probe(&options(&url)).await.unwrap_err();
    assert!(
        matches!(error, ProbeError::Silent(_) | ProbeError::Redis(_)),
        "{error}"
    );
    let cluster = process(&options(&url), &clock()).await;
    assert!(matches!(cluster.health(), Health::Degraded { .. }));
}
