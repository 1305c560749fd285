//! The key file: JSON that only its owner may read, whole or absent, sealed with a passphrase where one is given.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use aip_protocol::name::Did;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::saved::{FORMAT, SavedFile, Secrets};
use super::{AgentKeys, KdfCost, KeyFileError, vault};
use crate::entropy::Entropy;
use crate::files;
use crate::limits::KEY_FILE_BYTES_MAX;

/// Where an agent's keys lie, and how they are protected there.
#[derive(Clone)]
pub struct KeyFile {
    path: PathBuf,
    passphrase: Option<Zeroizing<String>>,
    cost: KdfCost,
}

impl KeyFile {
    /// A key file protected by its permissions alone.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            passphrase: None,
            cost: KdfCost::default(),
        }
    }

    /// Seals what is written with this passphrase, and opens what was sealed with it. An empty one is none.
    #[must_use]
    pub fn with_passphrase(mut self, passphrase: impl Into<String>) -> Self {
        let passphrase = Zeroizing::new(passphrase.into());
        self.passphrase = (!passphrase.is_empty()).then_some(passphrase);
        self
    }

    /// Sets what a guess at the passphrase costs.
    #[must_use]
    pub fn with_cost(mut self, cost: KdfCost) -> Self {
        self.cost = cost;
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a client keeps what belongs to these keys: pinned identities and the inbox.
    pub fn state_folder(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".state");
        PathBuf::from(name)
    }

    /// The key files of who this agent was before it moved ([`crate::Client::move_to`]), protected like this one. Their
    /// mailboxes may still hold mail; the inbox of each lies in its own state folder.
    pub fn former(&self) -> Result<Vec<Self>, KeyFileError> {
        let folder = self.former_folder();
        let listing = match std::fs::read_dir(&folder) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(self.elsewhere(folder).io(source)),
        };
        let mut files = Vec::new();
        for entry in listing {
            let path = entry.map_err(|source| self.io(source))?.path();
            if path.extension().is_some_and(|extension| extension == "key") {
                files.push(self.elsewhere(path));
            }
        }
        Ok(files)
    }

    /// Where the keys of a former identity lie.
    pub(crate) fn former_of(&self, did: &Did) -> Self {
        let digest = Sha256::digest(did.as_str());
        let number = digest.first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
        self.elsewhere(self.former_folder().join(format!("{number:016x}.key")))
    }

    fn former_folder(&self) -> PathBuf {
        self.state_folder().join("former")
    }

    /// Another file, protected in the same way.
    pub(crate) fn elsewhere(&self, path: PathBuf) -> Self {
        Self { path, ..self.clone() }
    }

    /// Whether there is a file.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Whether the file is sealed with a passphrase.
    pub fn is_sealed(&self) -> Result<bool, KeyFileError> {
        Ok(self.read()?.sealed.is_some())
    }

    /// Whose keys these are, which stands in the clear.
    pub fn did(&self) -> Result<Did, KeyFileError> {
        Ok(self.read()?.did)
    }

    /// The hub that the keys live at, which stands in the clear.
    pub fn hub(&self) -> Result<Option<String>, KeyFileError> {
        Ok(self.read()?.hub)
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// Refuses a file that others may read. A wrong passphrase and a changed file cannot be told apart.
    pub fn load(&self) -> Result<AgentKeys, KeyFileError> {
        let mut file = self.read()?;
        let secrets = match (file.secrets.take(), &file.sealed) {
            (Some(secrets), None) => secrets,
            (None, Some(sealed)) => {
                let needed = || KeyFileError::PassphraseNeeded(self.path.clone());
                let passphrase = self.passphrase.as_ref().ok_or_else(needed)?;
                let plain = vault::open(passphrase, &file.binding(), sealed)
                    .ok_or_else(|| KeyFileError::PassphraseWrong(self.path.clone()))?;
                parse::<Secrets>(&plain).map_err(|why| self.malformed(why))?
            }
            _ => return Err(self.malformed("it has neither secrets nor sealed ones")),
        };
        secrets
            .into_keys(file.did, file.hub)
            .map_err(|why| self.malformed(why))
    }

    /// Writes the keys to a file that must not exist yet.
    pub fn create(&self, keys: &AgentKeys, entropy: &Entropy) -> Result<(), KeyFileError> {
        let bytes = self.encode(keys, entropy)?;
        self.make_folder()?;
        match files::create_atomic(&self.path, &bytes) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(KeyFileError::Exists(self.path.clone()))
            }
            result => result.map_err(|source| self.io(source)),
        }
    }

    /// Replaces the keys in the file: after a crash there are the old ones or the new ones.
    pub fn save(&self, keys: &AgentKeys, entropy: &Entropy) -> Result<(), KeyFileError> {
        let bytes = self.encode(keys, entropy)?;
        self.make_folder()?;
        files::write_atomic(&self.path, &bytes).map_err(|source| self.io(source))
    }

    fn make_folder(&self) -> Result<(), KeyFileError> {
        match self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) if !folder.exists() => {
                files::create_private_folder(folder).map_err(|source| self.io(source))
            }
            _ => Ok(()),
        }
    }

    fn encode(&self, keys: &AgentKeys, entropy: &Entropy) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
        let mut file = SavedFile {
            format: FORMAT.to_owned(),
            did: keys.did().clone(),
            hub: keys.hub().map(str::to_owned),
            secrets: None,
            sealed: None,
        };
        let secrets = Secrets::from(keys);
        match &self.passphrase {
            None => file.secrets = Some(secrets),
            Some(passphrase) => {
                let plain = self.to_json(&secrets)?;
                let sealed = vault::seal(passphrase, self.cost, &file.binding(), &plain, entropy);
                file.sealed =
                    Some(sealed.ok_or_else(|| self.malformed("the cost of the passphrase is not usable"))?);
            }
        }
        self.to_json(&file)
    }

    /// The buffer is large enough not to grow: growing would leave copies of secrets behind.
    fn to_json(&self, value: &impl serde::Serialize) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(64 * 1024));
        serde_json::to_writer_pretty(&mut *bytes, value).map_err(|error| self.malformed(error))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    fn read(&self) -> Result<SavedFile, KeyFileError> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(KeyFileError::Missing(self.path.clone()));
            }
            opened => opened.map_err(|source| self.io(source))?,
        };
        self.refuse_readable(&file)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(64 * 1024));
        file.take(KEY_FILE_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(|source| self.io(source))?;
        let saved: SavedFile = parse(&bytes).map_err(|why| self.malformed(why))?;
        if saved.format != FORMAT {
            return Err(self.malformed("it was written by another version"));
        }
        Ok(saved)
    }

    #[cfg(unix)]
    fn refuse_readable(&self, file: &File) -> Result<(), KeyFileError> {
        use std::os::unix::fs::PermissionsExt;
        let mode = file
            .metadata()
            .map_err(|source| self.io(source))?
            .permissions()
            .mode()
            & 0o777;
        let open = mode & 0o077 != 0;
        if open {
            Err(KeyFileError::Permissions {
                path: self.path.clone(),
                mode,
            })
        } else {
            Ok(())
        }
    }

    /// Elsewhere the folder's access list is what protects the file.
    #[cfg(not(unix))]
    fn refuse_readable(&self, _: &File) -> Result<(), KeyFileError> {
        Ok(())
    }

    fn malformed(&self, why: impl fmt::Display) -> KeyFileError {
        KeyFileError::Malformed {
            path: self.path.clone(),
            why: why.to_string(),
        }
    }

    fn io(&self, source: io::Error) -> KeyFileError {
        KeyFileError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sealed = self.passphrase.is_some();
        f.debug_struct("KeyFile")
            .field("path", &self.path)
            .field("sealed", &sealed)
            .finish_non_exhaustive()
    }
}

/// Says where a file is wrong, never what stands there: that may be a secret.
fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("line {}, column {}", error.line(), error.column()))
}
