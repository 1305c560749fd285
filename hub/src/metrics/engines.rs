//! What the ways to the engines count: how often something was tried again, and whether an engine is there.

use aip_registry::SqlFigures;

use super::families::Families;
use crate::stores::Stores;

/// Adds what is known of the engines of `stores`.
///
/// # Errors
/// Two metrics of one name, which is a bug.
pub(super) fn add(families: &Families, stores: &Stores) -> Result<(), prometheus::Error> {
    registry(families, stores.registry.figures())
}

fn registry(families: &Families, figures: SqlFigures) -> Result<(), prometheus::Error> {
    families.counter(
        "aip_registry_commits_total",
        "Transactions of the registry; changes that wait together share one",
        figures.commits,
    )?;
    families.counter(
        "aip_registry_conflicts_total",
        "Transactions of the registry that gave way to another one and were run again",
        figures.conflicts,
    )?;
    families.counter(
        "aip_registry_connections_lost_total",
        "Connections to the registry's database that broke or could not be made",
        figures.connections_lost,
    )?;
    families.counter(
        "aip_registry_outcomes_unknown_total",
        "Commits of the registry that were not answered",
        figures.outcomes_unknown,
    )
}
