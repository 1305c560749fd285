//! Mailboxes on NATS JetStream: many processes, one store.
//!
//! The store keeps the contract of [`aip_relay::mailbox`], as the embedded one does, but holds nothing itself:
//! every process of a hub may serve every agent. Messages lie in a few streams, one subject a mailbox, and no
//! consumer is ever made; a reader asks for what comes after its cursor (batched Direct Get), and a republished
//! header is the hint that there is something to ask for.

mod background;
mod codec;
pub mod config;
mod cursor;
mod entry;
mod expiry;
mod limits;
mod live;
mod meta;
mod nats;
mod purge;
pub mod stats;
mod statuses;
mod streams;
mod sweep;

pub use self::config::Options;
