//! What may be called: the checks on a URL before anything is sent, and on an address before it is
//! connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipnet::IpNet;
use url::{Host, Url};

use super::EgressError;
use super::address::is_public;
use crate::limits::{CONNECT_TIMEOUT, URL_BYTES_MAX};

/// What the operator allows beyond the strict default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whether plain `http` URLs may be called.
    pub allow_http: bool,
    /// Address ranges that may be called although they are not public.
    pub allowed_private_ranges: Vec<IpNet>,
    /// Longest time for one connection, TLS included; the whole exchange has its own limit.
    pub connect_timeout: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow_http: false,
            allowed_private_ranges: Vec::new(),
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}

impl Policy {
    /// Everything on this machine and `http`: for trying a hub out, never for the public internet.
    pub fn development() -> Self {
        let v4 = IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8);
        let v6 = IpNet::new_assert(IpAddr::V6(Ipv6Addr::LOCALHOST), 128);
        Self {
            allow_http: true,
            allowed_private_ranges: vec![v4, v6],
            ..Self::default()
        }
    }

    /// Parses and checks a URL. A host that is an IP literal in any of its spellings (`0x7f.1`,
    /// `2130706433`, `[::ffff:127.0.0.1]`) is checked here; names are checked when they resolve.
    pub fn check_url(&self, url: &str) -> Result<Url, EgressError> {
        if url.len() > URL_BYTES_MAX {
            return Err(EgressError::UrlInvalid);
        }
        // The URL standard turns every spelling of an IPv4 address into the address itself.
        let Ok(url) = Url::parse(url) else {
            return Err(EgressError::UrlInvalid);
        };
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            _ => return Err(EgressError::SchemeRefused),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::UserinfoRefused);
        }
        match url.host() {
            None => return Err(EgressError::UrlInvalid),
            Some(Host::Domain(_)) => {}
            Some(Host::Ipv4(v4)) => self.check_address(v4.into())?,
            Some(Host::Ipv6(v6)) => self.check_address(v6.into())?,
        }
        Ok(url)
    }

    /// Whether an address may be connected to: it is public, or lies in an allowed range.
    ///
    /// An IPv4-mapped address reaches the same machine as the plain one and so shares its
    /// permission; a NAT64 or 6to4 address takes another road and needs its own.
    pub fn check_address(&self, address: IpAddr) -> Result<(), EgressError> {
        let canonical = address.to_canonical();
        let allowed = |range: &IpNet| range.contains(&canonical) || range.contains(&address);
        if is_public(address) || self.allowed_private_ranges.iter().any(allowed) {
            Ok(())
        } else {
            Err(EgressError::AddressRefused(address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(policy: &Policy, url: &str) -> &'static str {
        match policy.check_url(url) {
            Ok(_) => "allowed",
            Err(error) => {
                assert!(error.is_refusal(), "{url}");
                error.kind()
            }
        }
    }

    #[test]
    fn ordinary_urls_are_allowed_on_any_port() {
        let strict = Policy::default();
        for url in [
            "https://example.org/aip",
            "https://example.org:8443/aip?x=1",
            "https://8.8.8.8/",
            "https://[2606:4700:4700::1111]/",
            "HTTPS://EXAMPLE.ORG",
        ] {
            assert_eq!(kind(&strict, url), "allowed", "{url}");
        }
    }

    #[test]
    fn row_61_the_operator_allows_ranges_by_name_and_the_rest_stays_refused() {
        let policy = Policy {
            allow_http: true,
            allowed_private_ranges: vec!["10.1.0.0/16".parse().unwrap(), "fd00:1::/32".parse().unwrap()],
            ..Policy::default()
        };
        for (url, expected) in [
            ("http://10.1.2.3/", "allowed"),
            ("http://[::ffff:10.1.2.3]/", "allowed"),
            ("http://[fd00:1::7]/", "allowed"),
            ("http://10.2.0.1/", "address_refused"),
            ("http://127.0.0.1/", "address_refused"),
            ("http://[64:ff9b::10.1.2.3]/", "address_refused"),
            ("http://[2002:a01:203::]/", "address_refused"),
            ("http://[fd00:2::7]/", "address_refused"),
        ] {
            assert_eq!(kind(&policy, url), expected, "{url}");
        }
    }

    #[test]
    fn development_allows_this_machine_only() {
        let policy = Policy::development();
        assert_eq!(kind(&policy, "http://127.0.0.1:9000/"), "allowed");
        assert_eq!(kind(&policy, "http://[::1]:9000/"), "allowed");
        assert_eq!(kind(&policy, "http://169.254.169.254/"), "address_refused");
        assert_eq!(kind(&policy, "http://192.168.0.1/"), "address_refused");
    }
}
