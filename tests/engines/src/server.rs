//! One server process: its folder, its log, and the shell that ends it when we cannot.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::poll::poll;
use crate::process;

const SUPERVISOR: &str = include_str!("supervisor.sh");

/// How long a server may take to become ready: generous, since the machine may be busy.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// Between finding a free port and taking it, another process may take it; then everything is tried again.
const TRIES: usize = 3;

/// A server that did not become ready.
#[derive(Debug)]
pub struct StartFailure {
    /// Which engine.
    pub engine: &'static str,
    /// What went wrong.
    pub reason: String,
    /// What the server wrote to its log.
    pub log: String,
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.engine, self.reason)?;
        if self.log.is_empty() {
            return Ok(());
        }
        write!(f, "; its log:\n{}", self.log)
    }
}

impl std::error::Error for StartFailure {}

impl StartFailure {
    pub(crate) fn new(engine: &'static str, reason: impl Into<String>) -> Self {
        Self {
            engine,
            reason: reason.into(),
            log: String::new(),
        }
    }
}

/// Tries again where another process was faster at taking a port.
pub(crate) fn with_fresh_ports<T>(
    mut start: impl FnMut() -> Result<T, StartFailure>,
) -> Result<T, StartFailure> {
    for _ in 1..TRIES {
        match start() {
            Err(failure) if failure.log.contains("ddress already in use") => {}
            outcome => return outcome,
        }
    }
    start()
}

/// The engine, or a panic that shows why there is none.
pub(crate) fn or_panic<T>(started: Result<T, StartFailure>) -> T {
    match started {
        Ok(engine) => engine,
        Err(failure) => panic!("{failure}"),
    }
}

/// How a server is run.
pub(crate) struct Recipe {
    pub(crate) engine: &'static str,
    /// Program and arguments; the working folder is the server's own.
    pub(crate) command: Vec<String>,
    /// The signal that ends it for good: `KILL` where nothing has to be tidied up.
    pub(crate) end: &'static str,
}

/// A server, running or not. Dropping it ends the process and removes the folder.
#[derive(Debug)]
pub(crate) struct Server {
    engine: &'static str,
    folder: PathBuf,
    supervisor: Child,
    /// Closing this is what ends the server.
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pid: Option<u32>,
    /// Bytes of the log that earlier processes wrote.
    log_before: usize,
}

impl Server {
    /// Everything but the process.
    pub(crate) fn prepare(recipe: &Recipe) -> Result<Self, StartFailure> {
        Self::supervise(recipe).map_err(|error| StartFailure::new(recipe.engine, error.to_string()))
    }

    fn supervise(recipe: &Recipe) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("aip-engine-").tempdir()?;
        let script = folder.path().join("supervisor");
        std::fs::write(&script, SUPERVISOR)?;
        let mut supervisor = Command::new("sh")
            .arg(script)
            .arg(folder.path())
            .arg(recipe.end)
            .args(&recipe.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // What a terminal sends to the tests is not for the servers; they end when the tests have ended.
            .process_group(0)
            .spawn()?;
        let (words, answers) = (supervisor.stdin.take(), supervisor.stdout.take());
        Ok(Self {
            engine: recipe.engine,
            // From here on, the supervisor removes it.
            folder: folder.keep(),
            words,
            answers: BufReader::new(answers.ok_or(io::ErrorKind::BrokenPipe)?),
            supervisor,
            pid: None,
            log_before: 0,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process id while it has not been killed.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// What all its processes have written to the log.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Starts the process; an earlier one is killed.
    pub(crate) fn begin(&mut self) {
        self.kill();
        self.log_before = self.log().len();
        let pid = self.ask("start");
        self.pid = pid.parse().ok();
    }

    /// Waits until the process is ready.
    pub(crate) fn await_ready(&mut self, mut is_ready: impl FnMut() -> bool) -> Result<(), StartFailure> {
        let ready = poll(READY_WITHIN, || {
            if !self.pid.is_some_and(process::is_alive) {
                return Some(false);
            }
            is_ready().then_some(true)
        });
        match ready {
            Some(true) => Ok(()),
            Some(false) => Err(self.failure("it ended before it was ready")),
            None => Err(self.failure("it is not ready in time")),
        }
    }

    /// With the log of the process that runs, or ran last.
    pub(crate) fn failure(&self, reason: &str) -> StartFailure {
        let log = self.log().get(self.log_before..).unwrap_or_default().to_owned();
        StartFailure {
            log,
            ..StartFailure::new(self.engine, reason)
        }
    }

    /// SIGKILL for the process and its children; when it returns, they are gone.
    pub(crate) fn kill(&mut self) {
        let family = self.family();
        self.ask("kill");
        self.pid = None;
        // The supervisor has waited for its own child; the others die at the same time, not at once.
        let gone = poll(READY_WITHIN, || {
            let alive = family.iter().any(|pid| process::is_alive(*pid));
            (!alive).then_some(())
        });
        assert!(gone.is_some(), "{} cannot be killed", self.engine);
    }

    /// SIGSTOP for the process and its children; when it returns, every thread stands still.
    pub(crate) fn pause(&mut self) {
        self.ask("pause");
        let family = self.family();
        let still = poll(READY_WITHIN, || {
            family.iter().all(|pid| process::stands_still(*pid)).then_some(())
        });
        assert!(still.is_some(), "{} cannot be paused", self.engine);
    }

    /// SIGCONT for all that [`Self::pause`] stopped.
    pub(crate) fn resume(&mut self) {
        self.ask("resume");
    }

    /// The process and its children.
    fn family(&self) -> Vec<u32> {
        self.pid.map(process::family).unwrap_or_default()
    }

    /// Memory that the process and its children hold, in bytes. What they share is counted for each.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let pid = self.pid?;
        let own = process::resident_bytes(pid)?;
        // A child may have ended since it was listed.
        let children = process::family(pid).into_iter().filter(|child| *child != pid);
        Some(own + children.filter_map(process::resident_bytes).sum::<u64>())
    }

    /// One word to the supervisor, and what it answers.
    fn ask(&mut self, word: &str) -> String {
        let mut answer = String::new();
        let asked = self.words.as_mut().map(|words| writeln!(words, "{word}"));
        let heard = self.answers.read_line(&mut answer);
        match (asked, heard) {
            (Some(Ok(())), Ok(bytes)) if bytes > 0 => answer.trim().to_owned(),
            _ => panic!("{}: its supervisor is gone", self.engine),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.words = None;
        // The supervisor ends when it has cleaned up; waiting fails only when it is gone already.
        let _gone = self.supervisor.wait();
    }
}
