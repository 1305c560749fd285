//! The room's tests: contracts on every store, the two SQL engines and what can go wrong with them, the front,
//! and a model of all.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod care;
mod contract;
mod copy;
mod crowds;
mod front;
mod kit;
mod listings;
mod listings_model;
mod market_model;
mod market_stores;
mod model;
mod peer_stores;
mod peers;
mod peers_model;
mod place;
mod postgres;
mod promises;
mod siblings;
mod sqlite;
mod sqlite_care;
