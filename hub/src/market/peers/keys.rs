//! The keys of this hub's accounts at hubs that it resells: a file that only the hub can read, with an address and a key in each
//! line. They are in no database and in no log.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use aip_market::credential::{API_KEY_PREFIX, Secret};
use aip_market::peers::{PeerKeys, peer_url};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::datadir::{DataDirError, check_private};
use crate::market::limits::PEER_KEYS_FILE_BYTES_MAX;

/// Why the file cannot be used. No text of it is told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// Others can read it, or it cannot be looked at.
    #[error(transparent)]
    Open(#[from] DataDirError),
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is too long.
    #[error("{path} is longer than {PEER_KEYS_FILE_BYTES_MAX} bytes")]
    Long {
        /// The file.
        path: PathBuf,
    },
    /// A line is not of its form.
    #[error(
        "line {line} of {path} is not the address of a hub (https://hub.example.org), a blank and a key (aimk_…)"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
    },
}

/// The keys, as the file last had them.
#[derive(Default)]
pub struct KeysFile {
    path: PathBuf,
    held: RwLock<Held>,
}

#[derive(Default)]
struct Held {
    /// Of the text that was read.
    hash: [u8; 32],
    keys: BTreeMap<String, Secret>,
}

impl KeysFile {
    /// Reads the file; an empty path is none, and has no keys.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn open(path: &Path) -> Result<Self, KeysError> {
        let file = Self {
            path: path.to_owned(),
            held: RwLock::default(),
        };
        file.reload()?;
        Ok(file)
    }

    /// Reads it again, if it has changed.
    ///
    /// # Errors
    /// It cannot be used; the keys stay as they were.
    pub fn reload(&self) -> Result<(), KeysError> {
        if self.path.as_os_str().is_empty() {
            return Ok(());
        }
        let text = self.text()?;
        let hash = Sha256::digest(text.as_bytes()).into();
        if self.held.read().unwrap_or_else(PoisonError::into_inner).hash == hash {
            return Ok(());
        }
        let keys = self.parse(&text)?;
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Held { hash, keys };
        Ok(())
    }

    fn text(&self) -> Result<Zeroizing<String>, KeysError> {
        check_private(&self.path, 0o600)?;
        let read = |source| KeysError::Read {
            path: self.path.clone(),
            source,
        };
        let mut text = Zeroizing::new(String::new());
        let file = File::open(&self.path).map_err(read)?;
        file.take(PEER_KEYS_FILE_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(read)?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > PEER_KEYS_FILE_BYTES_MAX {
            let path = self.path.clone();
            return Err(KeysError::Long { path });
        }
        Ok(text)
    }

    /// Blank lines and those that begin with `#` are passed over.
    fn parse(&self, text: &str) -> Result<BTreeMap<String, Secret>, KeysError> {
        let mut keys = BTreeMap::new();
        for (place, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let pair = line.split_once(char::is_whitespace).and_then(|(url, key)| {
                let key = Secret::shown(API_KEY_PREFIX, key.trim_start())?;
                Some((peer_url(url)?, key))
            });
            let (url, key) = pair.ok_or_else(|| KeysError::Line {
                path: self.path.clone(),
                line: place + 1,
            })?;
            keys.insert(url, key);
        }
        Ok(keys)
    }
}

impl PeerKeys for KeysFile {
    fn key(&self, url: &str) -> Option<Secret> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.keys.get(url).cloned()
    }
}

impl Debug for KeysFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeysFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn keys_are_read_by_the_address_of_a_hub_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        write(
            &path,
            "# ours\n\nhttps://One.example/  aimk_abc\nhttp://two.example:80\taimk_d-e_f\n",
            0o600,
        );
        let keys = KeysFile::open(&path).unwrap();
        let key = |url: &str| keys.key(url).map(|key| key.expose().to_owned());
        assert_eq!(key("https://one.example").as_deref(), Some("aimk_abc"));
        assert_eq!(key("http://two.example").as_deref(), Some("aimk_d-e_f"));
        assert_eq!(key("https://three.example"), None);
        write(&path, "https://one.example aimk_new", 0o600);
        keys.reload().unwrap();
        assert_eq!(key("https://one.example").as_deref(), Some("aimk_new"));
        write(&path, "https://one.example", 0o600);
        assert!(keys.reload().is_err());
        assert_eq!(
            key("https://one.example").as_deref(),
            Some("aimk_new"),
            "they stay"
        );
        assert!(!format!("{keys:?}").contains("aimk_"));
        let none = KeysFile::open(Path::new("")).unwrap();
        assert!(none.key("https://one.example").is_none());
    }

    #[test]
    fn what_others_can_read_or_is_not_of_its_form_is_refused_without_a_word_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let refused = |text: &str, mode: u32| {
            write(&path, text, mode);
            KeysFile::open(&path).unwrap_err().to_string()
        };
        assert!(matches!(
            KeysFile::open(&folder.path().join("none")),
            Err(KeysError::Open(_))
        ));
        refused("https://one.example aimk_abc", 0o644);
        for text in [
            "https://one.example secret",
            "one.example aimk_abc",
            "aimk_abc",
            "https://one.example aimk_a b",
        ] {
            let said = refused(text, 0o600);
            assert!(
                said.contains("line 1") && !said.contains("secret") && !said.contains("abc"),
                "{said}"
            );
        }
        assert!(refused(&"#".repeat(300 * 1024), 0o600).contains("longer"));
    }
}
