//! The dependency graph against `deny.toml`: licences, bans and sources, without any tool installed.

use std::process::Command;

use serde_json::Value;

fn metadata() -> Value {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(super::root())
        .output()
        .expect("cargo metadata runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn policy() -> toml::Table {
    std::fs::read_to_string(super::root().join("deny.toml"))
        .expect("deny.toml")
        .parse()
        .expect("TOML")
}

fn strings(value: &toml::Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|v| v.as_str().map(str::to_owned))
        .collect()
}

/// An SPDX expression of the kind that crates carry: alternatives of conjunctions, with parentheses.
fn licence_allowed(expression: &str, allowed: &[String]) -> bool {
    let flat = expression.replace('/', " OR ");
    let depth_split = |text: &str, word: &str| -> Vec<String> {
        let (mut depth, mut parts, mut last) = (0_i32, Vec::new(), 0);
        for (at, c) in text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ if depth == 0 && at >= last && text[at..].starts_with(word) => {
                    parts.push(text[last..at].trim().to_owned());
                    last = at + word.len();
                }
                _ => {}
            }
        }
        parts.push(text[last..].trim().to_owned());
        parts
    };
    let inner = |text: &str| {
        text.trim()
            .trim_start_matches('(')
            .trim_end_matches(')')
            .trim()
            .to_owned()
    };
    depth_split(&flat, " AND ").iter().all(|conjunct| {
        depth_split(&inner(conjunct), " OR ")
            .iter()
            .any(|one| allowed.contains(&inner(one)))
    }) || depth_split(&flat, " OR ")
        .iter()
        .any(|one| allowed.contains(&inner(one)))
}

#[test]
fn licences_are_permissive() {
    let allowed = strings(&policy()["licenses"]["allow"]);
    for package in metadata()["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(
            licence_allowed(licence, &allowed),
            "{name}: licence {licence:?} is not allowed by deny.toml"
        );
    }
}

#[test]
fn banned_crates_stay_out() {
    let policy = policy();
    let banned: Vec<&str> = policy["bans"]["deny"]
        .as_array()
        .expect("bans")
        .iter()
        .filter_map(|b| b["crate"].as_str())
        .collect();
    for package in metadata()["resolve"]["nodes"].as_array().expect("nodes") {
        let id = package["id"].as_str().unwrap_or_default();
        for name in &banned {
            assert!(
                !id.contains(&format!("#{name}@")),
                "{name} is in the dependency graph"
            );
        }
    }
}

#[test]
fn every_crate_comes_from_the_registry_or_from_here() {
    for package in metadata()["packages"].as_array().expect("packages") {
        let source = package["source"].as_str().unwrap_or("here");
        assert!(
            source == "here" || source.starts_with("registry+"),
            "{} comes from {source}",
            package["name"]
        );
    }
}

#[test]
fn spdx_expressions_are_read() {
    let allowed = [
        "MIT".to_owned(),
        "Apache-2.0".to_owned(),
        "Unicode-3.0".to_owned(),
    ];
    assert!(licence_allowed("MIT OR GPL-3.0", &allowed));
    assert!(licence_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
    assert!(licence_allowed("MIT/Apache-2.0", &allowed));
    assert!(!licence_allowed("GPL-3.0-or-later", &allowed));
    assert!(!licence_allowed("MIT AND GPL-3.0", &allowed));
}
