//! A machine whose clock is wrong, by libfaketime.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use aip_client::inbox::MemoryInbox;
use aip_client::protocol::clock::{Clock, ManualClock};
use aip_client::protocol::error::ErrorCode;
use aip_client::protocol::time::Timestamp;
use aip_client::{Client, Draft, Error, ListenOptions, Registration, SentStatus, SystemClock};
use aip_tests::clients::{QUICK, agent, builder, folder, handle};
use aip_tests::{HubOptions, Skip, TestHub, binary};
use anyhow::{Context, Result, ensure};

use super::{DEADLINE, restart};

const TEN_MINUTES: i64 = 600;
/// Ten years, about.
const YEARS: i64 = 10 * 365 * 86_400;
/// Past the end of the window: what was accepted before is forgotten by then.
const BEYOND_WINDOW: i64 = 1_000;

/// The environment of a process whose wall clock is off by so many seconds. Its monotonic clock is right.
pub(crate) fn off_by(seconds: i64) -> Result<Vec<(String, String)>, Skip> {
    faked("FAKETIME", format!("{seconds:+}s"))
}

/// The environment of a process whose wall clock a test sets while it runs: it is off by what the file says (`+5s`).
pub(crate) fn off_as_in(file: &Path) -> Result<Vec<(String, String)>, Skip> {
    faked("FAKETIME_TIMESTAMP_FILE", file.display().to_string())
}

fn faked(by: &str, how: String) -> Result<Vec<(String, String)>, Skip> {
    let library =
        library().ok_or_else(|| Skip("libfaketime is missing (Debian package `faketime`)".to_owned()))?;
    let set = |name: &str, value: String| (name.to_owned(), value);
    Ok(vec![
        set("LD_PRELOAD", library.display().to_string()),
        set(by, how),
        set("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        set("FAKETIME_NO_CACHE", "1".to_owned()),
    ])
}

fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.into_iter().find(|library| library.exists())
}

/// An agent's client whose clock is off by so many seconds, and stands.
fn client(hub: &TestHub, name: &str, seconds: i64) -> Result<Client> {
    let offset = Duration::from_secs(seconds.unsigned_abs());
    let now = SystemClock.now();
    let clock = ManualClock::new(if seconds < 0 { now - offset } else { now + offset });
    Ok(builder(hub, name)?.clock(Arc::new(clock)).build()?)
}

/// Refused for its age, with both clocks in the answer.
pub(crate) fn assert_out_of_window(error: &Error) -> Result<(Timestamp, Timestamp)> {
    ensure!(error.is_code(ErrorCode::CreatedAtOutOfWindow), "{error}");
    let problem = error.problem().context("a problem")?;
    ensure!(problem.status == 422, "{problem:?}");
    let member = |name: &str| {
        let text = problem
            .members
            .get(name)
            .and_then(|value| value.as_str())
            .context("a clock is missing")?;
        anyhow::Ok(Timestamp::parse(text)?)
    };
    Ok((member("created_at")?, member("hub_time")?))
}

