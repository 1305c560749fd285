//! Federation: everything between this hub and hubs of strangers (spec §8).
//!
//! [`egress`] is the only door outwards: whatever address a stranger can choose (an agent's direct endpoint, another hub) is
//! called through it and nowhere else, so that the guard against requests into the operator's own network is one place to
//! read and to test. [`peers`] says what is known and decided about other hubs, [`outbox`] where mail for them waits.

pub mod backfill;
pub mod breaker;
mod budgets;
pub mod delivery;
pub mod directory;
pub mod egress;
mod flights;
pub mod identities;
pub mod inbound;
pub mod limits;
pub mod looks;
pub mod outbox;
pub mod peers;
pub mod policy;
pub mod schedule;
pub mod signing;
#[cfg(any(test, feature = "testsuite"))]
#[expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "what a test builds wrongly fails the test"
)]
pub mod testsuite;
