//! Redis servers.

use std::borrow::Borrow;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use crate::ports::{free_port, loopback};
use crate::programs;
use crate::server::{Recipe, Server, StartFailure, or_panic, with_fresh_ports};

const ENGINE: &str = "Redis";

const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// How a test wants its Redis. `RedisOptions::default()` keeps everything in memory only.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    /// `appendonly yes`, `appendfsync always`: what was acknowledged is on the disk.
    pub append_only: bool,
    /// Further settings, as in `redis.conf`.
    pub settings: Vec<(String, String)>,
}

/// A Redis server. Dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    port: u16,
}

impl Redis {
    /// Starts a server and waits until it answers.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    #[must_use]
    pub fn start(options: impl Borrow<RedisOptions>) -> Self {
        or_panic(Self::try_start(options.borrow()))
    }

    /// The same, for those who have something to do without it.
    ///
    /// # Errors
    /// What is missing or went wrong, with the server's log.
    pub fn try_start(options: &RedisOptions) -> Result<Self, StartFailure> {
        with_fresh_ports(|| {
            let port = free_port();
            let server = Server::prepare(&Recipe {
                engine: ENGINE,
                command: command(port, options)?,
                end: "KILL",
            })?;
            let mut redis = Self { server, port };
            redis.begin()?;
            Ok(redis)
        })
    }

    /// The server that all tests of this process share; it ends with the process.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Redis> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(RedisOptions::default()))
    }

    fn begin(&mut self) -> Result<(), StartFailure> {
        self.server.begin();
        let address = self.address();
        self.server.await_ready(|| answers(address))
    }

    /// For clients: `redis://127.0.0.1:PORT/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address())
    }

    /// The same as an address, for a [`crate::Proxy`].
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// The process id while it has not been killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Memory that the process holds, in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        self.server.resident_bytes()
    }

    /// What it has written to its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// SIGKILL; data stay only where `append_only` was asked for.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts the process (again) on the same port, and waits until it answers.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn restart(&mut self) {
        or_panic(self.begin());
    }

    /// SIGSTOP; when it returns, every thread stands still.
    ///
    /// # Panics
    /// When it cannot be stopped.
    pub fn pause(&mut self) {
        self.server.pause();
    }

    /// SIGCONT.
    pub fn resume(&mut self) {
        self.server.resume();
    }
}

fn command(port: u16, options: &RedisOptions) -> Result<Vec<String>, StartFailure> {
    let program = programs::redis_server().map_err(|reason| StartFailure::new(ENGINE, reason))?;
    let mut command = vec![program.display().to_string()];
    let mut set = |name: &str, value: &str| command.extend([format!("--{name}"), value.to_owned()]);
    set("port", &port.to_string());
    set("bind", "127.0.0.1");
    set("save", "");
    if options.append_only {
        set("appendonly", "yes");
        set("appendfsync", "always");
    }
    for (name, value) in &options.settings {
        set(name, value);
    }
    Ok(command)
}

/// While it reads its data, it answers with an error.
fn answers(address: SocketAddr) -> bool {
    let ask = || {
        let mut connection = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
        connection.set_read_timeout(Some(ANSWER_WITHIN))?;
        connection.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        connection.read_exact(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    ask().is_ok_and(|answer| answer == *b"+PONG\r\n")
}
