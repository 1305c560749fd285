//! The sections about engines: secrets, sentences without them, and what a combination means.

use aip_hub::config::{self, Settings};

use super::{aip_hub, assert_one_problem, load, problems, stdout};

const ENGINES: &str = "[hub]\ndomain = \"example.org\"\n[engines]\nregistry_url = \"postgres://aip:hidden-1@localhost/aip\"\n\
     mailboxes_url = \"nats://a:hidden-2@127.0.0.1:4222, tls://b.example:4222\"\nshared_url = \"redis://:hidden-3@[::1]:6379/0\"\n";

#[test]
fn engines_are_named_by_their_addresses_which_are_secrets() {
    let settings = load(ENGINES).unwrap();
    settings.check().unwrap();
    assert_eq!(settings.notes(), Vec::<String>::new());
    let servers: Vec<&str> = settings.engines.mailbox_servers().collect();
    assert_eq!(
        servers,
        ["nats://a:hidden-2@127.0.0.1:4222", "tls://b.example:4222"]
    );
    let shown = format!("{settings:?}{}", config::to_toml(&settings).unwrap());
    assert!(!shown.contains("hidden"), "{shown}");
    let written = config::commented_toml(&settings.without_secrets()).unwrap();
    assert!(!written.contains("(redacted)"), "a written file loads: {written}");
    assert!(Settings::default().engines.are_embedded());
}

#[test]
fn an_address_that_is_none_is_told_without_showing_it() {
    let with =
        |key: &str, url: &str| format!("[hub]\ndomain = \"example.org\"\n[engines]\n{key} = \"{url}\"\n");
    for (key, url) in [
        ("registry_url", "mysql://hidden@db/aip"),
        ("registry_url", "postgres:///hidden"),
        ("mailboxes_url", "nats://a:4222,http://hidden:4222"),
        ("shared_url", "hidden:6379"),
    ] {
        let text = with(key, url);
        assert_one_problem(&text, &[&format!("`engines.{key}`"), "://"]);
        assert!(!problems(&text)[0].contains("hidden"), "{url}");
    }
    let socket = with("registry_url", "postgres:///aip?host=/run/postgresql");
    assert_eq!(problems(&socket), Vec::<String>::new());
}

#[test]
fn the_settings_of_the_engines_fit_each_other() {
    let with = |text: &str| format!("[hub]\ndomain = \"example.org\"\n{text}");
    for (text, words) in [
        ("[nats]\nstreams = 12\n", ["`nats.streams`", "power of two"]),
        ("[nats]\nreplicas = 2\n", ["`nats.replicas`", "1, 3 or 5"]),
        ("[nats]\nprefix = \"AIP.x\"\n", ["`nats.prefix`", "lower-case"]),
        ("[redis]\nprefix = \"\"\n", ["`redis.prefix`", "1 to 16"]),
        ("[nats]\nuser = \"hub\"\n", ["`nats.password`", "belong together"]),
        (
            "[nats]\ncertificate_file = \"c.pem\"\n",
            ["`nats.certificate_key_file`", "belong together"],
        ),
        (
            "[nats]\ntoken = \"t\"\ncredentials_file = \"c\"\n",
            ["`nats`", "set one of"],
        ),
        (
            "[nats]\nmonitor_url = \"a:8222\"\n",
            ["`nats.monitor_url`", "http://"],
        ),
        (
            "[nats]\npublish_deadline_secs = 1\n",
            ["`nats.publish_deadline_secs`", "must fit"],
        ),
        (
            "[postgres]\nconnections_max = 1\n",
            ["`postgres.connections_max`", "2 to 1000"],
        ),
    ] {
        assert_one_problem(&with(text), &words);
    }
    assert_one_problem(
        "[hub]\ndomain = \"example.org\"\nprocess_name = \"a b\"\n",
        &["`hub.process_name`", "at most 64"],
    );
}

/// A combination that works, with something to know about it.
#[test]
fn what_a_combination_of_engines_means_is_said() {
    let notes = |text: &str| {
        let settings = load(&format!("[hub]\ndomain = \"example.org\"\n[engines]\n{text}")).unwrap();
        settings.check().unwrap();
        settings.notes()
    };
    let (registry, mailboxes, shared) = (
        "registry_url = \"postgres://localhost/aip\"\n",
        "mailboxes_url = \"nats://localhost\"\n",
        "shared_url = \"redis://localhost\"\n",
    );
    assert_eq!(notes(""), Vec::<String>::new());
    for (text, word) in [
        (registry.to_owned(), "`engines.mailboxes_url` for more"),
        (mailboxes.to_owned(), "`engines.registry_url` for more"),
        (format!("{registry}{mailboxes}"), "`engines.shared_url`"),
        (shared.to_owned(), "nobody to share with"),
        (
            format!("{registry}{mailboxes}shared_url = \"redis://10.0.0.5\"\n"),
            "`engines.shared_url` crosses a network",
        ),
        (
            format!("registry_url = \"postgres://db.example/aip\"\n{mailboxes}{shared}"),
            "`engines.registry_url` crosses a network",
        ),
    ] {
        let found = notes(&text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].contains(word), "{text}: {found:?}");
    }
    let private = "registry_url = \"postgres://db.example/aip?sslmode=verify-full\"\n";
    assert_eq!(
        notes(&format!("{private}{mailboxes}{shared}")),
        Vec::<String>::new()
    );
}

#[test]
fn a_mailbox_on_nats_has_a_bound_of_its_own() {
    let with = |mailboxes: &str| {
        format!("[hub]\ndomain = \"example.org\"\n{mailboxes}[relay]\nmailbox_messages_max = 250001\n")
    };
    assert_eq!(problems(&with("")), Vec::<String>::new());
    assert_one_problem(
        &with("[engines]\nmailboxes_url = \"nats://localhost\"\n"),
        &["`relay.mailbox_messages_max`", "at most 250000"],
    );
}

#[test]
fn the_environment_names_the_engines() {
    let output = aip_hub(
        &["config", "check", "--domain", "example.org"],
        &[(
            "AIP_HUB__ENGINES__MAILBOXES_URL",
            "nats://user:hidden@localhost:4222",
        )],
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("the settings are good\nnote: mailboxes are on NATS"),
        "{text}"
    );
    assert!(!text.contains("hidden"), "{text}");
}

/// What has no quotation marks is read as a number, or a truth, where it looks like one.
#[test]
fn a_secret_in_the_environment_is_taken_letter_by_letter() {
    for password in ["0123456", "1e5", "true", "[x]", "pass\\word"] {
        let output = aip_hub(
            &["config", "check", "--domain", "example.org"],
            &[
                ("AIP_HUB__NATS__USER", "hub"),
                ("AIP_HUB__NATS__PASSWORD", password),
            ],
        );
        assert_eq!(stdout(&output).trim(), "the settings are good", "{password}");
    }
}
