//! Free ports on the loopback interface.

use std::net::{Ipv4Addr, TcpListener};

/// A port that nothing listens on at this moment.
///
/// # Panics
/// When the system has no free port.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr());
    match listener {
        Ok(address) => address.port(),
        Err(error) => panic!("no free port on the loopback interface: {error}"),
    }
}
