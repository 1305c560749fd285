//! Puts a backup into an empty data folder: all of it, or the folder says that it is not usable.
//!
//! A marker file is written first and removed last. Whoever finds it (a start, another restore) knows that what lies
//! beside it is half a hub: a start refuses, a restore clears and begins again.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::manifest::{FileDigest, Manifest, copy_digesting, names};
use super::{BackupError, failed};
use crate::datadir::{DataDir, make_private_folder, sync_folder_of, write_private};

/// What may lie in a folder that counts as empty: our own lock, and what a file system puts into its root.
const NOT_CONTENT: &[&str] = &["lock", "lost+found"];

/// Copies the verified backup `from` into the data folder, lets `mailboxes` do so with theirs (which gives them a new
/// epoch), and only then makes the folder usable. `mailboxes` gets the backup and the folder.
///
/// # Errors
/// `from` is no complete backup, the folder is in use or holds something, or the system says no. The folder then
/// stays marked as unfinished; the backup is never changed.
pub fn restore(
    from: &Path,
    folder: &DataDir,
    mailboxes: impl FnOnce(&DataDir, &DataDir) -> Result<(), BackupError>,
) -> Result<Manifest, BackupError> {
    let manifest = Manifest::verify(from)?;
    make_private_folder(folder.root())?;
    let _lock = folder.lock()?;
    if folder.restore_marker().exists() {
        clear(folder)?;
    } else if let Some(name) = content(folder)?.into_iter().next() {
        return Err(BackupError::NotEmpty {
            folder: folder.root().to_owned(),
            name,
        });
    } else {
        write_private(
            &folder.restore_marker(),
            "A restore is under way, or was interrupted.\n",
        )?;
    }
    let backup = DataDir::at(from);
    mailboxes(&backup, folder)?;
    let is_mailboxes = |name: &str| from.join(name).starts_with(backup.store());
    for (name, listed) in manifest.files.iter().filter(|(name, _)| !is_mailboxes(name)) {
        copy(&from.join(name), &folder.root().join(name), listed)?;
    }
    sync_folders(folder.root())?;
    let marker = folder.restore_marker();
    fs::remove_file(&marker)
        .and_then(|()| sync_folder_of(&marker))
        .map_err(failed("cannot remove", &marker))?;
    Ok(manifest)
}

/// Names of what lies in the folder.
fn content(folder: &DataDir) -> Result<Vec<String>, BackupError> {
    let root = folder.root();
    let entries = fs::read_dir(root).map_err(failed("cannot read the folder", root))?;
    let mut found = Vec::new();
    for entry in entries {
        let name = entry
            .map_err(failed("cannot read the folder", root))?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if !NOT_CONTENT.contains(&name.as_str()) {
            found.push(name);
        }
    }
    Ok(found)
}

/// Removes what an interrupted restore left; the marker stays.
fn clear(folder: &DataDir) -> Result<(), BackupError> {
    let marker = folder.restore_marker();
    for name in content(folder)? {
        let path = folder.root().join(name);
        if path == marker {
            continue;
        }
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(failed("cannot remove", &path))?;
    }
    Ok(())
}

/// A copy and not a link: the backup stays as it is whatever the hub does.
fn copy(from: &Path, to: &Path, listed: &FileDigest) -> Result<(), BackupError> {
    if let Some(parent) = to.parent() {
        make_private_folder(parent)?;
    }
    let copied = || -> io::Result<FileDigest> {
        let mut source = File::open(from)?;
        let mut target = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(to)?;
        let digest = copy_digesting(&mut source, &mut target)?;
        target.sync_all()?;
        Ok(digest)
    };
    let digest = copied().map_err(failed("cannot copy to", to))?;
    if digest == *listed {
        Ok(())
    } else {
        Err(BackupError::Differs(from.to_owned()))
    }
}

fn sync_folders(root: &Path) -> Result<(), BackupError> {
    for name in names(root)? {
        let path = root.join(name);
        sync_folder_of(&path).map_err(failed("cannot sync", &path))?;
    }
    Ok(())
}
