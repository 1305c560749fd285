//! Settings: every source, every refusal, and the files that the repository ships.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

mod engines;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use aip_hub::config::{self, LogFormat, Overrides, Registration, Settings};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").join(name)
}

fn load(text: &str) -> Result<Settings, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hub.toml");
    std::fs::write(&file, text).unwrap();
    config::load(Some(&file), &Overrides::default()).map_err(|problems| problems.sentences().to_vec())
}

fn problems(text: &str) -> Vec<String> {
    match load(text).unwrap().check() {
        Ok(()) => Vec::new(),
        Err(problems) => problems.sentences().to_vec(),
    }
}

/// One problem, which says all of `words`.
fn assert_one_problem(text: &str, words: &[&str]) {
    let found = problems(text);
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    for word in words {
        assert!(found[0].contains(word), "{text}: {} lacks {word:?}", found[0]);
    }
}

/// The real binary, since the environment belongs to a process and not to a test.
fn aip_hub(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aip-hub"));
    command
        .args(arguments)
        .env_remove("AIP_HUB_CONFIG")
        .envs(environment.iter().copied());
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_default_file_in_git_is_current() {
    let kept = std::fs::read_to_string(shipped("default.toml")).unwrap_or_default();
    assert!(
        kept == config::default_toml().unwrap(),
        "run `cargo run -p aip-hub -- config default > config/default.toml`"
    );
}

#[test]
fn the_default_file_is_the_defaults() {
    let loaded = config::load(Some(&shipped("default.toml")), &Overrides::default()).unwrap();
    assert_eq!(loaded, Settings::default());
}

#[test]
fn every_setting_has_a_line_and_a_comment_in_the_default_file() {
    let text = config::default_toml().unwrap();
    let values = toml::Table::try_from(Settings::default()).unwrap();
    let mut count = 0;
    for (section, keys) in &values {
        let (_, body) = text.split_once(&format!("\n[{section}]\n")).expect(section);
        for key in keys.as_table().unwrap().keys() {
            let lines: Vec<&str> = body.lines().take_while(|line| !line.starts_with('[')).collect();
            let at = lines
                .iter()
                .position(|line| line.starts_with(&format!("{key} = ")))
                .expect(key);
            assert!(lines[at - 1].starts_with("# "), "{section}.{key} has no comment");
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn the_limits_of_the_specification_are_the_defaults() {
    let Settings {
        relay,
        receive,
        registry,
        ..
    } = Settings::default();
    assert_eq!(relay.envelope_bytes_max, 262_144);
    assert_eq!(
        (relay.batch_envelopes_max, relay.batch_bytes_max),
        (100, 4_194_304)
    );
    assert_eq!(
        (relay.mailbox_messages_max, relay.mailbox_bytes_max),
        (1_000, 33_554_432)
    );
    assert_eq!(relay.mailbox_messages_per_sender_max, 100);
    assert_eq!(
        (relay.sender_messages_per_sec, relay.sender_burst_messages),
        (20, 200)
    );
    assert_eq!((relay.retention_days, relay.direct_timeout_secs), (7, 10));
    assert_eq!(receive.frame_bytes_max, 1_048_576);
    assert_eq!(
        (receive.auth_timeout_secs, receive.silence_timeout_secs),
        (10, 60)
    );
    assert_eq!(registry.token_lifetime_secs, 3_600);
}

#[test]
fn the_shipped_examples_are_good() {
    for name in ["development.toml", "production.toml", "cluster.toml"] {
        let settings = config::load(Some(&shipped(name)), &Overrides::default()).unwrap();
        settings
            .check()
            .unwrap_or_else(|problems| panic!("{name}: {problems}"));
    }
}

#[test]
fn the_development_example_is_what_dev_means() {
    let example = config::load(Some(&shipped("development.toml")), &Overrides::default()).unwrap();
    let mut dev = Settings::development();
    dev.hub.domain = "localhost:8080".to_owned();
    assert_eq!(example, dev);
    assert_eq!(
        (dev.relay.disk_used_percent_max, dev.relay.disk_free_bytes_min),
        (0, Settings::default().relay.disk_free_bytes_min),
        "a nearly full disk is one to try a hub on, a full one is not"
    );
}

#[test]
fn unknown_keys_are_all_refused_by_name_and_file() {
    let found = load("colour = 1\n[hub]\ndomian = \"a\"\n[http]\nport = 80\n[relay]\nretention_days = 3\n")
        .unwrap_err();
    assert_eq!(found.len(), 3, "{found:?}");
    for (problem, key) in found.iter().zip(["`colour`", "`http.port`", "`hub.domian`"]) {
        assert!(problem.contains(key) && problem.contains("hub.toml"), "{problem}");
    }
    assert!(
        found[1].contains("listen, operator_listen"),
        "the known keys help: {}",
        found[1]
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_by_name_and_file() {
    for (text, key) in [
        ("[http]\nlisten = \"everywhere\"\n", "`http.listen`"),
        ("[http]\nworkers = -1\n", "`http.workers`"),
        ("[hub]\nregistration = \"maybe\"\n", "`hub.registration`"),
        ("[http]\ntrusted_proxies = [\"proxy\"]\n", "`http.trusted_proxies"),
        ("[relay]\nretention_days = \"a week\"\n", "`relay.retention_days`"),
    ] {
        let found = load(text).unwrap_err();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(key) && found[0].contains("hub.toml"),
            "{text}: {}",
            found[0]
        );
    }
}

#[test]
fn a_file_that_is_not_there_or_is_no_toml_is_refused() {
    let missing = config::load(Some(Path::new("/no/such/hub.toml")), &Overrides::default()).unwrap_err();
    assert!(missing.to_string().contains("/no/such/hub.toml"), "{missing}");
    let broken = load("[hub\n").unwrap_err();
    assert!(broken[0].contains("hub.toml"), "{broken:?}");
}

#[test]
fn the_command_line_wins_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hub.toml");
    std::fs::write(&file, "[hub]\ndomain = \"file.example\"\ndata_dir = \"/file\"\n").unwrap();
    let overrides = Overrides {
        domain: Some("line.example".to_owned()),
        data_dir: Some("/line".into()),
        listen: Some("127.0.0.1:1".parse().unwrap()),
        operator_listen: Some("127.0.0.1:2".parse().unwrap()),
        dev: false,
    };
    let settings = config::load(Some(&file), &overrides).unwrap();
    assert_eq!(settings.hub.domain, "line.example");
    assert_eq!(settings.hub.data_dir, Path::new("/line"));
    assert_eq!(
        (settings.http.listen.port(), settings.http.operator_listen.port()),
        (1, 2)
    );
}

#[test]
fn dev_is_a_starting_point_that_the_file_can_change() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hub.toml");
    std::fs::write(&file, "[hub]\nregistration = \"invite\"\ndevelopment = false\n").unwrap();
    let settings = config::load(
        Some(&file),
        &Overrides {
            dev: true,
            ..Overrides::default()
        },
    )
    .unwrap();
    assert_eq!(settings.hub.registration, Registration::Invite);
    assert!(settings.hub.development, "--dev says so itself");
    assert!(settings.egress.allow_http);
}

#[test]
fn the_environment_wins_over_the_file() {
    let file = shipped("production.toml");
    let file = file.to_str().unwrap();
    let output = aip_hub(
        &["config", "show", "--config", file],
        &[
            ("AIP_HUB__HUB__DOMAIN", "env.example"),
            ("AIP_HUB__RELAY__RETENTION_DAYS", "3"),
            ("AIP_HUB__HTTP__TRUSTED_PROXIES", "[10.0.0.0/8]"),
            ("AIP_HUB__LOG__FORMAT", "text"),
        ],
    );
    let settings: Settings = toml::from_str(&stdout(&output)).unwrap();
    assert_eq!(settings.hub.domain, "env.example");
    assert_eq!(settings.relay.retention_days, 3);
    assert_eq!(settings.http.trusted_proxies, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(settings.log.format, LogFormat::Text);
    assert_eq!(
        settings.hub.registration,
        Registration::Invite,
        "what the environment leaves alone is the file's"
    );
}

#[test]
fn an_unknown_key_in_the_environment_is_refused() {
    let output = aip_hub(&["config", "check"], &[("AIP_HUB__HTTP__PORT", "80")]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("`http.port`") && text.contains("environment"),
        "{text}"
    );
}

#[test]
fn the_file_can_be_named_by_the_environment() {
    let file = shipped("production.toml");
    let output = aip_hub(
        &["config", "check"],
        &[("AIP_HUB_CONFIG", file.to_str().unwrap())],
    );
    assert_eq!(stdout(&output).trim(), "the settings are good");
}

#[test]
fn a_secret_is_shown_nowhere() {
    let secret = "0123456789abcdef0123456789abcdef0123";
    let settings = load(&format!("[http]\noperator_token = \"{secret}\"\n")).unwrap();
    assert_eq!(settings.http.operator_token.reveal(), secret);
    assert!(!format!("{settings:?}").contains(secret));
    assert!(!config::to_toml(&settings).unwrap().contains(secret));
    assert!(config::to_toml(&settings).unwrap().contains("(redacted)"));
}

#[test]
fn shown_settings_load_again() {
    let settings =
        load("[hub]\ndomain = \"example.org\"\n[relay]\nblocked_senders = [\"did:aip:a.example:m\"]\n")
            .unwrap();
    assert_eq!(load(&config::to_toml(&settings).unwrap()).unwrap(), settings);
}

#[test]
fn a_hub_for_others_needs_a_real_domain_and_https() {
    assert_one_problem("", &["`hub.domain`", "--dev"]);
    assert_one_problem("[hub]\ndomain = \"localhost:8080\"\n", &["localhost", "--dev"]);
    assert_one_problem(
        "[hub]\ndomain = \"Example.org\"\n",
        &["plain form", "\"example.org\""],
    );
    assert_one_problem("[hub]\ndomain = \"127.0.0.1\"\n", &["`hub.domain`", "no domain"]);
    let url = |url: &str| format!("[hub]\ndomain = \"example.org\"\npublic_url = \"{url}\"\n");
    assert_one_problem(&url("http://hub.example.org"), &["`hub.public_url`", "https://"]);
    assert_one_problem(
        &url("https://hub.example.org/aip"),
        &["`hub.public_url`", "host and port only"],
    );
    assert_one_problem(&url("hub.example.org"), &["`hub.public_url`", "no URL"]);
    assert_eq!(problems(&url("https://hub.example.org")), Vec::<String>::new());
}

#[test]
fn development_may_be_local_and_plain() {
    let text =
        "[hub]\ndevelopment = true\ndomain = \"localhost:8080\"\npublic_url = \"http://localhost:8080\"\n";
    assert_eq!(problems(text), Vec::<String>::new());
    let settings = load("[hub]\ndevelopment = true\ndomain = \"localhost:8080\"\n").unwrap();
    assert_eq!(settings.public_url(), "http://localhost:8080");
    let settings = load("[hub]\ndomain = \"example.org\"\n").unwrap();
    assert_eq!(settings.public_url(), "https://example.org");
}

#[test]
fn all_problems_are_told_at_once() {
    let found = problems(
        "[hub]\nreserved_names = [\"a b\"]\n[http]\nlisten = \"127.0.0.1:9090\"\noperator_token = \"short\"\n[relay]\n\
         envelope_bytes_max = 1\nblocked_senders = [\"ma/llory\"]\n[receive]\nframe_bytes_max = 10\n[egress]\nallow_http = true\n[log]\nfilter = \"aip_hub=loud\"\n",
    );
    for key in [
        "`hub.domain`",
        "`hub.reserved_names`",
        "`http.listen` and `http.operator_listen`",
        "`http.operator_token`",
        "`relay.envelope_bytes_max`",
        "`relay.blocked_senders`",
        "`receive.frame_bytes_max`",
        "`egress.allow_http`",
        "`log.filter`",
    ] {
        assert!(
            found.iter().any(|problem| problem.contains(key)),
            "{key} is not in {found:?}"
        );
    }
    assert_eq!(found.len(), 9, "{found:?}");
}

#[test]
fn limits_that_do_not_fit_each_other_are_told() {
    let with = |text: &str| format!("[hub]\ndomain = \"example.org\"\n{text}");
    assert_one_problem(
        &with("[relay]\nbatch_bytes_max = 1000\n"),
        &["`relay.batch_bytes_max`", "must fit"],
    );
    assert_one_problem(
        &with("[relay]\nmailbox_bytes_max = 1000\n"),
        &["`relay.mailbox_bytes_max`", "must fit"],
    );
    assert_one_problem(
        &with("[relay]\nretention_days = 0\n"),
        &["`relay.retention_days`", "1 to 3650"],
    );
    assert_one_problem(
        &with("[relay]\ndisk_used_percent_max = 101\n"),
        &["`relay.disk_used_percent_max`", "0 to 100"],
    );
    assert_one_problem(
        &with("[http]\nshutdown_timeout_secs = 0\n"),
        &["`http.shutdown_timeout_secs`", "1 to 600"],
    );
    let origin = "[http]\nallowed_origins = [\"app.example.org\"]\n";
    assert_one_problem(
        &with(origin),
        &["`http.allowed_origins`", "https://app.example.org"],
    );
}

#[test]
fn there_is_no_default_credential() {
    assert!(Settings::default().http.operator_token.is_empty());
    assert!(Settings::development().http.operator_token.is_empty());
    assert!(Settings::default().http.operator_listen.ip().is_loopback());
    assert_eq!(Settings::default().hub.registration, Registration::Invite);
}
