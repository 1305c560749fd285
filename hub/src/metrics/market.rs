//! What the market counts: calls, what became of them, and the money that the hub keeps.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aip_market::facilitator::PaymentCounts;
use aip_market::invoke::{InvokeReport, Routed};
use aip_market::peers::PeerStatus;
use aip_market::refusal::{MarketCode, MarketError};
use aip_market::store::Totals;
use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use super::families::Families;
use crate::market::MarketRoom;
use crate::market::limits::METRIC_CAPABILITIES_MAX;
use crate::market::peers::PeerRoom;

/// Capabilities that have no line of their own: unknown ones, and those beyond the bound.
const OTHER: &str = "other";

/// The upper ends of the duration buckets, in seconds: providers may take minutes.
const BUCKETS_SECS: &[f64] = &[
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// The counters of the market's doors.
#[derive(Debug)]
pub struct MarketMetrics {
    invocations: IntCounterVec,
    durations: Histogram,
    routed: IntCounterVec,
    receipts: IntCounterVec,
    /// Those that have a line of their own. An agent names what it sells, so that their number has a bound.
    named: Mutex<BTreeSet<String>>,
}

impl MarketMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let invocations = IntCounterVec::new(
            Opts::new("aip_market_invokes_total", "Invocations, by what became of them"),
            &["capability", "result"],
        )?;
        let durations = HistogramOpts::new(
            "aip_market_invoke_duration_seconds",
            "Time that invocations took which the market looked at",
        );
        let durations = Histogram::with_opts(durations.buckets(BUCKETS_SECS.to_vec()))?;
        let routed = IntCounterVec::new(
            Opts::new(
                "aip_market_routed_total",
                "Calls of other hubs, by the rules and by what became of them",
            ),
            &["mode", "result"],
        )?;
        let receipts = IntCounterVec::new(
            Opts::new(
                "aip_market_peer_receipts_total",
                "Receipts of other hubs: true, false, or not_checked",
            ),
            &["state"],
        )?;
        registry.register(Box::new(routed.clone()))?;
        registry.register(Box::new(receipts.clone()))?;
        registry.register(Box::new(invocations.clone()))?;
        registry.register(Box::new(durations.clone()))?;
        Ok(Self {
            invocations,
            durations,
            routed,
            receipts,
            named: Mutex::default(),
        })
    }

    /// Counts an invocation that the market looked at.
    pub fn invoked(&self, report: &InvokeReport, duration: Duration) {
        let offer = report.offer.as_ref();
        let capability = offer.map_or_else(|| OTHER.to_owned(), |offer| self.line(&offer.capability_id));
        self.invocations
            .with_label_values(&[capability.as_str(), result(report)])
            .inc();
        self.durations.observe(duration.as_secs_f64());
        let routed = report.answer.as_ref().ok().and_then(|invoked| invoked.routed);
        if let Some(routed) = routed {
            self.went_elsewhere(routed);
        }
    }

    fn went_elsewhere(&self, routed: Routed) {
        self.routed
            .with_label_values(&[routed.mode.as_str(), routed.result])
            .inc();
        if routed.result == "ok" {
            let state = match routed.receipt {
                Some(true) => "true",
                Some(false) => "false",
                None => "not_checked",
            };
            self.receipts.with_label_values(&[state]).inc();
        }
    }

    /// Counts an invocation that was refused at the door.
    pub fn refused(&self, code: &str) {
        let result = if code == "rate_limited" {
            "rate_limited"
        } else {
            "client_error"
        };
        self.invocations.with_label_values(&[OTHER, result]).inc();
    }

    /// The line of a capability that is sold.
    fn line(&self, capability: &str) -> String {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let is_named = named.contains(capability)
            || (named.len() < METRIC_CAPABILITIES_MAX && named.insert(capability.to_owned()));
        if is_named {
            capability.to_owned()
        } else {
            OTHER.to_owned()
        }
    }
}

fn result(report: &InvokeReport) -> &'static str {
    match &report.answer {
        Ok(invoked) if invoked.replayed => "replayed",
        Ok(invoked) if invoked.status < 300 => "ok",
        Ok(invoked) if invoked.status == MarketCode::JobCancelled.status() => "cancelled",
        Ok(invoked) if invoked.status == 402 => "payment_required",
        Ok(_) => "provider_failed",
        Err(MarketError::Store(_)) => "error",
        Err(MarketError::Refused(refusal)) => match refusal.code.status() {
            402 => "payment_required",
            429 => "rate_limited",
            500.. => "error",
            _ => "client_error",
        },
    }
}

