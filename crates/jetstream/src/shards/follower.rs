//! How an open store learns that a shard has moved: it looks now and then, and whenever something hints at it.

use std::fmt;
use std::sync::Arc;

use aip_relay::mailbox::StoreError;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::limits;
use crate::meta;
use crate::nats::Nats;
use crate::stats::Stats;
use crate::streams::{Held, Layout, Place};

/// See the module. Clones share it; the looking ends with the last one.
#[derive(Clone)]
pub(crate) struct Follower(Arc<Inner>);

struct Inner {
    looks: Arc<Looks>,
    looker: AbortHandle,
}

struct Looks {
    nats: Nats,
    layout: Arc<Layout>,
    suspected: Notify,
    held: watch::Sender<Arc<Held>>,
    /// Held by whoever reads the record because of a hint: the others wait for what it finds.
    reading: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.looker.abort();
    }
}

impl Follower {
    /// Starts to look.
    pub(crate) fn start(nats: Nats, layout: Arc<Layout>) -> Self {
        let looks = Arc::new(Looks {
            held: watch::Sender::new(layout.held()),
            nats,
            layout,
            suspected: Notify::new(),
            reading: tokio::sync::Mutex::new(()),
        });
        let looker = tokio::spawn(look_now_and_then(Arc::clone(&looks))).abort_handle();
        Self(Arc::new(Inner { looks, looker }))
    }

    pub(crate) fn stats(&self) -> &Arc<Stats> {
        self.0.looks.nats.stats()
    }

    /// Changes when shards have moved.
    pub(crate) fn moves(&self) -> watch::Receiver<Arc<Held>> {
        self.0.looks.held.subscribe()
    }

    /// Something went as it would if a shard had moved: there will be a look soon. Never blocks.
    pub(crate) fn suspect(&self) {
        self.0.looks.suspected.notify_one();
    }

    /// A message of `shard` was stored in `stream`: returns when that is what we know, or cannot be known now.
    pub(crate) async fn expect(&self, shard: u8, stream: &str) {
        let looks = &self.0.looks;
        let known = || *looks.layout.held().stream(shard) == *stream;
        if known() {
            return;
        }
        let _reading = looks.reading.lock().await;
        if !known() {
            looks.look_or_tell().await;
        }
    }

    /// Makes sure, by the store's record, that the mailbox at `place` is there; [`StoreError::Unavailable`] when it
    /// has moved.
    pub(crate) async fn still_holds(&self, place: &Place) -> Result<(), StoreError> {
        let looks = &self.0.looks;
        if looks.layout.holds(place) {
            looks.look().await?;
        }
        if looks.layout.holds(place) {
            Ok(())
        } else {
            Err(StoreError::Unavailable(
                "the mailbox has moved to another stream".into(),
            ))
        }
    }
}

impl Looks {
    async fn look(&self) -> Result<(), StoreError> {
        let Some(record) = meta::find(&self.nats, &self.layout.names).await? else {
            return Err(StoreError::Corrupt("the store's record is gone".into()));
        };
        let moved = self.layout.adopt(&record.shards, &record.moves);
        if !moved.is_empty() {
            tracing::info!(shards = ?moved, "shards have moved to other streams");
            self.held.send_replace(self.layout.held());
        }
        Ok(())
    }

    async fn look_or_tell(&self) {
        if let Err(error) = self.look().await {
            tracing::debug!(%error, "where the shards are cannot be read now");
        }
    }
}

async fn look_now_and_then(looks: Arc<Looks>) {
    let mut disturbed = looks.nats.disturbed();
    loop {
        let sign = async {
            tokio::select! {
                () = looks.suspected.notified() => {}
                changed = disturbed.changed() => if changed.is_err() {
                    std::future::pending::<()>().await;
                },
            }
        };
        // Late is as good as signed.
        let _late = timeout(limits::FOLLOW_EVERY, sign).await;
        looks.look_or_tell().await;
        sleep(limits::FOLLOW_PAUSE).await;
    }
}
