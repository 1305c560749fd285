//! What the hub is held against. Each yardstick does one thing and nothing else.

pub(crate) mod fdatasync;
pub(crate) mod jetstream;
pub(crate) mod sqlite;
pub(crate) mod strawman;
