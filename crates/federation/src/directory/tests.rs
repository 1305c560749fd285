//! The directory.
