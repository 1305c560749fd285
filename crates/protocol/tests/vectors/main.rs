//! Every shared vector, run against this crate: our own AIP/1 suites and those of the standards.
//!
//! The files lie in `tests/vectors/` of the repository; a suite states how many vectors it has, so
//! that a file that shrinks or goes missing fails.

mod catalog;
mod envelopes;
mod federation;
mod identity;
mod keys;
mod names;
mod sealing;
mod standards;
mod strict_json;
mod support;
