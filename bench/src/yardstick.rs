//! What the hub is held against. Each yardstick does one thing and nothing else.

use std::path::{Path, PathBuf};

pub(crate) mod aimarket;
pub(crate) mod direct_get;
pub(crate) mod echo;
pub(crate) mod fdatasync;
pub(crate) mod jetstream;
pub(crate) mod nostr;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod strawman;

/// A program that the machine may or may not have: the one given, or the first of that name on the path.
pub(crate) fn program(given: Option<&Path>, name: &str) -> Option<PathBuf> {
    let found = |path: PathBuf| path.is_file().then_some(path);
    if let Some(given) = given {
        return found(given.to_path_buf());
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).find_map(|folder| found(folder.join(name)))
}
