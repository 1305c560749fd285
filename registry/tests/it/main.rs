//! The room's tests: contracts on every store, the SQLite store, the front, and a model of both.

#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod contract;
mod front;
mod kit;
mod model;
mod peers;
mod sqlite;
mod sqlite_care;
