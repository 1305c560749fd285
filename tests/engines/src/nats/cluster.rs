//! A cluster of NATS servers.

use std::net::SocketAddr;
use std::time::Duration;

use super::node::{Node, Routes};
use super::{NatsOptions, StartFailure};
use crate::monitor;
use crate::poll::poll;
use crate::ports::free_port;
use crate::server::{or_panic, with_fresh_ports};

/// An election takes a few seconds at most; the machine may be busy.
const ELECTED_WITHIN: Duration = Duration::from_mins(1);

/// NATS servers `n1`, `n2`, … that share JetStream; a test names them by index from 0. Dropping it ends them all.
///
/// Servers tell clients nothing of each other: a client knows the URLs that it was given.
#[derive(Debug)]
pub struct NatsCluster {
    nodes: Vec<Node>,
    paused: Vec<bool>,
}

impl NatsCluster {
    /// Starts `servers` servers and waits until they have a leader and all keep pace with it.
    ///
    /// # Panics
    /// When they do not become ready; the message holds a log.
    #[must_use]
    pub fn start(servers: usize, sync_always: bool) -> Self {
        let options = NatsOptions {
            sync_always,
            ..NatsOptions::default()
        };
        or_panic(Self::try_start(servers, &options))
    }

    /// The same, with all the options.
    ///
    /// # Errors
    /// What is missing or went wrong, with the log of the server concerned.
    pub fn try_start(servers: usize, options: &NatsOptions) -> Result<Self, StartFailure> {
        with_fresh_ports(|| {
            let mut cluster = Self::prepare(servers, options)?;
            cluster.nodes.iter_mut().for_each(Node::begin);
            let healthy = cluster.nodes.iter_mut().try_for_each(Node::await_healthy);
            healthy.map_err(|failure| cluster.with_all_logs(failure))?;
            match poll(ELECTED_WITHIN, || cluster.is_complete().then_some(())) {
                Some(()) => Ok(cluster),
                None => Err(cluster.failure("it has no leader with which all keep pace")),
            }
        })
    }

    fn prepare(servers: usize, options: &NatsOptions) -> Result<Self, StartFailure> {
        let all: Vec<u16> = (0..servers).map(|_| free_port()).collect();
        let nodes = (0..).zip(&all).map(|(index, own)| {
            let routes = Routes { own: *own, all: &all };
            Node::prepare(&name(index), options, Some(&routes))
        });
        Ok(Self {
            nodes: nodes.collect::<Result<_, _>>()?,
            paused: vec![false; servers],
        })
    }

    /// One server may wait for another that could not start, and only that one's log says why.
    fn with_all_logs(&self, failure: StartFailure) -> StartFailure {
        let logs: Vec<String> = self.nodes.iter().map(|node| node.server.log()).collect();
        StartFailure {
            log: logs.join("\n"),
            ..failure
        }
    }

    fn failure(&self, reason: &str) -> StartFailure {
        match self.nodes.first() {
            Some(node) => node.server.failure(reason),
            None => StartFailure::new("NATS", "a cluster of no servers"),
        }
    }

    /// The leader sees all the others at its heels.
    fn is_complete(&self) -> bool {
        let others = self.nodes.len().saturating_sub(1);
        self.leader_by(|port| monitor::meta_leader(port).filter(|(_, current)| *current == others))
            .is_some()
    }

    /// How many servers there are, running or not.
    #[must_use]
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// For clients: `nats://127.0.0.1:PORT` of every server.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Node::url).collect()
    }

    /// The same in one text, with commas between.
    #[must_use]
    pub fn url(&self) -> String {
        self.urls().join(",")
    }

    /// The address that clients of this server use, for a [`crate::Proxy`].
    ///
    /// # Panics
    /// When there is no such server; so do all the following.
    #[must_use]
    pub fn address(&self, index: usize) -> SocketAddr {
        self.node(index).address()
    }

    /// The monitoring endpoint of a server: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn monitor_url(&self, index: usize) -> String {
        self.node(index).monitor_url()
    }

    /// The process id of a server while it has not been killed.
    #[must_use]
    pub fn pid(&self, index: usize) -> Option<u32> {
        self.node(index).server.pid()
    }

    /// Memory that a server holds, in bytes.
    #[must_use]
    pub fn resident_bytes(&self, index: usize) -> Option<u64> {
        self.node(index).server.resident_bytes()
    }

    /// What a server has written to its log so far.
    #[must_use]
    pub fn log(&self, index: usize) -> String {
        self.node(index).server.log()
    }

    /// SIGKILL for one server; its data stay.
    pub fn kill(&mut self, index: usize) {
        self.node_mut(index).server.kill();
        self.mark(index, false);
    }

    /// Starts a server (again) on the same ports and data, and waits until it has caught up with the cluster; for
    /// that, more than half of the servers must be up.
    pub fn restart(&mut self, index: usize) {
        self.restart_all(&[index]);
    }

    /// Starts several servers (again), all before it waits for any of them.
    pub fn restart_all(&mut self, indices: &[usize]) {
        for index in indices {
            self.node_mut(*index).begin();
            self.mark(*index, false);
        }
        for index in indices {
            or_panic(self.node_mut(*index).await_healthy());
        }
    }

    /// SIGSTOP for one server; when it returns, every thread stands still.
    pub fn pause(&mut self, index: usize) {
        self.node_mut(index).server.pause();
        self.mark(index, true);
    }

    /// SIGCONT.
    pub fn resume(&mut self, index: usize) {
        self.node_mut(index).server.resume();
        self.mark(index, false);
    }

    /// The server that leads the cluster and knows it.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        self.leader_by(monitor::meta_leader)
    }

    /// The server that leads a stream and knows it.
    #[must_use]
    pub fn stream_leader(&self, stream: &str) -> Option<usize> {
        self.leader_by(|port| monitor::stream_leader(port, stream).map(|leader| (leader, 0)))
    }

    /// The same, once there is one.
    ///
    /// # Panics
    /// When there is none in time.
    #[must_use]
    pub fn await_stream_leader(&self, stream: &str) -> usize {
        match poll(ELECTED_WITHIN, || self.stream_leader(stream)) {
            Some(leader) => leader,
            None => panic!("nobody leads stream {stream}"),
        }
    }

    /// The first running server that takes itself for the leader; what others believe may be out of date.
    fn leader_by(&self, ask: impl Fn(u16) -> Option<(String, usize)>) -> Option<usize> {
        let paused = |index: usize| self.paused.get(index) == Some(&true);
        let mut running = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(index, node)| node.server.pid().is_some() && !paused(*index));
        let found = running
            .find(|(index, node)| ask(node.monitor_port()).is_some_and(|(leader, _)| leader == name(*index)));
        found.map(|(index, _)| index)
    }

    fn mark(&mut self, index: usize, paused: bool) {
        if let Some(mark) = self.paused.get_mut(index) {
            *mark = paused;
        }
    }

    fn node(&self, index: usize) -> &Node {
        match self.nodes.get(index) {
            Some(node) => node,
            None => panic!("there is no server {index} among {}", self.size()),
        }
    }

    fn node_mut(&mut self, index: usize) -> &mut Node {
        let size = self.size();
        match self.nodes.get_mut(index) {
            Some(node) => node,
            None => panic!("there is no server {index} among {size}"),
        }
    }
}

/// `n1`, `n2`, …
fn name(index: usize) -> String {
    format!("n{}", index + 1)
}
