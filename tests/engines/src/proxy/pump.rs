//! The threads that carry bytes: one that accepts, two for every connection.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::gate::{Direction, Gate, Passing, Ticket};

/// Read at once.
const BATCH_BYTES: usize = 64 << 10;

/// For the server to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Accepts until the proxy ends; while it is cut, there is no listener.
pub(super) fn accept_all(gate: &Arc<Gate>, server: SocketAddr) {
    while let Some(listener) = gate.listener() {
        while !gate.is_cut() {
            let Ok((client, _)) = listener.accept() else {
                continue;
            };
            if let Some(ticket) = gate.enter(&client) {
                let gate = Arc::clone(gate);
                std::thread::spawn(move || {
                    // A connection that breaks is what the proxy is for.
                    drop(carry(&gate, ticket, &client, server));
                    gate.leave(ticket);
                });
            }
        }
        drop(listener);
        gate.is_deaf();
    }
}

/// One connection, to its end.
fn carry(gate: &Arc<Gate>, ticket: Ticket, client: &TcpStream, server: SocketAddr) -> io::Result<()> {
    if !gate.pass(ticket, Direction::ToServer) {
        return Ok(());
    }
    let server = TcpStream::connect_timeout(&server, CONNECT_WITHIN)?;
    if !gate.join(ticket, &server) {
        return Ok(());
    }
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    std::thread::scope(|scope| {
        scope.spawn(|| pump(gate, ticket, Direction::ToClient, &server, client));
        pump(gate, ticket, Direction::ToServer, client, &server);
    });
    Ok(())
}

/// One direction of a connection. A side that has said everything is told to the other; a broken one breaks both.
fn pump(gate: &Gate, ticket: Ticket, direction: Direction, from: &TcpStream, to: &TcpStream) {
    let done = copy(gate, ticket, direction, from, to);
    let (how, ends): (_, &[&TcpStream]) = match done {
        Ok(()) => (Shutdown::Write, &[to]),
        Err(_) => (Shutdown::Both, &[from, to]),
    };
    for end in ends {
        // Fails only when it is closed already.
        drop(end.shutdown(how));
    }
}

fn copy(
    gate: &Gate,
    ticket: Ticket,
    direction: Direction,
    mut from: &TcpStream,
    mut to: &TcpStream,
) -> io::Result<()> {
    let mut buffer = vec![0; BATCH_BYTES];
    loop {
        let read = from.read(&mut buffer)?;
        if !gate.pass(ticket, direction) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if read == 0 {
            return Ok(());
        }
        let (taken, cut) = match direction {
            Direction::ToServer => gate.spend(read),
            Direction::ToClient => (read, false),
        };
        to.write_all(buffer.get(..taken).unwrap_or_default())?;
        if cut {
            gate.close(Passing::Cut);
        }
    }
}
