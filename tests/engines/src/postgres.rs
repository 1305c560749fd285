//! PostgreSQL servers.

use std::borrow::Borrow;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::ports::{free_port, loopback};
use crate::programs;
use crate::server::{Recipe, Server, StartFailure, or_panic, with_fresh_ports};

const ENGINE: &str = "PostgreSQL";

/// The superuser of every cluster that we make.
const USER: &str = "aip";

/// PostgreSQL refuses to run as root; these are asked in turn to run it instead.
const SERVANTS: &[&str] = &["postgres", "nobody"];

/// How a test wants its PostgreSQL. `PostgresOptions::default()` keeps what it has committed.
#[derive(Debug, Clone, Default)]
pub struct PostgresOptions {
    /// `fsync=off`: faster, and lost with the machine.
    pub without_fsync: bool,
    /// Further settings, as in `postgresql.conf`.
    pub settings: Vec<(String, String)>,
}

/// A PostgreSQL server: UTF-8, locale C, trusts whoever comes over the loopback interface. Dropping it ends the
/// processes and removes the data.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    programs: PathBuf,
    port: u16,
    databases: AtomicU32,
}

impl Postgres {
    /// Starts a server and waits until it takes connections.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    #[must_use]
    pub fn start(options: impl Borrow<PostgresOptions>) -> Self {
        or_panic(Self::try_start(options.borrow()))
    }

    /// The same, for those who have something to do without it.
    ///
    /// # Errors
    /// What is missing or went wrong, with the server's log.
    pub fn try_start(options: &PostgresOptions) -> Result<Self, StartFailure> {
        with_fresh_ports(|| {
            let mut postgres = Self::prepare(options)?;
            postgres.begin()?;
            Ok(postgres)
        })
    }

    /// The server that all tests of this process share; it ends with the process. It does not wait for the disk.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| {
            Self::start(PostgresOptions {
                without_fsync: true,
                ..PostgresOptions::default()
            })
        })
    }

    fn prepare(options: &PostgresOptions) -> Result<Self, StartFailure> {
        let failure = |reason| StartFailure::new(ENGINE, reason);
        let programs = programs::postgres_programs().map_err(failure)?;
        let servant = servant().map_err(failure)?;
        let port = free_port();
        let server = Server::prepare(&Recipe {
            engine: ENGINE,
            command: [as_servant(servant), command(&programs, port, options)].concat(),
            // At once, but not without giving back its shared memory.
            end: "QUIT",
        })?;
        make_cluster(server.folder(), &programs, servant).map_err(failure)?;
        Ok(Self {
            server,
            programs,
            port,
            databases: AtomicU32::new(0),
        })
    }

    fn begin(&mut self) -> Result<(), StartFailure> {
        self.server.begin();
        let (programs, port) = (self.programs.clone(), self.port);
        self.server
            .await_ready(|| psql(&programs, port, "postgres", "SELECT 1").is_ok())
    }

    /// Makes a fresh database and returns its URL, `postgres://aip@127.0.0.1:PORT/NAME_n`.
    ///
    /// # Panics
    /// When the name is not made of small letters, digits and underscores, or the server does not do it.
    #[must_use]
    pub fn database(&self, name: &str) -> String {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(plain), "{name:?} is no plain name of a database");
        let database = format!("{name}_{}", self.databases.fetch_add(1, Ordering::Relaxed) + 1);
        self.sql("postgres", &format!("CREATE DATABASE \"{database}\""));
        format!("postgres://{USER}@{}/{database}", self.address())
    }

    /// Runs SQL in a database (its name, or its URL) and returns the rows, one a line, with `|` between columns.
    ///
    /// # Panics
    /// When the server does not do it; the message is the server's.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let name = database.rsplit('/').next().unwrap_or(database);
        match psql(&self.programs, self.port, name, sql) {
            Ok(rows) => rows,
            Err(error) => panic!("{ENGINE}: {error}"),
        }
    }

    /// Where it listens, for a [`crate::Proxy`].
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// The id of its first process while it has not been killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Memory that all its processes hold, in bytes; what they share is counted for each.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        self.server.resident_bytes()
    }

    /// What it has written to its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// SIGKILL for all its processes; the data stay.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it (again) on the same port and data, and waits until it takes connections.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn restart(&mut self) {
        or_panic(self.begin());
    }

    /// SIGSTOP for all its processes; when it returns, they stand still.
    ///
    /// # Panics
    /// When they cannot be stopped.
    pub fn pause(&mut self) {
        self.server.pause();
    }

    /// SIGCONT for all its processes.
    pub fn resume(&mut self) {
        self.server.resume();
    }
}

fn command(programs: &Path, port: u16, options: &PostgresOptions) -> Vec<String> {
    let mut command = vec![
        programs.join("postgres").display().to_string(),
        "-D".to_owned(),
        "data".to_owned(),
    ];
    let mut set =
        |name: &str, value: &dyn Display| command.extend(["-c".to_owned(), format!("{name}={value}")]);
    set("port", &port);
    set("listen_addresses", &"127.0.0.1");
    set("unix_socket_directories", &"");
    set("shared_buffers", &"32MB");
    // In the data folder, where nothing is left behind by a killed server.
    set("dynamic_shared_memory_type", &"mmap");
    set("synchronous_commit", &"on");
    set("fsync", &if options.without_fsync { "off" } else { "on" });
    for (name, value) in &options.settings {
        set(name, value);
    }
    command
}

/// Who runs PostgreSQL for us, if we may not.
fn servant() -> Result<Option<&'static str>, String> {
    let id = |arguments: &[&str]| {
        let output = Command::new("id").args(arguments).output().ok()?;
        output.status.success().then_some(output.stdout)
    };
    if id(&["-u"]).is_some_and(|id| id != b"0\n") {
        return Ok(None);
    }
    let servant = SERVANTS.iter().find(|name| id(&["-u", name]).is_some());
    servant.copied().map(Some).ok_or_else(|| {
        format!(
            "it refuses to run as root, and there is no user {}",
            SERVANTS.join(" or ")
        )
    })
}

/// What to put before a command so that the servant runs it, in the same process.
fn as_servant(servant: Option<&str>) -> Vec<String> {
    let arguments = |name| ["setpriv", "--reuid", name, "--regid", name, "--clear-groups"].map(str::to_owned);
    servant.map(arguments).into_iter().flatten().collect()
}

fn make_cluster(folder: &Path, programs: &Path, servant: Option<&str>) -> Result<(), String> {
    if let Some(servant) = servant {
        run(Command::new("chown").arg(servant).arg(folder))?;
    }
    let initdb = programs.join("initdb").display().to_string();
    let arguments = [
        initdb.as_str(),
        "--pgdata=data",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "--no-instructions",
    ];
    let prefix = as_servant(servant);
    let mut words = prefix.iter().map(String::as_str).chain(arguments);
    let mut command = Command::new(words.next().unwrap_or_default());
    run(command
        .args(words)
        .arg(format!("--username={USER}"))
        .current_dir(folder))
    .map(drop)
}

fn psql(programs: &Path, port: u16, database: &str, sql: &str) -> Result<String, String> {
    let mut command = Command::new(programs.join("psql"));
    // Nothing of the caller's surroundings counts.
    command
        .env_clear()
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    command.args([
        "-h",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-U",
        USER,
        "-d",
        database,
        "-c",
        sql,
    ]);
    run(&mut command)
}

/// What the program wrote, or what it complained about.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}
