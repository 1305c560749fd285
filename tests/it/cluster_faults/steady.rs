//! Agents whose clients are to notice nothing: each message is taken, and arrives once and in order, over a listener that
//! lives from start to end and at most reconnects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aip_client::inbox::MemoryInbox;
use aip_client::{Client, Draft, ListenOptions, Listener, SessionState};
use aip_tests::clients::{Home, QUICK, agent, handle};
use anyhow::{Context, Result, ensure};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::faults::{DEADLINE, until};

/// Agents that send; each has the same number of recipients.
const SENDERS: usize = 4;
/// Recipients that are made at the same time.
const AT_ONCE: usize = 8;

/// Pairs of agents at work.
pub(super) struct Steady {
    pairs: JoinSet<Result<Passed>>,
    stop: watch::Sender<bool>,
    messages: Arc<AtomicU64>,
}

/// What they went through.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) messages: u64,
    /// Sessions of recipients after their first ones.
    pub(super) reconnects: u64,
}

struct Pair {
    sender: Client,
    to: String,
    listener: Listener,
    messages: Arc<AtomicU64>,
}

impl Steady {
    /// So many recipients, each with a sender, which rests so long between two messages.
    pub(super) async fn start(home: &Home, recipients: usize, rest: Duration) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let messages = Arc::default();
        let mut senders = Vec::new();
        for n in 0..SENDERS {
            senders.push(agent(home, &format!("steadily-{n}")).await?);
        }
        let made = senders.iter().cycle().take(recipients).enumerate();
        let made = made.map(|(n, sender)| Pair::new(home, n, sender.clone(), Arc::clone(&messages)));
        let made: Vec<Pair> = stream::iter(made).buffered(AT_ONCE).try_collect().await?;
        // Nobody works before everybody is there.
        let work = made.into_iter().map(|pair| pair.work(rest, stopped.clone()));
        let pairs = work.collect();
        Ok(Self {
            pairs,
            stop,
            messages,
        })
    }

    /// Waits until so many further messages have arrived.
    pub(super) async fn progress(&self, messages: u64) {
        let enough = self.messages.load(Ordering::Relaxed) + messages;
        until("steady agents go on", || async {
            self.messages.load(Ordering::Relaxed) >= enough
        })
        .await;
    }

    /// Ends it, and fails where a client saw an error.
    pub(super) async fn finish(mut self) -> Result<Passed> {
        self.stop.send_replace(true);
        let mut all = Passed::default();
        let end = async {
            while let Some(passed) = self.pairs.join_next().await {
                let passed = passed??;
                all.messages += passed.messages;
                all.reconnects += passed.reconnects;
            }
            anyhow::Ok(())
        };
        let ended = tokio::time::timeout(DEADLINE, end).await;
        ended.context("a message does not arrive")??;
        Ok(all)
    }
}

impl Pair {
    async fn new(home: &Home, n: usize, sender: Client, messages: Arc<AtomicU64>) -> Result<Self> {
        let name = format!("steady-{n}");
        let recipient = agent(home, &name).await?;
        let options = ListenOptions {
            backoff: QUICK,
            ..ListenOptions::default()
        };
        let listener = recipient.listen(Arc::new(MemoryInbox::default()), options);
        listener.ready().await?;
        Ok(Self {
            sender,
            to: handle(home, &name),
            listener,
            messages,
        })
    }

    /// The next message goes out when the one before has arrived, so that another one would be noticed.
    async fn work(mut self, rest: Duration, stop: watch::Receiver<bool>) -> Result<Passed> {
        let mut messages = 0;
        let mut sessions = 0;
        while !*stop.borrow() {
            let sent = self.sender.send(&Draft::text(&self.to, "as always")).await;
            let sent = sent.context("a sender sees an error")?;
            let came = self.listener.next().await.context("a recipient sees an error")?;
            ensure!(came.id == sent.id, "another message came than {sent:?}: {came:?}");
            self.listener
                .ack(&came)
                .await
                .context("a recipient sees an error")?;
            messages += 1;
            self.messages.fetch_add(1, Ordering::Relaxed);
            if let SessionState::Connected { session, .. } = *self.listener.state().borrow() {
                sessions = session;
            }
            tokio::time::sleep(rest).await;
        }
        self.listener.close().await;
        Ok(Passed {
            messages,
            reconnects: sessions.saturating_sub(1),
        })
    }
}
