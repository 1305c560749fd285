//! The WebSocket session: frames, one connection, and the pump that keeps a connection alive (spec §6).

pub(crate) mod connection;
pub(crate) mod frame;
pub(crate) mod policy;
mod progress;
pub(crate) mod pump;
