//! What a crash leaves of the last log: cut short anywhere, or damaged in the middle; and damage in any other file of
//! the store. On copies of the data folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aip_client::inbox::MemoryInbox;
use aip_client::{Client, Draft, Incoming, ListenOptions, SealedEnvelope, SentStatus, SessionState};
use aip_tests::clients::{QUICK, agent, handle};
use aip_tests::{StartFailure, TestHub, chance, seed};
use anyhow::{Context, Result, ensure};
use rand::RngExt as _;

use super::{DEADLINE, copy, newest_log, restart, roomy, until};

/// Messages in the log.
const MESSAGES: usize = 40;
/// What the hub says of a start that found less than was acknowledged.
const LOSS_TOLD: &str = "writes are missing";

/// Ends a hang only.
const EXIT_WITHIN: Duration = Duration::from_mins(1);

/// A hub that has ended, and what was in it.
struct Crashed {
    hub: TestHub,
    alice: Client,
    bob: Client,
    sealed: Vec<SealedEnvelope>,
    epoch: String,
    /// The data folder as the end left it.
    whole: PathBuf,
    copies: usize,
}

impl Crashed {
    /// Killed, with everything in its log.
    async fn killed() -> Result<Self> {
        Self::ended_by(TestHub::kill).await
    }

    /// Stopped in order, with everything in its files.
    async fn stopped() -> Result<Self> {
        Self::ended_by(|hub| {
            hub.terminate(EXIT_WITHIN);
        })
        .await
    }

    async fn ended_by(end: fn(&mut TestHub)) -> Result<Self> {
        let mut hub = TestHub::start_with(roomy(""));
        let (alice, bob) = (agent(&hub, "alice").await?, agent(&hub, "bob").await?);
        let (epoch, _) = mailbox(&bob, 0).await?;
        let mut sealed = Vec::new();
        for n in 1..=MESSAGES {
            let text = format!("{n} {}", "x".repeat(97 * n));
            let next = alice.seal(&Draft::text(handle(&hub, "bob"), text)).await?;
            let seq = alice.submit_once(&next).await?.seq;
            ensure!(seq == Some(n as u64), "message {n} has the place {seq:?}");
            sealed.push(next);
        }
        noted(&hub).await;
        tokio::task::block_in_place(|| end(&mut hub));
        let whole = hub.folder().join("whole");
        copy(&hub.data(), &whole);
        Ok(Self {
            hub,
            alice,
            bob,
            sealed,
            epoch,
            whole,
            copies: 0,
        })
    }

