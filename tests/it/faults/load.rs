//! Load: agents that send in every way there is, and agents that receive in lives that end without a goodbye.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aip_client::inbox::{InboxError, MemoryInbox};
use aip_client::protocol::clock::Clock as _;
use aip_client::protocol::clock::ManualClock;
use aip_client::protocol::envelope::Envelope;
use aip_client::{
    Client, Draft, Error, KeyFile, ListenOptions, Listener, OnReplaced, SealedEnvelope, SystemClock,
};
use aip_tests::chance;
use aip_tests::clients::{Home, QUICK, agent, builder, folder, handle};
use aip_tests::history::{Event, History};
use aip_tests::ledger::Ledger;
use anyhow::{Context, Result};
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{DEADLINE, until};

/// Agents that send.
const SENDERS: usize = 4;
/// Agents that receive.
const RECIPIENTS: usize = 3;
/// Older than any hub accepts.
const STALE: Duration = Duration::from_mins(20);
/// Messages in flight to a recipient: few, so that those that are not reached in a life are not offered in vain.
const CREDIT: u32 = 8;
/// The longest time that a message is in hand before its effect.
const IN_HAND_MICROS_MAX: u64 = 2_000;

/// How fast agents work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// A sender's rest between two sendings, at most.
    pub(crate) rest: Duration,
    /// The longest life of a recipient.
    pub(crate) life: Duration,
}

impl Pace {
    /// As fast as they can.
    pub(crate) const FULL: Self = Self {
        rest: Duration::ZERO,
        life: Duration::from_secs(1),
    };
}

/// Agents at work.
pub(crate) struct Load {
    pub(crate) history: History,
    stop_sending: watch::Sender<bool>,
    stop_receiving: watch::Sender<bool>,
    senders: JoinSet<Result<()>>,
    recipients: JoinSet<Result<()>>,
    /// Looks after the mailboxes of the recipients.
    owners: Vec<Client>,
}

impl Load {
    /// Registers the agents and sets them to work, as fast as they can.
    pub(crate) async fn start(home: impl Into<Home>, seed: u64) -> Result<Self> {
        Self::paced(home.into(), seed, Pace::FULL).await
    }

    /// The same at another pace.
    pub(crate) async fn paced(home: Home, seed: u64, pace: Pace) -> Result<Self> {
        Self::between(&home, &home, seed, pace).await
    }

    /// Agents of one hub that send to agents of another, or of the same.
    pub(crate) async fn between(home: &Home, there: &Home, seed: u64, pace: Pace) -> Result<Self> {
        let (stop_sending, sending) = watch::channel(false);
        let (stop_receiving, receiving) = watch::channel(false);
        let history = History::default();
        let (mut senders, mut recipients) = (JoinSet::new(), JoinSet::new());
        let mut owners = Vec::new();
        let names: Vec<String> = (0..RECIPIENTS).map(|n| format!("recipient-{n}")).collect();
        for (n, name) in (0..).zip(&names) {
            let client = agent(there, name).await?;
            let did = client.did().context("a DID")?.to_string();
            owners.push(client);
            let recipient = Recipient {
                hub: there.url.clone(),
                folder: folder(there, name),
                did,
                history: history.clone(),
                life: pace.life,
                no_more: sending.clone(),
            };
            let (chance, stop) = (chance(seed.wrapping_add(100 + n)), receiving.clone());
            recipients.spawn_blocking(move || recipient.live_on(chance, &stop));
        }
        for n in 0..SENDERS {
            let handles = names.iter().map(|name| handle(there, name)).collect();
            let sender = Sender::new(home, &format!("sender-{n}"), handles, history.clone()).await?;
            let sender = Sender {
                rest: pace.rest,
                ..sender
            };
            senders.spawn(sender.send_on(chance(seed.wrapping_add(n as u64)), sending.clone()));
        }
        Ok(Self {
            history,
            stop_sending,
            stop_receiving,
            senders,
            recipients,
            owners,
        })
    }

    /// Waits until so many further events have happened.
    pub(crate) async fn progress(&self, events: usize) {
        let enough = self.history.len() + events;
        until("the load goes on", || async { self.history.len() >= enough }).await;
    }

    /// Lets the senders finish, the recipients empty their mailboxes, and everybody stop.
    pub(crate) async fn finish(mut self) -> Result<History> {
        self.stop_sending.send_replace(true);
        all(&mut self.senders).await.context("a sender")?;
        // What was lost never settles; the checker says so better than a deadline does.
        if let Ok(settled) = tokio::time::timeout(DEADLINE, self.settled()).await {
            settled?;
        }
        self.stop_receiving.send_replace(true);
        all(&mut self.recipients).await.context("a recipient")?;
        Ok(self.history)
    }

