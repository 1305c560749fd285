//! The proxies' examples: large enough for a batch, quick enough to hang up before the hub does.

use std::process::Command;

use super::{read, run, validator};
use crate::tidy::root;

fn default_setting(section: &str, key: &str) -> u64 {
    let table: toml::Table = read("config/default.toml").parse().unwrap();
    u64::try_from(table[section][key].as_integer().unwrap()).unwrap()
}

/// The number between `before` and `after`.
fn number(text: &str, before: &str, after: &str) -> u64 {
    let rest = text
        .split(before)
        .nth(1)
        .unwrap_or_else(|| panic!("no {before:?}"));
    rest.split(after)
        .next()
        .and_then(|word| word.trim().parse().ok())
        .unwrap_or_else(|| panic!("{before:?}"))
}

#[test]
fn a_batch_and_a_pause_fit() {
    let (caddy, nginx) = (read("deploy/caddy/Caddyfile"), read("deploy/nginx/aip-hub.conf"));
    let values = read("deploy/helm/aip-hub/values.yaml");
    let batch_mib = default_setting("relay", "batch_bytes_max").div_ceil(1024 * 1024);
    assert_eq!(number(&caddy, "max_size ", "MiB"), batch_mib);
    assert_eq!(number(&nginx, "client_max_body_size ", "m;"), batch_mib);
    assert_eq!(number(&values, "proxy-body-size: ", "m"), batch_mib);
    // Else a request may be sent on a connection that the hub is about to close.
    let idle = default_setting("http", "keep_alive_secs");
    assert!(number(&caddy, "keepalive ", "s") < idle);
    assert!(number(&nginx, "keepalive_timeout ", "s;") < idle);
    let silence = default_setting("receive", "silence_timeout_secs");
    assert!(number(&nginx, "proxy_read_timeout ", "s;") > silence);
}

#[test]
fn caddy_takes_its_file() {
    let Some(program) = validator("caddy") else { return };
    let file = root().join("deploy/caddy/Caddyfile");
    let folder = tempfile::tempdir().unwrap();
    for upstream in ["127.0.0.1:8080", "hub-1:8080 hub-2:8080 hub-3:8080"] {
        for tls in ["", "tls internal"] {
            let mut check = Command::new(&program);
            check
                .args(["validate", "--adapter", "caddyfile", "--config"])
                .arg(&file);
            check
                .env("HUB_HOST", "hub.example.org")
                .env("HUB_UPSTREAM", upstream)
                .env("HUB_TLS", tls);
            run(check
                .env("HOME", folder.path())
                .env("XDG_DATA_HOME", folder.path()));
        }
    }
}

#[test]
fn nginx_takes_its_file() {
    let (Some(nginx), Some(openssl)) = (validator("nginx"), validator("openssl")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let mut certificate = Command::new(openssl);
    certificate.args([
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=hub",
    ]);
    certificate.args(["-keyout", "privkey.pem", "-out", "fullchain.pem"]);
    run(certificate.current_dir(folder.path()));
    let site = read("deploy/nginx/aip-hub.conf").replace("/etc/letsencrypt/live/hub.example.org", &place);
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders: String = kinds
        .map(|kind| format!("{kind}_temp_path {place}/{kind};\n"))
        .concat();
    let whole = format!(
        "pid {place}/pid;\nerror_log {place}/log;\nevents {{}}\nhttp {{\naccess_log off;\n{folders}{site}\n}}\n"
    );
    std::fs::write(folder.path().join("nginx.conf"), whole).unwrap();
    let mut check = Command::new(nginx);
    check
        .args(["-t", "-q", "-p", &place, "-c"])
        .arg(folder.path().join("nginx.conf"));
    run(&mut check);
}
