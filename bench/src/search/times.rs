//! How long things took.

use std::time::{Duration, Instant};

/// Latencies, in milliseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Times(Vec<f64>);

impl Times {
    pub(super) fn add(&mut self, took: Duration) {
        self.0.push(took.as_secs_f64() * 1_000.0);
    }

    pub(super) fn from_millis(millis: Vec<f64>) -> Self {
        Self(millis)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The time that so many percent keep within; NaN of nothing.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    pub(super) fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
        sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn p50(&self) -> f64 {
        self.percentile(50.0)
    }

    pub(super) fn p99(&self) -> f64 {
        self.percentile(99.0)
    }

    pub(super) fn max(&self) -> f64 {
        self.percentile(100.0)
    }
}

/// Takes the time of each.
pub(super) fn each<T>(items: &[T], mut act: impl FnMut(&T) -> anyhow::Result<()>) -> anyhow::Result<Times> {
    let mut times = Times::default();
    for item in items {
        let begun = Instant::now();
        act(item)?;
        times.add(begun.elapsed());
    }
    Ok(times)
}