async fn received(bob: &Client, inbox: &Arc<MemoryInbox>) -> Result<aip_client::Incoming> {
    let options = ListenOptions {
        backoff: QUICK,
        ..ListenOptions::default()
    };
    let mut listener = bob.listen(Arc::clone(inbox) as Arc<dyn aip_client::Inbox>, options);
    let message = tokio::time::timeout(DEADLINE, listener.next())
        .await
        .context("nothing arrives")??;
    listener.ack(&message).await?;
    listener.close().await;
    Ok(message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_ten_minutes_behind_refuses_and_names_both_clocks() -> Result<()> {
    let environment = match off_by(-TEN_MINUTES) {
        Ok(environment) => environment,
        Err(skip) => {
            skip.print("clock behind");
            return Ok(());
        }
    };
    let mut hub = TestHub::start_with(HubOptions {
        environment,
        ..HubOptions::default()
    });
    // Registration has its own window, so the agents are made by clients that share the hub's error.
    for name in ["alice", "bob"] {
        std::fs::create_dir_all(folder(&hub, name))?;
        client(&hub, name, -TEN_MINUTES)?
            .register(name, Registration::default())
            .await?;
    }
    let alice = builder(&hub, "alice")?.build()?;
    let draft = Draft::text(handle(&hub, "bob"), "what time is it?");
    let sealed = alice.seal(&draft).await?;
    let (created_at, hub_time) = assert_out_of_window(&alice.submit(&sealed).await.expect_err("refused"))?;
    ensure!(
        created_at.unix_millis() == sealed.envelope().created_at.unix_millis(),
        "{created_at}"
    );
    let behind = created_at.millis_since(hub_time);
    ensure!(
        (300_000..=900_000).contains(&behind),
        "the hub says that it is {behind} ms behind"
    );

    // The clock is set: the same bytes are taken now.
    hub.use_environment(Vec::new());
    restart(&mut hub);
    ensure!(
        alice.submit(&sealed).await?.status == SentStatus::Stored,
        "a refusal leaves no record"
    );
    let bob = builder(&hub, "bob")?.build()?;
    ensure!(
        received(&bob, &Arc::default()).await?.id == sealed.id(),
        "it arrives"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_back_accepts_nothing_twice() -> Result<()> {
    let ahead = match off_by(BEYOND_WINDOW) {
        Ok(environment) => environment,
        Err(skip) => {
            skip.print("clock back");
            return Ok(());
        }
    };
    let config = Some("[relay]\nsweep_interval_secs = 1\n".to_owned());
    let mut hub = TestHub::start_with(HubOptions {
        config,
        ..HubOptions::default()
    });
    let (alice, bob) = (agent(&hub, "alice").await?, agent(&hub, "bob").await?);
    let to = handle(&hub, "bob");
    let first = alice.seal(&Draft::text(&to, "once")).await?;
    ensure!(alice.submit(&first).await?.status == SentStatus::Stored, "stored");

    // Ahead: the message is forgotten, and a retry of it is too old. Another one makes the time durable.
    hub.use_environment(ahead);
    restart(&mut hub);
    assert_out_of_window(&alice.submit_once(&first).await.expect_err("too old"))?;
    let late = client(&hub, "alice", BEYOND_WINDOW)?;
    ensure!(
        late.send(&Draft::text(&to, "from the future")).await?.status == SentStatus::Stored,
        "stored"
    );

    // Back: the hub's time goes on from where it was, or the first message would be taken as a new one.
    hub.use_environment(Vec::new());
    restart(&mut hub);
    ensure!(
        hub.log_of_this_run().contains("behind the latest time"),
        "{}",
        hub.log_of_this_run()
    );
    let (_, hub_time) = assert_out_of_window(&alice.submit_once(&first).await.expect_err("still too old"))?;
    ensure!(
        hub_time.millis_since(SystemClock.now()) > 300_000,
        "the hub's time went back to {hub_time}"
    );
    let inbox = Arc::default();
    let texts = [received(&bob, &inbox).await?, received(&bob, &inbox).await?];
    ensure!(texts[0].id == first.id() && texts[1].seq == 2, "{texts:?}");

    hub.kill();
    let (is_good, report) = command(&hub, &["doctor", "--dev"])?;
    ensure!(
        !is_good && report.contains("s behind the latest time"),
        "{report}"
    );
    Ok(())
}

/// Runs a command about the data folder of a hub.
fn command(hub: &TestHub, arguments: &[&str]) -> Result<(bool, String)> {
    let output = Command::new(binary("aip-hub"))
        .args(arguments)
        .args(["--domain", &hub.domain(), "--data"])
        .arg(hub.data())
        .output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

/// Years ahead, the hub takes no more mail from anybody for as many years; its operator has a way back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_was_years_ahead_is_reset() -> Result<()> {
    let ahead = match off_by(YEARS) {
        Ok(environment) => environment,
        Err(skip) => {
            skip.print("clock reset");
            return Ok(());
        }
    };
    let mut hub = TestHub::start();
    let (alice, bob) = (agent(&hub, "alice").await?, agent(&hub, "bob").await?);
    let to = handle(&hub, "bob");
    hub.use_environment(ahead);
    restart(&mut hub);
    let late = client(&hub, "alice", YEARS)?;
    let sent = late.send(&Draft::text(&to, "from the future")).await?;
    ensure!(sent.status == SentStatus::Stored, "{sent:?}");

    hub.use_environment(Vec::new());
    restart(&mut hub);
    let now = alice.seal(&Draft::text(&to, "today")).await?;
    assert_out_of_window(
        &alice
            .submit_once(&now)
            .await
            .expect_err("the hub lives in the future"),
    )?;
    let (is_good, said) = command(&hub, &["clock", "--reset"])?;
    ensure!(!is_good && said.contains("in use by another process"), "{said}");

    hub.kill();
    let (is_good, said) = command(&hub, &["doctor", "--dev"])?;
    ensure!(!is_good && said.contains("aip-hub clock --reset"), "{said}");
    let (is_good, said) = command(&hub, &["clock", "--reset"])?;
    ensure!(
        is_good && said.contains("1 messages and 0 dead letters"),
        "{said}"
    );
    let (is_good, said) = command(&hub, &["clock", "--reset"])?;
    ensure!(!is_good && said.contains("nothing to reset"), "{said}");

    restart(&mut hub);
    ensure!(
        !hub.log_of_this_run().contains("behind the latest time"),
        "{}",
        hub.log_of_this_run()
    );
    ensure!(
        alice.submit(&now).await?.status == SentStatus::Stored,
        "taken now"
    );
    let inbox = Arc::default();
    let got = [received(&bob, &inbox).await?, received(&bob, &inbox).await?];
    ensure!(got[0].id == sent.id && got[1].id == now.id(), "{got:?}");
    Ok(())
}
