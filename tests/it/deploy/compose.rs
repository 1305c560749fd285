//! `docker-compose.yml` and the small form: complete, closed to the outside but for the proxy, and without passwords.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::{items, members, read, run, strings, validator, yaml};
use crate::tidy::root;

const LARGE: &str = "docker-compose.yml";
const SMALL: &str = "deploy/compose/single.yml";
const HUBS: &[&str] = &["hub-1", "hub-2", "hub-3"];
const NATS: &[&str] = &["nats-1", "nats-2", "nats-3"];
/// Services that do one thing and end.
const ONCE: &[&str] = &["secrets", "migrate", "nats-cli"];
/// Where no secret lies, though the name sounds like it.
const PASSWORD_FILES: &[&str] = &["POSTGRES_PASSWORD_FILE", "GF_SECURITY_ADMIN_PASSWORD__FILE"];

/// The services of a file, with anchors and merges resolved.
fn services(path: &str) -> BTreeMap<String, Value> {
    let file = yaml(path);
    members(&file["services"])
        .map(|(name, service)| (name.clone(), service.clone()))
        .collect()
}

/// The environment that the file gives every hub process, for this domain.
pub(super) fn hub_environment(domain: &str) -> Vec<(String, String)> {
    let hub = &services(LARGE)["hub-1"];
    let filled = |text: &str| {
        let (before, rest) = text.split_once("${").unwrap_or((text, ""));
        let Some((name, after)) = rest.split_once('}') else {
            return text.to_owned();
        };
        let default = name.split_once(":-").map(|(_, default)| default);
        let value = default.unwrap_or(domain);
        format!("{before}{value}{after}")
    };
    members(&hub["environment"])
        .map(|(name, value)| (name.clone(), filled(value.as_str().unwrap())))
        .collect()
}

/// `40s` as seconds.
fn seconds(value: &Value) -> u64 {
    let text = value.as_str().unwrap_or_default();
    text.strip_suffix('s')
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{value}"))
}

fn default_setting(section: &str, key: &str) -> toml::Value {
    let table: toml::Table = read("config/default.toml").parse().unwrap();
    table[section][key].clone()
}

#[test]
fn everything_that_was_asked_for_is_there() {
    let services = services(LARGE);
    let wanted = [
        "proxy",
        "postgres",
        "redis",
        "prometheus",
        "grafana",
        "migrate",
        "secrets",
    ];
    for name in HUBS.iter().chain(NATS).chain(&wanted) {
        assert!(services.contains_key(*name), "no service {name}");
    }
    for name in HUBS {
        let needs = &services[*name]["depends_on"];
        assert_eq!(
            needs["migrate"]["condition"], "service_completed_successfully",
            "{name}"
        );
        assert_eq!(
            services[*name]["environment"]["AIP_HUB__HUB__PROCESS_NAME"],
            *name
        );
        let upstreams = services["proxy"]["environment"]["HUB_UPSTREAM"].as_str().unwrap();
        assert!(
            upstreams
                .split(' ')
                .any(|upstream| upstream == format!("{name}:8080")),
            "{upstreams}"
        );
    }
    let folders: Vec<&str> = HUBS
        .iter()
        .map(|name| strings(&services[*name]["volumes"])[1])
        .collect();
    assert_eq!(
        folders,
        ["hub-1-data:/data", "hub-2-data:/data", "hub-3-data:/data"]
    );
    assert_eq!(
        services["migrate"]["depends_on"]["postgres"]["condition"],
        "service_healthy"
    );
    assert!(
        read("deploy/nats/nats.conf")
            .lines()
            .any(|line| line.trim() == "sync_interval: always")
    );
}

#[test]
fn every_service_is_bounded_watched_and_restarted() {
    for file in [LARGE, SMALL] {
        for (name, service) in services(file) {
            let image = service["image"].as_str().unwrap_or_default();
            let tag = image.trim_end_matches('}').rsplit(':').next().unwrap_or_default();
            assert!(
                tag.starts_with(|c: char| c.is_ascii_digit() || c == 'v'),
                "{name}: {image} names no release"
            );
            if ONCE.contains(&name.as_str()) {
                assert_eq!(service["restart"], "no", "{name}");
                continue;
            }
            assert_eq!(service["restart"], "unless-stopped", "{name}");
            assert!(
                service["mem_limit"].is_string() && service["pids_limit"].is_u64(),
                "{name} is not bounded"
            );
            assert_eq!(
                strings(&service["security_opt"]),
                ["no-new-privileges:true"],
                "{name}"
            );
            // The hub's image brings its own check.
            assert!(
                image.contains("aip-hub") || service["healthcheck"].is_object(),
                "{name} is not watched"
            );
        }
    }
}

