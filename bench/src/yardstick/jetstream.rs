//! NATS JetStream: publish and wait for the ack, and pull with acks. Needs a `nats-server` program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, consumer, stream};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::task::JoinSet;

use crate::process::{Running, free_port, wait_for_port};

/// A JetStream server of this run, with one stream.
#[derive(Debug)]
pub(crate) struct JetStream {
    context: jetstream::Context,
    _server: Running,
}

/// The time that a publish may take before its ack.
const ACK_WITHIN: Duration = Duration::from_mins(1);

/// Messages of one fetch.
const FETCH: usize = 256;

impl JetStream {
    /// Starts a server. With `sync_always` it syncs every message before the ack.
    pub(crate) async fn start(program: &Path, folder: &Path, sync_always: bool) -> anyhow::Result<Self> {
        let port = free_port()?;
        std::fs::create_dir_all(folder)?;
        let sync = if sync_always { "sync_interval: always" } else { "" };
        let config = folder.join("nats.conf");
        let store = folder.join("store");
        std::fs::write(
            &config,
            format!(
                "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\"\n{sync} }}\n",
                store.display()
            ),
        )?;
        let server = Running::start(
            Command::new(program)
                .arg("-c")
                .arg(&config)
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )?;
        wait_for_port(port)?;
        let client = async_nats::connect(format!("nats://127.0.0.1:{port}")).await?;
        let mut context = jetstream::new(client);
        context.set_timeout(ACK_WITHIN);
        context
            .create_stream(stream::Config {
                name: "S".to_owned(),
                subjects: vec!["m.>".to_owned()],
                retention: stream::RetentionPolicy::WorkQueue,
                ..stream::Config::default()
            })
            .await?;
        Ok(Self {
            context,
            _server: server,
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
