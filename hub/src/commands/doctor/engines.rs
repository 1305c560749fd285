//! The engines: whether each is reached, is what the hub needs, and knows the hub by the same key. They are shared, so
//! that this can be looked at also while the hub runs.

use aip_protocol::name::Domain;
use aip_registry::{PostgresOptions, SqlStore};

use super::Finding;
use super::stores;
use crate::config::Settings;
use crate::datadir::{self, DataDir};
use crate::hub_key;
use crate::stores::postgres_options;

pub(super) async fn examine(settings: &Settings, folder: &DataDir) -> Vec<Finding> {
    if settings.engines.are_embedded() {
        return Vec::new();
    }
    let Ok(domain) = Domain::parse(&settings.hub.domain) else {
        return vec![Finding::Doubtful(
            "the engines were not looked at: the hub's domain is not known (hub.domain)".to_owned(),
        )];
    };
    let mut found = Vec::new();
    match postgres_options(settings) {
        Ok(Some(options)) => found.extend(postgres(settings, folder, &domain, options).await),
        Ok(None) => {}
        Err(error) => found.push(Finding::Bad(error.to_string())),
    }
    found
}

async fn postgres(
    settings: &Settings,
    folder: &DataDir,
    domain: &Domain,
    mut options: PostgresOptions,
) -> Vec<Finding> {
    // A look changes nothing.
    options.migrate = false;
    let registry = match SqlStore::open_postgres(&options, domain).await {
        Ok(registry) => registry,
        Err(error) => {
            return vec![Finding::Bad(format!(
                "PostgreSQL: {:#}",
                anyhow::Error::from(error)
            ))];
        }
    };
    let mut found = vec![Finding::Good(
        "PostgreSQL is reached, and has this version's schema".to_owned(),
    )];
    found.extend(stores::registry(&registry).await);
    found.push(key(settings, folder, &registry).await);
    registry.close().await;
    found
}

async fn key(settings: &Settings, folder: &DataDir, registry: &SqlStore) -> Finding {
    let public = match registry.hub_key().await {
        Ok(Some(public)) => public,
        Ok(None) => {
            return Finding::Doubtful(
                "the hub has no key yet; the first process to start brings it".to_owned(),
            );
        }
        Err(error) => return Finding::Bad(format!("the hub's key cannot be read from PostgreSQL: {error}")),
    };
    let file = hub_key::file(settings, folder);
    let own = match datadir::read_key(&file) {
        Ok(own) => own,
        Err(error) => {
            return Finding::Bad(format!(
                "the hub signs with {public}, and this process cannot ({error}): copy the key from another process"
            ));
        }
    };
    match hub_key::compare(&own, public, &file) {
        Ok(()) => Finding::Good("this process has the hub's key".to_owned()),
        Err(error) => Finding::Bad(error.to_string()),
    }
}
