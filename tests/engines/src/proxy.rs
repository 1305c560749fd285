//! A TCP proxy that breaks the way between a client and a server, and mends it again.

mod gate;
mod pump;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use gate::{Gate, Passing};

use crate::ports::{listen_anywhere, loopback};

/// Passes bytes between clients and a server until a test wants otherwise. Dropping it closes everything.
///
/// At most 256 connections at a time; what comes beyond is closed at once.
#[derive(Debug)]
pub struct Proxy {
    gate: Arc<Gate>,
    server: SocketAddr,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy to this address, which need not be listening yet.
    ///
    /// # Panics
    /// When the system has no free port.
    #[must_use]
    pub fn to(server: SocketAddr) -> Self {
        let (listener, port) = listen_anywhere();
        let address = loopback(port);
        let gate = Arc::new(Gate::new(address, listener));
        let acceptor = {
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || pump::accept_all(&gate, server))
        };
        Self {
            gate,
            server,
            address,
            acceptor: Some(acceptor),
        }
    }

    /// Where clients connect to.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The same URL, by way of the proxy.
    #[must_use]
    pub fn url(&self, direct: &str) -> String {
        direct.replace(&self.server.to_string(), &self.address.to_string())
    }

    /// From now on, every batch of at most 64 KiB waits this long on its way, in either direction.
    pub fn delay(&self, delay: Duration) {
        self.gate.change(|state| state.delay = delay);
    }

    /// Closes all connections and refuses new ones.
    pub fn cut(&self) {
        self.gate.close(Passing::Cut);
    }

    /// Keeps all connections and accepts new ones, but passes nothing in either direction.
    pub fn stall(&self) {
        self.set(Passing::Nothing);
    }

    /// Passes what clients send, but nothing that the server answers: followed by [`Self::cut`], what a client asked
    /// for was done, and it never hears of it.
    pub fn mute(&self) {
        self.set(Passing::Requests);
    }

    /// Passes this many further bytes from clients to the server, of all connections together, then cuts as
    /// [`Self::cut`] does.
    pub fn drop_after(&self, bytes: u64) {
        self.gate.change(|state| state.bytes_left = Some(bytes));
    }

    /// Everything passes again at once, also what was held back while it stalled, and new connections are accepted.
    ///
    /// # Panics
    /// When another process has taken the port while nothing listened on it.
    pub fn heal(&self) {
        // A cut that `drop_after` began may not be through yet.
        if self.gate.is_cut() {
            self.cut();
        }
        if let Err(error) = self.gate.heal() {
            panic!("the proxy cannot listen on {} again: {error}", self.address);
        }
    }

    /// Connections that are open at this moment.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.gate.connections()
    }

    fn set(&self, passing: Passing) {
        assert!(!self.gate.is_cut(), "the proxy is cut: heal it first");
        self.gate.change(|state| state.passing = passing);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.gate.close(Passing::Ended);
        if let Some(acceptor) = self.acceptor.take() {
            // It has nothing to say, even if it panicked.
            drop(acceptor.join());
        }
    }
}
