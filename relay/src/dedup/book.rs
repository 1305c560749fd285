//! The dedup window over a store.
