//! One batched Direct Get: a whole subject of a stream by one request.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use async_nats::{Client, Subscriber, jetstream};
use futures_util::StreamExt;
use futures_util::stream::TryStreamExt;
use serde_json::json;
use tokio::task::JoinSet;

/// A subject and the stream that holds it.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    stream: String,
    subject: String,
}

/// All subjects of these streams that match `filter`.
pub(crate) async fn subjects(
    context: &jetstream::Context,
    streams: &[String],
    filter: &str,
) -> anyhow::Result<Vec<Subject>> {
    let mut all = Vec::new();
    for name in streams {
        let stream = context.get_stream(name).await?;
        let mut info = stream.info_with_subjects(filter).await?;
        while let Some((subject, _)) = info.try_next().await? {
            all.push(Subject {
                stream: name.clone(),
                subject,
            });
        }
    }
    Ok(all)
}

/// One reader with a subscription of its own, which is made once.
struct Reader {
    client: Client,
    inbox: String,
    replies: Subscriber,
}

impl Reader {
    async fn new(client: &Client) -> anyhow::Result<Self> {
        let inbox = client.new_inbox();
        Ok(Self {
            client: client.clone(),
            replies: client.subscribe(inbox.clone()).await?,
            inbox,
        })
    }

    /// Reads `batch` messages of a subject.
    async fn read(&mut self, of: &Subject, batch: usize) -> anyhow::Result<()> {
        let asked = json!({"seq": 1, "next_by_subj": of.subject, "batch": batch}).to_string();
        let call = format!("$JS.API.DIRECT.GET.{}", of.stream);
        self.client
            .publish_with_reply(call, self.inbox.clone(), asked.into_bytes().into())
            .await?;
        let mut got = 0;
        loop {
            let message = self.replies.next().await.context("the subscription ended")?;
            match message.status.map(|status| status.as_u16()) {
                None => got += 1,
                Some(204) if got == batch => return Ok(()),
                status => bail!("{got} messages of {batch} came before {status:?}"),
            }
        }
    }
}

/// Reads `batch` messages of each of these subjects, `width` at a time, each with its own subscription; the time of
/// every read.
pub(crate) async fn read_all(
    client: &Client,
    all: &[Subject],
    batch: usize,
    width: usize,
) -> anyhow::Result<Vec<Duration>> {
    let mut tasks = JoinSet::new();
    for part in all.chunks(all.len().div_ceil(width).max(1)) {
        let (part, mut reader) = (part.to_vec(), Reader::new(client).await?);
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(part.len());
            for of in &part {
                let at = Instant::now();
                reader.read(of, batch).await?;
                times.push(at.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::with_capacity(all.len());
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    Ok(times)
}
