//! The stores, while no hub runs: whether they open, and whether what is in them is whole.

use aip_registry::SqlStore;

use super::Finding;
use crate::clock;
use crate::config::Settings;
use crate::datadir::DataDir;
use crate::stores::{MailStore, Stores};

pub(super) async fn examine(settings: &Settings, folder: &DataDir) -> Vec<Finding> {
    let engines = &settings.engines;
    if !engines.registry_url.is_empty() && !engines.mailboxes_url.is_empty() {
        return Vec::new();
    }
    if settings.hub.domain.is_empty() {
        return vec![Finding::Doubtful(
            "the stores were not opened: their domain is not known (hub.domain)".to_owned(),
        )];
    }
    if !folder.registry().exists() && !folder.store().exists() {
        return vec![Finding::Good(
            "there are no stores yet; the first start makes them".to_owned(),
        )];
    }
    let stores = match Stores::open(settings, folder).await {
        Ok(stores) => stores,
        Err(error) => return vec![Finding::Bad(format!("{:#}", anyhow::Error::from(error)))],
    };
    let mut found = vec![Finding::Good("both stores open".to_owned())];
    if engines.registry_url.is_empty() {
        found.extend(registry(&stores.registry).await);
    }
    found.extend(time(&stores));
    stores.close().await;
    found
}

/// Whether what the registry holds is whole.
pub(super) async fn registry(registry: &SqlStore) -> [Finding; 2] {
    let whole = match registry.check_integrity().await {
        Ok(problems) if problems.is_empty() => Finding::Good("the registry's database is whole".to_owned()),
        Ok(problems) => Finding::Bad(format!(
            "the registry's database is damaged ({}): restore a backup",
            problems.join("; ")
        )),
        Err(error) => Finding::Bad(format!("the registry's database cannot be checked: {error}")),
    };
    let signed = match registry.check_histories().await {
        Ok(problems) if problems.is_empty() => {
            Finding::Good("every identity history is whole and signed".to_owned())
        }
        Ok(problems) => Finding::Bad(format!(
            "identity histories are damaged ({}): restore a backup",
            problems.join("; ")
        )),
        Err(error) => Finding::Bad(format!("the identity histories cannot be checked: {error}")),
    };
    [whole, signed]
}

fn time(stores: &Stores) -> Option<Finding> {
    let mark = stores.mailboxes.store().clock_high_water()?;
    let slip = clock::behind(clock::wall(), mark)?;
    let way_back = match stores.mailboxes {
        MailStore::Embedded(_) => {
            ". If it is right, and was ahead before, `aip-hub clock --reset` takes the mailboxes of a stopped hub back"
        }
        MailStore::Nats(_) => "",
    };
    Some(Finding::Bad(format!(
        "the clock is {} s behind the latest time that the mailboxes have seen ({mark}): set it; until then the hub's \
         time goes on from that moment at half speed{way_back}",
        slip.as_secs()
    )))
}
