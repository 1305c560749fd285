//! Delivery to connected agents: the pure machine against a model, and whole links over the store in memory.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::struct_excessive_bools,
    reason = "a test is to panic, its numbers are small, its notes on a session are flags"
)]

mod elsewhere;
mod link;
mod machine;
mod model;
mod reader;
mod sharing;
mod world;
