//! The engines: whether each is reached, is what the hub needs, and knows the hub by the same key. They are shared, so
//! that this can be looked at also while the hub runs.

use aip_protocol::name::Domain;
use aip_registry::{Fact, PostgresOptions, SqlStore};

use super::Finding;
use super::stores;
use crate::config::Settings;
use crate::datadir::{self, DataDir};
use crate::hub_key;
use crate::stores::{nats, postgres_options, redis};

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
    if !settings.engines.mailboxes_url.is_empty() {
        found.extend(nats(settings).await);
    }
    found.extend(redis(settings, folder).await);
    found
}

async fn nats(settings: &Settings) -> Vec<Finding> {
    let report = match nats::look(settings).await {
        Ok(Some(report)) => report,
        Ok(None) => {
            return vec![Finding::Doubtful(
                "NATS is reached, and holds no mailboxes of this hub yet: the first start makes the streams"
                    .to_owned(),
            )];
        }
        Err(error) => return vec![Finding::Bad(format!("NATS: {:#}", anyhow::Error::from(error)))],
    };
    let place = report.cluster.map_or_else(
        || "a single server".to_owned(),
        |cluster| format!("the cluster {cluster}"),
    );
    let mut found = vec![Finding::Good(format!(
        "NATS {} is reached ({place}), and its streams are as they should be",
        report.version
    ))];
    let warnings = report.warnings.into_iter();
    found.extend(warnings.map(|warning| Finding::Doubtful(warning.sentence)));
    found
}

async fn redis(settings: &Settings, folder: &DataDir) -> Vec<Finding> {
    // What the processes share is sealed by their key.
    let key = datadir::read_key(&hub_key::file(settings, folder));
    let Some(options) = key.ok().and_then(|key| redis::options(settings, &key)) else {
        return Vec::new();
    };
    match aip_cluster::probe(&options).await {
        Ok(probe) => {
            let seen = format!(
                "Redis {} is reached (maxmemory-policy {})",
                probe.version, probe.eviction_policy
            );
            let warnings = probe.warnings.into_iter().map(Finding::Doubtful);
            std::iter::once(Finding::Good(seen)).chain(warnings).collect()
        }
        Err(error) => vec![Finding::Doubtful(format!(
            "{error}: the hub works without, and says that it is degraded"
        ))],
    }
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
    let public = match registry.fact(Fact::HubKey).await {
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
