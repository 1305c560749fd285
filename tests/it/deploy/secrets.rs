//! `deploy/compose/init`: it draws every secret once, writes what each service reads, and the services take it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use aip_tests::binary;

use super::{finish, read, run, validator};
use crate::tidy::root;

/// A folder of secrets as the service `secrets` draws it.
fn drawn() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    draw(folder.path());
    folder
}

fn draw(folder: &Path) {
    let programs = binary("aip-hub").parent().unwrap().to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let init = root().join("deploy/compose/init");
    run(Command::new("sh").arg(init).arg(folder).env("PATH", path));
}

/// Every file with its content.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for service in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(service.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{} is open to others: {mode:o}", path.display());
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            found.insert(name, std::fs::read_to_string(path).unwrap());
        }
    }
    found
}

#[test]
fn secrets_are_drawn_once_and_each_differs() {
    let folder = drawn();
    let first = contents(folder.path());
    let passwords: Vec<&String> = first
        .iter()
        .filter_map(|(name, text)| name.starts_with("passwords/").then_some(text))
        .collect();
    assert_eq!(passwords.len(), 7, "{:?}", first.keys());
    for (at, password) in passwords.iter().enumerate() {
        assert!(password.len() == 64 && password.bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(!passwords[..at].contains(password));
    }
    draw(folder.path());
    assert_eq!(contents(folder.path()), first, "the second run changed something");
    let other = contents(drawn().path());
    assert_ne!(other["passwords/redis"], first["passwords/redis"]);
    assert_ne!(other["hub/hub.key"], first["hub/hub.key"]);
}

#[test]
fn an_edited_password_reaches_everyone_who_needs_it() {
    let folder = drawn();
    let edited = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    std::fs::write(folder.path().join("passwords/nats-hub"), edited).unwrap();
    draw(folder.path());
    let now = contents(folder.path());
    for file in ["hub/hub.toml", "nats/accounts.conf", "nats/hub"] {
        assert!(now[file].contains(edited), "{file}");
    }
}

/// A secret that is in the repository would be everybody's.
#[test]
fn the_folder_of_secrets_is_in_no_commit_and_no_image() {
    assert!(
        read("deploy/compose/.gitignore")
            .lines()
            .any(|line| line == "/secrets/")
    );
    assert!(
        read(".dockerignore")
            .lines()
            .any(|line| line == "deploy/compose/secrets")
    );
    let tracked = run(Command::new("git")
        .args(["ls-files", "deploy/compose/secrets"])
        .current_dir(root()));
    assert_eq!(tracked, "");
}

#[test]
fn the_hub_takes_the_drawn_settings() {
    let folder = drawn();
    let mut check = Command::new(binary("aip-hub"));
    check.args(["config", "check"]).env_clear();
    check.env("AIP_HUB_CONFIG", folder.path().join("hub/hub.toml"));
    for (name, value) in super::compose::hub_environment("example.org") {
        if name != "AIP_HUB_CONFIG" {
            check.env(name, value);
        }
    }
    let said = run(&mut check);
    assert!(!said.contains("one process only"), "{said}");
}

#[test]
fn nats_takes_its_configuration() {
    let Some(program) = validator("nats-server") else {
        return;
    };
    let folder = drawn();
    let configuration = folder.path().join("nats.conf");
    let text = read("deploy/nats/nats.conf").replace("secrets/", "nats/");
    std::fs::write(&configuration, text).unwrap();
    let mut check = Command::new(program);
    check
        .arg("-t")
        .arg("-c")
        .arg(&configuration)
        .env("NATS_NAME", "nats-1");
    let output = finish(&mut check);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