    /// What was offered in vain in too many lives lies among the dead letters by now, as it should: it is not lost.
    async fn settled(&self) -> Result<()> {
        let mut kept = BTreeSet::new();
        while self.history.unsettled() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            for owner in &self.owners {
                for letter in dead_letters(owner).await? {
                    if kept.insert(letter.dedup_key()) {
                        self.history.push(Event::kept(&letter));
                    }
                }
            }
        }
        Ok(())
    }
}

async fn dead_letters(owner: &Client) -> Result<Vec<Envelope>> {
    let (mut letters, mut cursor) = (Vec::new(), None);
    loop {
        let page = owner.dead_letters(cursor.as_deref()).await?;
        letters.extend(page.items.into_iter().filter_map(|letter| letter.envelope));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(letters);
        }
    }
}

async fn all(tasks: &mut JoinSet<Result<()>>) -> Result<()> {
    let end = async {
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(())
    };
    tokio::time::timeout(DEADLINE, end)
        .await
        .context("it does not end")?
}

/// An agent that sends.
struct Sender {
    client: Client,
    /// The same agent with a clock that is wrong.
    late: Client,
    session: Listener,
    recipients: Vec<String>,
    history: History,
    /// Between two sendings, at most.
    rest: Duration,
}

impl Sender {
    async fn new(home: &Home, name: &str, recipients: Vec<String>, history: History) -> Result<Self> {
        let client = agent(home, name).await?;
        let clock = ManualClock::new(SystemClock.now() - STALE);
        let late = builder(home, name)?.clock(Arc::new(clock)).build()?;
        let session = client.listen(Arc::new(MemoryInbox::default()), options());
        for to in &recipients {
            // From here on the identities are known, also to a client that looks while the hub is away.
            client.identity(to).await?;
            late.identity(to).await?;
        }
        Ok(Self {
            client,
            late,
            session,
            recipients,
            history,
            rest: Duration::ZERO,
        })
    }

    async fn send_on(self, mut chance: StdRng, stop: watch::Receiver<bool>) -> Result<()> {
        while !*stop.borrow() {
            let to = self
                .recipients
                .get(chance.random_range(0..self.recipients.len()))
                .context("a recipient")?;
            match chance.random_range(0..10) {
                0..4 => drop(self.patiently(&self.seal(to, &mut chance).await?).await),
                4 => self.again(&self.seal(to, &mut chance).await?).await,
                5 => self.twice_at_once(&self.seal(to, &mut chance).await?).await,
                6 => self.many(to, &mut chance).await?,
                7 => self.by_session(&self.seal(to, &mut chance).await?).await,
                8 => self.reuse_id(to, &mut chance).await?,
                _ => self.stale(to).await?,
            }
            if !self.rest.is_zero() {
                tokio::time::sleep(self.rest.mul_f64(chance.random())).await;
            }
        }
        self.session.close().await;
        Ok(())
    }

    fn draft(to: &str, chance: &mut StdRng) -> Draft {
        let most = if chance.random_ratio(1, 20) {
            64 * 1024
        } else {
            2_000
        };
        Draft::text(to, "x".repeat(chance.random_range(1..most)))
    }

    async fn seal(&self, to: &str, chance: &mut StdRng) -> Result<SealedEnvelope> {
        Ok(self.client.seal(&Self::draft(to, chance)).await?)
    }

    fn note(&self, sealed: &SealedEnvelope, answer: &Result<aip_client::Sent, Error>) {
        self.history.push(Event::sent(sealed.envelope(), answer));
    }

    /// The same bytes until the hub has answered.
    async fn patiently(&self, sealed: &SealedEnvelope) -> bool {
        let answer = self.client.submit(sealed).await;
        self.note(sealed, &answer);
        answer.is_ok()
    }

    async fn once(&self, sealed: &SealedEnvelope) {
        self.note(sealed, &self.client.submit_once(sealed).await);
    }

    async fn again(&self, sealed: &SealedEnvelope) {
        self.once(sealed).await;
        self.once(sealed).await;
    }

    async fn twice_at_once(&self, sealed: &SealedEnvelope) {
        tokio::join!(self.once(sealed), self.once(sealed));
    }

