//! Envelopes in, envelopes out: admission, the dedup window, mailboxes, sessions and direct delivery.
//!
//! The room knows no HTTP framework: the hub hands in bytes and carries out effects.

pub mod admission;
pub mod breaker;
pub mod dedup;
pub mod direct;
pub mod inbox;
pub mod limits;
pub mod mailbox;
pub mod neighbours;
pub mod outbox;
pub mod presence;
pub mod rate;
pub mod relay;
mod rocks;
pub mod session;
