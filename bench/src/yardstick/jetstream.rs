//! NATS JetStream: publish and wait for the ack, and pull with acks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aip_engines::{Nats, NatsOptions};
use async_nats::jetstream::{self, consumer, stream};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::task::JoinSet;

/// One stream on a JetStream server.
#[derive(Debug)]
pub(crate) struct JetStream {
    context: jetstream::Context,
    _server: Option<Nats>,
}

/// The time that a publish may take before its ack.
const ACK_WITHIN: Duration = Duration::from_mins(1);

/// Messages of one fetch.
const FETCH: usize = 256;

/// A context of the servers at these URLs, with a patient client.
pub(crate) async fn connect(urls: &str) -> anyhow::Result<jetstream::Context> {
    let urls: Vec<&str> = urls.split(',').collect();
    let mut context = jetstream::new(async_nats::connect(urls).await?);
    context.set_timeout(ACK_WITHIN);
    Ok(context)
}

impl JetStream {
    /// Starts a server. With `sync_always` it syncs every message before the ack.
    pub(crate) async fn start(sync_always: bool) -> anyhow::Result<Self> {
        let options = NatsOptions {
            sync_always,
            ..NatsOptions::default()
        };
        let server = Nats::try_start(&options)?;
        let context = Self::on(&server.url(), 1).await?.context;
        Ok(Self {
            context,
            _server: Some(server),
        })
    }

    /// A stream of its own, with so many copies, on servers that run.
    pub(crate) async fn on(urls: &str, replicas: usize) -> anyhow::Result<Self> {
        let context = connect(urls).await?;
        context
            .create_stream(stream::Config {
                name: "S".to_owned(),
                subjects: vec!["m.>".to_owned()],
                retention: stream::RetentionPolicy::WorkQueue,
                num_replicas: replicas,
                ..stream::Config::default()
            })
            .await?;
        Ok(Self {
            context,
            _server: None,
        })
    }

    /// Acked publishes per second, with `width` in flight.
    #[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
    pub(crate) async fn publish(
        &self,
        width: usize,
        duration: Duration,
        body: &Bytes,
    ) -> anyhow::Result<f64> {
        let acked = Arc::new(AtomicU64::new(0));
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..width {
            let (context, body, acked) = (self.context.clone(), body.clone(), acked.clone());
            tasks.spawn(async move {
                while started.elapsed() < duration {
                    context.publish("m.bob", body.clone()).await?.await?;
                    acked.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(acked.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
    }

    /// Messages per second of pull and ack of `bodies`, which are published first.
    #[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
    pub(crate) async fn drain(&self, bodies: &[Bytes]) -> anyhow::Result<f64> {
        let stream = self.context.get_stream("S").await?;
        let consumer = stream
            .create_consumer(consumer::pull::Config {
                durable_name: Some("reader".to_owned()),
                max_ack_pending: 20_000,
                ..consumer::pull::Config::default()
            })
            .await?;
        for chunk in bodies.chunks(FETCH) {
            let mut acks = Vec::with_capacity(chunk.len());
            for body in chunk {
                acks.push(self.context.publish("m.bob", body.clone()).await?);
            }
            for ack in acks {
                ack.await?;
            }
        }
        let started = Instant::now();
        let mut got = 0;
        while got < bodies.len() {
            let mut batch = consumer.fetch().max_messages(FETCH).messages().await?;
            while let Some(message) = batch.next().await {
                let message = message.map_err(|error| anyhow::anyhow!("{error}"))?;
                message.ack().await.map_err(|error| anyhow::anyhow!("{error}"))?;
                got += 1;
            }
        }
        self.context.client().flush().await?;
        Ok(got as f64 / started.elapsed().as_secs_f64())
    }
}
