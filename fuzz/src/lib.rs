//! What is fuzzed: one function per parser that reads strangers' bytes.
//!
//! Each takes any bytes, must not panic by itself, and asserts what has to hold of whatever was
//! accepted. The stable tests of the crate that a module is about run the same functions.

mod catalog;
mod protocol;

pub use catalog::*;
pub use protocol::*;
