//! A registry that lives for one snapshot: counters start at zero and are moved to where the room's are.

use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntGauge, Registry};

/// The metrics of one snapshot.
pub(super) struct Families(pub(super) Registry);

impl Families {
    pub(super) fn new() -> Self {
        Self(Registry::new())
    }

    pub(super) fn counter(&self, name: &str, help: &str, value: u64) -> Result<(), prometheus::Error> {
        let counter = IntCounter::new(name, help)?;
        counter.inc_by(value);
        self.0.register(Box::new(counter))
    }

    pub(super) fn gauge(&self, name: &str, help: &str, value: u64) -> Result<(), prometheus::Error> {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        self.0.register(Box::new(gauge))
    }

    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.0.gather()
    }
}
