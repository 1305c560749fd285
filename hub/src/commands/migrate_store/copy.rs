//! The embedded hub whose stores are moved, and copies of them to read from.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_registry::SqlStore;
use aip_relay::mailbox::Upkeep as _;
use aip_relay::mailbox::rocks::RocksMailboxes;
use anyhow::Context as _;
use serde_json::json;

use super::super::operator::Operator;
use super::lease::Lease;
use crate::backup::Manifest;
use crate::clock;
use crate::config::{EngineSettings, Settings};
use crate::datadir::{DataDir, DataDirError, DataLock, make_private_folder};
use crate::routes::admin::BACKUPS_PATH;
use crate::stores::{self, Stores};

/// The longest time that the running hub gets for one copy.
const COPY_TIMEOUT: Duration = Duration::from_hours(6);

/// The hub that is moved.
#[derive(Debug)]
pub(super) enum Hub {
    /// It runs, and answers at the operator's door.
    Running(Arc<Operator>),
    /// It does not, and cannot while this is held.
    Stopped(#[expect(dead_code, reason = "held for its lock")] DataLock),
}

impl Hub {
    pub(super) fn of(settings: &Settings, folder: &DataDir) -> anyhow::Result<Self> {
        match folder.lock() {
            Ok(lock) => Ok(Self::Stopped(lock)),
            Err(DataDirError::InUse { .. }) => {
                Ok(Self::Running(Arc::new(Operator::running(settings, folder)?)))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Has it stand still.
    pub(super) async fn pause(&self) -> anyhow::Result<Lease> {
        match self {
            Self::Running(operator) => Lease::take(operator.clone()).await,
            Self::Stopped(_) => Ok(Lease::NotNeeded),
        }
    }

    /// What is to be done with it now.
    pub(super) fn farewell(&self) -> &'static str {
        match self {
            Self::Running(_) => "the old process stands still and takes nothing any more: stop it",
            Self::Stopped(_) => {
                "the old hub does not run, and cannot be started on its folder without the engines"
            }
        }
    }
}

/// A copy of both stores, opened.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) mailboxes: Arc<RocksMailboxes>,
    pub(super) registry: SqlStore,
    /// The epoch of the mailboxes that it was taken of.
    pub(super) epoch: String,
    /// The latest time that they have seen.
    pub(super) latest: Option<Timestamp>,
}

/// Where copies lie: in the data folder, so that they cost links and little space.
#[derive(Debug)]
pub(super) struct Copies<'a> {
    /// The settings of the hub as it is now.
    embedded: Settings,
    folder: &'a DataDir,
    root: PathBuf,
}

impl<'a> Copies<'a> {
    /// Begins with nothing: copies of an earlier run are old.
    pub(super) fn in_folder(settings: &Settings, folder: &'a DataDir) -> anyhow::Result<Self> {
        let copies = Self {
            embedded: Settings {
                engines: EngineSettings::default(),
                ..settings.clone()
            },
            folder,
            root: folder.root().join("moving"),
        };
        copies.remove()?;
        make_private_folder(&copies.root)?;
        Ok(copies)
    }

    /// Removes what is there.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        match fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.root.display()))
            }
            _ => Ok(()),
        }
    }

    /// The dedup window of this program.
    pub(super) fn window(&self) -> PathBuf {
        self.root.join("window")
    }

    /// Takes a copy and opens it.
    pub(super) async fn take(&self, hub: &Hub, name: &str) -> anyhow::Result<Copy> {
        let to = self.root.join(name);
        match hub {
            Hub::Running(operator) => {
                let path = to.to_str().context("the data folder's path is not UTF-8")?;
                let body = json!({ "to": path });
                operator.call_slowly(BACKUPS_PATH, &body, COPY_TIMEOUT).await?;
            }
            Hub::Stopped(_) => {
                let stores = Stores::open(&self.embedded, self.folder).await?;
                let copied = stores.backup(&to, clock::wall()).await;
                stores.close().await;
                copied?;
            }
        }
        let manifest = Manifest::verify(&to)?;
        let copy = DataDir::at(&to);
        // A copy of the files is a store once it lies where a store keeps them.
        let mail = to.join("mail");
        make_private_folder(&mail)?;
        fs::rename(copy.store(), mail.join("db")).with_context(|| format!("cannot use {}", to.display()))?;
        let mailboxes = stores::open_rocks(&self.embedded, mail).await?;
        let domain = stores::domain(&self.embedded)?;
        Ok(Copy {
            latest: mailboxes.clock_high_water(),
            registry: SqlStore::open_sqlite(&copy.registry(), &domain).await?,
            epoch: manifest.epoch,
            mailboxes,
        })
    }
}
