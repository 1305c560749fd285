//! What federation counts: what is sent, what comes in, and what waits for whom.

use aip_federation::delivery::PeerView;
use aip_federation::inbound::{Counts, PeerLoad};
use aip_federation::limits::VIEWS_MAX;
use prometheus::{IntCounterVec, IntGaugeVec, Opts};

use super::families::Families;
use crate::federation::Federation;

/// Adds what `federation` counts; `views` are the peers for which something waits. As many have lines of their own as hand in
/// most.
pub(super) fn add(
    families: &Families,
    federation: &Federation,
    views: &[PeerView],
) -> Result<(), prometheus::Error> {
    families.sending(federation)?;
    families.waiting(views)?;
    families.receiving(&federation.inbound.counters().read())?;
    families.looks(federation)?;
    families.peers(&federation.inbound.loads(VIEWS_MAX))
}

impl Families {
    fn sending(&self, federation: &Federation) -> Result<(), prometheus::Error> {
        let stats = federation.delivery.stats();
        let gauge = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.gauge(
            "aip_federation_peers_waiting",
            "Peers with mail, as this process knows",
            gauge(stats.peers),
        )?;
        self.gauge(
            "aip_federation_breakers_open",
            "Of them, those that are left alone for a while",
            gauge(stats.breakers_open),
        )?;
        self.gauge(
            "aip_federation_requests_in_flight",
            "Requests to peers on their way",
            gauge(stats.in_flight),
        )?;
        self.counter(
            "aip_federation_pushes_total",
            "Batches that went out",
            stats.pushes,
        )?;
        self.counter("aip_federation_pushed_total", "Messages in them", stats.pushed)?;
        self.counter(
            "aip_federation_push_failures_total",
            "Attempts to reach a peer that failed",
            stats.failures,
        )?;
        let sent = Opts::new(
            "aip_federation_sent_total",
            "Messages that left the outbox, by fate",
        );
        let sent = IntCounterVec::new(sent, &["fate"])?;
        for (fate, count) in [
            ("delivered", stats.delivered),
            ("refused", stats.refused),
            ("dead", stats.dead),
            ("expired", stats.expired),
        ] {
            sent.with_label_values(&[fate]).inc_by(count);
        }
        self.0.register(Box::new(sent))
    }

    fn waiting(&self, views: &[PeerView]) -> Result<(), prometheus::Error> {
        let oldest = Opts::new(
            "aip_federation_oldest_unsent_seconds",
            "How long the oldest message for a peer has been waiting",
        );
        let oldest = IntGaugeVec::new(oldest, &["peer"])?;
        let pending = Opts::new("aip_federation_outbox_messages", "Messages that wait for a peer");
        let pending = IntGaugeVec::new(pending, &["peer"])?;
        for view in views {
            let peer = [view.domain.as_str()];
            let secs = view.oldest_unsent_age.unwrap_or_default().as_secs();
            oldest
                .with_label_values(&peer)
                .set(i64::try_from(secs).unwrap_or(i64::MAX));
            pending
                .with_label_values(&peer)
                .set(i64::try_from(view.pending).unwrap_or(i64::MAX));
        }
        self.0.register(Box::new(oldest))?;
        self.0.register(Box::new(pending))
    }

    fn receiving(&self, counts: &Counts) -> Result<(), prometheus::Error> {
        let taken = Opts::new(
            "aip_federation_requests_total",
            "Requests of peers answered, by call",
        );
        let taken = IntCounterVec::new(taken, &["call"])?;
        for (call, count) in &counts.taken {
            taken.with_label_values(&[call]).inc_by(*count);
        }
        self.0.register(Box::new(taken))?;
        let turned_away = Opts::new(
            "aip_federation_requests_refused_total",
            "Requests of peers refused, by code",
        );
        let turned_away = IntCounterVec::new(turned_away, &["code"])?;
        for (code, count) in &counts.turned_away {
            turned_away.with_label_values(&[code.as_str()]).inc_by(*count);
        }
        self.0.register(Box::new(turned_away))?;
        let items = Opts::new(
            "aip_federation_items_total",
            "Messages of peers, by what became of them",
        );
        let items = IntCounterVec::new(items, &["result"])?;
        for (result, count) in [
            ("stored", counts.items.stored),
            ("duplicate", counts.items.duplicate),
            ("refused", counts.items.refused),
            ("retry", counts.items.retry),
        ] {
            items.with_label_values(&[result]).inc_by(count);
        }
        self.0.register(Box::new(items))?;
        self.counter(
            "aip_federation_signatures_total",
            "Signatures of requests that were checked",
            counts.signatures,
        )?;
        self.counter(
            "aip_federation_looks_total",
            "Looks past the caches that requests were the reason for",
            counts.looks,
        )
    }

    /// Of hubs and of agents elsewhere: the labels are closed lists.
    fn looks(&self, federation: &Federation) -> Result<(), prometheus::Error> {
        let answered = Opts::new(
            "aip_federation_lookups_total",
            "Look-ups of peers and of agents elsewhere that were answered, by where the answer came from",
        );
        let answered = IntCounterVec::new(answered, &["of", "from"])?;
        let missed = Opts::new(
            "aip_federation_lookup_failures_total",
            "Look-ups of peers and of agents elsewhere without an answer, by why",
        );
        let missed = IntCounterVec::new(missed, &["of", "kind"])?;
        let kinds = [
            ("peer", federation.directory.looks()),
            ("identity", federation.identities.looks()),
        ];
        for (of, looks) in kinds {
            for (source, count) in looks.answered() {
                answered.with_label_values(&[of, source.as_str()]).inc_by(count);
            }
            for (miss, count) in looks.missed() {
                missed.with_label_values(&[of, miss.as_str()]).inc_by(count);
            }
        }
        self.0.register(Box::new(answered))?;
        self.0.register(Box::new(missed))
    }

    fn peers(&self, loads: &[PeerLoad]) -> Result<(), prometheus::Error> {
        let skew = Opts::new(
            "aip_federation_peer_clock_behind_milliseconds",
            "How far a peer's clock is behind ours, by its last request",
        );
        let skew = IntGaugeVec::new(skew, &["peer"])?;
        let items = Opts::new("aip_federation_peer_items_total", "Messages taken from a peer");
        let items = IntCounterVec::new(items, &["peer"])?;
        let slowed = Opts::new(
            "aip_federation_peer_slowed_total",
            "Requests of a peer turned away because its budget was used up",
        );
        let slowed = IntCounterVec::new(slowed, &["peer"])?;
        let unauthentic = Opts::new(
            "aip_federation_peer_unauthentic_total",
            "Requests in the name of a peer that were not from it, or could not be shown to be",
        );
        let unauthentic = IntCounterVec::new(unauthentic, &["peer"])?;
        for load in loads {
            let peer = [load.domain.as_str()];
            unauthentic.with_label_values(&peer).inc_by(load.unauthentic);
            items.with_label_values(&peer).inc_by(load.items.stored);
            slowed.with_label_values(&peer).inc_by(load.slowed);
            if let Some(behind) = load.skew_ms {
                skew.with_label_values(&peer).set(behind);
            }
        }
        self.0.register(Box::new(skew))?;
        self.0.register(Box::new(items))?;
        self.0.register(Box::new(unauthentic))?;
        self.0.register(Box::new(slowed))
    }
}
