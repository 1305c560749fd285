//! The command `aip` as a process, with a key file of its own.

use std::process::{Output, Stdio};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::fake::FakeHub;
use crate::support::within;

/// The command with one key file, at the scripted hub.
pub(crate) struct Aip {
    folder: TempDir,
    hub: String,
}

impl Aip {
    pub(crate) fn new(hub: &FakeHub) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            hub: hub.url(),
        }
    }

    pub(crate) async fn registered(hub: &FakeHub, name: &str) -> Self {
        let aip = Self::new(hub);
        aip.succeeds(&["register", name]).await;
        aip
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aip"));
        command
            .args(arguments)
            .env("AIP_HUB", &self.hub)
            .env("AIP_KEY", self.path("agent.key"));
        command
            .env_remove("AIP_PASSPHRASE")
            .current_dir(self.folder.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        within(self.command(arguments).output()).await.unwrap()
    }

    pub(crate) async fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) async fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }
}
