//! A disk that is full: refused and told, nothing lost, and it goes on when there is room.

use std::path::PathBuf;
use std::sync::Arc;

use aip_client::inbox::{FileInbox, MemoryInbox};
use aip_client::protocol::error::ErrorCode;
use aip_client::{Client, Draft, ListenOptions, SealedEnvelope, SessionState};
use aip_tests::clients::{QUICK, agent, folder, handle};
use aip_tests::history::{Event, History, Outcome};
use aip_tests::ledger::Ledger;
use aip_tests::{HubOptions, Mount, TestHub, fill};
use anyhow::{Context, Result, ensure};

use super::{DEADLINE, assert_good, restart, until};

/// A store that is being opened holds some 60 MiB for a moment: its logs reserve their room ahead.
const MEBIBYTES: u32 = 192;
/// What the guard keeps free: a tenth.
const GUARDED: u64 = MEBIBYTES as u64 * 1024 * 1024 / 10;
/// What is left when there is no guard: enough to start, and for a few messages.
const LEFT: u64 = 6 * 1024 * 1024;
/// Messages before the disk is full.
const MESSAGES: usize = 20;
/// Bytes of a message that a full disk cannot take in passing.
const LARGE: usize = 100 * 1024;

/// A hub on a small disk, with two agents.
struct Ground {
    hub: TestHub,
    alice: Client,
    bob: Client,
    history: History,
    filler: PathBuf,
    // Last: the hub lets go of it first.
    _mount: Mount,
}

impl Ground {
    /// `guard` is what the disk guard leaves free.
    async fn new(mount: Mount, used_percent_max: u8) -> Result<Self> {
        // What the log has reserved takes more than the usual quota of one sender.
        let config = format!(
            "[relay]\ndisk_used_percent_max = {used_percent_max}\ndisk_free_bytes_min = 0\n\
             mailbox_messages_max = 100_000\nmailbox_messages_per_sender_max = 100_000\n\
             mailbox_bytes_max = 1_073_741_824\nsender_burst_messages = 100_000\n"
        );
        let hub = TestHub::start_with(HubOptions {
            config: Some(config),
            data: Some(mount.path().join("data")),
            ..HubOptions::default()
        });
        let (alice, bob) = (agent(&hub, "alice").await?, agent(&hub, "bob").await?);
        let (history, filler) = (History::default(), mount.path().join("filler"));
        Ok(Self {
            hub,
            alice,
            bob,
            history,
            filler,
            _mount: mount,
        })
    }

    async fn seal(&self, bytes: usize) -> Result<SealedEnvelope> {
        Ok(self
            .alice
            .seal(&Draft::text(handle(&self.hub, "bob"), "x".repeat(bytes)))
            .await?)
    }

    /// One attempt, into the history.
    async fn send(&self, sealed: &SealedEnvelope) -> aip_client::Result<aip_client::Sent> {
        let answer = self.alice.submit_once(sealed).await;
        self.history.push(Event::sent(sealed.envelope(), &answer));
        answer
    }

    /// Takes everything that is in the mailbox, and acknowledges it.
    async fn receive(&self) -> Result<usize> {
        let folder = folder(&self.hub, "bob").join("inbox");
        let owner = self.bob.did().context("a DID")?.to_string();
        let ledger = Ledger::open(&folder, owner, self.history.clone())?;
        let mut listener = self.bob.listen(Arc::new(ledger), options());
        let mut received = 0;
        let receiving = async {
            let pending = pending(&listener).await?;
            while received < pending {
                let message = listener.next().await?;
                self.history.push(Event::delivered(&message));
                listener.ack(&message).await?;
                received += 1;
            }
            listener.close().await;
            anyhow::Ok(received)
        };
        tokio::time::timeout(DEADLINE, receiving)
            .await
            .context("the mailbox is not read")?
    }

    /// What the hub still keeps for bob, by a session that takes nothing.
    async fn kept(&self) -> Result<usize> {
        let listener = self.bob.listen(Arc::new(MemoryInbox::default()), options());
        let kept = tokio::time::timeout(DEADLINE, pending(&listener))
            .await
            .context("no session")??;
        listener.close().await;
        Ok(kept)
    }

