//! What must not change in a hub, whatever a stranger sent: alive, no failure, no panic, nothing stored, memory bounded.

use std::collections::BTreeMap;

use crate::TestHub;
use crate::raw::{Request, ask};

/// What a hub may grow by while strangers do what they like, in bytes. An idle hub has less than 60 MiB (the aim of
/// the project); bodies of 4 MiB in flight on a few dozen connections, and what the allocator keeps of them, fit.
pub const GROWTH_BYTES_MAX: u64 = 192 * 1024 * 1024;

/// The counters of what was stored or changed by somebody.
const STORED: &[&str] = &[
    "aip_relay_stored_total",
    "aip_relay_delivered_total",
    "aip_store_stored_total",
    "aip_store_acked_total",
    "aip_store_dead_total",
    "aip_registry_agents",
    "aip_registry_invites",
];

/// A reading of a hub.
#[derive(Debug, Clone)]
pub struct Vitals {
    counters: BTreeMap<String, f64>,
    resident_bytes: u64,
}

impl Vitals {
    /// Reads a running hub.
    ///
    /// # Panics
    /// When it does not tell its counters.
    pub async fn of(hub: &TestHub) -> Self {
        Self {
            counters: counters(hub).await,
            resident_bytes: hub.resident_bytes().unwrap_or_default(),
        }
    }

    /// Memory that it held, in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// A counter, or the sum of those of one name with all their labels.
    #[must_use]
    pub fn count(&self, name: &str) -> f64 {
        let of_name = |key: &str| key.split('{').next() == Some(name);
        self.counters
            .iter()
            .filter(|(key, _)| of_name(key))
            .map(|(_, value)| value)
            .sum()
    }

    /// The sum of the counters of a name that have this label, written as `name="value"`.
    #[must_use]
    pub fn count_labelled(&self, name: &str, label: &str) -> f64 {
        let wanted = |key: &str| key.split('{').next() == Some(name) && key.contains(label);
        self.counters
            .iter()
            .filter(|(key, _)| wanted(key))
            .map(|(_, value)| value)
            .sum()
    }

    /// Answers of the HTTP side with a status of 500 and more; but not 501, with which the resolution of DIDs answers to
    /// other methods (W3C DID Resolution).
    #[must_use]
    pub fn failures(&self) -> Vec<&str> {
        let failed = |key: &&String| {
            key.starts_with("aip_http_requests_total") && key.contains("status=\"5") && !key.contains("501")
        };
        self.counters.keys().filter(failed).map(String::as_str).collect()
    }

    /// Compares with an earlier reading: the hub serves, nothing failed inside, nothing was stored, and it has not
    /// grown by more than [`GROWTH_BYTES_MAX`].
    ///
    /// # Panics
    /// When it was harmed.
    pub async fn assert_unharmed(hub: &TestHub, before: &Self) {
        let after = Self::assert_well(hub, before).await;
        for name in STORED {
            let (then, now) = (before.count(name), after.count(name));
            assert!(
                (then - now).abs() < f64::EPSILON,
                "{name} went from {then} to {now}"
            );
        }
    }

    /// The same for a time in which somebody legitimately stored something.
    ///
    /// # Panics
    /// When it was harmed.
    pub async fn assert_well(hub: &TestHub, before: &Self) -> Self {
        let ready = ask(hub.url(), &Request::get("/health/ready")).await;
        assert_eq!(ready.status, 200, "{}", ready.text());
        let after = Self::of(hub).await;
        assert!(
            after.failures().is_empty(),
            "{:?}\n{}",
            after.failures(),
            hub.log()
        );
        let log = hub.log();
        assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
        let grown = after.resident_bytes.saturating_sub(before.resident_bytes);
        assert!(grown < GROWTH_BYTES_MAX, "the hub grew by {grown} bytes");
        after
    }
}

/// The counters of a hub, by name and labels.
async fn counters(hub: &TestHub) -> BTreeMap<String, f64> {
    let answer = ask(hub.operator_url(), &Request::get("/metrics")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}
