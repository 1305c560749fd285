//! Keeps the two connections to Redis, which live and end together: one for commands, one for signals.
//!
//! The library's own manager of connections reconnects when a command finds one broken; it does not notice a server
//! that is silent, and would hide that signals were lost in between. So connections are made here, looked at every
//! second, and given up together; after each new one everything is subscribed again and everybody looks again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::try_join;
use rand_core::Rng;
use redis::aio::{MultiplexedConnection, PubSub, PubSubSink};
use redis::{AsyncConnectionConfig, Client, Msg, RedisError, RedisResult};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::limits::{
    AT_RENEW_PAUSE, LOOK_PAUSE, LOOK_TIMEOUT, POST_BATCH_MAX, RECONNECT_PAUSE_MAX, RECONNECT_PAUSE_MIN,
};
use crate::post::Order;
use crate::shared::Shared;

/// Commands that wait for their turn on the connection; further ones wait for a place.
const PIPELINE_MAX: usize = 1_024;
/// How long the trace of a look lies in Redis.
const LOOK_LIFE_MILLIS: u64 = 60_000;

/// Why a connection is given up, or was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("Redis closed the connection")]
    Closed,
    #[error("Redis does not answer")]
    Silent,
    #[error("Redis cannot be reached in time")]
    Unreachable,
    #[error(transparent)]
    Redis(#[from] RedisError),
}

/// Connects, again and again, until it is stopped. `first` hears when the first attempt is over.
pub(crate) async fn run(
    shared: Arc<Shared>,
    client: Client,
    mut rng: Box<dyn Rng + Send>,
    stop: CancellationToken,
    first: oneshot::Sender<()>,
) {
    let mut first = Some(first);
    let mut pause = RECONNECT_PAUSE_MIN;
    loop {
        let lost = tokio::select! {
            lost = connected(&shared, &client, &mut first, &mut pause) => lost,
            () = stop.cancelled() => return,
        };
        if shared.link.is_up() {
            tracing::warn!(%lost, "Redis is gone: this process decides alone until it is back");
        }
        shared.wanted.end();
        shared.link.fall(lost.to_string());
        first.take();
        // Half of it at least, so that processes do not come back all at once.
        let jitter = pause.mul_f64(f64::from(rng.next_u32()) / f64::from(u32::MAX) / 2.0);
        tokio::select! {
            () = sleep(pause / 2 + jitter) => {}
            () = stop.cancelled() => return,
        }
        pause = (pause * 2).min(RECONNECT_PAUSE_MAX);
    }
}

/// One connection, from the attempt to its end.
async fn connected(
    shared: &Arc<Shared>,
    client: &Client,
    first: &mut Option<oneshot::Sender<()>>,
    pause: &mut Duration,
) -> Lost {
    let (commands, signals) = match connect(shared, client).await {
        Ok(both) => both,
        Err(lost) => return lost,
    };
    let (mut sink, mut messages) = signals.split();
    let mut subscriber = Subscriber {
        shared,
        commands: &commands,
        sink: &mut sink,
    };
    if let Err(lost) = subscriber.begin().await {
        return lost;
    }
    shared.link.rise(commands.clone());
    shared.counters.connections.one();
    tracing::info!("Connected to Redis");
    *pause = RECONNECT_PAUSE_MIN;
    first.take();
    lost_news(shared);
    let (mut look, mut renew) = (every(LOOK_PAUSE), every(AT_RENEW_PAUSE));
    loop {
        let done = tokio::select! {
            message = messages.next() => message.map(|message| subscriber.hear(&message)).ok_or(Lost::Closed),
            () = shared.wanted.changed() => subscriber.follow().await,
            () = shared.link.doubted() => subscriber.look().await,
            _ = look.tick() => subscriber.look().await,
            _ = renew.tick() => {
                subscriber.renew();
                Ok(())
            }
        };
        if let Err(lost) = done {
            return lost;
        }
    }
}

async fn connect(shared: &Shared, client: &Client) -> Result<(MultiplexedConnection, PubSub), Lost> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(Some(LOOK_TIMEOUT))
        .set_pipeline_buffer_size(PIPELINE_MAX);
    let both = try_join(
        client.get_multiplexed_async_connection_with_config(&config),
        client.get_async_pubsub(),
    );
    match timeout(shared.options.connect_timeout, both).await {
        Ok(both) => Ok(both?),
        Err(_late) => Err(Lost::Unreachable),
    }
}

/// Signals may have been lost: nothing held is believed, and everybody looks again.
fn lost_news(shared: &Arc<Shared>) {
    shared.forget_all();
    if let Some(ears) = shared.ears() {
        let now = shared.clock.now();
        tokio::spawn(async move { ears.reunite(now).await });
    }
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

struct Subscriber<'a> {
    shared: &'a Shared,
    commands: &'a MultiplexedConnection,
    sink: &'a mut PubSubSink,
}

impl Subscriber<'_> {
    /// Subscribes to everything that is to be heard.
    async fn begin(&mut self) -> Result<(), Lost> {
        self.shared.wanted.begin();
        let news = self.shared.names.news_channel();
        in_time(self.sink.subscribe(news)).await?;
        self.follow().await
    }

    /// Subscribes and unsubscribes until what is heard is what is wanted.
    async fn follow(&mut self) -> Result<(), Lost> {
        let wanted = &self.shared.wanted;
        while wanted.is_open() {
            let errand = wanted.next();
            let channels = |mailboxes: &[_]| -> Vec<String> {
                mailboxes
                    .iter()
                    .map(|mailbox| self.shared.names.channel(mailbox))
                    .collect()
            };
            let (subscribe, unsubscribe) = (channels(&errand.subscribe), channels(&errand.unsubscribe));
            if !subscribe.is_empty() {
                in_time(self.sink.subscribe(subscribe)).await?;
            }
            if !unsubscribe.is_empty() {
                in_time(self.sink.unsubscribe(unsubscribe)).await?;
            }
            wanted.done(&errand);
        }
        Ok(())
    }

    fn hear(&self, message: &Msg) {
        match (message.get_channel::<String>(), message.get_payload::<Vec<u8>>()) {
            (Ok(channel), Ok(bytes)) => self.shared.hear(&channel, &bytes),
            _ => self.shared.counters.bad_values.one(),
        }
    }

    /// Whether both connections are answered, and something can be written. Without room for that, signals pass still.
    async fn look(&mut self) -> Result<(), Lost> {
        let mut commands = self.commands.clone();
        let mut set = redis::cmd("SET");
        set.arg(self.shared.names.look())
            .arg(self.shared.own_name())
            .arg("PX")
            .arg(LOOK_LIFE_MILLIS);
        let write = async {
            match set.exec_async(&mut commands).await {
                Err(full) if full.code() == Some("OOM") => Ok(Some(full.to_string())),
                written => written.map(|()| None),
            }
        };
        let both = try_join(write, self.sink.ping::<redis::Value>());
        let (complaint, _pong) = in_time(both).await?;
        self.shared.link.trust(complaint);
        Ok(())
    }

    /// Says again which agents are here.
    fn renew(&self) {
        let mailboxes: Vec<_> = self.shared.joined().iter().copied().collect();
        for some in mailboxes.chunks(POST_BATCH_MAX) {
            self.shared.order(Order::Renew(some.to_vec()));
        }
    }
}

async fn in_time<T>(answer: impl Future<Output = RedisResult<T>>) -> Result<T, Lost> {
    match timeout(LOOK_TIMEOUT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_late) => Err(Lost::Silent),
    }
}
