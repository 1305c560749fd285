//! All integration tests, in one binary: the real hub from outside, and the rules of the house.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test is to panic, and so are its helpers"
)]

mod cluster_faults;
mod deploy;
mod engines;
mod faults;
mod federation;
mod hostile;
mod limits;
mod market;
mod pages;
mod rows;
mod search;
mod spelling;
mod story;
mod tidy;
