//! What lies in `deploy/`, `docker-compose.yml` and the runbook: well-formed, true to the hub's settings, commands and
//! metrics, and accepted by the programs that will read it, where `deploy/validators` has fetched them.

mod compose;
mod helm;
mod monitoring;
mod proxies;
mod runbook;
mod secrets;
mod settings;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::tidy::root;

/// A file of the checkout, by its path from the root.
fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All documents of a YAML text. Strict: a key that stands twice is an error. The empty ones are left out.
fn yaml_documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}"));
    documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect()
}

/// The one document of a YAML file.
fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The members of a mapping; none for anything else.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The items of a list; none for anything else.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The strings of a list.
fn strings(value: &Value) -> Vec<&str> {
    items(value).filter_map(Value::as_str).collect()
}

/// Every file below `folder`, by its path from the root; what is drawn on a machine is no part of the checkout.
fn files_below(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("compose/secrets") || path.ends_with("compose/backup") => {}
                true => folders.push(path),
                false => found.push(path.strip_prefix(root()).unwrap().to_path_buf()),
            }
        }
    }
    found.sort();
    found
}

/// A program that checks files: fetched by `deploy/validators`, installed for the engines' tests, or in `PATH`. `None`
/// where there is none; then the reason is printed.
fn validator(name: &str) -> Option<PathBuf> {
    let fetched = ["target/validators/bin", "target/engines/venv/bin"].map(|folder| root().join(folder));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = fetched.into_iter().chain(std::env::split_paths(&path));
    let found = folders
        .map(|folder| folder.join(name))
        .find(|program| program.is_file());
    #[expect(clippy::print_stdout, reason = "a check that is skipped says why")]
    if found.is_none() {
        println!("skipped: there is no {name}; deploy/validators fetches it");
    }
    found
}

/// Runs a program to its end, which must be a good one; what it printed.
fn run(command: &mut Command) -> String {
    let output = finish(command);
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{printed}\n{said}",
        output.status
    );
    printed
}

/// Runs a program to its end, whatever that is.
fn finish(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
