//! The data folder: what lies where, who may read it, and that only one process has it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use aip_protocol::multikey::SigningKey;
use rand_core::CryptoRng;

use crate::config::Secret;

/// A file of ours is a few lines; a longer one is not ours.
const SMALL_FILE_BYTES_MAX: u64 = 4_096;
/// The part of a mode that is permissions.
const MODE_BITS: u32 = 0o7777;
/// The permissions of everybody but the owner.
const OTHERS_BITS: u32 = 0o077;
const KEY_COMMENT: &str =
    "# Signing key of an AIP hub: the seed of an Ed25519 key, in hexadecimal. Keep it secret.\n";

/// Why the data folder cannot be used. Each sentence says how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// It is not there.
    #[error(
        "the data folder {0} does not exist; name the hub's with --data or hub.data_dir, or make one with `aip-hub init`"
    )]
    Missing(PathBuf),
    /// Something else has its name.
    #[error("{0} is not a folder; give another with --data or hub.data_dir")]
    NotAFolder(PathBuf),
    /// Another process works in it.
    #[error(
        "the data folder {folder} is in use by another process{process}; stop that one, or give this one its own folder"
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// " (pid N)", where it is known.
        process: String,
    },
    /// Others can read what is secret.
    #[error(
        "{path} can be read by others (mode {mode:o}); run `chmod {wanted:o} {path}`, and make a new key if others may have read it"
    )]
    TooOpen {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The mode that it should have.
        wanted: u32,
    },
    /// The key file holds something else.
    #[error("{0} holds no hub key; restore it from a backup")]
    KeyInvalid(PathBuf),
    /// A restore was interrupted.
    #[error(
        "a restore into {0} did not finish; run `aip-hub restore` again, which begins by clearing what it left"
    )]
    RestoreUnfinished(PathBuf),
    /// The system says no.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
}

fn failed<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> DataDirError + use<'a> {
    move |source| DataDirError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// A data folder.
#[derive(Clone, Debug)]
pub struct DataDir {
    root: PathBuf,
}

/// Holds the folder until it is dropped; the system lets go of it when the process dies.
#[derive(Debug)]
pub struct DataLock(#[expect(dead_code, reason = "held for its lock")] File);

impl DataDir {
    /// The folder `root`, which must exist and hold no unfinished restore.
    ///
    /// # Errors
    /// [`DataDirError::Missing`], [`DataDirError::NotAFolder`], [`DataDirError::RestoreUnfinished`].
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, DataDirError> {
        let folder = Self { root: root.into() };
        match fs::metadata(&folder.root) {
            Ok(found) if !found.is_dir() => return Err(DataDirError::NotAFolder(folder.root)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DataDirError::Missing(folder.root));
            }
            Err(source) => return Err(failed("cannot look at", &folder.root)(source)),
        }
        if folder.restore_marker().exists() {
            return Err(DataDirError::RestoreUnfinished(folder.root));
        }
        Ok(folder)
    }

    /// The folder `root`, made with mode 0700 if it is not there.
    ///
    /// # Errors
    /// As [`DataDir::open`], or the folder cannot be made.
    pub fn create(root: impl Into<PathBuf>) -> Result<Self, DataDirError> {
        let root = root.into();
        make_private_folder(&root)?;
        Self::open(root)
    }

    /// The folder without looking at it: for a restore, which begins with an empty one.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The registry's database.
    pub fn registry(&self) -> PathBuf {
        self.root.join("registry.sqlite")
    }

    /// The folder of the mailbox store.
    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// The dedup window of this process, where the mailboxes lie on an engine.
    pub fn window(&self) -> PathBuf {
        self.root.join("window")
    }

    /// The index of listings, which is made from the registry and is in no backup.
    pub fn index(&self) -> PathBuf {
        self.root.join("search")
    }

    /// The hub's signing key.
    pub fn key(&self) -> PathBuf {
        self.root.join("hub.key")
    }

    /// The token of the operator's door.
    pub fn operator_token_file(&self) -> PathBuf {
        self.root.join("operator.token")
    }

    /// Where the running hub's operator listener is (it may be on any free port).
    pub fn operator_url_file(&self) -> PathBuf {
        self.root.join("operator.url")
    }

    /// There while a restore is under way.
    pub fn restore_marker(&self) -> PathBuf {
        self.root.join("restore-unfinished")
    }

    /// There when names and mailboxes were moved to engines: what lies here is as it was then.
    pub fn moved_marker(&self) -> PathBuf {
        self.root.join("moved-to-engines")
    }

    fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Takes the folder for this process.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] at once when another process has it.
    pub fn lock(&self) -> Result<DataLock, DataDirError> {
        let path = self.lock_file();
        let open = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let mut file = open.map_err(failed("cannot open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process =
                    read_small(&path).map_or_else(|_| String::new(), |pid| format!(" (pid {})", pid.trim()));
                return Err(DataDirError::InUse {
                    folder: self.root.clone(),
                    process,
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed("cannot lock", &path)(source)),
        }
        let pid = std::process::id();
        file.set_len(0)
            .and_then(|()| writeln!(file, "{pid}"))
            .map_err(failed("cannot write", &path))?;
        Ok(DataLock(file))
    }

    /// The hub's key, made with `rng` at the first start.
    ///
    /// # Errors
    /// Others can read the file, it holds no key, or the system says no.
    pub fn hub_key(&self, rng: &mut impl CryptoRng) -> Result<SigningKey, DataDirError> {
        let path = self.key();
        if !path.exists() {
            let key = SigningKey::generate(rng);
            write_private(&path, &key_text(&key))?;
            return Ok(key);
        }
        read_key(&path)
    }

    /// Tells where the running hub's operator listener is; replaces what an earlier run told.
    ///
    /// # Errors
    /// The system says no.
    pub fn publish_operator_url(&self, url: &str) -> Result<(), DataDirError> {
        let path = self.operator_url_file();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("cannot replace", &path)(error))
            }
            _ => write_private(&path, &format!("{url}\n")),
        }
    }

    /// The operator's token, made with `rng` at the first start.
    ///
    /// # Errors
    /// Others can read the file, or the system says no.
    pub fn operator_token(&self, rng: &mut impl CryptoRng) -> Result<Secret, DataDirError> {
        let path = self.operator_token_file();
        if !path.exists() {
            let token = new_token(rng);
            write_private(&path, &format!("{token}\n"))?;
            return Ok(Secret::new(token));
        }
        check_private(&path, 0o600)?;
        let text = read_small(&path).map_err(failed("cannot read", &path))?;
        Ok(Secret::new(text.trim()))
    }
}

