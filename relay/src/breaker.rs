//! Skips a direct endpoint that failed.
