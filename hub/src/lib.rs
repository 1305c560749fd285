//! The process: HTTP, WebSocket, configuration, wiring, signals, commands.
//!
//! Only this room knows the web framework and HTTP; the rooms below hand it values. A request passes
//! [`front`], reaches one file under [`routes`], which reads with [`extract`], calls one room, and answers; whatever
//! goes wrong becomes an [`error::ApiError`]. [`app::App`] is what they share, [`server`] binds the listeners.

pub mod agent;
pub mod app;
pub mod backup;
pub mod catalog;
pub mod clock;
pub mod commands;
pub mod config;
pub mod cors;
pub mod datadir;
pub mod error;
pub mod extract;
pub mod federation;
pub mod front;
pub mod hub_key;
pub mod lifecycle;
pub mod limits;
pub mod logging;
pub mod market;
pub mod metrics;
pub mod migrate_store;
pub mod openapi;
pub mod pause;
pub mod process;
pub mod request_id;
pub mod routes;
pub mod server;
pub mod socket;
pub mod stores;
#[cfg(test)]
mod testing;
pub mod throttle;
pub mod wiring;
