//! Every shared vector, run against this crate: our own AIP/1 suites and those of the standards.
//!
//! The files lie in `tests/vectors/` of the repository; a suite states how many vectors it has, so
//! that a file that shrinks or goes missing fails.

#[cfg(test)]
mod catalog;
#[cfg(test)]
mod envelopes;
#[cfg(test)]
mod federation;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod market;
#[cfg(test)]
mod names;
#[cfg(test)]
mod sealing;
#[cfg(test)]
mod standards;
#[cfg(test)]
mod strict_json;
#[cfg(test)]
mod support;
