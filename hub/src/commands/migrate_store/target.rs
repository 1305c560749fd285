//! The engines that a hub is moved to: empty, or filled by an earlier run of the same move.

use std::sync::Arc;

use aip_jetstream::JetStreamMailboxes;
use aip_protocol::name::Domain;
use aip_registry::{Directory as _, Fact, SqlStore};
use aip_relay::dedup::Unshared;
use anyhow::{Context as _, bail};

use super::super::output;
use super::copy::Copies;
use crate::clock;
use crate::config::Settings;
use crate::datadir::{self, DataDir};
use crate::hub_key;
use crate::stores::{self, Bell, nats, postgres_options};

/// The engines, open.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) mailboxes: Arc<JetStreamMailboxes>,
    registry: SqlStore,
    domain: Domain,
    /// The public half of the key that the hub has and keeps.
    public_key: String,
}

impl Target {
    /// Opens both, with the schema of this version.
    pub(super) async fn open(
        settings: &Settings,
        folder: &DataDir,
        copies: &Copies<'_>,
    ) -> anyhow::Result<Self> {
        let domain = stores::domain(settings)?;
        let options = postgres_options(settings)?.context("engines.registry_url is empty")?;
        SqlStore::migrate_postgres(&options, &domain).await?;
        let registry = SqlStore::open_postgres(&options, &domain).await?;
        let window = stores::open_rocks(settings, copies.window()).await?;
        let opened = nats::open(
            settings,
            "migrate-store",
            window,
            Arc::new(Unshared),
            Arc::<Bell>::default(),
        );
        let mailboxes = Arc::new(opened.await?);
        let key = datadir::read_key(&hub_key::file(settings, folder))?;
        Ok(Self {
            mailboxes,
            registry,
            domain,
            public_key: key.public().as_str().to_owned(),
        })
    }

    pub(super) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Takes the engines for a move from the store with this epoch; refuses engines that a hub works on, or that
    /// another store is being moved to.
    pub(super) async fn claim(&self, epoch: &str) -> anyhow::Result<()> {
        if self.registry.fact(Fact::MoveDone).await?.is_some() {
            bail!(
                "a move to these engines is complete, and their hub goes on; another one would undo its work"
            );
        }
        let begun = self.registry.fact(Fact::MovedFrom).await?;
        if begun.is_none() && !self.registry.list(None, 1).await?.is_empty() {
            bail!("PostgreSQL holds the names of a hub already; give the move an empty database");
        }
        let from = self.registry.claim_fact(Fact::MovedFrom, epoch).await?;
        if from != epoch {
            bail!(
                "another store is being moved to these engines; give this move an empty database and a prefix of its own"
            );
        }
        Ok(())
    }

    /// Copies the registry, and compares.
    pub(super) async fn names(&self, source: &SqlStore) -> anyhow::Result<()> {
        source.copy_to(&self.registry).await?;
        let (here, there) = (source.digest().await?, self.registry.digest().await?);
        if here != there {
            bail!(
                "PostgreSQL holds something else than this hub ({there}, not {here}); give the move an empty database"
            );
        }
        let key = self.registry.claim_fact(Fact::HubKey, &self.public_key).await?;
        if key != self.public_key {
            bail!("the hub on these engines signs with another key ({key}); give the move an empty database");
        }
        output::line(&format!("names: {there}"))?;
        Ok(())
    }

    /// Says that the move is complete: from now on a hub may start on the engines.
    pub(super) async fn complete(&self) -> anyhow::Result<()> {
        let now = clock::wall().to_string();
        self.registry.claim_fact(Fact::MoveDone, &now).await?;
        Ok(())
    }

    pub(super) async fn close(&self) {
        self.mailboxes.close().await;
        self.registry.close().await;
    }
}
