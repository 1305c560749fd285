//! A Redis that dies, stands still or cannot be reached: nobody waits for it, and everything mends itself.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aip_cluster::{Cluster, Health, Options};
use aip_engines::{Proxy, Redis, RedisOptions};
use aip_protocol::clock::Clock;
use aip_registry::{Siblings, Spend, secret::SecretHash};
use aip_relay::dedup::{Accepted, SharedWindow};
use aip_relay::mailbox::Route;
use aip_relay::neighbours::suite::{Side, sessions};
use aip_relay::neighbours::{Claim, Entry, Neighbours, Signal};
use aip_relay::rate::{Rate, SenderBuckets};
use tokio::time::{sleep, timeout};

use crate::kit::{
    PATIENCE, clock, family_of, is_connected, mailbox, options, pair, process, recorded, town_of, until,
};

fn quick(url: &str) -> Options {
    Options {
        connect_timeout: Duration::from_millis(500),
        answer_timeout: Duration::from_millis(250),
        ..options(url)
    }
}

fn rate(burst: u32) -> Rate {
    Rate {
        messages_per_sec: NonZeroU32::MIN,
        burst_messages: NonZeroU32::new(burst).unwrap(),
    }
}

/// Everything has an answer while nobody can be asked, and soon.
async fn answers_alone(cluster: &Arc<Cluster>) {
    let before = cluster.stats();
    let bob = mailbox("alone");
    let claim = Claim {
        seq: 1,
        hold: Duration::from_secs(30),
    };
    let asking = async {
        cluster.arrive(&bob).await;
        assert_eq!(cluster.join(&bob, false, 0).await, Entry::In { generation: 0 });
        assert_eq!(cluster.join(&bob, false, 7).await, Entry::In { generation: 7 });
        assert!(cluster.claim(&bob, &[claim]).await.is_empty());
        assert_eq!(cluster.recall([1; 16]).await, None);
        let challenge = SecretHash::of("alone");
        let until = clock().now() + Duration::from_mins(5);
        assert_eq!(cluster.spend(&challenge, until).await, Spend::Unknown);
        let buckets = cluster.buckets(rate(3));
        for _ in 0..3 {
            buckets.take(&[1; 16]).await.unwrap();
        }
        assert_eq!(buckets.take(&[1; 16]).await, Err(1));
        for seq in 0..100 {
            cluster.tell(&bob, Signal::Buried { seq });
            cluster.release(&bob, &[seq], Duration::ZERO);
        }
        cluster.leave(&bob);
    };
    timeout(Duration::from_secs(20), asking).await.unwrap();
    let after = cluster.stats();
    assert_eq!(after.rate_fallbacks - before.rate_fallbacks, 4);
    assert_eq!(after.unanswered - before.unanswered, 2);
}

