//! Why a store does not open.

use std::io;
use std::path::{Path, PathBuf};

/// Why a store does not open. Each is a sentence for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process uses the folder.
    #[error(
        "the mailbox store in {dir} is in use by another process: a second hub on the same data folder would \
         destroy it. Stop the other one, or give this one a folder of its own"
    )]
    Locked {
        /// The store's folder.
        dir: PathBuf,
    },
    /// Files of a store without the one that names them.
    #[error(
        "{dir} holds parts of a mailbox store ({file}) but no CURRENT file. It is not opened as an empty \
         store, since that would delete the rest. Restore a backup, or move the folder away to begin anew"
    )]
    Remnants {
        /// The database folder.
        dir: PathBuf,
        /// One of the files.
        file: String,
    },
    /// A restore did not come to its end.
    #[error("a restore into {dir} was interrupted. Run it again; nothing of the backup is lost")]
    RestoreInterrupted {
        /// The store's folder.
        dir: PathBuf,
    },
    /// A restore into a folder that holds a store.
    #[error("{dir} holds a mailbox store already. Restore into another folder, or move this one away")]
    Occupied {
        /// The store's folder.
        dir: PathBuf,
    },
    /// Written by a newer version.
    #[error(
        "the mailbox store in {dir} was written by a newer version ({found}); this one knows layout {known}. \
         Run the newer version, or restore a backup that this version made"
    )]
    TooNew {
        /// The store's folder.
        dir: PathBuf,
        /// What was found.
        found: String,
        /// What this version writes.
        known: u32,
    },
    /// It does not read back.
    #[error("the mailbox store in {dir} is damaged and is left as it is: {reason}. Restore a backup")]
    Damaged {
        /// The store's folder.
        dir: PathBuf,
        /// What RocksDB said.
        reason: String,
    },
    /// The file system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// Says what was tried, and on what.
pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { action, path, source }
}
