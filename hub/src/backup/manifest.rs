//! The list of a backup's files with their digests: written last, so a folder that has one is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{BackupError, failed};
use crate::datadir::write_private;

/// The name of the manifest in a backup.
pub const MANIFEST: &str = "manifest.json";
/// The form of a backup that this hub writes and reads.
const FORM: u32 = 1;
const CHUNK_BYTES: usize = 64 * 1024;
/// A manifest lists the files of one store, some hundreds; a longer one is not ours.
const MANIFEST_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The form of the backup.
    pub form: u32,
    /// The hub that wrote it.
    pub software: String,
    /// The domain whose hub it is.
    pub domain: String,
    /// The epoch of the mailboxes when it was taken; a restore gives a new one.
    pub epoch: String,
    /// When it was taken.
    pub made_at: Timestamp,
    /// Every file but the manifest, by its path with `/`.
    pub files: BTreeMap<String, FileDigest>,
}

/// One file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDigest {
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl Manifest {
    /// Lists what lies in `folder`, and syncs each file on the way.
    pub(super) fn of(
        folder: &Path,
        domain: &str,
        epoch: &str,
        made_at: Timestamp,
    ) -> Result<Self, BackupError> {
        let mut files = BTreeMap::new();
        for name in names(folder)? {
            let path = folder.join(&name);
            let digest = digest(&path).and_then(|digest| File::open(&path)?.sync_all().map(|()| digest));
            files.insert(name, digest.map_err(failed("cannot read", &path))?);
        }
        let software = concat!("aip-hub/", env!("CARGO_PKG_VERSION")).to_owned();
        Ok(Self {
            form: FORM,
            software,
            domain: domain.to_owned(),
            epoch: epoch.to_owned(),
            made_at,
            files,
        })
    }

    /// Writes the manifest: from here on `folder` is a backup.
    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let text = serde_json::to_string_pretty(self).map_err(BackupError::ManifestUnreadable)?;
        Ok(write_private(&folder.join(MANIFEST), &text)?)
    }

    /// Reads the manifest of `folder` and compares every file with it.
    ///
    /// # Errors
    /// There is no manifest, or the first file that is missing, differs, or is not in the list.
    pub fn verify(folder: &Path) -> Result<Self, BackupError> {
        let manifest = Self::read(folder)?;
        let mut found: BTreeSet<String> = names(folder)?.into_iter().collect();
        found.remove(MANIFEST);
        for (name, listed) in &manifest.files {
            let path = folder.join(name);
            if !found.remove(name) {
                return Err(BackupError::Missing(path));
            }
            if digest(&path).map_err(failed("cannot read", &path))? != *listed {
                return Err(BackupError::Differs(path));
            }
        }
        match found.pop_first() {
            Some(name) => Err(BackupError::Unlisted(folder.join(name))),
            None => Ok(manifest),
        }
    }

    fn read(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(MANIFEST);
        let mut text = String::new();
        match File::open(&path).and_then(|file| file.take(MANIFEST_BYTES_MAX).read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BackupError::NoBackup(folder.to_owned()));
            }
            Err(source) => return Err(failed("cannot read", &path)(source)),
        }
        let manifest: Self = serde_json::from_str(&text).map_err(BackupError::ManifestUnreadable)?;
        if manifest.form != FORM {
            return Err(BackupError::FormUnknown {
                found: manifest.form,
                known: FORM,
            });
        }
        Ok(manifest)
    }
}

/// The paths of all files below `folder`, with `/` between the parts.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, BackupError> {
    let mut found = Vec::new();
    let mut waiting = vec![(folder.to_owned(), String::new())];
    while let Some((inside, prefix)) = waiting.pop() {
        for entry in fs::read_dir(&inside).map_err(failed("cannot read the folder", &inside))? {
            let entry = entry.map_err(failed("cannot read the folder", &inside))?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry
                .file_type()
                .map_err(failed("cannot look at", &entry.path()))?;
            if kind.is_dir() {
                waiting.push((entry.path(), format!("{name}/")));
            } else if kind.is_file() {
                found.push(name);
            } else {
                // A link could lead a restore anywhere.
                return Err(BackupError::Unlisted(entry.path()));
            }
        }
    }
    Ok(found)
}

/// The length and SHA-256 of a file.
pub(super) fn digest(path: &Path) -> io::Result<FileDigest> {
    let mut file = File::open(path)?;
    copy_digesting(&mut file, &mut io::sink())
}

/// Copies, and digests what it copied.
pub(super) fn copy_digesting(from: &mut impl Read, to: &mut impl io::Write) -> io::Result<FileDigest> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0_u64;
    loop {
        let read = from.read(&mut chunk)?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else {
            break;
        };
        hash.update(part);
        to.write_all(part)?;
        bytes += part.len() as u64;
    }
    Ok(FileDigest {
        bytes,
        sha256: hex::encode(hash.finalize()),
    })
}
