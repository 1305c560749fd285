//! This room against real Redis servers: the contracts of all its seams, faults, and values that somebody else wrote.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test is to panic")]

mod contract;
mod faults;
mod hostile;
mod kit;
mod probing;
