//! What is wrong with the settings of the engines, and what an operator should know about a combination that works.
//! No sentence holds an address: it may hold a password.

use std::borrow::Cow;
use std::net::IpAddr;

use aip_jetstream::limits::SUBJECT_MESSAGES_MAX;
use url::Url;

use super::super::engines::prefix_fits;
use super::super::{Secret, Settings};

impl Settings {
    pub(super) fn check_engines(&self, found: &mut Vec<String>) {
        let engines = &self.engines;
        address(
            "engines.registry_url",
            &engines.registry_url,
            &["postgres", "postgresql"],
            found,
        );
        address(
            "engines.shared_url",
            &engines.shared_url,
            &["redis", "rediss"],
            found,
        );
        for server in engines.mailbox_servers() {
            address(
                "engines.mailboxes_url",
                &Secret::new(server),
                &["nats", "tls"],
                found,
            );
        }
        self.check_nats(found);
        self.check_mailboxes_on_nats(found);
        self.check_process_name(found);
        for (key, prefix) in [
            ("nats.prefix", &self.nats.prefix),
            ("redis.prefix", &self.redis.prefix),
        ] {
            if !prefix_fits(prefix) {
                found.push(format!(
                    "`{key}` = {prefix:?} is no prefix: use 1 to 16 lower-case letters, digits or `-`"
                ));
            }
        }
    }

    fn check_nats(&self, found: &mut Vec<String>) {
        let nats = &self.nats;
        if !nats.streams.is_power_of_two() {
            found.push(format!(
                "`nats.streams` = {} is no power of two: use 1, 2, 4, … 256",
                nats.streams
            ));
        }
        if nats.replicas.is_multiple_of(2) {
            found.push(format!(
                "`nats.replicas` = {} survives no more failures than one less would: use 1, 3 or 5",
                nats.replicas
            ));
        }
        let ways = [
            !nats.credentials_file.as_os_str().is_empty(),
            !nats.user.is_empty() || !nats.password.is_empty(),
            !nats.token.is_empty(),
        ];
        if ways.iter().filter(|set| **set).count() > 1 {
            found.push(
                "`nats` has several ways to sign in: set one of `credentials_file`, `user` with `password`, and `token`"
                    .to_owned(),
            );
        }
        if nats.user.is_empty() != nats.password.is_empty() {
            found.push("`nats.user` and `nats.password` belong together: set both, or neither".to_owned());
        }
        if nats.certificate_file.as_os_str().is_empty() != nats.certificate_key_file.as_os_str().is_empty() {
            found.push(
                "`nats.certificate_file` and `nats.certificate_key_file` belong together: set both, or neither"
                    .to_owned(),
            );
        }
        if nats.publish_deadline_secs.saturating_mul(1_000) < nats.publish_timeout_millis {
            found.push(
                "`nats.publish_deadline_secs` is too small: one publish of `nats.publish_timeout_millis` must fit"
                    .to_owned(),
            );
        }
        let monitor = &nats.monitor_url;
        let reachable = Url::parse(monitor).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !monitor.is_empty() && !reachable {
            found.push(
                "`nats.monitor_url` is no URL: write http:// and the monitoring address of a server, such as \
                 http://127.0.0.1:8222"
                    .to_owned(),
            );
        }
    }

    /// A mailbox's subject also holds what was settled in the last minutes.
    fn check_mailboxes_on_nats(&self, found: &mut Vec<String>) {
        let most = u32::try_from(SUBJECT_MESSAGES_MAX / 2).unwrap_or(u32::MAX);
        let asked = self.relay.mailbox_messages_max;
        if !self.engines.mailboxes_url.is_empty() && asked > most {
            found.push(format!(
                "`relay.mailbox_messages_max` = {asked} is more than a mailbox on NATS can hold beside what was acked in \
                 the last minutes: use at most {most}"
            ));
        }
    }

    fn check_process_name(&self, found: &mut Vec<String>) {
        let name = &self.hub.process_name;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.len() > 64 || !name.bytes().all(plain) {
            found.push(format!(
                "`hub.process_name` = {name:?} is no name of a process: use at most 64 letters, digits, `-`, `_` or `.`"
            ));
        }
    }

    /// What works, and what an operator should know about it all the same: one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let engines = &self.engines;
        let (registry, mailboxes, shared) = (
            !engines.registry_url.is_empty(),
            !engines.mailboxes_url.is_empty(),
            !engines.shared_url.is_empty(),
        );
        match (registry, mailboxes) {
            (true, false) => notes.push(alone("names are on PostgreSQL", "mailboxes", "engines.mailboxes_url")),
            (false, true) => notes.push(alone("mailboxes are on NATS", "names", "engines.registry_url")),
            (true, true) if !shared => notes.push(
                "without Redis (`engines.shared_url`) several processes of this hub do not tell each other anything: \
                 a rotated key or a suspended agent is noticed late, and takeover and rate limits work within each \
                 process only"
                    .to_owned(),
            ),
            _ => {}
        }
        if shared && !(registry && mailboxes) {
            notes.push(
                "`engines.shared_url` is set, and there is nobody to share with: Redis serves a hub of several \
                 processes, which has names on PostgreSQL and mailboxes on NATS"
                    .to_owned(),
            );
        }
        for (key, address, private) in [
            (
                "engines.registry_url",
                engines.registry_url.reveal(),
                "sslmode=verify-full",
            ),
            ("engines.shared_url", engines.shared_url.reveal(), "rediss://"),
        ] {
            if crosses_a_network(address) {
                notes.push(format!(
                    "`{key}` crosses a network in the open: use {private}, unless the network is your own"
                ));
            }
        }
        notes
    }
}

fn alone(there: &str, here: &str, key: &str) -> String {
    format!("{there} and {here} in the data folder: this hub can have one process only; set `{key}` for more")
}

/// Whether `secret` is an address of one of these kinds with a host, or empty.
fn address(key: &str, secret: &Secret, schemes: &[&str], found: &mut Vec<String>) {
    if secret.is_empty() {
        return;
    }
    let fits = Url::parse(secret.reveal())
        .is_ok_and(|url| schemes.contains(&url.scheme()) && !host(&url).is_empty());
    if !fits {
        found.push(format!(
            "`{key}` is no address of its engine (it is not shown, as it may hold a password): write {}:// and the host",
            schemes.first().copied().unwrap_or_default()
        ));
    }
}

/// The host of an address, which `PostgreSQL` may also have as a parameter: the folder of a socket.
fn host(url: &Url) -> String {
    let plain = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if !plain.is_empty() {
        return plain.to_owned();
    }
    let mut parameters = url.query_pairs();
    parameters
        .find_map(|(key, value)| (key == "host").then(|| value.into_owned()))
        .unwrap_or_default()
}

/// Whether what is sent to this address can be read on its way, as far as the address tells.
fn crosses_a_network(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else {
        return false;
    };
    let guarded = |(key, value): (Cow<'_, str>, Cow<'_, str>)| {
        key == "sslmode" && matches!(&*value, "require" | "verify-ca" | "verify-full")
    };
    let private = url.scheme() == "rediss" || url.query_pairs().any(guarded);
    let host = host(&url);
    let here = host == "localhost"
        || host.starts_with('/')
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    !private && !here
}
