//! Mailboxes on NATS JetStream: many processes, one store.
//!
//! The store keeps the contract of [`aip_relay::mailbox`], as the embedded one does, but holds nothing itself:
//! every process of a hub may serve every agent. Messages lie in a few streams, one subject a mailbox, and no
//! consumer is ever made; a reader asks for what comes after its cursor (batched Direct Get), and a republished
//! header is the hint that there is something to ask for.

mod background;
mod clock;
mod codec;
pub mod config;
mod counters;
mod cursor;
pub mod doctor;
mod entry;
mod epoch;
mod expiry;
mod import;
mod lease;
pub mod limits;
mod live;
mod mailbox;
mod meta;
mod nats;
mod purge;
mod room;
pub mod server;
pub mod shards;
mod start;
pub mod stats;
mod statuses;
mod store;
mod streams;
mod sweep;
#[cfg(test)]
mod testing;

pub use self::config::Options;
pub use self::epoch::renew_epoch;
pub use self::live::Wake;
pub use self::meta::Fresh;
pub use self::nats::ConnectError;
pub use self::room::LocalWindow;
pub use self::start::StartError;
pub use self::store::{JetStreamMailboxes, Parts};
pub use self::streams::StreamError;
