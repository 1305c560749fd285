//! NATS servers with JetStream: one alone, or a cluster.

mod cluster;
mod node;

use std::borrow::Borrow;
use std::net::SocketAddr;
use std::sync::OnceLock;

pub use cluster::NatsCluster;
use node::Node;

use crate::server::{StartFailure, or_panic, with_fresh_ports};

/// How a test wants its NATS. `NatsOptions::default()` has JetStream, and writes to the disk when the system likes.
#[derive(Debug, Clone, Default)]
pub struct NatsOptions {
    /// `sync_interval: always`: what was acknowledged is on the disk.
    pub sync_always: bool,
    /// No JetStream.
    pub without_jetstream: bool,
    /// Further lines of the configuration file, at its top level.
    pub config: String,
}

/// One NATS server. Dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Nats {
    node: Node,
}

impl Nats {
    /// Starts a server and waits until JetStream is ready.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    #[must_use]
    pub fn start(options: impl Borrow<NatsOptions>) -> Self {
        or_panic(Self::try_start(options.borrow()))
    }

    /// The same, for those who have something to do without it.
    ///
    /// # Errors
    /// What is missing or went wrong, with the server's log.
    pub fn try_start(options: &NatsOptions) -> Result<Self, StartFailure> {
        with_fresh_ports(|| {
            let mut node = Node::prepare("n1", options, None)?;
            node.begin();
            node.await_healthy()?;
            Ok(Self { node })
        })
    }

    /// The server that all tests of this process share; it ends with the process.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Nats> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(NatsOptions::default()))
    }

    /// For clients: `nats://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        self.node.url()
    }

    /// The same as an address, for a [`crate::Proxy`].
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.node.address()
    }

    /// The monitoring endpoint: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn monitor_url(&self) -> String {
        self.node.monitor_url()
    }

    /// The process id while it has not been killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.node.server.pid()
    }

    /// Memory that the process holds, in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        self.node.server.resident_bytes()
    }

    /// What it has written to its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.node.server.log()
    }

    /// SIGKILL; the data stay.
    pub fn kill(&mut self) {
        self.node.server.kill();
    }

    /// Starts the process (again) on the same ports and data, and waits until JetStream is ready.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn restart(&mut self) {
        self.node.begin();
        or_panic(self.node.await_healthy());
    }

    /// SIGSTOP; when it returns, every thread stands still.
    ///
    /// # Panics
    /// When it cannot be stopped.
    pub fn pause(&mut self) {
        self.node.server.pause();
    }

    /// SIGCONT.
    pub fn resume(&mut self) {
        self.node.server.resume();
    }
}
