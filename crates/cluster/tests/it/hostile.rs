//! Values that this room did not write: they are ignored and counted, and break nothing.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aip_cluster::Cluster;
use aip_engines::Redis;
use aip_protocol::clock::{Clock, ManualClock};
use aip_relay::dedup::{Accepted, SharedWindow};
use aip_relay::mailbox::Route;
use aip_relay::neighbours::{Claim, Entry, Neighbours, Signal};
use aip_relay::rate::{Rate, SenderBuckets};
use redis::aio::MultiplexedConnection;
use redis::{Value, cmd};
use tokio::time::timeout;

use crate::kit::{PATIENCE, clock, is_connected, mailbox, options, pair, recorded, until};

async fn raw() -> MultiplexedConnection {
    let client = redis::Client::open(Redis::shared().url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn keys(raw: &mut MultiplexedConnection, pattern: &str) -> Vec<String> {
    cmd("KEYS").arg(pattern).query_async(raw).await.unwrap()
}

struct Ground {
    clusters: [Arc<Cluster>; 2],
    prefix: String,
    raw: MultiplexedConnection,
    clock: Arc<ManualClock>,
}

impl Ground {
    async fn new() -> Self {
        let (options, clock) = (options(&Redis::shared().url()), clock());
        Self {
            clusters: pair(&options, &clock).await,
            prefix: options.prefix,
            raw: raw().await,
            clock,
        }
    }

    /// The only key of a kind, which must be there.
    async fn key(&mut self, kind: &str) -> String {
        let keys = keys(&mut self.raw, &format!("{}:{kind}:*", self.prefix)).await;
        assert_eq!(keys.len(), 1, "{keys:?}");
        keys[0].clone()
    }

    /// Puts something of every type there, one after the other, and does something each time.
    async fn spoil(&mut self, key: &str, mut act: impl AsyncFnMut(&str)) {
        let spoils: [&[&str]; 9] = [
            &["SET", key, ""],
            &["SET", key, "nonsense"],
            &["SET", key, "-1"],
            &["SET", key, "9223372036854775807"],
            &["SET", key, "1e308"],
            &["SET", key, "nan"],
            &["RPUSH", key, "1", "2"],
            &["SADD", key, "x"],
            &[
                "HSET",
                key,
                "generation",
                "1e300",
                "share",
                "x",
                "process",
                "\u{0}",
            ],
        ];
        for spoil in spoils {
            cmd("DEL").arg(key).exec_async(&mut self.raw).await.unwrap();
            let mut command = cmd(spoil[0]);
            command.arg(&spoil[1..]);
            command.exec_async(&mut self.raw).await.unwrap();
            act(&spoil.join(" ")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoilt_bucket_locks_nobody_out() {
    let mut ground = Ground::new().await;
    let rate = Rate {
        messages_per_sec: NonZeroU32::new(100).unwrap(),
        burst_messages: NonZeroU32::new(10).unwrap(),
    };
    let buckets = ground.clusters[0].buckets(rate);
    buckets.take(&[1; 16]).await.unwrap();
    let key = ground.key("rate").await;
    ground
        .spoil(&key, async |spoil| {
            // At most a full bucket's time: a tenth of a second.
            let taken = async {
                while buckets.take(&[1; 16]).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            timeout(Duration::from_secs(5), taken)
                .await
                .unwrap_or_else(|_| panic!("{spoil}"));
        })
        .await;
    assert_eq!(ground.clusters[0].stats().rate_fallbacks, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoilt_entry_ends_nobodys_session() {
    let mut ground = Ground::new().await;
    let bob = mailbox("bob");
    let one = Arc::<Cluster>::clone(&ground.clusters[0]);
    let Entry::In { generation: first } = one.join(&bob, true, 0).await else {
        panic!("the first is let in")
    };
    let key = ground.key("at").await;
    ground
        .spoil(&key, async |spoil| match one.join(&bob, true, 0).await {
            Entry::In { generation } => assert!(generation > first, "{spoil}: {generation}"),
            Entry::Wait(pause) => assert!(pause <= Duration::from_secs(1), "{spoil}"),
        })
        .await;
    one.leave(&bob);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoilt_claim_holds_nothing() {
    let mut ground = Ground::new().await;
    let bob = mailbox("bob");
    let one = Arc::<Cluster>::clone(&ground.clusters[0]);
    let claim = Claim {
        seq: 1,
        hold: Duration::from_secs(30),
    };
    assert!(one.claim(&bob, &[claim]).await.is_empty());
    let key = ground.key("claim").await;
    ground
        .spoil(&key, async |spoil| {
            assert!(one.claim(&bob, &[claim]).await.is_empty(), "{spoil}");
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoilt_note_is_no_note() {
    let mut ground = Ground::new().await;
    let one = Arc::<Cluster>::clone(&ground.clusters[0]);
    let accepted = Accepted {
        digest: [1; 32],
        until: ground.clock.now() + Duration::from_mins(20),
        seq: Some(1),
        route: Route::Mailbox,
    };
    one.note([1; 16], accepted);
    let noted = async {
        while one.recall([1; 16]).await != Some(accepted) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, noted).await.unwrap();
    let key = ground.key("seen").await;
    // A true note, at another's place.
    let value: Vec<u8> = cmd("GET").arg(&key).query_async(&mut ground.raw).await.unwrap();
    one.note([2; 16], accepted);
    let noted = async {
        while one.recall([2; 16]).await != Some(accepted) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, noted).await.unwrap();
    let both = keys(&mut ground.raw, &format!("{}:seen:*", ground.prefix)).await;
    let other = both.into_iter().find(|other| *other != key).unwrap();
    cmd("SET")
        .arg(&other)
        .arg(value)
        .exec_async(&mut ground.raw)
        .await
        .unwrap();
    assert_eq!(one.recall([2; 16]).await, None);
    ground
        .spoil(&key, async |spoil| {
            assert_eq!(one.recall([1; 16]).await, None, "{spoil}");
        })
        .await;
    assert!(is_connected(&one), "{:?}", one.health());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strangers_messages_are_not_heard() {
    let mut ground = Ground::new().await;
    let bob = mailbox("bob");
    let [one, other] = &ground.clusters;
    let (one, other) = (recorded(one), recorded(other));
    other.neighbours.arrive(&bob).await;
    let channels: Vec<String> = cmd("PUBSUB")
        .arg("CHANNELS")
        .arg(format!("{}:*", ground.prefix))
        .query_async(&mut ground.raw)
        .await
        .unwrap();
    assert_eq!(channels.len(), 2, "{channels:?}");
    // What another process of the hub said, heard by a stranger and said again elsewhere.
    let client = redis::Client::open(Redis::shared().url()).unwrap();
    let mut spy = client.get_async_pubsub().await.unwrap();
    spy.subscribe(&channels).await.unwrap();
    one.neighbours.tell(&bob, Signal::Buried { seq: 1 });
    let overheard = futures_util::StreamExt::next(&mut spy.on_message())
        .await
        .unwrap();
    let overheard: Vec<u8> = overheard.get_payload().unwrap();
    let mut said = 0;
    for channel in &channels {
        let long = "x".repeat(300_000);
        let texts = [
            "",
            "{}",
            "\u{0}\u{0}",
            long.as_str(),
            "{\"from\":1,\"what\":{\"close\":1}}",
        ];
        for bytes in texts.map(str::as_bytes) {
            cmd("PUBLISH")
                .arg(channel)
                .arg(bytes)
                .exec_async(&mut ground.raw)
                .await
                .unwrap();
            said += 1;
        }
        if channel.ends_with(":news") {
            cmd("PUBLISH")
                .arg(channel)
                .arg(&overheard)
                .exec_async(&mut ground.raw)
                .await
                .unwrap();
            said += 1;
        }
    }
    let cluster = &ground.clusters[1];
    until("all were counted", || cluster.stats().bad_values >= said).await;
    assert_eq!(other.ears.about(&bob), [Signal::Buried { seq: 1 }]);
    assert_eq!(cluster.stats().signals_received, 1);
    assert!(is_connected(cluster));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_in_redis_names_an_agent() {
    let mut ground = Ground::new().await;
    let bob = mailbox("bob");
    let one = &ground.clusters[0];
    one.arrive(&bob).await;
    one.join(&bob, false, 0).await;
    let claim = Claim {
        seq: 1,
        hold: Duration::from_secs(30),
    };
    one.claim(&bob, &[claim]).await;
    let plain = hex::encode(bob.as_bytes());
    for key in keys(&mut ground.raw, &format!("{}:*", ground.prefix)).await {
        assert!(!key.contains("bob") && !key.contains(&plain), "{key}");
        let ttl: i64 = cmd("PTTL").arg(&key).query_async(&mut ground.raw).await.unwrap();
        assert!(ttl > 0, "{key} never ends");
        let value: Value = cmd("TYPE").arg(&key).query_async(&mut ground.raw).await.unwrap();
        assert!(!format!("{value:?}").contains("bob"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hubs_on_one_redis_do_not_hear_each_other() {
    let clock = clock();
    let options = options(&Redis::shared().url());
    let mut elsewhere = options.clone();
    elsewhere.prefix.push_str("-b");
    let [one, other] = pair(&options, &clock).await;
    let [stranger, _] = pair(&elsewhere, &clock).await;
    let (one, other, stranger) = (recorded(&one), recorded(&other), recorded(&stranger));
    let bob = mailbox("bob");
    stranger.neighbours.arrive(&bob).await;
    other.neighbours.arrive(&bob).await;
    one.neighbours.tell(&bob, Signal::Buried { seq: 1 });
    other.ears.heard(&bob, 1).await;
    assert!(stranger.ears.about(&bob).is_empty());
}
