//! What the rooms count themselves, read when somebody asks: the relay, its store, who is connected, who exists.

use aip_catalog::CatalogStats;
use aip_federation::delivery::PeerView;
use aip_market::store::Totals;
use aip_protocol::time::Timestamp;
use aip_registry::directory::Counts;
use aip_relay::mailbox::{Health, StoreStats};
use aip_relay::presence::PresenceCounts;
use aip_relay::relay::RelayStats;
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, IntGaugeVec, Opts};

use super::families::Families;
use super::{engines, federation, market};
use crate::agent::{AgentStats, Fate};
use crate::app::App;

/// One snapshot of the rooms.
///
/// # Errors
/// Two metrics of one name, which is a bug.
pub(crate) fn gather(
    app: &App,
    counts: Option<Counts>,
    peers: &[PeerView],
    money: Option<&Totals>,
) -> Result<Vec<MetricFamily>, prometheus::Error> {
    let families = Families::new();
    families.time(app.clock.now())?;
    families.relay(app.relay.stats())?;
    families.store(&app.store.stats())?;
    families.health(&app.store.health())?;
    families.presence(without_own(app.presence.counts(), app.agent.stats().sessions()))?;
    families.agent(app.agent.stats())?;
    families.catalog(&app.catalog.stats())?;
    if let Some(counts) = counts {
        families.registry(counts)?;
    }
    if let Some(room) = &app.market {
        market::add(&families, room, money)?;
    }
    if let Some(federation) = &app.federation {
        federation::add(&families, federation, peers)?;
    }
    if let Some(stores) = &app.stores {
        engines::add(&families, stores)?;
    }
    if let Some(cluster) = &app.cluster {
        engines::redis(&families, cluster.stats())?;
    }
    Ok(families.gather())
}

/// The hub's own agent is no guest.
fn without_own(counts: PresenceCounts, own: u64) -> PresenceCounts {
    PresenceCounts {
        agents: counts.agents.saturating_sub(own),
        sessions: counts.sessions.saturating_sub(own),
        ..counts
    }
}

impl Families {
    /// Beside the time of the reading it shows a machine whose clock is wrong.
    fn time(&self, now: Timestamp) -> Result<(), prometheus::Error> {
        let secs = u64::try_from(now.unix_millis() / 1_000).unwrap_or_default();
        self.gauge("aip_time_seconds", "The hub's time, in seconds since 1970", secs)
    }

    fn relay(&self, stats: &RelayStats) -> Result<(), prometheus::Error> {
        self.counter(
            "aip_relay_stored_total",
            "Envelopes stored in a mailbox",
            stats.stored(),
        )?;
        self.counter(
            "aip_relay_queued_total",
            "Envelopes queued for other hubs",
            stats.queued(),
        )?;
        self.counter(
            "aip_relay_delivered_total",
            "Envelopes that a direct endpoint took",
            stats.delivered(),
        )?;
        self.counter(
            "aip_relay_duplicates_total",
            "Retries that were recognised",
            stats.duplicates(),
        )?;
        self.counter(
            "aip_relay_failed_total",
            "Envelopes without a verdict, by our failure",
            stats.failed(),
        )?;
        self.counter(
            "aip_relay_direct_failed_total",
            "Direct deliveries without a 2xx",
            stats.direct_failed(),
        )?;
        let skipped = stats.direct_skipped();
        self.counter(
            "aip_relay_direct_skipped_total",
            "Direct deliveries skipped by the breaker",
            skipped,
        )?;
        let refused = Opts::new("aip_relay_refused_total", "Envelopes refused, by code");
        let refused = IntCounterVec::new(refused, &["code"])?;
        for (code, count) in stats.refused() {
            refused.with_label_values(&[code.as_str()]).inc_by(count);
        }
        self.0.register(Box::new(refused))
    }

