//! Alerts, dashboard and scraping: every metric they ask for is one that somebody exports, and every alert is in the
//! runbook.

use std::collections::BTreeSet;
use std::process::Command;

use aip_tests::cluster::Cluster;
use aip_tests::raw::{Request, ask};
use serde_json::Value;

use super::{files_below, items, members, read, run, strings, validator, yaml};
use crate::tidy::root;

const ALERTS: &str = "deploy/prometheus/alerts.yml";
const DASHBOARD: &str = "deploy/grafana/dashboards/aip-hub.json";

/// What `prometheus-nats-exporter` 0.20 exports with the flags that the compose file gives it, of what is asked here.
const NATS_EXPORTER: &[&str] = &[
    "gnatsd_healthz_status_value",
    "jetstream_server_max_storage",
    "jetstream_server_total_consumers",
    "jetstream_server_total_message_bytes",
    "jetstream_server_total_messages",
    "jetstream_server_total_streams",
    "jetstream_stream_consumer_count",
    "jetstream_stream_subject_count",
    "jetstream_stream_total_bytes",
    "jetstream_stream_total_messages",
];
/// What Prometheus makes itself.
const PROMETHEUS: &[&str] = &["up", "ALERTS"];
/// What the names of all other metrics begin with.
const PREFIXES: &[&str] = &["aip_", "gnatsd_", "jetstream_"];

/// The names of metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named =
        |word: &&str| PROMETHEUS.contains(word) || PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    words.filter(named).map(str::to_owned).collect()
}

/// The names of metrics in an expression; at least one.
fn metrics(expression: &str) -> BTreeSet<String> {
    let found = named(expression);
    assert!(!found.is_empty(), "`{expression}` asks for nothing that is known");
    found
}

/// The name without what a histogram adds.
fn family(name: &str) -> &str {
    let ends = ["_bucket", "_sum", "_count"];
    ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// What a running process with all engines exports, and what its source names beside that: a counter with labels has
/// no line before it counts.
async fn exported() -> BTreeSet<String> {
    let hub = Cluster::start(1);
    ask(hub.hub(0).url(), &Request::get("/.well-known/aip")).await;
    let text = ask(hub.hub(0).operator_url(), &Request::get("/metrics"))
        .await
        .text();
    let line = |line: &str| line.split(['{', ' ']).next().map(|name| family(name).to_owned());
    let mut names: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(line)
        .collect();
    assert!(names.len() > 30, "{names:?}");
    names.extend(named(&read("hub/src/metrics.rs")));
    for path in files_below("hub/src/metrics") {
        names.extend(named(&read(path)));
    }
    names
}

fn assert_known(place: &str, expression: &str, exported: &BTreeSet<String>) {
    for name in metrics(expression) {
        let others = NATS_EXPORTER.contains(&name.as_str()) || PROMETHEUS.contains(&name.as_str());
        assert!(
            others || exported.contains(family(&name)),
            "{place}: nobody exports {name}"
        );
    }
}

/// Every alert of the file.
fn alerts() -> Vec<Value> {
    let file = yaml(ALERTS);
    items(&file["groups"])
        .flat_map(|group| items(&group["rules"]).cloned())
        .collect()
}

/// Every panel of the dashboard that asks for something.
fn panels() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    items(&dashboard["panels"])
        .filter(|panel| panel["type"] != "row")
        .cloned()
        .collect()
}

#[test]
fn metrics_are_found_in_expressions() {
    let found =
        metrics(r#"sum by (code) (rate(aip_x_total{code=~"a|b"}[5m])) / on (instance) up{job="j"} > 1e3"#);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["aip_x_total", "up"]);
}

#[tokio::test]
async fn every_metric_that_is_asked_for_is_exported() {
    let exported = exported().await;
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        assert_known(name, alert["expr"].as_str().unwrap(), &exported);
    }
    for panel in panels() {
        let title = panel["title"].as_str().unwrap();
        assert!(items(&panel["targets"]).count() > 0, "{title} asks for nothing");
        for target in items(&panel["targets"]) {
            assert_known(title, target["expr"].as_str().unwrap(), &exported);
        }
    }
}

#[test]
fn every_alert_is_explained() {
    let runbook = read("docs/RUNBOOK.md");
    let part = runbook
        .split("\n## ")
        .find(|part| part.starts_with("Alerts"))
        .expect("a chapter on alerts");
    let explained: Vec<&str> = part
        .split("\n### ")
        .skip(1)
        .filter_map(|text| text.lines().next())
        .collect();
    let mut names = Vec::new();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap().to_owned();
        let severity = alert["labels"]["severity"].as_str().unwrap_or_default();
        assert!(
            matches!(severity, "page" | "ticket"),
            "{name}: severity {severity:?}"
        );
        assert!(alert["for"].is_string(), "{name} fires at once");
        let words = alert["annotations"]["summary"].as_str().unwrap_or_default();
        assert!(words.len() > 20, "{name} says nothing");
        let anchor = format!("docs/RUNBOOK.md#{}", name.to_lowercase());
        assert_eq!(alert["annotations"]["runbook"], anchor.as_str());
        names.push(name);
    }
    assert_eq!(explained, names, "the runbook and the alerts differ");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn the_dashboard_asks_the_source_that_is_provisioned() {
    let source = yaml("deploy/grafana/provisioning/datasources/prometheus.yml");
    let uid = &source["datasources"][0]["uid"];
    let mut ids = BTreeSet::new();
    for panel in panels() {
        assert_eq!(&panel["datasource"]["uid"], uid);
        assert!(
            ids.insert(panel["id"].as_u64().unwrap()),
            "two panels have one id"
        );
    }
    let provider = yaml("deploy/grafana/provisioning/dashboards/aip-hub.yml");
    let folder = provider["providers"][0]["options"]["path"].as_str().unwrap();
    let compose = yaml("docker-compose.yml");
    let mount = format!("./deploy/grafana/dashboards:{folder}:ro");
    assert!(
        strings(&compose["services"]["grafana"]["volumes"]).contains(&mount.as_str()),
        "{mount}"
    );
}

#[test]
fn what_is_scraped_exists() {
    let (prometheus, compose) = (
        yaml("deploy/prometheus/prometheus.yml"),
        yaml("docker-compose.yml"),
    );
    let mut jobs = Vec::new();
    for job in items(&prometheus["scrape_configs"]) {
        jobs.push(job["job_name"].as_str().unwrap());
        for target in items(&job["static_configs"]).flat_map(|list| strings(&list["targets"])) {
            let host = target.split(':').next().unwrap();
            let services: Vec<&String> = members(&compose["services"]).map(|(name, _)| name).collect();
            assert!(
                host == "localhost" || services.iter().any(|name| *name == host),
                "{target}"
            );
        }
    }
    assert_eq!(jobs, ["aip-hub", "nats", "prometheus"]);
}

/// A chart cannot read files outside its folder.
#[test]
fn the_chart_has_the_same_alerts() {
    assert!(
        read(ALERTS) == read("deploy/helm/aip-hub/files/alerts.yml"),
        "copy {ALERTS} into the chart"
    );
}

#[test]
fn prometheus_takes_its_files() {
    let Some(program) = validator("promtool") else {
        return;
    };
    let folder = root().join("deploy/prometheus");
    run(Command::new(&program)
        .args(["check", "config", "prometheus.yml"])
        .current_dir(&folder));
    run(Command::new(&program)
        .args(["test", "rules", "alerts_test.yml"])
        .current_dir(&folder));
}