#[test]
fn a_process_has_time_to_close() {
    let needed = default_setting("http", "shutdown_timeout_secs")
        .as_integer()
        .unwrap();
    for (file, hubs) in [(LARGE, HUBS), (SMALL, &["hub"][..])] {
        for hub in hubs {
            let given = seconds(&services(file)[*hub]["stop_grace_period"]);
            assert!(given > u64::try_from(needed).unwrap(), "{hub}: {given} s");
        }
    }
    let line = read("deploy/nats/nats.conf");
    let lame = line
        .split("lame_duck_duration: ")
        .nth(1)
        .and_then(|rest| rest.split('s').next());
    let lame: u64 = lame.unwrap().parse().unwrap();
    for name in NATS {
        assert!(
            seconds(&services(LARGE)[*name]["stop_grace_period"]) > lame,
            "{name}"
        );
    }
}

#[test]
fn only_the_proxy_is_open_to_the_outside() {
    for file in [LARGE, SMALL] {
        for (name, service) in services(file) {
            for port in strings(&service["ports"]) {
                assert!(
                    name == "proxy" || port.starts_with("127.0.0.1:"),
                    "{name} publishes {port}"
                );
            }
        }
    }
    let file = yaml(LARGE);
    assert_eq!(file["networks"]["engines"]["internal"], true);
    let mut inside = Vec::new();
    for (name, service) in services(LARGE) {
        let networks = &service["networks"];
        if strings(networks).contains(&"engines") || networks["engines"].is_object() {
            inside.push(name);
        }
    }
    let wanted = [
        "hub-1",
        "hub-2",
        "hub-3",
        "migrate",
        "nats-1",
        "nats-2",
        "nats-3",
        "nats-cli",
        "nats-exporter",
        "postgres",
        "redis",
    ];
    assert_eq!(inside, wanted);
}

/// Else anyone could choose the address that limits count.
#[test]
fn the_hub_believes_the_proxy_and_nobody_else() {
    for (file, hub) in [(LARGE, "hub-1"), (SMALL, "hub")] {
        let services = services(file);
        let proxy = services["proxy"]["networks"]["front"]["ipv4_address"]
            .as_str()
            .unwrap();
        let believed = services[hub]["environment"]["AIP_HUB__HTTP__TRUSTED_PROXIES"]
            .as_str()
            .unwrap();
        assert_eq!(believed, format!("[\"{proxy}/32\"]"), "{file}");
    }
}

#[test]
fn no_password_stands_in_the_files() {
    for file in [LARGE, SMALL] {
        for (name, service) in services(file) {
            for (variable, value) in members(&service["environment"]) {
                let sounds = ["PASSWORD", "SECRET", "TOKEN", "_URL"]
                    .iter()
                    .any(|word| variable.contains(word));
                let value = value.as_str().unwrap_or_default();
                let harmless = PASSWORD_FILES.contains(&variable.as_str())
                    || (variable.ends_with("_URL") && !value.contains('@'));
                assert!(!sounds || harmless, "{name}: {variable}");
            }
        }
    }
}

#[test]
fn what_is_mounted_from_the_checkout_is_in_it() {
    for (file, folder) in [(LARGE, "."), (SMALL, "deploy/compose")] {
        for (name, service) in services(file) {
            for volume in items(&service["volumes"]).filter_map(Value::as_str) {
                let source = volume.split(':').next().unwrap_or_default();
                let drawn = source.contains("/secrets") || source.ends_with("/backup");
                assert!(
                    !source.starts_with('.') || drawn || root().join(folder).join(source).exists(),
                    "{name}: {source} does not exist"
                );
            }
        }
    }
}

#[test]
fn docker_compose_takes_the_files() {
    let Some(program) = validator("docker-compose") else {
        return;
    };
    for file in [LARGE, SMALL] {
        let mut check = Command::new(&program);
        check
            .arg("-f")
            .arg(file)
            .args(["--profile", "*", "config", "--quiet"]);
        run(check.env("HUB_DOMAIN", "example.org").current_dir(root()));
    }
    let mut without = Command::new(&program);
    without
        .args(["-f", LARGE, "config", "--quiet"])
        .env_remove("HUB_DOMAIN")
        .current_dir(root());
    let refused = super::finish(&mut without);
    assert!(!refused.status.success(), "it starts without a domain");
}
