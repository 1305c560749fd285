//! Free ports on the loopback interface.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Below the ports that the system gives to outgoing connections: while a server is restarted, none of its clients
/// may get the port that it is about to take again.
const PORTS: std::ops::Range<u16> = 10_000..32_000;
const TRIES: usize = 1_000;

/// A port that nothing listens on at this moment.
pub(crate) fn free_port() -> u16 {
    listen_anywhere().1
}

/// Listens on a free port.
pub(crate) fn listen_anywhere() -> (TcpListener, u16) {
    for _ in 0..TRIES {
        let port = PORTS.start + chance() % (PORTS.end - PORTS.start);
        if let Ok(listener) = TcpListener::bind(loopback(port)) {
            return (listener, port);
        }
    }
    panic!("no free port on the loopback interface");
}

/// This port on the loopback interface.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// The standard library's hash maps are seeded by the system; that is chance enough for a port.
fn chance() -> u16 {
    let [low, high, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
    u16::from_le_bytes([low, high])
}
