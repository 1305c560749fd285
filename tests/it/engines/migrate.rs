//! `aip-hub migrate`, as the machines of a deployment run it: all at once, before any hub starts.

use std::process::{Command, Stdio};

use aip_engines::Postgres;
use aip_tests::binary;

fn hub(arguments: &[&str], registry_url: &str) -> Command {
    let mut command = Command::new(binary("aip-hub"));
    command
        .args(arguments)
        .env_clear()
        .env("AIP_HUB__HUB__DOMAIN", "hub.example")
        .env("AIP_HUB__ENGINES__REGISTRY_URL", registry_url)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a command said, and whether it was content.
fn said(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn of_ten_processes_one_migrates_and_all_are_content() {
    let url = Postgres::shared().database("hub");
    let processes: Vec<_> = (0..10)
        .map(|_| hub(&["migrate"], &url).spawn().unwrap())
        .collect();
    let mut said = Vec::new();
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        said.push(String::from_utf8(output.stdout).unwrap());
    }
    let migrated = said
        .iter()
        .filter(|line| line.contains("went from schema 0 to "))
        .count();
    let content = said.iter().filter(|line| line.ends_with("already\n")).count();
    assert_eq!((migrated, content), (1, 9), "{said:?}");
    let versions = "SELECT count(*) = count(DISTINCT version) AND count(*) > 0 FROM _sqlx_migrations";
    assert_eq!(Postgres::shared().sql(&url, versions), "t");
}

#[test]
fn a_hub_refuses_a_database_that_was_not_migrated() {
    let url = Postgres::shared().database("hub");
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (data, listen) = (data.to_str().unwrap(), "127.0.0.1:0");
    let serve = [
        "serve",
        "--data",
        data,
        "--listen",
        listen,
        "--operator-listen",
        listen,
    ];
    let init = said(&mut hub(&["init", "--data", data], &url));
    assert!(init.0, "{}", init.1);
    let (is_content, text) = said(&mut hub(&serve, &url));
    assert!(!is_content && text.contains("run `aip-hub migrate`"), "{text}");
}

#[test]
fn a_password_is_not_in_what_it_says() {
    let url = Postgres::shared().database("hub").replace("aip@", "aip:s3cret@");
    for (url, is_good) in [(url.clone(), true), (format!("{url}_is_not_there"), false)] {
        let (is_content, text) = said(&mut hub(&["migrate"], &url));
        assert_eq!(is_content, is_good, "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn in_a_data_folder_it_makes_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let migrate = ["migrate", "--data", data];
    let (is_content, text) = said(&mut hub(&migrate, ""));
    assert!(is_content && text.contains("went from schema 0 to "), "{text}");
    let (is_content, text) = said(&mut hub(&migrate, ""));
    assert!(is_content && text.contains("already"), "{text}");
}
