//! What a hub keeps, wherever it lies: in the data folder or on an engine. Opened together, copied together, closed
//! together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aip_jetstream::JetStreamMailboxes;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use aip_registry::{Fact, PostgresOptions, SqlStore};
use aip_relay::dedup::{SharedWindow, Unshared};
use aip_relay::mailbox::rocks::{DiskGuard, RocksMailboxes, RocksOptions};
use aip_relay::mailbox::{Epoch, MailboxStore, Upkeep as _};
use rand::rngs::SysRng;
use rand_core::{Rng as _, UnwrapErr};

use crate::backup::{self, BackupError, Manifest};
use crate::config::Settings;
use crate::datadir::DataDir;
use crate::{hub_key, process};

mod bell;
pub mod nats;
pub mod redis;

pub use bell::Bell;

/// Why the stores do not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The settings name no domain.
    #[error("`hub.domain` = {0:?} is no domain; give it with --config, --domain or AIP_HUB__HUB__DOMAIN")]
    Domain(String),
    /// What lies in the folder goes on elsewhere.
    #[error(
        "what the data folder {0} holds was moved to engines, and goes on there: set the addresses in [engines] as \
         they were for the move"
    )]
    Moved(PathBuf),
    /// A move did not come to its end.
    #[error(
        "a move to these engines has begun and is not complete: run `aip-hub migrate-store` again; until then the old \
         hub is the one that counts"
    )]
    MoveUnfinished,
    /// The registry's database.
    #[error(transparent)]
    Registry(#[from] aip_registry::StoreError),
    /// The mailboxes.
    #[error(transparent)]
    Mailboxes(#[from] aip_relay::mailbox::rocks::OpenError),
    /// The mailboxes on NATS.
    #[error(transparent)]
    Nats(#[from] aip_jetstream::StartError),
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
    pub mailboxes: MailStore,
    /// What RocksDB holds in the data folder: the mailboxes, or the dedup window of this process.
    local: Arc<RocksMailboxes>,
    /// Brings news of mail that other processes store.
    pub bell: Arc<Bell>,
    /// What this process is called among those of its hub.
    pub process: String,
    /// Whether the registry lies in the data folder.
    names_here: bool,
    key_file: PathBuf,
    domain: Domain,
}

/// Where envelopes lie.
#[derive(Debug, Clone)]
pub enum MailStore {
    /// In the data folder.
    Embedded(Arc<RocksMailboxes>),
    /// On NATS `JetStream`, with the dedup window of this process in the data folder.
    Nats(Arc<JetStreamMailboxes>),
}

impl MailStore {
    /// The store, whatever it is built on.
    pub fn store(&self) -> Arc<dyn MailboxStore> {
        match self {
            Self::Embedded(mailboxes) => mailboxes.clone(),
            Self::Nats(mailboxes) => mailboxes.clone(),
        }
    }
}

impl Stores {
    /// Opens everything, and makes what is not there: for one who looks at it beside the hub.
    ///
    /// # Errors
    /// What is wrong, and how to mend it.
    pub async fn open(settings: &Settings, folder: &DataDir) -> Result<Self, OpenError> {
        let registry = open_registry(settings, folder).await?;
        Self::complete(settings, folder, registry, Arc::new(Unshared)).await
    }

    /// Opens the rest beside the registry, which [`open_registry`] gave. `window` is what the processes of the hub
    /// remember together.
    ///
    /// # Errors
    /// What is wrong, and how to mend it.
    pub async fn complete(
        settings: &Settings,
        folder: &DataDir,
        registry: Arc<SqlStore>,
        window: Arc<dyn SharedWindow>,
    ) -> Result<Self, OpenError> {
        let engines = &settings.engines;
        let (names_here, mail_here) = (engines.registry_url.is_empty(), engines.mailboxes_url.is_empty());
        let bell = Arc::<Bell>::default();
        let process = process::name(&settings.hub.process_name, &mut UnwrapErr(SysRng));
        let place = if mail_here {
            folder.store()
        } else {
            folder.window()
        };
        let local = open_rocks(settings, place).await?;
        let mailboxes = if mail_here {
            MailStore::Embedded(local.clone())
        } else {
            let opened = nats::open(settings, &process, local.clone(), window, bell.clone()).await?;
            MailStore::Nats(Arc::new(opened))
        };
        Ok(Self {
            registry,
            mailboxes,
            local,
            bell,
            process,
            names_here,
            key_file: hub_key::file(settings, folder),
            domain: domain(settings)?,
        })
    }

    /// The domain that the stores belong to.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Whether everything lies in the data folder, which is this process's alone.
    pub fn are_embedded(&self) -> bool {
        self.names_here && matches!(self.mailboxes, MailStore::Embedded(_))
    }

    /// What works, but not as safely as it could: one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        match &self.mailboxes {
            MailStore::Embedded(_) => Vec::new(),
            MailStore::Nats(mailboxes) => {
                let warnings = mailboxes.report().warnings.iter();
                warnings.map(|warning| warning.sentence.clone()).collect()
            }
        }
    }

    /// What a backup of the data folder leaves out, and what copies it: one sentence each.
    pub fn elsewhere(&self) -> Vec<&'static str> {
        let mut elsewhere = Vec::new();
        if !self.names_here {
            elsewhere.push(
                "names, tokens and invites lie on PostgreSQL: copy them with pg_dump, as docs/RUNBOOK.md says",
            );
        }
        if let MailStore::Nats(_) = &self.mailboxes {
            elsewhere.push(
                "mailboxes lie on NATS: copy their streams with `nats stream backup`, as docs/RUNBOOK.md says",
            );
        }
        elsewhere
    }

    /// Takes a backup of what lies in the data folder into the new folder `to`, while it is in use; what it leaves out
    /// is told by [`Stores::elsewhere`].
    ///
    /// # Errors
    /// `to` holds something, or a store or the system says no. What was copied by then is left, without a manifest.
    pub async fn backup(&self, to: &Path, now: Timestamp) -> Result<Manifest, BackupError> {
        let target = backup::begin(to)?;
        let failed = |store| move |source| BackupError::Store { store, source };
        let mut registry = None;
        if self.names_here {
            let begun = self.registry.begin_backup().await;
            registry = Some(begun.map_err(|error| failed("registry")(error.into()))?);
        }
        if let MailStore::Embedded(mailboxes) = &self.mailboxes {
            mailboxes
                .checkpoint(&target.store())
                .await
                .map_err(|error| failed("mailboxes")(error.into()))?;
        }
        if let Some(registry) = registry {
            registry
                .write_to(&target.registry())
                .await
                .map_err(|error| failed("registry")(error.into()))?;
        }
        let (key, domain) = (self.key_file.clone(), self.domain.to_string());
        let epoch = self.mailboxes.store().epoch();
        let finish = move || backup::finish(&key, &target, &domain, epoch.as_str(), now);
        tokio::task::spawn_blocking(finish)
            .await
            .map_err(|error| failed("data folder")(error.into()))?
    }

    /// Ends what writes, and every connection; what was taken is on the disk then. No thread of RocksDB's may outlive the
    /// process's own end.
    pub async fn close(&self) {
        if let MailStore::Nats(mailboxes) = &self.mailboxes {
            mailboxes.close().await;
        }
        self.local.close().await;
        self.registry.close().await;
    }
}