/// Adds what the market keeps; `totals` are absent where the store does not tell them.
pub(super) fn add(
    families: &Families,
    room: &MarketRoom,
    totals: Option<&Totals>,
) -> Result<(), prometheus::Error> {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    families.gauge(
        "aip_market_offers",
        "Capabilities that the market holds",
        count(room.shelf.len()),
    )?;
    families.gauge(
        "aip_market_under_way",
        "Invocations that are under way in this process",
        count(room.engine.under_way()),
    )?;
    families.gauge(
        "aip_market_streams",
        "Streams of events of invocations that are open in this process",
        count(room.engine.streams()),
    )?;
    families.market_peers(&room.peers)?;
    families.payments(room.engine.payments())?;
    totals.map_or(Ok(()), |totals| families.money(totals))
}

impl Families {
    /// Other hubs that sell here, and how asking them goes.
    fn market_peers(&self, peers: &PeerRoom) -> Result<(), prometheus::Error> {
        let count = Opts::new(
            "aip_market_peers",
            "Other hubs that sell, by what was decided about them",
        );
        let count = IntGaugeVec::new(count, &["status"])?;
        for status in PeerStatus::ALL {
            count.with_label_values(&[status.as_str()]).set(0);
        }
        for peer in peers.book.all() {
            count.with_label_values(&[peer.status.as_str()]).inc();
        }
        let stalest = IntGauge::new(
            "aip_market_peer_stalest_crawl_seconds",
            "Time since the manifest of an active hub was good, of the one where that is longest; -1 without one",
        )?;
        stalest.set(peers.stalest_secs().unwrap_or(-1));
        let crawls = Opts::new(
            "aip_market_crawls_total",
            "Hubs that this process asked, by what came of it",
        );
        let crawls = IntCounterVec::new(crawls, &["result"])?;
        for (result, times) in peers.crawls() {
            crawls.with_label_values(&[result]).inc_by(times);
        }
        self.0.register(Box::new(count))?;
        self.0.register(Box::new(stalest))?;
        self.0.register(Box::new(crawls))
    }

    fn payments(&self, counts: &PaymentCounts) -> Result<(), prometheus::Error> {
        let about = "Payments on a chain, by what the facilitator said of them after the work";
        let payments = IntCounterVec::new(Opts::new("aip_market_x402_total", about), &["result"])?;
        for (result, count) in counts.all() {
            payments.with_label_values(&[result]).inc_by(count);
        }
        self.0.register(Box::new(payments))
    }

    /// In millionths of a dollar: floats would round.
    fn money(&self, totals: &Totals) -> Result<(), prometheus::Error> {
        let money = Opts::new(
            "aip_market_money_micro_usd",
            "Money that the hub keeps, in millionths of a dollar",
        );
        let money = IntGaugeVec::new(money, &["of"])?;
        for (of, amount) in [
            ("credited", totals.credited),
            ("demo", totals.demo),
            ("balances", totals.balances),
            ("held", totals.held),
            ("channels", totals.channels),
            ("earned", totals.earned),
            ("paid_out", totals.paid_out),
            ("fees", totals.fees),
            ("demo_returned", totals.demo_returned),
            ("paid_directly", totals.paid_directly),
        ] {
            let micros = i64::try_from(amount.micros()).unwrap_or(i64::MAX);
            money.with_label_values(&[of]).set(micros);
        }
        self.0.register(Box::new(money))?;
        self.gauge(
            "aip_market_books_balance",
            "1 while everything that came in is somewhere",
            totals.balance().into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pitfall_60_capabilities_beyond_the_bound_share_a_line() {
        let metrics = MarketMetrics::new(&Registry::new()).unwrap();
        for number in 0..METRIC_CAPABILITIES_MAX {
            assert_eq!(metrics.line(&format!("c{number}")), format!("c{number}"));
        }
        assert_eq!(
            (metrics.line("one-more"), metrics.line("c0")),
            (OTHER.to_owned(), "c0".to_owned())
        );
    }
}
