//! A fresh message by way of every process, end to end.

use std::collections::BTreeSet;
use std::sync::Arc;

use aip_client::inbox::MemoryInbox;
use aip_client::{Client, Draft, ListenOptions, Listener, SentStatus};
use aip_tests::clients::{Home, QUICK, agent, builder, handle};
use aip_tests::cluster::Cluster;
use anyhow::{Result, ensure};
use futures_util::future::try_join_all;

/// An agent that sends at each process, and one that listens before them all, with one session from start to end.
pub(super) struct Probe {
    /// The same agent at each process.
    senders: Vec<Client>,
    to: String,
    listener: Listener,
}

impl Probe {
    pub(super) async fn new(cluster: &Cluster, home: &Home) -> Result<Self> {
        agent(home, "probe").await?;
        let listening = agent(home, "listener").await?;
        let to = handle(home, "listener");
        let mut senders = Vec::new();
        for hub in cluster.hubs() {
            let sender = builder(cluster.home(hub.url()), "probe")?.build()?;
            // From here on the identity is known, also while the names are away.
            sender.identity(&to).await?;
            senders.push(sender);
        }
        let options = ListenOptions {
            backoff: QUICK,
            ..ListenOptions::default()
        };
        let listener = listening.listen(Arc::new(MemoryInbox::default()), options);
        Ok(Self {
            senders,
            to,
            listener,
        })
    }

    /// A message by way of each process is taken, arrives once and is acknowledged.
    pub(super) async fn round_trip(&mut self) -> Result<()> {
        let draft = Draft::text(&self.to, "are you there?");
        let sent = try_join_all(self.senders.iter().map(|sender| sender.send(&draft))).await?;
        let stored = |status| matches!(status, SentStatus::Stored | SentStatus::Duplicate);
        ensure!(sent.iter().all(|sent| stored(sent.status)), "{sent:?}");
        let mut open: BTreeSet<_> = sent.iter().map(|sent| sent.id.to_string()).collect();
        while !open.is_empty() {
            let message = self.listener.next().await?;
            // One that an earlier round gave up on may come, too.
            open.remove(&message.id.to_string());
            self.listener.ack(&message).await?;
        }
        Ok(())
    }

    pub(super) async fn close(self) {
        self.listener.close().await;
    }
}
