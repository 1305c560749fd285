//! Clusters on a Redis, each pair under a prefix of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aip_cluster::{Cluster, Options};
use aip_engines::Redis;
use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_registry::{Registry, Siblings};
use aip_relay::dedup::SharedWindow;
use aip_relay::mailbox::MailboxId;
use aip_relay::neighbours::suite::sessions::Town;
use aip_relay::neighbours::suite::{Recorder, Side};
use aip_relay::neighbours::{Ears, Neighbours, suite};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::sleep;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn mailbox(name: &str) -> MailboxId {
    MailboxId::of(&Did::parse(&format!("did:aip:hub.example:{name}")).unwrap())
}

pub(crate) fn clock() -> Arc<ManualClock> {
    let start = Timestamp::parse("2026-11-29T20:15:30.123Z").unwrap();
    Arc::new(ManualClock::new(start))
}

fn number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::SeqCst)
}

pub(crate) fn options(url: &str) -> Options {
    Options {
        url: url.to_owned().into(),
        secret: [5; 32].into(),
        prefix: format!("test{}", number()),
        connect_timeout: Duration::from_secs(2),
        // A machine at work on many tests.
        answer_timeout: Duration::from_secs(2),
    }
}

pub(crate) async fn process(options: &Options, clock: &Arc<ManualClock>) -> Arc<Cluster> {
    let number = number();
    let clock = Arc::<ManualClock>::clone(clock);
    let rng = Box::new(StdRng::seed_from_u64(number));
    Cluster::connect(options.clone(), number, clock, rng)
        .await
        .unwrap()
}

/// Two processes of one hub.
pub(crate) async fn pair(options: &Options, clock: &Arc<ManualClock>) -> [Arc<Cluster>; 2] {
    [process(options, clock).await, process(options, clock).await]
}

pub(crate) fn recorded(cluster: &Arc<Cluster>) -> Side {
    let ears = Arc::<Recorder>::default();
    let heard: Arc<dyn Ears> = Arc::<Recorder>::clone(&ears);
    cluster.listen(Arc::downgrade(&heard));
    Side {
        neighbours: Arc::<Cluster>::clone(cluster),
        ears,
    }
}

pub(crate) async fn context() -> suite::Context {
    let [one, other] = pair(&options(&Redis::shared().url()), &clock()).await;
    suite::Context::new(recorded(&one), recorded(&other), ())
}

pub(crate) fn town_of(clusters: &[Arc<Cluster>; 2]) -> Town {
    let neighbours =
        [0, 1].map(|number: usize| Arc::<Cluster>::clone(&clusters[number]) as Arc<dyn Neighbours>);
    let listen = |number: usize, ears: Weak<dyn Ears>, _: Arc<dyn Clock>| clusters[number].listen(ears);
    Town::new(neighbours, listen, ())
}

pub(crate) async fn town() -> Town {
    town_of(&pair(&options(&Redis::shared().url()), &clock()).await)
}

pub(crate) async fn window() -> aip_relay::dedup::shared::suite::Context {
    let clock = clock();
    let shared = pair(&options(&Redis::shared().url()), &clock).await;
    let [one, other] = shared.map(|cluster| cluster as Arc<dyn SharedWindow>);
    aip_relay::dedup::shared::suite::Context::new(one, other, clock, ())
}

pub(crate) fn family_of(
    clusters: &[Arc<Cluster>; 2],
    clock: Arc<ManualClock>,
) -> aip_registry::testsuite::siblings::Context {
    let siblings = [0, 1].map(|number: usize| Arc::<Cluster>::clone(&clusters[number]) as Arc<dyn Siblings>);
    let inform = |number: usize, registry: Weak<Registry>| clusters[number].inform(registry);
    aip_registry::testsuite::siblings::Context::new(siblings, clock, inform, ())
}

pub(crate) async fn family() -> aip_registry::testsuite::siblings::Context {
    let clock = clock();
    let clusters = pair(&options(&Redis::shared().url()), &clock).await;
    family_of(&clusters, clock)
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "it never comes true that {what}");
}

pub(crate) fn is_connected(cluster: &Cluster) -> bool {
    cluster.health() == aip_cluster::Health::Connected
}