    fn store(&self, stats: &StoreStats) -> Result<(), prometheus::Error> {
        self.counter("aip_store_stored_total", "Messages committed", stats.stored)?;
        self.counter(
            "aip_store_direct_total",
            "Direct deliveries recorded",
            stats.direct,
        )?;
        self.counter("aip_store_full_total", "Appends refused by a quota", stats.full)?;
        self.counter("aip_store_acked_total", "Messages acked", stats.acked)?;
        self.counter("aip_store_expired_total", "Messages expired", stats.expired)?;
        self.counter(
            "aip_store_dead_total",
            "Messages moved to the dead letters",
            stats.dead,
        )?;
        self.counter(
            "aip_store_redriven_total",
            "Dead letters put back",
            stats.redriven,
        )?;
        self.counter("aip_store_batches_total", "Synced writes", stats.batches)?;
        self.counter(
            "aip_store_batch_operations_total",
            "Operations in synced writes",
            stats.batch_ops,
        )?;
        self.gauge(
            "aip_store_queue_depth",
            "Operations waiting for the writer",
            stats.queue_depth,
        )?;
        match stats.disk_free_bytes {
            Some(free) => self.gauge(
                "aip_store_disk_free_bytes",
                "Free bytes on the store's disk",
                free,
            ),
            None => Ok(()),
        }
    }

    fn health(&self, health: &Health) -> Result<(), prometheus::Error> {
        let states = Opts::new("aip_store_health", "1 for the state the store is in");
        let states = IntGaugeVec::new(states, &["state"])?;
        for (state, is) in [
            ("ready", matches!(health, Health::Ready)),
            ("disk_full", matches!(health, Health::DiskFull { .. })),
            ("poisoned", matches!(health, Health::Poisoned { .. })),
            ("unreachable", matches!(health, Health::Unreachable { .. })),
        ] {
            states.with_label_values(&[state]).set(is.into());
        }
        self.0.register(Box::new(states))
    }

    fn presence(&self, counts: PresenceCounts) -> Result<(), prometheus::Error> {
        self.gauge("aip_presence_agents", "Agents that are connected", counts.agents)?;
        self.gauge("aip_presence_sessions", "WebSocket sessions", counts.sessions)?;
        self.gauge(
            "aip_presence_readers",
            "Long polls and event streams",
            counts.readers,
        )?;
        self.counter(
            "aip_presence_takeovers_total",
            "Sessions replaced by a newer one",
            counts.takeovers,
        )?;
        let dropped = counts.statuses_dropped;
        self.counter(
            "aip_presence_statuses_dropped_total",
            "Status frames dropped for a slow session",
            dropped,
        )
    }

    fn agent(&self, stats: &AgentStats) -> Result<(), prometheus::Error> {
        self.gauge(
            "aip_agent_sessions",
            "1 while the hub's own agent reads its mailbox here",
            stats.sessions(),
        )?;
        self.counter(
            "aip_agent_sent_total",
            "Messages of the hub's own agent",
            stats.sent(),
        )?;
        let messages = Opts::new(
            "aip_agent_messages_total",
            "Messages to the hub's own agent, by what became of them",
        );
        let messages = IntCounterVec::new(messages, &["fate"])?;
        for fate in Fate::ALL {
            messages
                .with_label_values(&[fate.as_str()])
                .inc_by(stats.messages(fate));
        }
        self.0.register(Box::new(messages))
    }

    fn catalog(&self, stats: &CatalogStats) -> Result<(), prometheus::Error> {
        self.gauge(
            "aip_catalog_documents",
            "Listings that are found by their text",
            stats.documents,
        )?;
        self.gauge(
            "aip_catalog_behind_changes",
            "Changes of the registry that the index does not hold yet",
            stats.behind_changes,
        )?;
        self.gauge(
            "aip_catalog_pending_embeddings",
            "Listings that wait to be found by their meaning",
            stats.pending_embeddings,
        )
    }

    fn registry(&self, counts: Counts) -> Result<(), prometheus::Error> {
        self.gauge("aip_registry_agents", "Names ever taken", counts.agents)?;
        self.gauge(
            "aip_registry_suspended",
            "Agents suspended by the operator",
            counts.suspended,
        )?;
        self.gauge(
            "aip_registry_deactivated",
            "Agents that ended their history",
            counts.deactivated,
        )?;
        self.gauge("aip_registry_tokens", "Tokens not swept yet", counts.tokens)?;
        self.gauge("aip_registry_invites", "Invites ever made", counts.invites)
    }
}
