//! Dependencies point down only, and never between siblings. `docs/ARCHITECTURE.md` draws the same picture.

use std::collections::{BTreeMap, BTreeSet};

/// Room → the rooms it may know. A room that is not here may know none.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("aip-protocol", &[]),
    ("aip-federation", &["aip-protocol"]),
    ("aip-market", &["aip-protocol"]),
    ("aip-registry", &["aip-protocol", "aip-federation", "aip-market"]),
    ("aip-relay", &["aip-protocol", "aip-federation"]),
    ("aip-client", &["aip-protocol"]),
    ("aip-jetstream", &["aip-protocol", "aip-relay"]),
    ("aip-cluster", &["aip-protocol", "aip-relay", "aip-registry"]),
    ("aip-catalog", &["aip-protocol"]),
    ("aip-embed", &["aip-catalog"]),
    (
        "aip-hub",
        &[
            "aip-protocol",
            "aip-catalog",
            "aip-embed",
            "aip-federation",
            "aip-market",
            "aip-registry",
            "aip-relay",
            "aip-jetstream",
            "aip-cluster",
        ],
    ),
    ("aip-engines", &[]),
    ("aip-tests", &["aip-protocol", "aip-client", "aip-engines"]),
    (
        "aip-bench",
        &[
            "aip-protocol",
            "aip-relay",
            "aip-jetstream",
            "aip-engines",
            "aip-catalog",
            "aip-embed",
        ],
    ),
];

/// Outside crates that one room alone may name.
const OWNED: &[(&str, &[&str])] = &[
    ("actix-web", &["aip-hub", "aip-bench"]),
    ("actix-ws", &["aip-hub", "aip-bench"]),
    ("rocksdb", &["aip-relay", "aip-bench"]),
    ("sqlx", &["aip-registry", "aip-bench"]),
    ("async-nats", &["aip-jetstream", "aip-bench"]),
    ("redis", &["aip-cluster"]),
    ("tantivy", &["aip-catalog", "aip-bench"]),
    ("candle-core", &["aip-embed"]),
    (
        "reqwest",
        &[
            "aip-federation",
            "aip-client",
            "aip-hub",
            "aip-embed",
            "aip-tests",
            "aip-bench",
        ],
    ),
    ("figment", &["aip-hub"]),
];

/// What a pure room may not name: runtimes, networks, disks and clocks.
const IMPURE: &[&str] = &[
    "tokio",
    "reqwest",
    "actix-web",
    "sqlx",
    "rocksdb",
    "async-nats",
    "redis",
    "rustix",
    "tracing",
    "rand",
];

fn manifests() -> BTreeMap<String, toml::Table> {
    super::files(&super::root(), "toml")
        .into_iter()
        .filter(|path| {
            path.file_name().is_some_and(|n| n == "Cargo.toml") && !path.ends_with("fuzz/Cargo.toml")
        })
        .map(|path| {
            std::fs::read_to_string(path)
                .expect("a manifest")
                .parse::<toml::Table>()
                .expect("valid TOML")
        })
        .filter_map(|table| {
            let name = table.get("package")?.get("name")?.as_str()?.to_owned();
            name.starts_with("aip-").then_some((name, table))
        })
        .collect()
}

fn names(table: &toml::Table, section: &str) -> BTreeSet<String> {
    table
        .get(section)
        .and_then(toml::Value::as_table)
        .map(|t| t.keys().cloned().collect())
        .unwrap_or_default()
}

#[test]
fn rooms_depend_downwards_only() {
    let manifests = manifests();
    let allowed: BTreeMap<_, _> = MAY_KNOW.iter().copied().collect();
    assert!(
        manifests.len() >= allowed.len(),
        "a room of the table is missing: {:?}",
        manifests.keys()
    );
    for (name, table) in &manifests {
        let allowed = allowed.get(name.as_str()).copied().unwrap_or_else(|| {
            panic!("room {name} is not in the layering table: add it here and in docs/ARCHITECTURE.md")
        });
        for dependency in names(table, "dependencies")
            .iter()
            .filter(|d| d.starts_with("aip-"))
        {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} may not depend on {dependency}"
            );
        }
    }
}

#[test]
fn heavy_crates_have_one_owner() {
    for (name, table) in manifests() {
        for dependency in names(&table, "dependencies") {
            if let Some((_, owners)) = OWNED.iter().find(|(c, _)| *c == dependency) {
                assert!(
                    owners.contains(&name.as_str()),
                    "{name} names {dependency}, which belongs to {owners:?}"
                );
            }
        }
    }
}

#[test]
fn the_protocol_is_pure() {
    let manifests = manifests();
    let dependencies = names(&manifests["aip-protocol"], "dependencies");
    for impure in IMPURE {
        assert!(
            !dependencies.contains(*impure),
            "aip-protocol depends on {impure}"
        );
    }
}

#[test]
fn dependencies_are_declared_once() {
    for (name, table) in manifests() {
        for section in ["dependencies", "dev-dependencies"] {
            let Some(entries) = table.get(section).and_then(toml::Value::as_table) else {
                continue;
            };
            for (dependency, value) in entries {
                let inherited = value.get("workspace").and_then(toml::Value::as_bool) == Some(true);
                let itself = *dependency == name;
                assert!(
                    inherited || itself,
                    "{name}: {dependency} is not taken from the workspace's table"
                );
            }
        }
    }
}
