//! Backups: a folder with everything the hub keeps, its digests in a manifest. Taken while the hub runs.
//!
//! The mailboxes are copied before the registry: so every mailbox of a backup belongs to an agent of the backup, while
//! an agent that came in between has an empty mailbox. Only what the registry knows of items that peers have handed in is
//! taken before the mailboxes: so no item counts as received whose message is not there. A backup holds the hub's secret
//! key: it is as secret as the data folder.

mod manifest;
mod restore;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aip_protocol::time::Timestamp;

use crate::datadir::{DataDir, DataDirError, make_private_folder};
use crate::hub_key;

pub use manifest::{FileDigest, MANIFEST, Manifest};
pub use restore::restore;

/// Why there is no backup, or why it cannot be restored. Each sentence says how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The target of a backup holds something.
    #[error("{folder} is not empty (it holds {name}); give a new folder")]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// One of the things in it.
        name: String,
    },
    /// There is no manifest.
    #[error("{0} is no complete backup: it has no manifest.json; take another one")]
    NoBackup(PathBuf),
    /// The manifest cannot be read.
    #[error("the backup's manifest.json cannot be read; take another backup")]
    ManifestUnreadable(#[source] serde_json::Error),
    /// Another version's backup.
    #[error(
        "the backup has form {found}, this hub reads form {known}; restore it with the hub that wrote it"
    )]
    FormUnknown {
        /// The form found.
        found: u32,
        /// The form known.
        known: u32,
    },
    /// A listed file is not there.
    #[error("{0} is missing from the backup; take another one")]
    Missing(PathBuf),
    /// A file is not what was written.
    #[error("{0} is not as it was when the backup was taken; take another one")]
    Differs(PathBuf),
    /// A file or link that the backup does not list.
    #[error("{0} does not belong to the backup; remove it")]
    Unlisted(PathBuf),
    /// The data folder cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// A store would not be copied or opened.
    #[error("the {store} cannot be copied")]
    Store {
        /// Which.
        store: &'static str,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system says no.
    #[error("{what} {path}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
}

fn failed<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> BackupError + use<'a> {
    move |source| BackupError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Makes the folder of a new backup.
///
/// # Errors
/// It holds something already, or cannot be made.
pub fn begin(to: &Path) -> Result<DataDir, BackupError> {
    make_private_folder(to)?;
    let mut entries = fs::read_dir(to).map_err(failed("cannot read the folder", to))?;
    match entries.next() {
        Some(entry) => {
            let name = entry
                .map_err(failed("cannot read the folder", to))?
                .file_name()
                .to_string_lossy()
                .into_owned();
            Err(BackupError::NotEmpty {
                folder: to.to_owned(),
                name,
            })
        }
        None => Ok(DataDir::at(to)),
    }
}

/// Completes a backup whose stores have been copied into `backup`: adds the hub's key from the file `key`, and the one before
/// it where there is one, lists and digests everything, and writes the manifest.
///
/// # Errors
/// The system says no.
pub fn finish(
    key: &Path,
    backup: &DataDir,
    domain: &str,
    epoch: &str,
    now: Timestamp,
) -> Result<Manifest, BackupError> {
    fs::copy(key, backup.key()).map_err(failed("cannot copy", key))?;
    let previous = hub_key::previous_file(key);
    if previous.exists() {
        let copy = hub_key::previous_file(&backup.key());
        fs::copy(&previous, copy).map_err(failed("cannot copy", &previous))?;
    }
    let manifest = Manifest::of(backup.root(), domain, epoch, now)?;
    manifest.write(backup.root())?;
    Ok(manifest)
}

#[cfg(test)]
mod tests;