    async fn many(&self, to: &str, chance: &mut StdRng) -> Result<()> {
        let mut batch = Vec::new();
        for _ in 0..chance.random_range(1..20) {
            batch.push(self.seal(to, chance).await?);
        }
        for (sealed, answer) in batch.iter().zip(self.client.submit_batch(&batch).await) {
            self.note(sealed, &answer);
        }
        Ok(())
    }

    async fn by_session(&self, sealed: &SealedEnvelope) {
        let answer = self.session.submit(sealed).await;
        let open = answer.as_ref().is_err_and(Error::is_transient);
        self.note(sealed, &answer);
        if open {
            self.patiently(sealed).await;
        }
    }

    /// Another message under an id that is taken: refused, and never delivered.
    async fn reuse_id(&self, to: &str, chance: &mut StdRng) -> Result<()> {
        let first = self.seal(to, chance).await?;
        if self.patiently(&first).await {
            let other = self.client.seal(&Self::draft(to, chance).id(first.id())).await?;
            self.patiently(&other).await;
        }
        Ok(())
    }

    /// Sealed with a clock that is wrong: refused, and never delivered.
    async fn stale(&self, to: &str) -> Result<()> {
        let sealed = self.late.seal(&Draft::text(to, "from the past")).await?;
        self.once(&sealed).await;
        Ok(())
    }
}

fn options() -> ListenOptions {
    ListenOptions {
        credit: CREDIT,
        backoff: QUICK,
        on_replaced: OnReplaced::Stop,
        ..ListenOptions::default()
    }
}

/// An agent that receives, life after life.
struct Recipient {
    hub: String,
    folder: PathBuf,
    did: String,
    history: History,
    life: Duration,
    /// Nothing more is sent: the mailbox is to be emptied, in one life.
    no_more: watch::Receiver<bool>,
}

impl Recipient {
    /// Each life has a runtime of its own, which ends as a killed process does: nothing in it runs on, sockets just break.
    /// What its disk was writing at that moment is written.
    fn live_on(&self, mut chance: StdRng, stop: &watch::Receiver<bool>) -> Result<()> {
        while !*stop.borrow() {
            let span = self.life.mul_f64(chance.random());
            let span = if *self.no_more.borrow() { DEADLINE } else { span };
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()?;
            let ended = runtime.block_on(self.live(span, &mut chance, stop.clone()));
            runtime.shutdown_background();
            ended?;
        }
        Ok(())
    }

    async fn live(&self, span: Duration, chance: &mut StdRng, stop: watch::Receiver<bool>) -> Result<()> {
        let client = Client::builder(&self.hub)
            .allow_http(true)
            .key_file(KeyFile::at(self.folder.join("agent.key")))?
            .backoff(QUICK)
            .build()?;
        let ledger = Arc::new(self.open_ledger().await?);
        let listener = client.listen(ledger, options());
        tokio::select! {
            ended = self.work(listener, chance, stop) => ended,
            () = tokio::time::sleep(span) => Ok(()),
        }
    }

    /// The life before may still be writing.
    async fn open_ledger(&self) -> Result<Ledger> {
        let open = async {
            loop {
                let inbox = self.folder.join("inbox");
                match Ledger::open(&inbox, self.did.clone(), self.history.clone()) {
                    Err(InboxError::InUse(_)) => tokio::time::sleep(Duration::from_millis(1)).await,
                    opened => return Ok(opened?),
                }
            }
        };
        tokio::time::timeout(DEADLINE, open)
            .await
            .context("the inbox stays locked")?
    }

    async fn work(
        &self,
        mut listener: Listener,
        chance: &mut StdRng,
        stop: watch::Receiver<bool>,
    ) -> Result<()> {
        loop {
            let message = match next(&mut listener, stop.clone()).await {
                Some(Ok(message)) => message,
                // The session of an earlier life, or the successor's; either way this one has ended.
                Some(Err(Error::Replaced)) => return Ok(()),
                Some(Err(error)) => return Err(error.into()),
                None => break,
            };
            self.history.push(Event::delivered(&message));
            // Time in which a life may end with the message in hand.
            tokio::time::sleep(Duration::from_micros(chance.random_range(0..IN_HAND_MICROS_MAX))).await;
            listener.ack(&message).await?;
        }
        listener.close().await;
        Ok(())
    }
}

/// The next message; `None` when it is time to stop.
async fn next(
    listener: &mut Listener,
    mut stop: watch::Receiver<bool>,
) -> Option<aip_client::Result<aip_client::Incoming>> {
    tokio::select! {
        biased;
        message = listener.next() => Some(message),
        _ = stop.wait_for(|stop| *stop) => None,
    }
}
