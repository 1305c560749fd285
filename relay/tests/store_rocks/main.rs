//! The embedded store under a restart, a torn log, a failed write, a full disk, a second process, and a
//! restore.
#![expect(clippy::unwrap_used, reason = "a test is to panic")]

mod batches;
mod closed;
mod export;
mod failures;
mod folders;
mod ground;
mod restarts;
