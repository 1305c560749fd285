//! What the ways to the engines count: how often something was tried again, and whether an engine is there.

use aip_jetstream::JetStreamMailboxes;
use aip_registry::SqlFigures;
use aip_relay::mailbox::{Health, Upkeep as _};
use prometheus::{IntGaugeVec, Opts};

use super::families::Families;
use crate::stores::{MailStore, Stores};

/// Adds what is known of the engines of `stores`.
///
/// # Errors
/// Two metrics of one name, which is a bug.
pub(super) fn add(families: &Families, stores: &Stores) -> Result<(), prometheus::Error> {
    process(families, &stores.process)?;
    registry(families, stores.registry.figures())?;
    match &stores.mailboxes {
        MailStore::Embedded(_) => Ok(()),
        MailStore::Nats(mailboxes) => nats(families, mailboxes),
    }
}

/// Which of its hub's processes this is; the name is the operator's, or the machine's.
fn process(families: &Families, name: &str) -> Result<(), prometheus::Error> {
    let about = Opts::new("aip_process_info", "Always 1: what this process is called");
    let about = IntGaugeVec::new(about, &["process", "version"])?;
    about.with_label_values(&[name, env!("CARGO_PKG_VERSION")]).set(1);
    families.0.register(Box::new(about))
}

fn nats(families: &Families, mailboxes: &JetStreamMailboxes) -> Result<(), prometheus::Error> {
    let connected = mailboxes.health() == Health::Ready;
    families.gauge(
        "aip_nats_connected",
        "Whether the mailboxes on NATS can be reached",
        connected.into(),
    )?;
    for (name, count) in mailboxes.counts().named() {
        families.counter(&format!("aip_nats_{name}_total"), nats_help(name), count)?;
    }
    Ok(())
}

/// Adds what this process and the others exchange on Redis.
///
/// # Errors
/// Two metrics of one name, which is a bug.
pub(super) fn redis(families: &Families, stats: aip_cluster::Stats) -> Result<(), prometheus::Error> {
    let aip_cluster::Stats {
        commands,
        timeouts,
        failures,
        rate_fallbacks,
        unanswered,
        signals_sent,
        signals_received,
        signals_dropped,
        bad_values,
        reconnects,
        subscribed,
        connected,
    } = stats;
    let help = "Whether the processes hear of each other";
    families.gauge("aip_redis_connected", help, connected)?;
    let help = "Agents whose signals this process is to hear";
    families.gauge("aip_redis_subscribed", help, subscribed)?;
    for (name, help, count) in [
        ("commands", "Commands sent to Redis", commands),
        ("timeouts", "Commands that were not answered in time", timeouts),
        ("failures", "Commands that failed otherwise", failures),
        (
            "rate_fallbacks",
            "Rates judged in this process alone",
            rate_fallbacks,
        ),
        (
            "unanswered",
            "Questions about retries and challenges that nobody answered",
            unanswered,
        ),
        ("signals_sent", "Signals to other processes", signals_sent),
        ("signals_received", "Signals of other processes", signals_received),
        (
            "signals_dropped",
            "Signals that were not sent, Redis being away or slow",
            signals_dropped,
        ),
        (
            "bad_values",
            "Values that no process of this hub wrote",
            bad_values,
        ),
        ("reconnects", "Connections made after the first", reconnects),
    ] {
        families.counter(&format!("aip_redis_{name}_total"), help, count)?;
    }
    Ok(())
}

/// What a count of the mailboxes on NATS means.
fn nats_help(name: &str) -> &'static str {
    match name {
        "publishes" => "Publishes that the servers confirmed",
        "publish_retries" => "Publishes that were sent again, their outcome not being known",
        "timeouts" => "Requests to NATS that were not answered in time",
        "unanswered" => "Requests to NATS without an answer: none in time, or nobody answers for the stream",
        "unknown_outcomes" => "Publishes that ended without their outcome being known",
        "duplicates" => "Publishes that a stream had already",
        "cas_conflicts" => "Changes that another process was ahead of",
        "elsewhere" => "Publishes that a stream refused as another one's, their shard having moved",
        "full" => "Publishes refused by the backstop of messages per mailbox",
        "direct_gets" => "Reads of single messages from any server",
        "batch_gets" => "Reads of batches of messages from any server",
        "leader_gets" => "Reads from the leader of a stream",
        "purged" => "Messages purged after they were settled",
        "reconnects" => "Times that the connection to NATS came back",
        "slow_subscriptions" => "Times that a subscription of this process lost something, being too slow",
        "hints" => "Hints of new mail from any process",
        "missed_hints" => "Times that a hint showed that an earlier one had been missed",
        "statuses_dropped" => "Statuses that were not written, as too many waited",
        "notes_dropped" => "Envelopes that the dedup window of this process did not note, as too many waited",
        _ => "Counted by the mailboxes on NATS",
    }
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
