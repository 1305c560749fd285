//! Domains: DNS names in A-label form, with an optional port.

use std::fmt;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::text_type;
use crate::error::{ErrorCode, Refusal};
use crate::limits::{DOMAIN_BYTES_MAX, DOMAIN_INPUT_BYTES_MAX};

/// A DNS name in lower-case A-label form with at least two labels, or `localhost`; optionally
/// `:port`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(String);

text_type!(Domain, parse);

impl Domain {
    /// Takes Unicode through UTS-46 (non-transitional, STD3, DNS lengths).
    ///
    /// Refuses with `domain_invalid`: an empty label, a trailing dot, an underscore, a single
    /// label other than `localhost`, a last label that is numeric or `0x…`, an IP literal, and a
    /// port that is not 1 to 65535 in plain digits.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > DOMAIN_INPUT_BYTES_MAX {
            return Err(invalid("a domain is at most 253 bytes"));
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        if port.is_some_and(|port| !is_port(port)) {
            return Err(invalid("the port must be 1 to 65535 without leading zeros"));
        }
        let host = Uts46::new()
            .to_ascii(
                host.as_bytes(),
                AsciiDenyList::STD3,
                Hyphens::Check,
                DnsLength::Verify,
            )
            .map_err(|_idna| invalid("not a DNS name of letters, digits and '-' (UTS-46, STD3)"))?;
        check_labels(&host)?;
        Ok(Self(match port {
            Some(port) => format!("{host}:{port}"),
            None => host.into_owned(),
        }))
    }

    /// Of text that is canonical already, out of a parsed DID.
    pub(super) fn canonical(text: String) -> Self {
        Self(text)
    }

    /// Domain and port as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The DNS name without the port.
    pub fn host(&self) -> &str {
        self.0.split_once(':').map_or(self.as_str(), |(host, _)| host)
    }

    /// The port, when one is written.
    pub fn port(&self) -> Option<u16> {
        self.0.split_once(':').and_then(|(_, port)| port.parse().ok())
    }

    /// As a part of a DID: the port's colon written `%3A`.
    pub(super) fn in_did(&self) -> String {
        self.0.replace(':', "%3A")
    }
}

fn check_labels(host: &str) -> Result<(), Refusal> {
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex_number = last
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_number || is_hex_number {
        return Err(invalid("IP literals are refused"));
    }
    if host.len() > DOMAIN_BYTES_MAX {
        return Err(invalid("a domain is at most 253 bytes"));
    }
    if !host.contains('.') && host != "localhost" {
        return Err(invalid("a domain has at least two labels"));
    }
    Ok(())
}

fn is_port(text: &str) -> bool {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain && text.parse::<u16>().is_ok()
}

fn invalid(detail: &'static str) -> Refusal {
    Refusal::new(ErrorCode::DomainInvalid, detail)
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
