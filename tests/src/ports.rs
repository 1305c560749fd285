//! Free ports on the loopback interface.

use std::net::{Ipv4Addr, TcpListener};

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::{StdRng, SysRng};
use rand_core::UnwrapErr;

/// Below the ports that the system gives to outgoing connections: while a hub is restarted, none of its clients may get
/// the port that it is about to take again.
const PORTS: std::ops::Range<u16> = 10_000..32_000;
const TRIES: usize = 1_000;

/// A port that nothing listens on at this moment.
///
/// # Panics
/// When the system has no free port.
#[must_use]
pub fn free_port() -> u16 {
    let mut chance = StdRng::from_rng(&mut UnwrapErr(SysRng));
    for _ in 0..TRIES {
        let port = chance.random_range(PORTS);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port on the loopback interface");
}
