//! The harness: starts the real hub as a process of its own, in a temporary folder, on free ports.
//!
//! Tests speak to it through `aip-client`, or with raw HTTP where they send what no client would.

mod binary;
mod hub;
mod ports;
pub mod story;

pub use binary::binary;
pub use hub::{HubOptions, TestHub};
pub use ports::free_port;
