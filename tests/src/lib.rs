//! The harness: starts the real hub as a process of its own, in a temporary folder, on free ports.
//!
//! Tests speak to it through `aip-client`, or with raw HTTP and raw sockets where they send what no client would.
#![expect(
    clippy::panic,
    reason = "a harness tells by panicking that there is nothing to test"
)]

mod balancer;
mod binary;
mod chance;
pub mod clients;
pub mod cluster;
mod devtools;
pub mod federation_story;
pub mod history;
mod hub;
pub mod keyed;
pub mod ledger;
pub mod market;
mod mounts;
mod network;
pub mod peer;
mod ports;
pub mod provider;
pub mod raw;
pub mod raw_socket;
pub mod reference;
pub mod story;
pub mod vitals;
pub mod ws;

pub use balancer::Balancer;
pub use binary::binary;
pub use chance::{ROUNDS, SEED, STANDSTILL, chance, rounds, rounds_of, seed, standstill};
pub use devtools::{BROWSER_OPTIONS, Driven, installed_browser};
pub use hub::{HubOptions, StartFailure, TestHub};
pub use keyed::TestAgent;
pub use mounts::{Mount, Skip, fill};
pub use network::Network;
pub use peer::TestPeer;
pub use ports::free_port;
pub use vitals::Vitals;
