//! Faults against a hub of several processes on real engines: whatever is killed, stopped, cut off or out of time, nothing
//! acknowledged is lost, nothing takes effect twice, and the hub recovers by itself.
//!
//! `AIP_FAULT_ROUNDS` sets the rounds (5 are the usual ones, 100 are twenty times as many), `AIP_FAULT_SEED` the chance,
//! `AIP_FAULT_STANDSTILL_SECS` how long a stopped process stands still. Each fault prints what it did, one line a fault. A
//! failure leaves its history and the logs of the processes in the build folder.

mod clock;
mod ground;
mod names;
mod nats;
mod probe;
mod processes;
mod shared;
mod slow;
mod steady;
mod way;

use std::time::Duration;

use aip_engines::{Nats, NatsCluster};
use aip_tests::cluster::Engines;

/// From the end of a fault to a fresh message that comes through.
const RECOVERED_WITHIN: Duration = Duration::from_secs(30);

/// A process that gets no answer about a publish says so after this time, which is shorter than any standstill: whoever
/// sends learns that the outcome is unknown while the fault lasts.
const PUBLISH_DEADLINE_SECS: u64 = 3;

/// The engines that all tests share, for a hub that is hurt elsewhere.
fn engines() -> Engines {
    let deadline = PUBLISH_DEADLINE_SECS.to_string();
    Engines {
        more: vec![("AIP_HUB__NATS__PUBLISH_DEADLINE_SECS".to_owned(), deadline)],
        ..Engines::shared()
    }
}

/// The same with mailboxes on one NATS server of this test's own.
fn on_server(nats: &Nats) -> Engines {
    Engines {
        mailboxes: nats.url(),
        ..engines()
    }
}

/// The same with mailboxes on three NATS servers, three copies of each.
fn on_servers(nats: &NatsCluster) -> Engines {
    Engines {
        mailboxes: nats.url(),
        replicas: 3,
        ..engines()
    }
}

/// What blocks (processes that start and end), off the async threads.
fn hurt<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}
