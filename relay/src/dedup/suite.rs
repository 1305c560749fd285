//! The contract of a dedup window.
