//! Real NATS, PostgreSQL and Redis servers for tests and measurements, and a proxy that breaks the way to them.
//!
//! Every server listens on free ports of the loopback interface, keeps its data in a temporary folder, and ends with
//! the process that started it, also when that process is killed: a small shell holds it (`supervisor.sh`).
//! `scripts/setup test` installs the programs.
//!
//! ```no_run
//! use aip_engines::{Nats, NatsCluster, NatsOptions, Postgres, Proxy, Redis};
//!
//! // One of each for all tests of a binary; tests keep apart by stream prefix, database and key prefix.
//! let nats = Nats::shared().url();                    // nats://127.0.0.1:23456
//! let database = Postgres::shared().database("grants"); // a fresh one: postgres://aip@127.0.0.1:…/grants_1
//! let redis = Redis::shared().url();                  // redis://127.0.0.1:…/
//!
//! // Servers of one's own may be hurt.
//! let mut own = Nats::start(NatsOptions { sync_always: true, ..NatsOptions::default() });
//! own.kill();
//! own.restart(); // same ports, same data
//!
//! let mut cluster = NatsCluster::start(3, true);
//! let leader = cluster.await_stream_leader("AIP_CUR");
//! cluster.pause(leader);
//!
//! let proxy = Proxy::to(own.address());
//! let through = proxy.url(&own.url());                // the same URL, by way of the proxy
//! proxy.stall();
//! proxy.heal();
//! ```
//!
//! A server that does not start is a [`StartFailure`], which shows the server's log; `start` panics with it,
//! `try_start` returns it.
#![expect(
    clippy::panic,
    reason = "a harness tells by panicking that there is nothing to test"
)]

mod monitor;
mod nats;
mod poll;
mod ports;
mod postgres;
mod process;
mod programs;
mod proxy;
mod redis;
mod server;

pub use nats::{Nats, NatsCluster, NatsOptions};
pub use postgres::{Postgres, PostgresOptions};
pub use proxy::Proxy;
pub use redis::{Redis, RedisOptions};
pub use server::StartFailure;
