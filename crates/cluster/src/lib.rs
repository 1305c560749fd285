//! What several processes of one hub share, on Redis.
//!
//! [`Cluster`] implements the seams by which the rooms speak to other processes of the hub: sessions of one agent
//! ([`Neighbours`](aip_relay::neighbours::Neighbours)), rates of senders
//! ([`SenderBuckets`](aip_relay::rate::SenderBuckets)), the fast path of the dedup window
//! ([`SharedWindow`](aip_relay::dedup::SharedWindow)) and the registry's caches and challenges
//! ([`Siblings`](aip_registry::Siblings)).
//!
//! Nothing here is the truth about a message: a Redis that is away, slow, emptied or full of somebody else's values
//! costs speed and the order between processes, never a message. So no method fails: each has an answer for the case
//! that nobody can be asked, and counts it ([`Stats`]). The process starts without Redis and keeps trying.
//!
//! | key or channel | holds | ends |
//! |---|---|---|
//! | `PREFIX:to:HASH` | channel: signals about one agent | |
//! | `PREFIX:news` | channel: agents that were changed | |
//! | `PREFIX:look` | the process that looked last whether it can write | after a minute |
//! | `PREFIX:at:HASH` | hash: process and generation of an agent's newest session | after 10 minutes, renewed |
//! | `PREFIX:turn:HASH` | newcomers wait: the mailbox changed hands | after a second |
//! | `PREFIX:claim:HASH:SEQ` | the process that has a message in hand | when it is offered again |
//! | `PREFIX:rate:HASH` | when a sender's bucket is full | when it is full |
//! | `PREFIX:seen:HASH` | an accepted envelope, sealed | with the dedup window |
//! | `PREFIX:spent:HASH` | a spent challenge | 5 minutes after it |
//!
//! Hashes are keyed with the hub's secret: who reads Redis learns no DID from the names. Signals and accepted envelopes
//! carry a seal of the same secret: who writes to Redis is not believed.

use std::sync::{Arc, Weak};

use aip_protocol::clock::Clock;
use aip_registry::Registry;
use aip_relay::neighbours::Ears;
use aip_relay::rate::Rate;
use rand_core::Rng;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use self::options::{ConnectError, Options};
pub use self::probe::{Probe, ProbeError, probe};
pub use self::rates::SharedRates;
pub use self::stats::{Health, Stats};
use crate::limits::{FORGET_QUEUE_MAX, LOOK_TIMEOUT, POST_QUEUE_MAX};
use crate::shared::{Lines, Shared};

mod letter;
pub mod limits;
mod link;
mod names;
mod neighbours;
mod options;
mod post;
mod probe;
mod rates;
mod shared;
mod siblings;
mod stats;
mod subscriber;
mod wanted;
mod window;

/// This process among those of its hub.
#[derive(Debug)]
pub struct Cluster {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
}

impl Cluster {
    /// Takes part, as the process named `process` (drawn at random). Waits for the first attempt to connect, however it
    /// ends. `rng` spreads the attempts that follow. To be called within a Tokio runtime.
    ///
    /// # Errors
    /// The URL is none. A Redis that is away is no error: see [`Self::health`].
    pub async fn connect(
        options: Options,
        process: u64,
        clock: Arc<dyn Clock>,
        rng: Box<dyn Rng + Send>,
    ) -> Result<Arc<Self>, ConnectError> {
        let client = options.client()?;
        let limit = options.connect_timeout + LOOK_TIMEOUT;
        let (post, orders) = mpsc::channel(POST_QUEUE_MAX);
        let (changed, changes) = mpsc::channel(FORGET_QUEUE_MAX);
        let shared = Arc::new(Shared::new(options, process, clock, Lines { post, changed }));
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let (first, is_tried) = oneshot::channel();
        let (own, to_stop) = (|| Arc::clone(&shared), || stop.clone());
        tasks.spawn(post::run(own(), orders, to_stop()));
        tasks.spawn(siblings::run(own(), changes, to_stop()));
        tasks.spawn(subscriber::run(own(), client, rng, to_stop(), first));
        // The line is dropped when the attempt is over.
        drop(timeout(limit, is_tried).await);
        let tasks = Mutex::new(tasks);
        Ok(Arc::new(Self { shared, stop, tasks }))
    }

    /// Lets `ears` hear what other processes tell; to be called once, before the first session.
    pub fn listen(&self, ears: Weak<dyn Ears>) {
        self.shared.set_ears(ears);
    }

    /// Lets the registry forget what other processes change; to be called once, before the first request.
    pub fn inform(&self, registry: Weak<Registry>) {
        self.shared.set_registry(registry);
    }

    /// Buckets of this rate, shared by all processes.
    pub fn buckets(&self, rate: Rate) -> SharedRates {
        SharedRates::new(Arc::clone(&self.shared), rate, Arc::clone(&self.shared.clock))
    }

    /// Whether the processes hear of each other.
    pub fn health(&self) -> Health {
        self.shared.link.health()
    }

    /// Counts since the start.
    pub fn stats(&self) -> Stats {
        let Shared {
            counters,
            wanted,
            link,
            ..
        } = &*self.shared;
        counters.read(wanted.len(), link.is_up())
    }

    /// Sends what was ordered, within a time, and lets go of Redis; for a shutdown, after the sessions have ended.
    pub async fn close(&self) {
        self.stop.cancel();
        let mut tasks = self.tasks.lock().await;
        let ended = async { while tasks.join_next().await.is_some() {} };
        drop(timeout(LOOK_TIMEOUT, ended).await);
        tasks.shutdown().await;
        self.shared.link.fall("the hub stops".to_owned());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
