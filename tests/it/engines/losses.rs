//! An engine that goes away: what still works, what is refused, and that everything works again.

use aip_engines::{Nats, NatsOptions, Postgres, PostgresOptions, Redis, RedisOptions};
use aip_tests::cluster::{Cluster, Engines};
use aip_tests::keyed;
use aip_tests::ws::Socket;
use serde_json::json;

use super::{inbox, places, ready, recovered, sent, two, until};

/// Speed is lost, and takeover across processes; no message.
#[tokio::test]
async fn without_redis_the_hub_works_and_says_that_it_is_degraded() {
    let mut redis = Redis::start(RedisOptions::default());
    let engines = Engines {
        shared: redis.url(),
        ..Engines::shared()
    };
    let cluster = Cluster::on(engines, 2, "");
    let (a, b) = (cluster.hub(0), cluster.hub(1));
    let (alice, bob) = two(&cluster).await;
    recovered(a).await;

    redis.kill();
    until("the hub says what it lacks", async || {
        let (status, body) = ready(a).await;
        assert_eq!(status, 200, "{body}");
        (body["degraded"] == json!(["redis"])).then_some(())
    })
    .await;
    assert_eq!(a.metric("aip_redis_connected").await, Some(0.0));
    let envelope = alice.envelope(&bob);
    assert_eq!(keyed::send(a, envelope.to_wire()).await.status, 202);
    let again = keyed::send(b, envelope.to_wire()).await;
    assert_eq!(again.json()["status"], "duplicate", "{}", again.text());
    let (mut socket, _) = Socket::signed_in(b, &bob, json!({})).await;
    assert_eq!(socket.frame("msg").await["seq"], 1);
    sent(a, &alice, &bob).await;
    assert_eq!(
        socket.frame("msg").await["seq"],
        2,
        "the live push is not Redis's"
    );

    redis.restart();
    recovered(a).await;
    recovered(b).await;
    assert_eq!(a.metric("aip_redis_connected").await, Some(1.0));
    let (_second, _) = Socket::signed_in(a, &bob, json!({})).await;
    assert_eq!(socket.close_code().await, 4409, "processes hear each other again");
}

/// Nothing is taken that would not be stored, and whoever sends is told when to come back.
#[tokio::test]
async fn without_its_mailboxes_a_process_takes_no_mail_and_recovers() {
    let mut nats = Nats::start(NatsOptions::default());
    let engines = Engines {
        mailboxes: nats.url(),
        ..Engines::shared()
    };
    let cluster = Cluster::on(engines, 1, "");
    let hub = cluster.hub(0);
    let (alice, bob) = two(&cluster).await;
    sent(hub, &alice, &bob).await;

    nats.kill();
    let envelope = alice.envelope(&bob);
    let refused = keyed::send(hub, envelope.to_wire()).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    until("readiness says what is missing", async || {
        (hub.readiness().await == (503, Some("nats_unreachable".to_owned()))).then_some(())
    })
    .await;

    nats.restart();
    recovered(hub).await;
    let answer = keyed::send(hub, envelope.to_wire()).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    let token = bob.token(hub).await;
    assert_eq!(places(&inbox(hub, &token).await), [1, 2]);
}

#[tokio::test]
async fn without_its_names_a_process_is_not_ready_and_recovers() {
    let mut postgres = Postgres::start(PostgresOptions::default());
    let engines = Engines {
        registry: postgres.database("hub"),
        ..Engines::shared()
    };
    let cluster = Cluster::on(engines, 1, "");
    let hub = cluster.hub(0);
    let (alice, bob) = two(&cluster).await;
    postgres.kill();
    until("readiness says what is missing", async || {
        (hub.readiness().await == (503, Some("postgresql_unreachable".to_owned()))).then_some(())
    })
    .await;
    postgres.restart();
    recovered(hub).await;
    sent(hub, &alice, &bob).await;
    aip_tests::TestAgent::registered(hub, "carol").await;
}

/// Addresses hold passwords: neither the log nor an answer nor a command shows one.
#[tokio::test]
async fn no_address_and_no_password_is_ever_shown() {
    let canary = "canary-password";
    let engines = Engines::shared();
    let with_password = |url: &str| url.replacen("://", &format!("://hub:{canary}@"), 1);
    // PostgreSQL trusts everybody; NATS without users ignores who asks; Redis without passwords refuses one.
    let engines = Engines {
        registry: engines.registry.replace("aip@", &format!("aip:{canary}@")),
        mailboxes: with_password(&engines.mailboxes),
        ..engines
    };
    let mut cluster = Cluster::on(engines, 1, "[log]\nfilter = \"debug\"\n");
    let (alice, bob) = two(&cluster).await;
    sent(cluster.hub(0), &alice, &bob).await;
    let metrics = cluster
        .operate(0, aip_tests::raw::Request::get("/metrics"))
        .await
        .text();
    assert!(!metrics.contains(canary));
    cluster.hub_mut(0).terminate(std::time::Duration::from_secs(30));
    assert_silent(&cluster.hub(0).log(), canary);

    // And none where an engine cannot be reached at all.
    let nobody = format!("127.0.0.1:{}", aip_tests::free_port());
    let working = cluster.engines().clone();
    for (registry, mailboxes) in [
        (
            format!("postgres://aip:{canary}@{nobody}/aip"),
            working.mailboxes.clone(),
        ),
        (working.registry.clone(), format!("nats://hub:{canary}@{nobody}")),
    ] {
        let mut options = cluster.options();
        options.environment.extend(
            Engines {
                registry,
                mailboxes,
                ..working.clone()
            }
            .environment(),
        );
        let failure = aip_tests::TestHub::prepare(options).try_restart().unwrap_err();
        assert_silent(&failure.log, canary);
        assert!(
            failure.status.is_some(),
            "it says that it cannot start: {}",
            failure.log
        );
    }
}

fn assert_silent(log: &str, canary: &str) {
    let shown: Vec<_> = log.lines().filter(|line| line.contains(canary)).collect();
    assert!(shown.is_empty(), "{shown:#?}");
}
