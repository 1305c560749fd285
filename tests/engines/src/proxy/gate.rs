//! What passes at this moment, and what stands at the gate.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 256;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    ToServer,
    ToClient,
}

/// What passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    Everything,
    Requests,
    Nothing,
    /// Nothing, and nobody listens.
    Cut,
    /// As cut, for ever.
    Ended,
}

impl Passing {
    fn is_closed(self) -> bool {
        matches!(self, Self::Cut | Self::Ended)
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) passing: Passing,
    pub(super) delay: Duration,
    /// Bytes to the server until everything is cut.
    pub(super) bytes_left: Option<u64>,
    /// To be taken by the thread that accepts.
    listener: Option<TcpListener>,
    /// The thread that accepts holds the listener.
    listens: bool,
    /// Both ends of every connection.
    open: HashMap<u64, Vec<TcpStream>>,
    next: u64,
    /// Cuts so far: a connection does not outlive the one that follows it.
    cuts: u64,
}

/// The state, and whoever waits for it to change.
#[derive(Debug)]
pub(super) struct Gate {
    /// Where clients connect to.
    address: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

/// A connection's place in the gate's list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    id: u64,
    cuts: u64,
}

impl Gate {
    pub(super) fn new(address: SocketAddr, listener: TcpListener) -> Self {
        Self {
            address,
            state: Mutex::new(State {
                passing: Passing::Everything,
                delay: Duration::ZERO,
                bytes_left: None,
                listener: Some(listener),
                listens: true,
                open: HashMap::new(),
                next: 0,
                cuts: 0,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        wait: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        self.changed
            .wait_while(state, |state| wait(state))
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Closes all connections; when it returns, nobody listens.
    pub(super) fn close(&self, passing: Passing) {
        self.change(|state| {
            state.passing = passing;
            state.cuts += 1;
            state.bytes_left = None;
            for end in state.open.drain().flat_map(|(_, ends)| ends) {
                // Fails only when the other side was faster.
                drop(end.shutdown(Shutdown::Both));
            }
        });
        // Accepting ends with a connection; it fails where nobody listens any more.
        drop(TcpStream::connect(self.address));
        drop(self.wait_while(self.lock(), |state| state.listens));
    }

    pub(super) fn heal(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.passing == Passing::Cut {
            state.listener = Some(TcpListener::bind(self.address)?);
            state.listens = true;
        }
        state.passing = Passing::Everything;
        state.delay = Duration::ZERO;
        state.bytes_left = None;
        self.changed.notify_all();
        Ok(())
    }

    pub(super) fn is_cut(&self) -> bool {
        self.lock().passing.is_closed()
    }

    pub(super) fn connections(&self) -> usize {
        self.lock().open.len()
    }

    /// The listener, once there is one; nothing when the proxy has ended.
    pub(super) fn listener(&self) -> Option<TcpListener> {
        let mut state = self.wait_while(self.lock(), |state| {
            state.listener.is_none() && state.passing != Passing::Ended
        });
        state.listener.take()
    }

    /// The thread that accepts has closed its listener.
    pub(super) fn is_deaf(&self) {
        self.change(|state| state.listens = false);
    }

    /// A place for one more connection; nothing when there are too many, or everything is cut.
    pub(super) fn enter(&self, client: &TcpStream) -> Option<Ticket> {
        let mut state = self.lock();
        if state.passing.is_closed() || state.open.len() >= CONNECTIONS_MAX {
            return None;
        }
        state.next += 1;
        let ticket = Ticket {
            id: state.next,
            cuts: state.cuts,
        };
        state.open.insert(ticket.id, vec![client.try_clone().ok()?]);
        Some(ticket)
    }

    /// The other end of a connection is closed with it; false when it was cut meanwhile.
    pub(super) fn join(&self, ticket: Ticket, server: &TcpStream) -> bool {
        let mut state = self.lock();
        match (state.open.get_mut(&ticket.id), server.try_clone()) {
            (Some(ends), Ok(server)) => {
                ends.push(server);
                true
            }
            _ => false,
        }
    }

    pub(super) fn leave(&self, ticket: Ticket) {
        self.change(|state| drop(state.open.remove(&ticket.id)));
    }

    /// Waits until bytes may go this way; false when the connection was cut.
    pub(super) fn pass(&self, ticket: Ticket, direction: Direction) -> bool {
        let cut = |state: &State| state.cuts != ticket.cuts;
        let held = |state: &State| match state.passing {
            Passing::Everything => false,
            Passing::Requests => direction == Direction::ToClient,
            Passing::Nothing | Passing::Cut | Passing::Ended => true,
        };
        let state = self.wait_while(self.lock(), |state| !cut(state) && held(state));
        let delay = state.delay;
        if delay.is_zero() {
            return !cut(&state);
        }
        let waited = self.changed.wait_timeout_while(state, delay, |state| !cut(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // It may have stalled while the batch was on its way.
        let state = self.wait_while(state, |state| !cut(state) && held(state));
        !cut(&state)
    }

    /// How many of so many bytes may go to the server, and whether everything is cut after them.
    pub(super) fn spend(&self, bytes: usize) -> (usize, bool) {
        let mut state = self.lock();
        let Some(left) = state.bytes_left else {
            return (bytes, false);
        };
        let taken = bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
        let left = left.saturating_sub(taken as u64);
        state.bytes_left = Some(left);
        (taken, left == 0)
    }
}