    /// A fresh copy, with the file that `pick` finds in its store changed.
    fn damage(
        &mut self,
        pick: impl FnOnce(&Path) -> PathBuf,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<PathBuf> {
        self.copies += 1;
        let data = self.hub.folder().join(format!("copy-{}", self.copies));
        copy(&self.whole, &data);
        let file = pick(&data);
        let mut bytes = std::fs::read(&file)?;
        change(&mut bytes);
        std::fs::write(&file, bytes)?;
        self.hub.use_data(data);
        Ok(file)
    }

    /// The hub serves; every message is there byte for byte, or reading them fails.
    async fn check_whole_or_told(&self) -> Result<()> {
        let mut after = None;
        let mut found = 0;
        while found < MESSAGES {
            let page = match self.bob.fetch_inbox(after.as_ref(), 10, Duration::ZERO).await {
                Ok(page) => page,
                Err(error) => {
                    let status = error.problem().map_or(0, |problem| problem.status);
                    ensure!(status >= 500, "no failure of the hub's: {error}");
                    return Ok(());
                }
            };
            ensure!(
                page.unreadable.is_empty() && !page.items.is_empty(),
                "silence after {found}: {page:?}"
            );
            for message in &page.items {
                let sent = self.sealed.get(found).context("more than was sent")?;
                ensure!(
                    message.envelope.digest() == sent.envelope().digest(),
                    "{found} is another one"
                );
                found += 1;
            }
            after = page.items.last().map(|message| message.key().cursor);
        }
        Ok(())
    }

    /// The hub serves; what is left is a beginning of what was sent, byte for byte, and how much of it.
    async fn check_prefix(&self) -> Result<usize> {
        let (epoch, messages) = mailbox(&self.bob, MESSAGES).await?;
        for (n, message) in (1..).zip(&messages) {
            ensure!(
                message.seq == n as u64,
                "message {n} has the place {}",
                message.seq
            );
            let sent = self.sealed.get(n - 1).context("more than was sent")?;
            ensure!(
                message.envelope.digest() == sent.envelope().digest(),
                "message {n} is another one"
            );
        }
        let lost = messages.len() < MESSAGES;
        let told = self.hub.log_of_this_run().contains(LOSS_TOLD);
        ensure!(told == lost, "{} messages are left, told: {told}", messages.len());
        ensure!(
            (epoch != self.epoch) == lost,
            "a loss gives a new epoch, and nothing else does"
        );
        Ok(messages.len())
    }

    /// What is there is a duplicate, what is gone can be sent again, and no place is given out twice.
    async fn check_resend(&self, left: usize) -> Result<()> {
        for (n, sealed) in (1..).zip(&self.sealed) {
            let sent = self.alice.submit_once(sealed).await?;
            let expected = if n <= left {
                SentStatus::Duplicate
            } else {
                SentStatus::Stored
            };
            ensure!(
                sent.status == expected && sent.seq == Some(n as u64),
                "message {n}: {sent:?}"
            );
        }
        let (_, messages) = mailbox(&self.bob, MESSAGES).await?;
        ensure!(messages.len() == MESSAGES, "{} messages", messages.len());
        Ok(())
    }
}

/// The epoch and up to `most` messages of a mailbox. Nothing is acknowledged.
async fn mailbox(bob: &Client, most: usize) -> Result<(String, Vec<Incoming>)> {
    let options = ListenOptions {
        backoff: QUICK,
        credit: 1024,
        ..ListenOptions::default()
    };
    let reading = async {
        let mut listener = bob.listen(Arc::new(MemoryInbox::default()), options);
        let SessionState::Connected { epoch, pending, .. } = listener.ready().await? else {
            anyhow::bail!("no session");
        };
        let mut messages = Vec::new();
        while messages.len() < most.min(usize::try_from(pending)?) {
            messages.push(listener.next().await?);
        }
        listener.close().await;
        Ok((epoch, messages))
    };
    tokio::time::timeout(DEADLINE, reading)
        .await
        .context("the mailbox is not read")?
}

/// Waits until the store has noted, beside its log, that everything is on the disk: each sweep does.
async fn noted(hub: &TestHub) {
    let path = hub.data().join("store/commits");
    until("the store notes its commits", || async {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let noted = bytes.first_chunk().map_or(0, |count| u64::from_be_bytes(*count));
        let written = hub.metric("aip_store_batches_total").await.unwrap_or_default();
        noted > 0 && noted.to_string() == written.to_string()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_78_a_torn_log_opens_without_repair_and_keeps_a_prefix() -> Result<()> {
    let mut chance = chance(seed("torn"));
    let mut crashed = Crashed::killed().await?;
    let length = usize::try_from(std::fs::metadata(newest_log(&crashed.whole))?.len())?;
    let mut offsets = vec![0, 1, length / 2, length - 1, length];
    offsets.extend((0..5).map(|_| chance.random_range(0..length)));
    offsets.sort_unstable();
    let mut before = 0;
    for offset in offsets {
        crashed.damage(newest_log, |log| log.truncate(offset))?;
        restart(&mut crashed.hub);
        let left = crashed
            .check_prefix()
            .await
            .with_context(|| format!("cut at {offset} of {length}"))?;
        ensure!(left >= before, "a longer log keeps no less, at {offset}");
        before = left;
        crashed
            .check_resend(left)
            .await
            .with_context(|| format!("cut at {offset} of {length}"))?;
    }
    ensure!(before == MESSAGES, "the whole log keeps everything");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_log_is_never_silent() -> Result<()> {
    let mut chance = chance(seed("damaged"));
    let mut crashed = Crashed::killed().await?;
    for _ in 0..6 {
        let mut place = 0;
        crashed.damage(newest_log, |log| {
            place = chance.random_range(0..log.len());
            log[place] ^= 1 << chance.random_range(0..8);
        })?;
        match tokio::task::block_in_place(|| crashed.hub.try_restart()) {
            Ok(()) => {
                let left = crashed.check_prefix().await;
                left.with_context(|| format!("a bit of byte {place} turned"))?;
            }
            Err(failure) => told(&failure)?,
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_never_silent() -> Result<()> {
    let mut chance = chance(seed("files"));
    let mut stopped = Crashed::stopped().await?;
    for _ in 0..12 {
        let (nth, mut place) = (chance.random_range(0..1_000), 0);
        let file = stopped.damage(
            |data| {
                let files = data_files(data);
                files[nth % files.len()].clone()
            },
            |bytes| {
                place = chance.random_range(0..bytes.len());
                bytes[place] ^= 1 << chance.random_range(0..8);
            },
        )?;
        match tokio::task::block_in_place(|| stopped.hub.try_restart()) {
            Ok(()) => stopped.check_whole_or_told().await,
            Err(failure) => told(&failure),
        }
        .with_context(|| format!("a bit of byte {place} of {} turned", file.display()))?;
    }
    Ok(())
}

/// A start that failed with words about the store.
fn told(failure: &StartFailure) -> Result<()> {
    let status = failure.status.context("it hangs")?;
    ensure!(!status.success() && failure.log.contains("store"), "{failure}");
    Ok(())
}

/// The files of the store that hold data.
fn data_files(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data.join("store/db")).expect("a mailbox store");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|of| of == "sst" || of == "blob"));
    files.sort();
    files
}
