//! The hub's signing key: one for all of its processes. The registry that they share knows its public half, so that a
//! process with another one, or one that would make another one, does not start.

use std::path::{Path, PathBuf};

use aip_protocol::multikey::SigningKey;
use aip_registry::{Fact, SqlStore, StoreError};
use hmac::{Hmac, KeyInit as _, Mac as _};
use rand_core::CryptoRng;
use sha2::Sha256;

use crate::config::Settings;
use crate::datadir::{self, DataDir, DataDirError};

/// What secrets are derived for.
const CHALLENGES: &[u8] = b"aip hub: key of HTTP challenges, 1";
const CURSORS: &[u8] = b"aip hub: cursors of searches, 1";
const SHARED_STATE: &[u8] = b"aip hub: what the processes share, 1";

/// Why there is no key to work with. Each sentence says how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubKeyError {
    /// The file.
    #[error(transparent)]
    File(#[from] DataDirError),
    /// `hub.key_file` names a file that is not there.
    #[error(
        "`hub.key_file` = {0} does not exist: make one with `aip-hub keygen --out {0}`, or copy the hub's"
    )]
    Missing(PathBuf),
    /// The hub has a key, and this process has none.
    #[error(
        "the hub signs with {public}, and this process has no key: copy the file from another process, or name it in \
         `hub.key_file`"
    )]
    NotHere {
        /// The public half of the hub's.
        public: String,
    },
    /// The hub has one key, and this process another.
    #[error(
        "this process has another key than the hub, which signs with {public}: put the hub's into {file}, or name it \
         in `hub.key_file`"
    )]
    Another {
        /// The public half of the hub's.
        public: String,
        /// Where this process has its own.
        file: PathBuf,
    },
    /// The registry does not say which one it is.
    #[error(transparent)]
    Registry(#[from] StoreError),
}

/// Where the key of this process is.
pub fn file(settings: &Settings, folder: &DataDir) -> PathBuf {
    if settings.hub.key_file.as_os_str().is_empty() {
        folder.key()
    } else {
        settings.hub.key_file.clone()
    }
}

/// The key of a hub of one process, made with `rng` at the first start if it lies in the data folder.
///
/// # Errors
/// Others can read the file, it holds no key, or the system says no.
pub fn own(
    settings: &Settings,
    folder: &DataDir,
    rng: &mut impl CryptoRng,
) -> Result<SigningKey, HubKeyError> {
    let path = file(settings, folder);
    if path == folder.key() {
        return Ok(folder.hub_key(rng)?);
    }
    if !path.exists() {
        return Err(HubKeyError::Missing(path));
    }
    Ok(datadir::read_key(&path)?)
}

/// The key that the hub had before this one, where the operator has named it.
///
/// # Errors
/// The file is not there, others can read it, or it holds no key.
pub fn previous(settings: &Settings) -> Result<Option<SigningKey>, HubKeyError> {
    let path = &settings.hub.previous_key_file;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    Ok(Some(datadir::read_key(path)?))
}

/// The key of a hub of several processes, which the first one makes or brings.
///
/// # Errors
/// Those of [`own`]; the registry knows another key; or this process has none, and the hub has.
pub async fn shared(
    settings: &Settings,
    folder: &DataDir,
    registry: &SqlStore,
    rng: &mut (impl CryptoRng + Send),
) -> Result<SigningKey, HubKeyError> {
    let path = file(settings, folder);
    if let (false, Some(public)) = (path.exists(), registry.fact(Fact::HubKey).await?) {
        return Err(HubKeyError::NotHere { public });
    }
    let key = own(settings, folder, rng)?;
    let public = registry.claim_fact(Fact::HubKey, key.public().as_str()).await?;
    compare(&key, public, &path)?;
    Ok(key)
}

/// Whether the key is the one with this public half.
///
/// # Errors
/// It is not.
pub fn compare(key: &SigningKey, public: String, file: &Path) -> Result<(), HubKeyError> {
    if key.public().as_str() == public {
        return Ok(());
    }
    Err(HubKeyError::Another {
        public,
        file: file.to_owned(),
    })
}

/// What the processes of a hub recognise each other's challenges by: nobody else can compute it.
pub fn challenge_key(key: &SigningKey) -> [u8; 32] {
    derived(key, CHALLENGES)
}

/// What the processes of a hub recognise the cursors of searches by.
pub fn cursor_key(key: &SigningKey) -> [u8; 32] {
    derived(key, CURSORS)
}

/// What the processes of a hub name and seal by what they share.
pub fn shared_secret(key: &SigningKey) -> [u8; 32] {
    derived(key, SHARED_STATE)
}

fn derived(key: &SigningKey, purpose: &[u8]) -> [u8; 32] {
    // HMAC takes keys of any length.
    let mac = Hmac::<Sha256>::new_from_slice(key.seed().as_slice()).map(|mut mac| {
        mac.update(purpose);
        mac.finalize().into_bytes().into()
    });
    mac.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_from_the_key_is_the_hubs_and_no_other_hubs() {
        let [key, other] = [1, 2].map(|byte| SigningKey::from_seed([byte; 32]));
        let (challenges, shared) = (challenge_key(&key), shared_secret(&key));
        assert_eq!(challenges, challenge_key(&SigningKey::from_seed([1; 32])));
        assert_ne!(challenges, challenge_key(&other));
        assert_ne!(challenges, shared);
        assert!(![challenges, shared].contains(&[1; 32]));
    }
}