/// Signals pass again from one to the other.
async fn hears_again(one: &Side, other: &Side) {
    let bob = mailbox("again");
    other.neighbours.arrive(&bob).await;
    let before = other.ears.about(&bob).len();
    let heard = async {
        while other.ears.about(&bob).len() == before {
            one.neighbours.tell(&bob, Signal::Buried { seq: 1 });
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, heard).await.unwrap();
}

async fn all_connected(clusters: &[Arc<Cluster>; 2]) {
    until("all are connected", || {
        clusters.iter().all(|cluster| is_connected(cluster))
    })
    .await;
}

async fn all_degraded(clusters: &[Arc<Cluster>; 2]) {
    until("all know that Redis is gone", || {
        clusters.iter().all(|cluster| !is_connected(cluster))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_starts_without_redis_and_finds_it_later() {
    let mut redis = Redis::start(RedisOptions::default());
    let options = quick(&redis.url());
    redis.kill();
    let clusters = pair(&options, &clock()).await;
    assert!(matches!(clusters[0].health(), Health::Degraded { .. }));
    answers_alone(&clusters[0]).await;
    let sides = clusters.each_ref().map(recorded);
    // Here before Redis is.
    let bob = mailbox("bob");
    sides[1].neighbours.arrive(&bob).await;
    redis.restart();
    all_connected(&clusters).await;
    until("everybody looks again", || sides[1].ears.reunions() > 0).await;
    sides[0].neighbours.tell(&bob, Signal::Buried { seq: 1 });
    assert_eq!(sides[1].ears.heard(&bob, 1).await, [Signal::Buried { seq: 1 }]);
    assert_eq!(clusters[0].stats().reconnects, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_redis_is_done_without_and_found_again() {
    let mut redis = Redis::start(RedisOptions::default());
    let clusters = pair(&quick(&redis.url()), &clock()).await;
    let sides = clusters.each_ref().map(recorded);
    let bob = mailbox("bob");
    sides[1].neighbours.arrive(&bob).await;
    for round in 1..=3 {
        redis.kill();
        all_degraded(&clusters).await;
        answers_alone(&clusters[0]).await;
        redis.restart();
        all_connected(&clusters).await;
        let before = sides[1].ears.about(&bob).len();
        // Subscribed before, it is again.
        sides[0].neighbours.tell(&bob, Signal::Buried { seq: round });
        sides[1].ears.heard(&bob, before + 1).await;
        assert_eq!(clusters[1].stats().reconnects, round);
    }
    assert!(sides[1].ears.reunions() >= 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_stands_still_holds_nobody_up() {
    let mut redis = Redis::start(RedisOptions::default());
    let clusters = pair(&quick(&redis.url()), &clock()).await;
    let sides = clusters.each_ref().map(recorded);
    redis.pause();
    // The first question finds out; after it nobody waits.
    let buckets = clusters[0].buckets(rate(100));
    let many = async {
        for _ in 0..100 {
            buckets.take(&[1; 16]).await.unwrap();
        }
    };
    timeout(Duration::from_secs(10), many).await.unwrap();
    assert!(clusters[0].stats().timeouts >= 1);
    assert!(clusters[0].stats().timeouts <= 10, "{:?}", clusters[0].stats());
    all_degraded(&clusters).await;
    answers_alone(&clusters[1]).await;
    redis.resume();
    all_connected(&clusters).await;
    hears_again(&sides[0], &sides[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_or_silent_way_is_noticed_and_mended() {
    let redis = Redis::start(RedisOptions::default());
    let proxy = Proxy::to(redis.address());
    let clusters = pair(&quick(&proxy.url(&redis.url())), &clock()).await;
    let sides = clusters.each_ref().map(recorded);
    for how in ["cut", "stalled", "muted"] {
        match how {
            "cut" => proxy.cut(),
            "stalled" => proxy.stall(),
            _ => proxy.mute(),
        }
        all_degraded(&clusters).await;
        answers_alone(&clusters[0]).await;
        proxy.heal();
        all_connected(&clusters).await;
        hears_again(&sides[0], &sides[1]).await;
        assert!(sides[0].ears.reunions() > 0, "{how}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_that_breaks_at_any_byte_is_mended() {
    let redis = Redis::start(RedisOptions::default());
    let proxy = Proxy::to(redis.address());
    let clusters = pair(&quick(&proxy.url(&redis.url())), &clock()).await;
    let sides = clusters.each_ref().map(recorded);
    let bob = mailbox("bob");
    for bytes in (1..2_000).step_by(173) {
        proxy.drop_after(bytes);
        let claims: Vec<Claim> = (1..=20)
            .map(|seq| Claim {
                seq,
                hold: Duration::from_millis(10),
            })
            .collect();
        while is_connected(&clusters[0]) {
            clusters[0].claim(&bob, &claims).await;
            clusters[0].join(&bob, true, 0).await;
        }
        proxy.heal();
        all_connected(&clusters).await;
    }
    hears_again(&sides[0], &sides[1]).await;
    hears_again(&sides[1], &sides[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_redis_is_done_without() {
    let redis = Redis::start(RedisOptions::default());
    let proxy = Proxy::to(redis.address());
    let cluster = process(&quick(&proxy.url(&redis.url())), &clock()).await;
    proxy.delay(Duration::from_millis(600));
    let buckets = cluster.buckets(rate(1_000));
    let asked = async {
        while cluster.stats().rate_fallbacks == 0 {
            buckets.take(&[1; 16]).await.unwrap();
        }
    };
    timeout(PATIENCE, asked).await.unwrap();
    assert!(cluster.stats().timeouts >= 1);
    proxy.delay(Duration::ZERO);
    until("it is trusted again", || is_connected(&cluster)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_forgot_everything_orders_sessions_still() {
    let mut redis = Redis::start(RedisOptions::default());
    let clusters = pair(&quick(&redis.url()), &clock()).await;
    let bob = mailbox("bob");
    let Entry::In { generation: before } = clusters[0].join(&bob, true, 0).await else {
        panic!("the first is let in")
    };
    redis.kill();
    redis.restart();
    all_connected(&clusters).await;
    let after = async {
        loop {
            match clusters[1].join(&bob, true, 0).await {
                Entry::In { generation: 0 } | Entry::Wait(_) => sleep(Duration::from_millis(20)).await,
                Entry::In { generation } => return generation,
            }
        }
    };
    assert!(timeout(PATIENCE, after).await.unwrap() > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sessions_that_began_without_redis_are_one_when_it_is_back() {
    let mut redis = Redis::start(RedisOptions::default());
    let clusters = pair(&quick(&redis.url()), &clock()).await;
    let town = town_of(&clusters);
    redis.kill();
    all_degraded(&clusters).await;
    let back = async {
        redis.restart();
        all_connected(&clusters).await;
    };
    timeout(PATIENCE, sessions::two_that_began_apart_become_one(&town, back))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_is_gone_nothing_is_believed_for_long() {
    let mut redis = Redis::start(RedisOptions::default());
    let clock = clock();
    let clusters = pair(&quick(&redis.url()), &clock).await;
    let family = family_of(&clusters, clock);
    redis.kill();
    all_degraded(&clusters).await;
    // The suite's own wait is shorter than the life of a cache entry.
    aip_registry::testsuite::siblings::a_change_is_seen_by_the_other(family).await;
    assert!(!is_connected(&clusters[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_ordered_is_sent_before_the_end() {
    let redis = Redis::start(RedisOptions::default());
    let clock = clock();
    let clusters = pair(&options(&redis.url()), &clock).await;
    let accepted = Accepted {
        digest: [1; 32],
        until: clock.now() + Duration::from_mins(20),
        seq: Some(1),
        route: Route::Mailbox,
    };
    for number in 0..100 {
        clusters[0].note([number; 16], accepted);
    }
    clusters[0].close().await;
    for number in 0..100 {
        assert_eq!(clusters[1].recall([number; 16]).await, Some(accepted), "{number}");
    }
    assert!(!is_connected(&clusters[0]));
    answers_alone(&clusters[0]).await;
}

async fn raw(redis: &Redis) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(redis.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_became_a_replica_is_done_without() {
    let redis = Redis::start(RedisOptions::default());
    let clusters = pair(&quick(&redis.url()), &clock()).await;
    let sides = clusters.each_ref().map(recorded);
    let mut raw = raw(&redis).await;
    let mut replicate = redis::cmd("REPLICAOF");
    replicate.arg("127.0.0.1").arg("1");
    replicate.exec_async(&mut raw).await.unwrap();
    all_degraded(&clusters).await;
    answers_alone(&clusters[0]).await;
    let mut lead = redis::cmd("REPLICAOF");
    lead.arg("NO").arg("ONE");
    lead.exec_async(&mut raw).await.unwrap();
    all_connected(&clusters).await;
    hears_again(&sides[0], &sides[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_is_complained_of_and_passes_signals_still() {
    let redis = Redis::start(RedisOptions::default());
    let clusters = pair(&quick(&redis.url()), &clock()).await;
    let sides = clusters.each_ref().map(recorded);
    let mut raw = raw(&redis).await;
    let limit = async |bytes: &str, raw: &mut redis::aio::MultiplexedConnection| {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("maxmemory").arg(bytes);
        set.exec_async(raw).await.unwrap();
    };
    limit("1", &mut raw).await;
    all_degraded(&clusters).await;
    let Health::Degraded { reason } = clusters[0].health() else {
        panic!("a full Redis is well")
    };
    assert!(reason.contains("memory"), "{reason}");
    hears_again(&sides[0], &sides[1]).await;
    let buckets = clusters[0].buckets(rate(2));
    buckets.take(&[1; 16]).await.unwrap();
    assert!(clusters[0].stats().rate_fallbacks >= 1);
    assert_eq!(clusters[0].stats().reconnects, 0);
    limit("0", &mut raw).await;
    all_connected(&clusters).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_versions_of_the_protocol_are_spoken() {
    let url = Redis::shared().url();
    let mut options = quick(&format!("{url}?protocol=resp3"));
    let newer = process(&options, &clock()).await;
    options.url = url.into();
    let older = process(&options, &clock()).await;
    let (newer, older) = (recorded(&newer), recorded(&older));
    hears_again(&newer, &older).await;
    hears_again(&older, &newer).await;
}
