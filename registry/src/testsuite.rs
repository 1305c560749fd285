//! The contract suites.