/// Opens the registry where the settings say.
///
/// # Errors
/// What is wrong with it, or what lay in the folder was moved to engines that are not set.
pub async fn open_registry(settings: &Settings, folder: &DataDir) -> Result<Arc<SqlStore>, OpenError> {
    let (engines, domain) = (&settings.engines, domain(settings)?);
    let some_here = engines.registry_url.is_empty() || engines.mailboxes_url.is_empty();
    if some_here && folder.moved_marker().exists() {
        return Err(OpenError::Moved(folder.root().to_owned()));
    }
    let Some(options) = postgres_options(settings)? else {
        return Ok(Arc::new(
            SqlStore::open_sqlite(&folder.registry(), &domain).await?,
        ));
    };
    let registry = SqlStore::open_postgres(&options, &domain).await?;
    if registry.fact(Fact::MovedFrom).await?.is_some() && registry.fact(Fact::MoveDone).await?.is_none() {
        registry.close().await;
        return Err(OpenError::MoveUnfinished);
    }
    Ok(Arc::new(registry))
}

/// The domain that the stores belong to.
///
/// # Errors
/// The settings name none.
pub(crate) fn domain(settings: &Settings) -> Result<Domain, OpenError> {
    Domain::parse(&settings.hub.domain).map_err(|_refusal| OpenError::Domain(settings.hub.domain.clone()))
}

/// How the registry's database is reached; `None` when it lies in the data folder.
///
/// # Errors
/// The address cannot be used; the sentence does not show it.
pub fn postgres_options(settings: &Settings) -> Result<Option<PostgresOptions>, aip_registry::StoreError> {
    let url = &settings.engines.registry_url;
    if url.is_empty() {
        return Ok(None);
    }
    let postgres = &settings.postgres;
    let mut options = PostgresOptions::new(url.reveal())?;
    let process = &settings.hub.process_name;
    if !process.is_empty() {
        options.application_name = format!("aip-hub {process}");
    }
    options.connections_max = postgres.connections_max;
    options.connect_timeout_secs = postgres.connect_timeout_secs;
    options.wait_timeout_secs = postgres.wait_timeout_secs;
    options.statement_timeout_secs = postgres.statement_timeout_secs;
    options.migrate = postgres.migrate_at_start;
    Ok(Some(options))
}

/// Opens an embedded store of mailboxes.
///
/// # Errors
/// What is wrong with it.
pub(crate) async fn open_rocks(settings: &Settings, dir: PathBuf) -> Result<Arc<RocksMailboxes>, OpenError> {
    let options = RocksOptions {
        guard: disk_guard(settings),
        ..RocksOptions::default()
    };
    let open = move || RocksMailboxes::open(&dir, options, &new_epoch());
    let opened = tokio::task::spawn_blocking(open)
        .await
        .map_err(OpenError::Interrupted)?;
    Ok(Arc::new(opened?))
}

/// When the disk counts as full.
pub fn disk_guard(settings: &Settings) -> DiskGuard {
    DiskGuard {
        used_percent_max: settings.relay.disk_used_percent_max,
        free_bytes_min: settings.relay.disk_free_bytes_min,
    }
}

/// Restores the mailboxes of a backup, if it holds any, into a data folder with a new epoch: for [`backup::restore`].
///
/// # Errors
/// The copy does not open as a store of mailboxes, or the system says no.
pub fn restore_mailboxes(backup: &DataDir, folder: &DataDir) -> Result<(), BackupError> {
    if !backup.store().exists() {
        return Ok(());
    }
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
