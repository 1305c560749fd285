//! One hub process under test.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use tempfile::TempDir;

use crate::raw::{Answer, Request, ask};
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
    /// The domain of a development hub; `localhost` and its port by default. Several processes of one hub have the same.
    pub domain: Option<String>,
    /// A hub as in production, without `--dev`, for this domain; both listeners are on the address of [`HubOptions::listen`].
    pub production: Option<String>,
    /// Where it listens; a free port of the loopback interface by default.
    pub listen: Option<SocketAddr>,
    /// A program to run the hub under (`faketime`, `strace`, `ip netns exec`), with its arguments.
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
    /// Bytes of the log that earlier processes wrote.
    log_before: usize,
}

/// A hub that did not become ready.
#[derive(Debug)]
pub struct StartFailure {
    /// How it ended; `None` when it did not, and had to be killed.
    pub status: Option<ExitStatus>,
    /// What it wrote to its log.
    pub log: String,
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "the hub ended before it was ready ({status}):\n{}", self.log),
            None => write!(f, "the hub is not ready in time:\n{}", self.log),
        }
    }
}

impl std::error::Error for StartFailure {}

/// How long a hub may take to say that it is ready: generous, since the machine may be busy.
const READY_WITHIN: Duration = Duration::from_mins(1);

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
            log_before: 0,
        }
    }

    /// Starts the process (again) on the same port and data, and waits until it is ready.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn restart(&mut self) {
        if let Err(failure) = self.try_restart() {
            panic!("{failure}");
        }
    }

    /// The same, for tests that expect that it does not become ready.
    ///
    /// # Errors
    /// How it ended, and what it said.
    ///
    /// # Panics
    /// When the program cannot be run at all.
    pub fn try_restart(&mut self) -> Result<(), StartFailure> {
        let ready = self.begin();
        if let Ok(line) = ready.recv_timeout(READY_WITHIN)
            && self.read_ready(&line)
        {
            return Ok(());
        }
        // Its standard output is closed, so it is about to end; or it hangs.
        let status = self.wait(Duration::from_secs(10));
        self.kill();
        Err(StartFailure {
            status,
            log: self.log_of_this_run(),
        })
    }

    /// Starts the process and kills it after a while, ready or not.
    ///
    /// # Panics
    /// When the program cannot be run at all.
    pub fn start_and_kill(&mut self, after: Duration) {
        let _ready = self.begin();
        std::thread::sleep(after);
        self.kill();
    }

    /// Starts the process; the line that says `ready` comes through the channel.
    fn begin(&mut self) -> Receiver<String> {
        self.kill();
        self.log_before = self.log().len();
        let mut child = match self.command().stdout(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => panic!("the hub does not start: {error}"),
        };
        let stdout = child.stdout.take();
        self.child = Some(child);
        ready_line(stdout)
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
        command.arg("serve").arg("--data").arg(self.data());
        let listen = self.options.listen;
        let listen = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], self.port)));
        match &self.options.production {
            Some(_) => command.args(["--operator-listen", &format!("{}:0", listen.ip())]),
            None => command.arg("--dev"),
        };
        command.args(["--listen", &listen.to_string(), "--domain", &self.domain()]);
        if let Some(config) = &self.options.config {
            let path = self.folder.path().join("hub.toml");
            if let Err(error) = std::fs::write(&path, config) {
                panic!("{}: {error}", path.display());
            }
            command.arg("--config").arg(path);
        }
        command.args(&self.options.arguments);
        command.envs(self.disk_guard());
        command.envs(self.options.environment.iter().map(|(k, v)| (k, v)));
        let log = File::options().create(true).append(true).open(self.log_path());
        match log {
            Ok(log) => command.stderr(log).stdin(Stdio::null()),
            Err(error) => panic!("no log file: {error}"),
        };
        command
    }

    /// How full the machine's disk is decides no test: the guard is off, but where a test sets it itself.
    fn disk_guard(&self) -> Vec<(&'static str, &'static str)> {
        let set = |config: &String| config.contains("disk_");
        if self.options.config.as_ref().is_some_and(set) {
            return Vec::new();
        }
        vec![
            ("AIP_HUB__RELAY__DISK_USED_PERCENT_MAX", "0"),
            ("AIP_HUB__RELAY__DISK_FREE_BYTES_MIN", "0"),
        ]
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

    /// What the process that runs, or ran last, has written to its log.
    #[must_use]
    pub fn log_of_this_run(&self) -> String {
        self.log().get(self.log_before..).unwrap_or_default().to_owned()
    }

    /// The next start works on another data folder.
    pub fn use_data(&mut self, folder: PathBuf) {
        self.options.data = Some(folder);
    }

    /// The next start has these environment variables.
    pub fn use_environment(&mut self, environment: Vec<(String, String)>) {
        self.options.environment = environment;
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
        let local = || format!("localhost:{}", self.port);
        let HubOptions {
            production, domain, ..
        } = &self.options;
        production
            .clone()
            .or_else(|| domain.clone())
            .unwrap_or_else(local)
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
        self.signal("TERM");
        self.wait(within)
    }

    /// SIGSTOP; when it returns, every thread stands still, and none is within a call to the system.
    pub fn pause(&self) {
        self.signal("STOP");
        while !self.stands_still() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        if let Some(pid) = self.pid() {
            // Fails only when the process is gone already.
            drop(Command::new("kill").args(["-s", name, &pid.to_string()]).status());
        }
    }

    /// Also of a process that is gone.
    fn stands_still(&self) -> bool {
        let folder = format!("/proc/{}/task", self.pid().unwrap_or_default());
        let threads = std::fs::read_dir(folder).into_iter().flatten().flatten();
        threads
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok())
            .all(|stat| {
                let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
                state.starts_with(['T', 'Z', 'X'])
            })
    }

    /// The exit status once the process has ended; `None` when it does not end in time.
    fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        const PAUSE: Duration = Duration::from_millis(20);
        let child = self.child.as_mut()?;
        let mut waited = Duration::ZERO;
        while waited < within {
            if let Ok(Some(status)) = child.try_wait() {
                self.child = None;
                return Some(status);
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
        None
    }

    /// Memory that the process holds, in bytes (`VmRSS`).
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    }

    /// The operator asks something.
    pub async fn operate(&self, request: Request) -> Answer {
        let token = std::fs::read_to_string(self.data().join("operator.token")).unwrap_or_default();
        ask(self.operator_url(), &request.bearer(token.trim())).await
    }

    /// The value of a metric without labels, from the operator's listener; `None` when the hub has no such metric.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let text = ask(self.operator_url(), &Request::get("/metrics")).await.text();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value?.trim().parse().ok()
    }

    /// Readiness: the status code, and the member `reason` of a hub that takes no work.
    pub async fn readiness(&self) -> (u16, Option<String>) {
        let answer = ask(self.url(), &Request::get("/health/ready")).await;
        let reason = answer
            .json()
            .get("reason")
            .and_then(|reason| reason.as_str())
            .map(str::to_owned);
        (answer.status, reason)
    }
}

/// Reads standard output to its end, on a thread; the first line that says `ready` comes through the channel.
fn ready_line(stdout: Option<ChildStdout>) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        for line in stdout
            .into_iter()
            .flat_map(|out| BufReader::new(out).lines())
            .map_while(Result::ok)
        {
            if line.starts_with("aip-hub ready ") {
                // Nobody may be waiting any more.
                drop(sender.try_send(line));
            }
        }
    });
    receiver
}

impl Drop for TestHub {
    fn drop(&mut self) {
        self.kill();
    }
}
