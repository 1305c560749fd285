//! The two stores of a data folder, opened together, copied together, closed together.

use std::path::Path;
use std::sync::Arc;

use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use aip_registry::SqlStore;
use aip_relay::mailbox::rocks::{DiskGuard, RocksMailboxes, RocksOptions};
use aip_relay::mailbox::{Epoch, Upkeep as _};
use rand::rngs::SysRng;
use rand_core::{Rng as _, UnwrapErr};

use crate::backup::{self, BackupError, Manifest};
use crate::config::Settings;
use crate::datadir::DataDir;

/// Why the stores do not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The settings name no domain.
    #[error("`hub.domain` = {0:?} is no domain; give it with --config, --domain or AIP_HUB__HUB__DOMAIN")]
    Domain(String),
    /// The registry's database.
    #[error(transparent)]
    Registry(#[from] aip_registry::StoreError),
    /// The mailboxes.
    #[error(transparent)]
    Mailboxes(#[from] aip_relay::mailbox::rocks::OpenError),
    /// A store's thread could not do its work.
    #[error("the stores cannot be opened")]
    Interrupted(#[source] tokio::task::JoinError),
}

/// What a hub keeps. The caller holds the lock of the data folder for as long as this lives.
#[derive(Debug)]
pub struct Stores {
    /// Agents, tokens, invites.
    pub registry: Arc<SqlStore>,
    /// Envelopes.
    pub mailboxes: Arc<RocksMailboxes>,
    folder: DataDir,
    domain: Domain,
}

impl Stores {
    /// Opens both, and makes those that are not there.
    ///
    /// # Errors
    /// What is wrong, and how to mend it.
    pub async fn open(settings: &Settings, folder: &DataDir) -> Result<Self, OpenError> {
        let domain = Domain::parse(&settings.hub.domain)
            .map_err(|_refusal| OpenError::Domain(settings.hub.domain.clone()))?;
        let registry = SqlStore::open_sqlite(&folder.registry(), &domain).await?;
        let (dir, options) = (
            folder.store(),
            RocksOptions {
                guard: disk_guard(settings),
                ..RocksOptions::default()
            },
        );
        let open = move || RocksMailboxes::open(&dir, options, &new_epoch());
        let mailboxes = tokio::task::spawn_blocking(open)
            .await
            .map_err(OpenError::Interrupted)??;
        Ok(Self {
            registry: Arc::new(registry),
            mailboxes: Arc::new(mailboxes),
            folder: folder.clone(),
            domain,
        })
    }

    /// The domain that the stores belong to.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Takes a backup into the new folder `to`, while both stores are in use.
    ///
    /// # Errors
    /// `to` holds something, or a store or the system says no. What was copied by then is left, without a manifest.
    pub async fn backup(&self, to: &Path, now: Timestamp) -> Result<Manifest, BackupError> {
        let target = backup::begin(to)?;
        let failed = |store| move |source| BackupError::Store { store, source };
        self.mailboxes
            .checkpoint(&target.store())
            .await
            .map_err(|error| failed("mailboxes")(error.into()))?;
        self.registry
            .backup_to(&target.registry())
            .await
            .map_err(|error| failed("registry")(error.into()))?;
        let (folder, domain) = (self.folder.clone(), self.domain.to_string());
        let epoch = self.mailboxes.epoch();
        let finish = move || backup::finish(&folder, &target, &domain, epoch.as_str(), now);
        tokio::task::spawn_blocking(finish)
            .await
            .map_err(|error| failed("data folder")(error.into()))?
    }

    /// Ends the registry's writer and connections. The mailboxes close when their last user lets go of them.
    pub async fn close(&self) {
        self.registry.close().await;
    }
}

/// When the disk counts as full.
pub fn disk_guard(settings: &Settings) -> DiskGuard {
    DiskGuard {
        used_percent_max: settings.relay.disk_used_percent_max,
        free_bytes_min: settings.relay.disk_free_bytes_min,
    }
}

/// Restores the mailboxes of a backup into a data folder, with a new epoch: for [`backup::restore`].
///
/// # Errors
/// The copy does not open as a store of mailboxes, or the system says no.
pub fn restore_mailboxes(backup: &DataDir, folder: &DataDir) -> Result<(), BackupError> {
    RocksMailboxes::restore(&backup.store(), &folder.store(), &new_epoch()).map_err(|error| {
        BackupError::Store {
            store: "mailboxes",
            source: error.into(),
        }
    })
}

fn new_epoch() -> Epoch {
    Epoch::from_random(UnwrapErr(SysRng).next_u64())
}
