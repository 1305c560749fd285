//! Says everything that is wrong with the settings at once, each in a sentence that tells how to mend it.

use std::fmt;

use aip_protocol::name::{Domain, Name};
use aip_relay::admission::Blocklist;
use url::Url;

use super::Settings;
use crate::logging;

/// Limits of the limits: outside of these a hub would not work, or not speak AIP/1 any more.
mod bound {
    pub(super) const ENVELOPE_BYTES: (usize, usize) = (4 * 1024, 16 * 1024 * 1024);
    pub(super) const SHUTDOWN_SECS: (u64, u64) = (1, 600);
    pub(super) const REQUEST_SECS: (u64, u64) = (1, 600);
    pub(super) const DAYS: (u32, u32) = (1, 3_650);
    pub(super) const WORKERS: (usize, usize) = (0, 256);
    pub(super) const PORTS_MAX: usize = 1_000_000;
    pub(super) const TOKEN_CHARS_MIN: usize = 32;
}

/// What is wrong with the settings, one sentence each; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    pub(super) fn new(sentences: Vec<String>) -> Self {
        Self(sentences)
    }

    pub(super) fn one(sentence: String) -> Self {
        Self(vec![sentence])
    }

    pub(super) fn check(sentences: Vec<String>) -> Result<(), Self> {
        if sentences.is_empty() { Ok(()) } else { Err(Self(sentences)) }
    }

    /// The sentences.
    pub fn sentences(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Problems {}

impl Settings {
    /// Whether a hub can start with these settings.
    ///
    /// # Errors
    /// All problems, each with the way to mend it.
    pub fn check(&self) -> Result<(), Problems> {
        let mut found = Vec::new();
        self.check_domain(&mut found);
        self.check_public_url(&mut found);
        self.check_names(&mut found);
        self.check_listeners(&mut found);
        self.check_limits(&mut found);
        self.check_egress(&mut found);
        found.extend(logging::filter(&self.log).err().map(|error| error.to_string()));
        Problems::check(found)
    }

    fn check_domain(&self, found: &mut Vec<String>) {
        let domain = &self.hub.domain;
        if domain.is_empty() {
            if !self.hub.development {
                found.push(
                    "`hub.domain` is empty: set the domain of your agents' handles, such as example.org, or try \
                     a hub out with --dev"
                        .to_owned(),
                );
            }
            return;
        }
        match Domain::parse(domain) {
            Err(refusal) => found.push(format!("`hub.domain` = {domain:?} is no domain: {refusal}")),
            Ok(parsed) if parsed.as_str() != domain => {
                found.push(format!("`hub.domain` = {domain:?} is not in its plain form: write {:?}", parsed.as_str()));
            }
            Ok(parsed) if parsed.host() == "localhost" && !self.hub.development => found.push(
                "`hub.domain` is localhost, which no other machine can reach: set a real domain, or start with \
                 --dev for trying out"
                    .to_owned(),
            ),
            Ok(_) => {}
        }
    }

    fn check_public_url(&self, found: &mut Vec<String>) {
        let text = &self.hub.public_url;
        if text.is_empty() {
            return;
        }
        let Ok(url) = Url::parse(text) else {
            found.push(format!("`hub.public_url` = {text:?} is no URL: write https:// and the host"));
            return;
        };
        let allowed = url.scheme() == "https" || (url.scheme() == "http" && self.hub.development);
        if !allowed {
            found.push(format!(
                "`hub.public_url` = {text:?} must begin with https:// (http only in development): let a reverse \
                 proxy do TLS in front of the hub"
            ));
        }
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !plain || url.host_str().is_none() || !url.username().is_empty() || url.password().is_some() {
            found.push(format!(
                "`hub.public_url` = {text:?} must be scheme, host and port only: the hub serves from the root"
            ));
        }
    }

    fn check_names(&self, found: &mut Vec<String>) {
        if self.hub.data_dir.as_os_str().is_empty() {
            found.push("`hub.data_dir` is empty: name the folder that keeps names, mailboxes and the key".to_owned());
        }
        for name in self.hub.reserved_names.iter().filter(|name| Name::parse(name).is_err()) {
            found.push(format!("`hub.reserved_names` holds {name:?}, which could not be registered anyway: remove it"));
        }
        for entry in self.relay.blocked_senders.iter().filter(|entry| Blocklist::parse([entry.as_str()]).is_err()) {
            found.push(format!(
                "`relay.blocked_senders` holds {entry:?}: write a DID, a handle or a domain, such as mallory#example.org"
            ));
        }
        for origin in &self.http.allowed_origins {
            let same = Url::parse(origin).is_ok_and(|url| url.origin().ascii_serialization() == *origin);
            if !same {
                found.push(format!(
                    "`http.allowed_origins` holds {origin:?}: write scheme and host as a browser sends them, such \
                     as https://app.example.org"
                ));
            }
        }
    }

    fn check_listeners(&self, found: &mut Vec<String>) {
        let http = &self.http;
        if http.listen == http.operator_listen && http.listen.port() != 0 {
            found.push(format!("`http.listen` and `http.operator_listen` are both {}: give each its own", http.listen));
        }
        let token = http.operator_token.reveal();
        if !token.is_empty() && token.len() < bound::TOKEN_CHARS_MIN {
            found.push(format!(
                "`http.operator_token` is shorter than {} characters: leave it empty to have one made, or use `aip-hub \
                 keygen --token`",
                bound::TOKEN_CHARS_MIN
            ));
        }
        within(found, "http.workers", http.workers, bound::WORKERS);
        within(found, "http.connections_max", http.connections_max, (1, bound::PORTS_MAX));
        within(found, "http.header_timeout_secs", http.header_timeout_secs, bound::REQUEST_SECS);
        within(found, "http.body_timeout_secs", http.body_timeout_secs, bound::REQUEST_SECS);
        within(found, "http.keep_alive_secs", http.keep_alive_secs, bound::REQUEST_SECS);
        within(found, "http.shutdown_timeout_secs", http.shutdown_timeout_secs, bound::SHUTDOWN_SECS);
    }

    fn check_limits(&self, found: &mut Vec<String>) {
        let relay = &self.relay;
        within(found, "relay.envelope_bytes_max", relay.envelope_bytes_max, bound::ENVELOPE_BYTES);
        within(found, "relay.batch_envelopes_max", relay.batch_envelopes_max, (1, 1_000));
        within(found, "relay.sender_messages_per_sec", relay.sender_messages_per_sec, (1, 1_000_000));
        within(found, "relay.sender_burst_messages", relay.sender_burst_messages, (1, 1_000_000));
        within(found, "relay.mailbox_messages_max", relay.mailbox_messages_max, (1, 10_000_000));
        within(found, "relay.retention_days", relay.retention_days, bound::DAYS);
        within(found, "relay.direct_timeout_secs", relay.direct_timeout_secs, (1, 120));
        within(found, "relay.sweep_interval_secs", relay.sweep_interval_secs, (1, 3_600));
        within(found, "relay.disk_used_percent_max", relay.disk_used_percent_max, (0, 100));
        if relay.batch_bytes_max < relay.envelope_bytes_max {
            found.push("`relay.batch_bytes_max` is below `relay.envelope_bytes_max`: one envelope must fit".to_owned());
        }
        if relay.mailbox_bytes_max < relay.envelope_bytes_max as u64 {
            found.push("`relay.mailbox_bytes_max` is below `relay.envelope_bytes_max`: one envelope must fit".to_owned());
        }
        let receive = &self.receive;
        if receive.frame_bytes_max < relay.envelope_bytes_max + 1_024 {
            found.push(
                "`receive.frame_bytes_max` must exceed `relay.envelope_bytes_max` by 1,024: a frame carries an envelope"
                    .to_owned(),
            );
        }
        within(found, "receive.credit_messages_max", receive.credit_messages_max, (1, 100_000));
        within(found, "receive.auth_timeout_secs", receive.auth_timeout_secs, bound::REQUEST_SECS);
        within(found, "receive.silence_timeout_secs", receive.silence_timeout_secs, (2, 3_600));
        within(found, "receive.poll_wait_secs_max", receive.poll_wait_secs_max, (0, 600));
        within(found, "receive.poll_messages_max", receive.poll_messages_max, (1, 1_000));
        within(found, "registry.token_lifetime_secs", self.registry.token_lifetime_secs, (60, 30 * 86_400));
        within(found, "registry.challenge_lifetime_secs", self.registry.challenge_lifetime_secs, (5, 600));
        within(found, "registry.cache_agents_max", self.registry.cache_agents_max, (1, 100_000_000));
    }

    fn check_egress(&self, found: &mut Vec<String>) {
        if self.egress.allow_http && !self.hub.development && self.egress.allowed_private_ranges.is_empty() {
            found.push(
                "`egress.allow_http` is on without a private range: messages would cross the internet in the open; \
                 switch it off, or name your own network in `egress.allowed_private_ranges`"
                    .to_owned(),
            );
        }
        within(found, "egress.connect_timeout_secs", self.egress.connect_timeout_secs, (1, 120));
        within(found, "egress.answer_bytes_max", self.egress.answer_bytes_max, (1, 16 * 1024 * 1024));
    }
}

fn within<N: PartialOrd + fmt::Display + Copy>(found: &mut Vec<String>, key: &str, value: N, (least, most): (N, N)) {
    if value < least || value > most {
        found.push(format!("`{key}` = {value} is out of range: use {least} to {most}"));
    }
}
