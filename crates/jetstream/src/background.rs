//! Records that nobody waits for: a bounded queue, one writer, and tries until it works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::limits;
use crate::nats::Nats;

/// One record on its way into a stream.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) subject: String,
    /// The same for the same record, for who has to write it once: in the background it may be written twice.
    pub(crate) id: String,
    pub(crate) payload: Bytes,
}

/// Writes records behind the back of whoever has them. Their order is not kept.
#[derive(Debug)]
pub(crate) struct Background {
    nats: Nats,
    queue: mpsc::Sender<Record>,
    queued: AtomicU64,
    done: watch::Receiver<u64>,
    writer: AbortHandle,
}

impl Background {
    /// Starts the writer.
    pub(crate) fn start(nats: Nats) -> Self {
        let (queue, records) = mpsc::channel(limits::BACKGROUND_QUEUE_MAX);
        let (finished, done) = watch::channel(0);
        let writer = tokio::spawn(write_all(nats.clone(), records, finished)).abort_handle();
        Self {
            nats,
            queue,
            queued: AtomicU64::new(0),
            done,
            writer,
        }
    }

    /// Queues a record. Never blocks; when the queue is full the record is dropped and counted.
    pub(crate) fn put(&self, record: Record) {
        // Counted first: a flush that has seen the count waits for the record.
        self.queued.fetch_add(1, Ordering::SeqCst);
        if self.queue.try_send(record).is_err() {
            self.queued.fetch_sub(1, Ordering::SeqCst);
            self.nats.stats().records_dropped.one();
        }
    }

    /// Waits until everything that was queued before is written or given up, at most so long. Whether it is.
    pub(crate) async fn flush(&self, within: Duration) -> bool {
        let target = self.queued.load(Ordering::SeqCst);
        let mut done = self.done.clone();
        let flushed = matches!(
            timeout(within, done.wait_for(|done| *done >= target)).await,
            Ok(Ok(_))
        );
        flushed
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

async fn write_all(nats: Nats, mut records: mpsc::Receiver<Record>, finished: watch::Sender<u64>) {
    let nats = Arc::new(nats);
    let mut batch = Vec::with_capacity(limits::BACKGROUND_AT_ONCE);
    loop {
        let taken = records.recv_many(&mut batch, limits::BACKGROUND_AT_ONCE).await;
        if taken == 0 {
            return;
        }
        futures_util::stream::iter(batch.drain(..))
            .for_each_concurrent(limits::BACKGROUND_AT_ONCE, |record| write(&nats, record))
            .await;
        finished.send_modify(|done| *done += taken as u64);
    }
}

/// Without an id, which the servers would keep in memory as long as those of messages: a record that is there twice
/// says no more than once.
async fn write(nats: &Nats, record: Record) {
    for _ in 0..limits::BACKGROUND_TRIES_MAX {
        match nats
            .publish(&record.subject, HeaderMap::new(), record.payload.clone())
            .await
        {
            Ok(_) => return,
            Err(error) => tracing::debug!(%error, "a record is not written yet"),
        }
        sleep(limits::BACKGROUND_PAUSE).await;
    }
    nats.stats().records_dropped.one();
}
