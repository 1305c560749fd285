//! What the hub counts, for Prometheus. Labels come from closed lists only: a method, a route's template, a status,
//! a code. Nothing a stranger chooses becomes a label.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use prometheus::proto::MetricFamily;
use prometheus::{
    Encoder as _, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry,
    TextEncoder,
};

mod engines;
mod families;
mod federation;
mod market;
pub(crate) mod rooms;

pub use market::MarketMetrics;

/// The media type of the text format.
pub const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The upper ends of the duration buckets, in seconds.
const DURATION_BUCKETS_SECS: &[f64] = &[
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// The counters of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    in_flight: IntGauge,
    /// Refused or failed requests by code.
    errors: IntCounterVec,
    searches: Histogram,
    /// Searches by the leg that did not run.
    degraded: IntCounterVec,
    /// What the market's doors count.
    pub market: MarketMetrics,
}

impl Metrics {
    /// Registers everything that the HTTP side counts.
    ///
    /// # Errors
    /// Two metrics of one name, which is a bug.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let requests = IntCounterVec::new(
            Opts::new("aip_http_requests_total", "Answered requests"),
            &["method", "route", "status"],
        )?;
        let durations = HistogramVec::new(
            HistogramOpts::new(
                "aip_http_request_duration_seconds",
                "Time from the head of a request to that of its answer",
            )
            .buckets(DURATION_BUCKETS_SECS.to_vec()),
            &["route"],
        )?;
        let in_flight = IntGauge::new("aip_http_requests_in_flight", "Requests being answered")?;
        let errors = IntCounterVec::new(
            Opts::new("aip_http_errors_total", "Refusals and failures"),
            &["code"],
        )?;
        let searches = HistogramOpts::new(
            "aip_search_duration_seconds",
            "Time that the catalog took for a search",
        );
        let searches = Histogram::with_opts(searches.buckets(DURATION_BUCKETS_SECS.to_vec()))?;
        let degraded = IntCounterVec::new(
            Opts::new("aip_search_degraded_total", "Searches without one of their lists"),
            &["leg"],
        )?;
        registry.register(Box::new(searches.clone()))?;
        registry.register(Box::new(degraded.clone()))?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(durations.clone()))?;
        registry.register(Box::new(in_flight.clone()))?;
        registry.register(Box::new(errors.clone()))?;
        Ok(Self {
            market: MarketMetrics::new(&registry)?,
            registry,
            requests,
            durations,
            in_flight,
            errors,
            searches,
            degraded,
        })
    }

    /// Counts a request as being answered until the value is dropped.
    pub fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// Counts an answer.
    pub fn answered(&self, method: &Method, route: &str, status: StatusCode, duration: Duration) {
        self.requests
            .with_label_values(&[method_label(method), route, status.as_str()])
            .inc();
        self.durations
            .with_label_values(&[route])
            .observe(duration.as_secs_f64());
    }

    /// Counts a refusal or a failure.
    pub fn erred(&self, code: &str) {
        self.errors.with_label_values(&[code]).inc();
    }

    /// Counts a search that was answered; `degraded` are the legs that did not run.
    pub fn searched(&self, duration: Duration, degraded: &[&'static str]) {
        self.searches.observe(duration.as_secs_f64());
        for leg in degraded {
            self.degraded.with_label_values(&[leg]).inc();
        }
    }

    /// Everything here and in `rooms`, in the text format of Prometheus.
    ///
    /// # Errors
    /// A metric without a value, which is a bug.
    pub fn encode(&self, rooms: Vec<MetricFamily>) -> Result<Vec<u8>, prometheus::Error> {
        let mut families = self.registry.gather();
        families.extend(rooms);
        let mut text = Vec::new();
        TextEncoder::new().encode(&families, &mut text)?;
        Ok(text)
    }
}

/// A request being answered.
#[derive(Debug)]
pub struct InFlight(IntGauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A method as a label, for counters and the log; a stranger may send any token as a method.
pub(crate) fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_errors_are_counted_under_closed_labels() {
        let metrics = Metrics::new().unwrap();
        let running = metrics.begin();
        let odd = Method::from_bytes(b"BREW").unwrap();
        metrics.answered(&odd, "/x/{name}", StatusCode::NOT_FOUND, Duration::from_millis(2));
        metrics.erred("not_found");
        let text = String::from_utf8(metrics.encode(Vec::new()).unwrap()).unwrap();
        assert!(text.contains(r#"aip_http_requests_total{method="other",route="/x/{name}",status="404"} 1"#));
        assert!(text.contains(r#"aip_http_errors_total{code="not_found"} 1"#));
        assert!(text.contains("aip_http_requests_in_flight 1"));
        drop(running);
        assert!(
            String::from_utf8(metrics.encode(Vec::new()).unwrap())
                .unwrap()
                .contains("aip_http_requests_in_flight 0")
        );
    }
}
