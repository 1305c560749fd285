//! Every setting that a file of `deploy/` or the runbook names is one that the hub has.

use std::collections::BTreeSet;

use super::{files_below, read};

/// Files whose names look like settings.
const FILES: &[&str] = &["hub.key", "hub.toml", "hub.creds", "nats.conf"];

/// `section.key` of every setting, and the sections by themselves.
fn known() -> (BTreeSet<String>, BTreeSet<String>) {
    let table: toml::Table = read("config/default.toml").parse().unwrap();
    let mut keys = BTreeSet::new();
    for (section, values) in &table {
        for key in values.as_table().unwrap().keys() {
            keys.insert(format!("{section}.{key}"));
        }
    }
    (keys, table.keys().cloned().collect())
}

/// The names after every `AIP_HUB__`, as `section.key`.
fn environment_names(text: &str) -> Vec<String> {
    let name = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_');
        rest[..end.unwrap_or(rest.len())]
            .to_ascii_lowercase()
            .replacen("__", ".", 1)
    };
    text.split("AIP_HUB__").skip(1).map(name).collect()
}

/// What stands between single backticks, outside of fenced blocks.
fn inline_code(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose
        .flat_map(|part| part.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn every_environment_variable_is_a_setting() {
    let (keys, _) = known();
    let mut seen = 0;
    let mut places: Vec<_> = files_below("deploy");
    places.extend(["docker-compose.yml", "docs/RUNBOOK.md", "README.md"].map(Into::into));
    for path in places {
        for name in environment_names(&read(&path)) {
            assert!(
                keys.contains(&name),
                "{}: there is no setting `{name}`",
                path.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} names");
}

#[test]
fn every_setting_in_the_prose_exists() {
    let (keys, sections) = known();
    let mut seen = 0;
    for path in ["docs/RUNBOOK.md", "deploy/README.md"] {
        let text = read(path);
        for code in inline_code(&text) {
            let name = code.split([' ', '=']).next().unwrap_or_default();
            let Some((section, key)) = name.split_once('.') else {
                continue;
            };
            let plain = |c: char| c.is_ascii_lowercase() || c == '_';
            if sections.contains(section) && key.chars().all(plain) && !FILES.contains(&name) {
                assert!(keys.contains(name), "{path}: there is no setting `{name}`");
                seen += 1;
            }
        }
    }
    assert!(seen >= 5, "{seen} settings");
}
