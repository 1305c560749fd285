//! The only door outwards.
//!
//! Whatever address a stranger can choose (an agent's direct endpoint today, another hub tomorrow)
//! is called through [`egress`] and nowhere else, so that the guard against requests into the
//! operator's own network is one place to read and to test.

pub mod egress;
pub mod limits;
