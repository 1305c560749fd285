//! Says everything that is wrong with the settings at once, each in a sentence that tells how to mend it.

use std::fmt;

use aip_protocol::name::{Domain, Name};
use aip_relay::admission::Blocklist;
use url::Url;

use super::{Section as _, Settings};
use crate::logging;

mod engines;
mod federation;
mod market_peers;
mod search;
mod x402;

/// The shortest token of the operator's door that an operator can choose, in characters.
const OPERATOR_TOKEN_CHARS_MIN: usize = 32;
/// What a WebSocket frame holds beside its envelope, at most, in bytes.
const FRAME_BYTES_AROUND: usize = 1_024;

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
        if sentences.is_empty() {
            Ok(())
        } else {
            Err(Self(sentences))
        }
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
        self.check_engines(&mut found);
        self.check_federation(&mut found);
        self.check_market_peers(&mut found);
        self.check_search(&mut found);
        self.check_x402(&mut found);
        self.check_ranges(&mut found);
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
            found.push(format!(
                "`hub.public_url` = {text:?} is no URL: write https:// and the host"
            ));
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
            found.push(
                "`hub.data_dir` is empty: name the folder that keeps names, mailboxes and the key".to_owned(),
            );
        }
        for name in self
            .hub
            .reserved_names
            .iter()
            .filter(|name| Name::parse(name).is_err())
        {
            found.push(format!(
                "`hub.reserved_names` holds {name:?}, which could not be registered anyway: remove it"
            ));
        }
        for entry in self
            .relay
            .blocked_senders
            .iter()
            .filter(|entry| Blocklist::parse([entry.as_str()]).is_err())
        {
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
            found.push(format!(
                "`http.listen` and `http.operator_listen` are both {}: give each its own",
                http.listen
            ));
        }
        let token = http.operator_token.reveal();
        if !token.is_empty() && token.len() < OPERATOR_TOKEN_CHARS_MIN {
            found.push(format!(
                "`http.operator_token` is shorter than {OPERATOR_TOKEN_CHARS_MIN} characters: leave it empty to have \
                 one made, or use `aip-hub keygen --token`"
            ));
        }
    }

    /// Limits that have to fit each other.
    fn check_limits(&self, found: &mut Vec<String>) {
        let (relay, receive) = (&self.relay, &self.receive);
        let mut must_hold = |key: &str, holds: bool, rule: &str| {
            if !holds {
                found.push(format!("`{key}` is too small: {rule}"));
            }
        };
        let rule = "one envelope of `relay.envelope_bytes_max` must fit";
        let envelope = relay.envelope_bytes_max;
        must_hold("relay.batch_bytes_max", relay.batch_bytes_max >= envelope, rule);
        must_hold(
            "relay.mailbox_bytes_max",
            relay.mailbox_bytes_max >= envelope as u64,
            rule,
        );
        let rule = "a frame carries an envelope of `relay.envelope_bytes_max` and 1,024 bytes around it";
        must_hold(
            "receive.frame_bytes_max",
            receive.frame_bytes_max >= envelope + FRAME_BYTES_AROUND,
            rule,
        );
    }

    fn check_egress(&self, found: &mut Vec<String>) {
        let egress = &self.egress;
        if egress.allow_http && !self.hub.development && egress.allowed_private_ranges.is_empty() {
            found.push(
                "`egress.allow_http` is on without a private range: messages would cross the internet in the open; \
                 switch it off, or name your own network in `egress.allowed_private_ranges`"
                    .to_owned(),
            );
        }
    }

    fn check_ranges(&self, found: &mut Vec<String>) {
        let Self {
            hub,
            http,
            relay,
            receive,
            registry,
            search,
            federation,
            market,
            market_peers,
            market_x402,
            egress,
            engines,
            postgres,
            nats,
            redis,
            log,
        } = self;
        hub.check_ranges("hub", found);
        http.check_ranges("http", found);
        relay.check_ranges("relay", found);
        receive.check_ranges("receive", found);
        registry.check_ranges("registry", found);
        search.check_ranges("search", found);
        federation.check_ranges("federation", found);
        market.check_ranges("market", found);
        market_peers.check_ranges("market_peers", found);
        market_x402.check_ranges("market_x402", found);
        egress.check_ranges("egress", found);
        engines.check_ranges("engines", found);
        postgres.check_ranges("postgres", found);
        nats.check_ranges("nats", found);
        redis.check_ranges("redis", found);
        log.check_ranges("log", found);
    }
}
