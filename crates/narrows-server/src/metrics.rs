//! Counts for whoever operates a server. Labels never hold what a session says.

use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    status: u16,
}

/// What is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Histogram,
    pub(crate) packets: Counter,
    pub(crate) events: Counter,
    gauges: Vec<Gauge>,
}

/// Names and help texts of the gauges.
pub(crate) const GAUGES: [(&str, &str); 10] = [
    ("streams", "Streams that are open"),
    ("agents", "Agents that are running"),
    ("sessions_written", "Sessions that are being written"),
    ("sessions_in_memory", "Sessions whose newest rows are in memory"),
    ("memory_rows_bytes", "Bytes of these rows"),
    ("store_bytes", "Bytes of the database"),
    ("store_wal_bytes", "Bytes of its write-ahead log"),
    ("store_commits", "Commits so far"),
    ("store_failed_commits", "Commits that failed so far"),
    ("store_slowest_commit_microseconds", "The slowest commit so far"),
];

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("narrows");
        let requests = Family::<RequestLabels, Counter>::default();
        registry.register("requests", "Requests by method and status", requests.clone());
        let seconds = Histogram::new(exponential_buckets(0.0005, 4.0, 9));
        registry.register("request_seconds", "Time to the head of the response", seconds.clone());
        let (packets, events) = (Counter::default(), Counter::default());
        registry.register("packets", "Packets that were read", packets.clone());
        registry.register("events", "Events that were appended", events.clone());
        let gauges = GAUGES.map(|(name, help)| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        });
        Metrics { registry, requests, seconds, packets, events, gauges: gauges.into() }
    }

    pub(crate) fn request(&self, method: &Method, status: StatusCode, took: Duration) {
        let method = match method.as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "other",
        };
        self.requests.get_or_create(&RequestLabels { method, status: status.as_u16() }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Encodes everything as OpenMetrics text, with `gauges` in the order of [`GAUGES`].
    pub(crate) fn encode(&self, gauges: [u64; GAUGES.len()]) -> String {
        for (gauge, value) in self.gauges.iter().zip(gauges) {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
