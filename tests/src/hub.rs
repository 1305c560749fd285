//! One hub process under test.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{binary, free_port};

/// How a test wants its hub. `HubOptions::default()` is a development hub with default limits.
#[derive(Debug, Clone, Default)]
pub struct HubOptions {
    /// A TOML configuration beside the command line.
    pub config: Option<String>,
    /// Further arguments of `serve`.
    pub arguments: Vec<String>,
    /// Environment variables of the process.
    pub environment: Vec<(String, String)>,
    /// The data folder; a temporary one by default.
    pub data: Option<PathBuf>,
    /// A program to run the hub under (`faketime`, `strace`), with its arguments.
    pub wrapper: Vec<String>,
}

/// A running hub. Dropping it kills the process and removes the temporary folder.
#[derive(Debug)]
pub struct TestHub {
    options: HubOptions,
    folder: TempDir,
    port: u16,
    child: Option<Child>,
    public: String,
    operator: String,
}

/// How long a hub may take to say that it is ready: generous, since the machine may be busy.
const READY_WITHIN: Duration = Duration::from_secs(60);

impl TestHub {
    /// Starts a development hub and waits until it is ready.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(HubOptions::default())
    }

    /// Starts a hub as the test wants it and waits until it is ready.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    #[must_use]
    pub fn start_with(options: HubOptions) -> Self {
        let mut hub = Self::prepare(options);
        hub.restart();
        hub
    }

    /// Everything but the process: for tests that expect the start to fail.
    ///
    /// # Panics
    /// When the temporary folder cannot be made.
    #[must_use]
    pub fn prepare(options: HubOptions) -> Self {
        let folder = match tempfile::Builder::new().prefix("aip-test-").tempdir() {
            Ok(folder) => folder,
            Err(error) => panic!("no temporary folder: {error}"),
        };
        Self {
            options,
            folder,
            port: free_port(),
            child: None,
            public: String::new(),
            operator: String::new(),
        }
    }

    /// Starts the process (again) on the same port and data, and waits until it is ready.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn restart(&mut self) {
        self.kill();
        let mut child = match self.command().stdout(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => panic!("the hub does not start: {error}"),
        };
        let stdout = child.stdout.take();
        self.child = Some(child);
        let deadline = Instant::now() + READY_WITHIN;
        let mut lines = stdout.map(|out| BufReader::new(out).lines());
        while let Some(Ok(line)) = lines.as_mut().and_then(Iterator::next) {
            if self.read_ready(&line) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "the hub is not ready in time:\n{}",
                self.log()
            );
        }
        panic!("the hub ended before it was ready:\n{}", self.log());
    }

    fn read_ready(&mut self, line: &str) -> bool {
        let mut words = line.split_whitespace();
        if (words.next(), words.next()) != (Some("aip-hub"), Some("ready")) {
            return false;
        }
        for word in words {
            match word.split_once('=') {
                Some(("public", url)) => url.clone_into(&mut self.public),
                Some(("operator", url)) => url.clone_into(&mut self.operator),
                _ => {}
            }
        }
        true
    }

    /// The command that starts this hub, for tests that run it themselves.
    ///
    /// # Panics
    /// When the configuration or log file cannot be written.
    #[must_use]
    pub fn command(&self) -> Command {
        let program = binary("aip-hub");
        let mut command = match self.options.wrapper.split_first() {
            Some((wrapper, rest)) => {
                let mut command = Command::new(wrapper);
                command.args(rest).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.arg("serve").arg("--dev").arg("--data").arg(self.data());
        command.args([
            "--listen",
            &format!("127.0.0.1:{}", self.port),
            "--domain",
            &self.domain(),
        ]);
        if let Some(config) = &self.options.config {
            let path = self.folder.path().join("hub.toml");
            if let Err(error) = std::fs::write(&path, config) {
                panic!("{}: {error}", path.display());
            }
            command.arg("--config").arg(path);
        }
        command.args(&self.options.arguments);
        command.envs(self.options.environment.iter().map(|(k, v)| (k, v)));
        let log = File::options().create(true).append(true).open(self.log_path());
        match log {
            Ok(log) => command.stderr(log).stdin(Stdio::null()),
            Err(error) => panic!("no log file: {error}"),
        };
        command
    }

    /// The data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.options
            .data
            .clone()
            .unwrap_or_else(|| self.folder.path().join("data"))
    }

    /// The temporary folder of this hub, for what a test keeps beside it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("hub.log")
    }

    /// What the hub has written to its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The base URL of the public listener, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.public
    }

    /// The base URL of the operator's listener.
    #[must_use]
    pub fn operator_url(&self) -> &str {
        &self.operator
    }

    /// The domain that the hub serves.
    #[must_use]
    pub fn domain(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// The process id while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// SIGKILL: no warning, no clean-up.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both may fail only because the process is gone already.
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }

    /// SIGTERM, and the exit status once the process has ended; `None` when it does not end in time.
    pub fn terminate(&mut self, within: Duration) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        let sent = Command::new("kill")
            .args(["-TERM", &child.id().to_string()])
            .status();
        let deadline = Instant::now() + within;
        while sent.is_ok() && Instant::now() < deadline {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child = Some(child);
        None
    }
}

impl Drop for TestHub {
    fn drop(&mut self) {
        self.kill();
    }
}