/// A token of 32 random bytes, in hexadecimal.
pub fn new_token(rng: &mut impl CryptoRng) -> String {
    let mut bytes = [0_u8; 32];
    rng.fill_bytes(&mut bytes);
    hex::encode(bytes)
}

/// The content of a key file.
pub fn key_text(key: &SigningKey) -> String {
    format!("{KEY_COMMENT}{}\n", hex::encode(key.seed()))
}

/// The key in a file.
///
/// # Errors
/// Others can read the file, it holds no key, or the system says no.
pub fn read_key(path: &Path) -> Result<SigningKey, DataDirError> {
    check_private(path, 0o600)?;
    let text = read_small(path).map_err(failed("cannot read", path))?;
    parse_key(&text).ok_or_else(|| DataDirError::KeyInvalid(path.to_owned()))
}

fn parse_key(text: &str) -> Option<SigningKey> {
    let line = text
        .lines()
        .find(|line| !line.starts_with('#') && !line.trim().is_empty())?;
    let mut seed = [0_u8; 32];
    hex::decode_to_slice(line.trim(), &mut seed).ok()?;
    Some(SigningKey::from_seed(seed))
}

/// Makes a folder, and those above it, for its owner alone; one that is there stays as it is.
///
/// # Errors
/// The system says no.
pub fn make_private_folder(path: &Path) -> Result<(), DataDirError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(failed("cannot make the folder", path))
}

/// Writes a new file of mode 0600, in one step and synced; one that is there is not touched.
///
/// # Errors
/// The file exists, or the system says no.
pub fn write_private(path: &Path, text: &str) -> Result<(), DataDirError> {
    let next = path.with_extension("next");
    let write = || {
        write_aside(&next, text)?;
        // A link, unlike a rename, does not replace what is there.
        fs::hard_link(&next, path)?;
        fs::remove_file(&next)?;
        sync_folder_of(path)
    };
    write().map_err(failed("cannot write", path))
}

/// Writes a file of mode 0600 in place of what is there, in one step and synced.
///
/// # Errors
/// The system says no; what was there is there still.
pub fn replace_private(path: &Path, text: &str) -> Result<(), DataDirError> {
    let next = path.with_extension("replacement");
    let write = || {
        write_aside(&next, text)?;
        fs::rename(&next, path)?;
        sync_folder_of(path)
    };
    write().map_err(failed("cannot replace", path))
}

/// Writes a file of mode 0600 under the name that it has until it is whole, and syncs it.
fn write_aside(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Makes a new name in the folder of `path` durable.
///
/// # Errors
/// The system says no.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    // A bare file name lies in the working folder, which has the empty path as parent.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

/// Whether only the owner can read or write `path`.
///
/// # Errors
/// [`DataDirError::TooOpen`] with the mode `wanted`, or the file cannot be looked at.
pub fn check_private(path: &Path, wanted: u32) -> Result<(), DataDirError> {
    let mode = fs::metadata(path)
        .map_err(failed("cannot look at", path))?
        .permissions()
        .mode()
        & MODE_BITS;
    if mode & OTHERS_BITS == 0 {
        Ok(())
    } else {
        Err(DataDirError::TooOpen {
            path: path.to_owned(),
            mode,
            wanted,
        })
    }
}

/// Reads a small text file.
///
/// # Errors
/// The system says no, or the content is not UTF-8.
pub fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(SMALL_FILE_BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