    async fn until_readiness_is(&self, status: u16, reason: Option<&str>) {
        until("readiness changes", || async {
            let (found, why) = self.hub.readiness().await;
            found == status && why.as_deref() == reason
        })
        .await;
    }
}

fn options() -> ListenOptions {
    ListenOptions {
        backoff: QUICK,
        ..ListenOptions::default()
    }
}

async fn pending(listener: &aip_client::Listener) -> Result<usize> {
    match listener.ready().await? {
        SessionState::Connected { pending, .. } => Ok(usize::try_from(pending)?),
        state => anyhow::bail!("no session: {state:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_27_a_disk_that_is_nearly_full_refuses_sends_only() -> Result<()> {
    let mount = match Mount::tmpfs(MEBIBYTES) {
        Ok(mount) => mount,
        Err(skip) => {
            skip.print("disk guard");
            return Ok(());
        }
    };
    let ground = Ground::new(mount, 90).await?;
    for _ in 0..MESSAGES {
        ground.send(&ground.seal(500).await?).await?;
    }
    fill(&ground.filler, GUARDED / 2)?;
    ground.until_readiness_is(503, Some("disk_full")).await;

    let refused = ground.seal(500).await?;
    let error = ground
        .send(&refused)
        .await
        .expect_err("a full disk takes nothing");
    ensure!(
        error.is_code(ErrorCode::Unavailable) && error.retry_after().is_some(),
        "{error}"
    );
    ensure!(
        error.problem().is_some_and(|problem| problem.status == 503),
        "{error}"
    );
    ensure!(ground.receive().await? == MESSAGES, "reads go on");
    ensure!(ground.kept().await? == 0, "acks go on");

    std::fs::remove_file(&ground.filler)?;
    ground.until_readiness_is(200, None).await;
    ground.send(&refused).await.context("there is room again")?;
    ensure!(ground.receive().await? == 1, "it arrives");
    assert_good("disk-guard", 0, &ground.history);
    Ok(())
}

/// Without its guard the store meets the end of the disk in the middle of a write. Nobody can tell then what the log
/// holds, so it takes nothing until it is opened again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_27_a_write_that_fails_is_never_acknowledged() -> Result<()> {
    let mount = match Mount::tmpfs(MEBIBYTES) {
        Ok(mount) => mount,
        Err(skip) => {
            skip.print("disk full");
            return Ok(());
        }
    };
    let mut ground = Ground::new(mount, 0).await?;
    for _ in 0..MESSAGES {
        ground.send(&ground.seal(500).await?).await?;
    }
    // The log reserves its room ahead: not where there is none when it is made.
    ground.hub.kill();
    let early = ground.filler.with_extension("early");
    fill(&early, LEFT)?;
    restart(&mut ground.hub);
    fill(&ground.filler, LEFT)?;
    let refused = loop {
        let sealed = ground.seal(LARGE).await?;
        if let Err(error) = ground.send(&sealed).await {
            ensure!(
                error.problem().is_some_and(|problem| problem.status == 503),
                "{error}"
            );
            break sealed;
        }
    };
    ground.until_readiness_is(503, Some("store_failed")).await;
    std::fs::remove_file(&ground.filler)?;
    std::fs::remove_file(&early)?;
    let error = ground
        .send(&ground.seal(500).await?)
        .await
        .expect_err("it has to be opened again");
    ensure!(error.is_code(ErrorCode::Unavailable), "{error}");

    restart(&mut ground.hub);
    ground.until_readiness_is(200, None).await;
    ground.send(&refused).await.context("there is room again")?;
    let acknowledged = ground.history.unsettled();
    ensure!(
        ground.receive().await? >= acknowledged,
        "what was acknowledged is there"
    );
    ensure!(
        ground.history.count(Outcome::Refused) == 0,
        "a full disk is no refusal for good"
    );
    assert_good("disk-full", 0, &ground.history);
    // The inbox of the client was on another disk.
    drop(FileInbox::open(folder(&ground.hub, "bob").join("inbox"))?);
    Ok(())
}
