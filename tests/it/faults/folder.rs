//! Starts that must not be: two hubs on one folder, a port that is taken, remnants, half a restore.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aip_client::inbox::MemoryInbox;
use aip_client::{Client, Draft, ListenOptions, SessionState};
use aip_tests::clients::{QUICK, agent, handle};
use aip_tests::{HubOptions, StartFailure, TestHub, binary, free_port};
use anyhow::{Context, Result, ensure};

use super::{DEADLINE, restart};

/// Messages in the mailbox of the hub that is backed up.
const MESSAGES: usize = 30;
/// Restores that are killed at the most, until one is caught in the middle.
const CATCHES_MAX: usize = 100;

/// A start that fails, with a status and the words of the log.
fn refused(hub: &mut TestHub, words: &[&str]) -> Result<()> {
    let Err(StartFailure { status, log }) = hub.try_restart() else {
        anyhow::bail!("the hub has started");
    };
    let status = status.context("it does not end by itself")?;
    ensure!(status.code().is_some_and(|code| code != 0), "{status}");
    ensure!(!log.contains("panicked"), "{log}");
    for word in words {
        ensure!(log.contains(word), "the log does not name {word:?}: {log}");
    }
    Ok(())
}

#[test]
fn row_47_a_second_hub_on_the_data_folder_is_refused() -> Result<()> {
    let first = TestHub::start();
    let mut second = TestHub::prepare(HubOptions {
        data: Some(first.data()),
        ..HubOptions::default()
    });
    let folder = first.data().display().to_string();
    refused(&mut second, &[&folder, "in use"])?;
    let alive = std::net::TcpStream::connect(first.url().trim_start_matches("http://"));
    ensure!(alive.is_ok(), "the first is unharmed");
    Ok(())
}

#[test]
fn row_86_a_taken_port_ends_the_start_and_is_named() -> Result<()> {
    let mut hub = TestHub::start();
    hub.kill();
    let public = hub.url().trim_start_matches("http://").to_owned();
    let taken = TcpListener::bind(&public)?;
    refused(&mut hub, &[&public])?;
    drop(taken);
    hub.restart();

    let operator = TcpListener::bind(("127.0.0.1", free_port()))?;
    let address = operator.local_addr()?.to_string();
    let arguments = vec!["--operator-listen".to_owned(), address.clone()];
    let mut other = TestHub::prepare(HubOptions {
        arguments,
        ..HubOptions::default()
    });
    refused(&mut other, &[&address])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_77_remnants_of_a_store_are_not_an_empty_store() -> Result<()> {
    let mut hub = TestHub::start();
    let bob = with_mail(&hub).await?;
    hub.kill();
    let database = hub.data().join("store/db");
    let current = database.join("CURRENT");
    let kept = std::fs::read(&current)?;
    std::fs::remove_file(&current)?;
    let before = names(&database)?;
    tokio::task::block_in_place(|| refused(&mut hub, &["CURRENT", &database.display().to_string()]))?;
    ensure!(names(&database)? == before, "files were purged");
    std::fs::write(&current, kept)?;
    restart(&mut hub);
    ensure!(waiting(&bob).await?.1 == MESSAGES, "the mail is there");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_78_a_restore_that_is_killed_is_recognised_and_repeated() -> Result<()> {
    let mut hub = TestHub::start();
    let bob = with_mail(&hub).await?;
    let (epoch, _) = waiting(&bob).await?;
    let backup = hub.folder().join("backup");
    let data = hub.data();
    let made = run(command("backup", &data).arg("--to").arg(&backup))?;
    ensure!(made.contains("verified"), "{made}");
    hub.kill();

    let target = hub.folder().join("restored");
    let caught = (0..CATCHES_MAX).any(|_| killed_half_way(&backup, &target));
    ensure!(caught, "no restore was caught half way");
    hub.use_data(target.clone());
    tokio::task::block_in_place(|| refused(&mut hub, &["restore", &target.display().to_string()]))?;
    let restored = run(command("restore", &target).arg("--from").arg(&backup))?;
    ensure!(restored.contains("restored the hub of"), "{restored}");
    restart(&mut hub);
    let (fresh, mail) = waiting(&bob).await?;
    ensure!(
        fresh != epoch && mail == MESSAGES,
        "{mail} messages, epoch {fresh}"
    );
    Ok(())
}

/// Kills a restore as soon as its marker is there; whether it was caught before its end.
fn killed_half_way(backup: &Path, target: &Path) -> bool {
    let marker = target.join("restore-unfinished");
    drop(std::fs::remove_dir_all(target));
    let mut restore = Running::start(command("restore", target).arg("--from").arg(backup));
    while !marker.exists() && restore.runs() {
        std::thread::sleep(Duration::from_micros(50));
    }
    drop(restore);
    marker.exists()
}

/// A command that is killed when dropped.
struct Running(Option<Child>);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok())
    }

    fn runs(&mut self) -> bool {
        self.0
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // Both may fail only because it is gone already.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn command(name: &str, data: &Path) -> Command {
    let mut command = Command::new(binary("aip-hub"));
    command.arg(name).arg("--data").arg(data);
    command
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(text)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        // The store's own log of what it does is no data.
        if !name.starts_with("LOG") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Alice writes to bob, who is offline.
async fn with_mail(hub: &TestHub) -> Result<Client> {
    let (alice, bob) = (agent(hub, "alice").await?, agent(hub, "bob").await?);
    for n in 0..MESSAGES {
        alice
            .send(&Draft::text(handle(hub, "bob"), format!("message {n}")))
            .await?;
    }
    Ok(bob)
}

/// The epoch of bob's mailbox, and how many messages wait in it.
async fn waiting(bob: &Client) -> Result<(String, usize)> {
    let options = ListenOptions {
        backoff: QUICK,
        ..ListenOptions::default()
    };
    let listener = bob.listen(Arc::new(MemoryInbox::default()), options);
    let state = tokio::time::timeout(DEADLINE, listener.ready())
        .await
        .context("no session")??;
    let SessionState::Connected { epoch, pending, .. } = state else {
        anyhow::bail!("no session: {state:?}");
    };
    listener.close().await;
    Ok((epoch, usize::try_from(pending)?))
}
