//! One NATS server, alone or in a cluster.

use std::fmt::Write as _;
use std::net::SocketAddr;

use super::NatsOptions;
use crate::ports::{free_port, loopback};
use crate::server::{Recipe, Server, StartFailure};
use crate::{monitor, programs};

const ENGINE: &str = "NATS";
const CONFIG: &str = "nats.conf";

/// Room for streams in memory: nobody keeps any there.
const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// Room for streams on the disk.
const FILE_BYTES_MAX: u64 = 16 << 30;

/// Where the servers of a cluster meet.
pub(crate) struct Routes<'a> {
    pub(crate) own: u16,
    pub(crate) all: &'a [u16],
}

/// A server and its ports.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) server: Server,
    client: u16,
    monitor: u16,
}

impl Node {
    /// Everything but the process.
    pub(crate) fn prepare(
        name: &str,
        options: &NatsOptions,
        routes: Option<&Routes<'_>>,
    ) -> Result<Self, StartFailure> {
        let failure = |reason| StartFailure::new(ENGINE, reason);
        let program = programs::nats_server().map_err(failure)?;
        let server = Server::prepare(&Recipe {
            engine: ENGINE,
            command: vec![program.display().to_string(), "-c".to_owned(), CONFIG.to_owned()],
            end: "KILL",
        })?;
        let (client, monitor) = (free_port(), free_port());
        let node = Self {
            server,
            client,
            monitor,
        };
        std::fs::write(
            node.server.folder().join(CONFIG),
            node.config(name, options, routes),
        )
        .map_err(|error| failure(error.to_string()))?;
        Ok(node)
    }

    fn config(&self, name: &str, options: &NatsOptions, routes: Option<&Routes<'_>>) -> String {
        let (client, monitor) = (self.address(), loopback(self.monitor));
        let mut text = format!("server_name: {name}\nlisten: \"{client}\"\nhttp: \"{monitor}\"\n");
        // Writing to a text does not fail.
        if !options.without_jetstream {
            let sync = if options.sync_always { "always" } else { "2m" };
            let _written = writeln!(
                text,
                "jetstream {{ store_dir: data, max_mem: {MEMORY_BYTES_MAX}, max_file: {FILE_BYTES_MAX}, \
                 sync_interval: {sync} }}"
            );
        }
        if let Some(Routes { own, all }) = routes {
            // A name of its own, so that a server of another cluster that got a port first is no member of this one.
            let named = all.iter().min().copied().unwrap_or_default();
            let all: Vec<_> = all
                .iter()
                .map(|port| format!("\"nats://{}\"", loopback(*port)))
                .collect();
            let (own, all) = (loopback(*own), all.join(", "));
            // Clients get to know only the servers that they are told, so that a proxy stays in their way.
            let _written = writeln!(
                text,
                "cluster {{ name: aip-{named}, listen: \"{own}\", no_advertise: true, routes: [{all}] }}"
            );
        }
        text + &options.config
    }

    pub(crate) fn begin(&mut self) {
        self.server.begin();
    }

    pub(crate) fn await_healthy(&mut self) -> Result<(), StartFailure> {
        let monitor = self.monitor;
        self.server.await_ready(|| monitor::is_healthy(monitor))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        loopback(self.client)
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    pub(crate) fn monitor_port(&self) -> u16 {
        self.monitor
    }

    pub(crate) fn monitor_url(&self) -> String {
        format!("http://{}", loopback(self.monitor))
    }
}
