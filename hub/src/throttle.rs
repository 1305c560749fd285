//! Limits per network address: for doors that a stranger can knock at without having signed anything, and for
//! signatures and tokens that turn out not to be good; and what an address may hold of what all share ([`Holdings`]).
//!
//! Addresses fall into a fixed number of buckets by a hash with a secret seed, so the memory is bounded however many
//! addresses call, and nobody can choose whose bucket to share. A network (IPv6 /64) counts as one address, as one
//! caller has all of it.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use aip_protocol::error::{ErrorCode, Refusal};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use ipnet::IpNet;

use crate::config::Settings;
use crate::error::ApiError;
use crate::limits::THROTTLE_BUCKETS;
use strikes::Strikes;

mod holdings;
mod strikes;

pub use holdings::{Hold, Holdings};

/// The header that a trusted proxy adds the caller's address to.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// What a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Looks something up, or checks a signature.
    Request,
    /// Creates an agent.
    Registration,
    /// Invokes a capability.
    Invocation,
    /// Opens, fills, ends or shows an account or a channel.
    Purse,
}

/// A network address, as far as limits tell one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(u64);

/// The limits of all addresses. In development there are none.
pub struct Throttle {
    requests: Option<Limit>,
    registrations: Option<Limit>,
    invocations: Option<Limit>,
    purses: Option<Limit>,
    strikes: Option<Strikes>,
    seed: RandomState,
    proxies: Vec<IpNet>,
    open: bool,
}

struct Limit {
    buckets: DefaultKeyedRateLimiter<u64>,
    clock: DefaultClock,
}

impl Limit {
    /// No limit where `quota` is absent.
    fn new(quota: Option<Quota>) -> Option<Self> {
        quota.map(|quota| Self {
            buckets: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
        })
    }

    /// Takes one out of the bucket; the time to wait, if it is empty.
    fn wait(&self, bucket: u64) -> Option<Duration> {
        let not_until = self.buckets.check_key(&bucket).err()?;
        Some(not_until.wait_time_from(self.clock.now()))
    }
}

impl Throttle {
    /// The limits that the settings ask for; 0 in a setting means none.
    pub fn new(settings: &Settings) -> Self {
        let (http, registry, market) = (&settings.http, &settings.registry, &settings.market);
        let open = settings.hub.development;
        let quota = |rate: u32, burst: u32, make: fn(NonZeroU32) -> Quota| {
            let rate = NonZeroU32::new(rate).filter(|_| !open)?;
            Some(make(rate).allow_burst(NonZeroU32::new(burst).unwrap_or(rate)))
        };
        let requests = quota(http.requests_per_sec, http.request_burst, Quota::per_second);
        Self {
            requests: Limit::new(requests),
            // As many again: a bucket of its own, so that look-ups and failures do not use up each other's.
            strikes: Strikes::new(requests),
            registrations: Limit::new(quota(
                registry.registrations_per_minute,
                registry.registration_burst,
                Quota::per_minute,
            )),
            invocations: Limit::new(quota(
                market.invokes_per_minute,
                market.invoke_burst,
                Quota::per_minute,
            )),
            purses: Limit::new(quota(
                market.purse_requests_per_minute,
                market.purse_requests_per_minute,
                Quota::per_minute,
            )),
            seed: RandomState::new(),
            proxies: http.trusted_proxies.clone(),
            open,
        }
    }

    /// Where a request comes from; `None` in development, where nothing is limited by address.
    pub fn network(&self, req: &HttpRequest) -> Option<Network> {
        (!self.open).then(|| Network(self.bucket(req)))
    }

    /// The address itself, for budgets that are kept elsewhere; `None` in development.
    pub fn address(&self, req: &HttpRequest) -> Option<IpAddr> {
        (!self.open).then(|| caller(req.peer_addr(), req.headers(), &self.proxies))
    }

    /// The network that a request comes from, the same for every process and every run: what an anonymous caller is known by.
    pub fn origin(&self, req: &HttpRequest) -> [u8; 8] {
        network(caller(req.peer_addr(), req.headers(), &self.proxies)).to_be_bytes()
    }

    /// Counts a request against its network address.
    ///
    /// # Errors
    /// 429 `rate_limited` with `Retry-After`.
    pub fn admit(&self, cost: Cost, req: &HttpRequest) -> Result<(), ApiError> {
        let limit = match cost {
            Cost::Request => &self.requests,
            Cost::Registration => &self.registrations,
            Cost::Invocation => &self.invocations,
            Cost::Purse => &self.purses,
        };
        let Some(limit) = limit else { return Ok(()) };
        let detail = "Too many requests came from your network address. Wait for the time in Retry-After.";
        refuse(limit.wait(self.bucket(req)), detail)
    }

    /// Lets a signature or a token be looked at, unless too many from its network address were not good.
    ///
    /// # Errors
    /// 429 `rate_limited` with `Retry-After`.
    pub fn admit_proof(&self, network: Option<Network>) -> Result<(), ApiError> {
        let (Some(strikes), Some(Network(bucket))) = (&self.strikes, network) else {
            return Ok(());
        };
        let detail = "Too many signatures or tokens from your network address were not good. Wait for the time in \
                      Retry-After.";
        refuse(strikes.wait(bucket), detail)
    }

    /// Counts what came of a signature or a token against its network address, if it was a failure of authenticity
    /// (401).
    pub fn count_proof(&self, network: Option<Network>, code: ErrorCode) {
        if let (Some(strikes), Some(Network(bucket))) = (&self.strikes, network)
            && code.status() == StatusCode::UNAUTHORIZED.as_u16()
        {
            strikes.count(bucket);
        }
    }

    fn bucket(&self, req: &HttpRequest) -> u64 {
        let caller = caller(req.peer_addr(), req.headers(), &self.proxies);
        self.seed.hash_one(network(caller)) % THROTTLE_BUCKETS
    }
}

fn refuse(wait: Option<Duration>, detail: &'static str) -> Result<(), ApiError> {
    let Some(wait) = wait else { return Ok(()) };
    Err(Refusal::new(ErrorCode::RateLimited, detail)
        .retry_after(wait.as_secs().saturating_add(1))
        .into())
}

impl std::fmt::Debug for Throttle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Throttle")
            .field("proxies", &self.proxies)
            .finish_non_exhaustive()
    }
}

/// The caller's address: the nearest one that is not a trusted proxy. `X-Forwarded-For` counts only as far as
/// trusted proxies wrote it; a listener without addresses (a Unix socket) counts as one caller.
fn caller(peer: Option<SocketAddr>, headers: &HeaderMap, proxies: &[IpNet]) -> IpAddr {
    let mut nearest = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.ip().to_canonical());
    let hops = headers
        .get_all(FORWARDED_FOR)
        .filter_map(|value| value.to_str().ok())
        .flat_map(|v| v.split(','));
    let hops: Vec<&str> = hops.collect();
    for hop in hops.iter().rev() {
        if !proxies.iter().any(|network| network.contains(&nearest)) {
            break;
        }
        let Ok(address) = hop.trim().parse::<IpAddr>() else {
            break;
        };
        nearest = address.to_canonical();
    }
    nearest
}

/// What one caller has: an IPv4 address, or an IPv6 /64.
fn network(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => u64::try_from(v6.to_bits() >> 64).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn seen(peer: &str, forwarded: &[&str], proxies: &[&str]) -> String {
        let mut request = TestRequest::default();
        for value in forwarded {
            request = request.append_header((FORWARDED_FOR, *value));
        }
        let proxies: Vec<IpNet> = proxies.iter().map(|p| p.parse().unwrap()).collect();
        let peer = SocketAddr::new(peer.parse().unwrap(), 1);
        caller(Some(peer), request.to_http_request().headers(), &proxies).to_string()
    }

    #[test]
    fn a_stranger_cannot_choose_the_address() {
        assert_eq!(seen("203.0.113.9", &["198.51.100.1"], &[]), "203.0.113.9");
        assert_eq!(
            seen("203.0.113.9", &["198.51.100.1"], &["127.0.0.0/8"]),
            "203.0.113.9"
        );
    }

    #[test]
    fn a_trusted_proxy_tells_the_address() {
        let proxies = &["127.0.0.0/8", "10.0.0.0/8"];
        assert_eq!(seen("127.0.0.1", &["203.0.113.9"], proxies), "203.0.113.9");
        assert_eq!(
            seen("127.0.0.1", &["9.9.9.9, 203.0.113.9, 10.0.0.2"], proxies),
            "203.0.113.9"
        );
        assert_eq!(
            seen("127.0.0.1", &["9.9.9.9", "203.0.113.9"], proxies),
            "203.0.113.9"
        );
        assert_eq!(seen("127.0.0.1", &["nonsense"], proxies), "127.0.0.1");
        assert_eq!(seen("::ffff:127.0.0.1", &["2001:db8::1"], proxies), "2001:db8::1");
        assert_eq!(seen("127.0.0.1", &[], proxies), "127.0.0.1");
    }

    #[test]
    fn an_ipv6_network_is_one_caller() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn a_burst_is_allowed_and_then_refused_with_a_time() {
        let mut settings = Settings::default();
        settings.registry.registrations_per_minute = 1;
        settings.registry.registration_burst = 3;
        let throttle = Throttle::new(&settings);
        let request = TestRequest::default()
            .peer_addr("192.0.2.1:5".parse().unwrap())
            .to_http_request();
        for _ in 0..3 {
            throttle.admit(Cost::Registration, &request).unwrap();
        }
        let error = throttle.admit(Cost::Registration, &request).unwrap_err();
        assert_eq!(error.code(), ErrorCode::RateLimited);
        assert!(
            error
                .refusal()
                .retry_after_secs
                .is_some_and(|secs| (1..=61).contains(&secs))
        );
        throttle.admit(Cost::Request, &request).unwrap();
    }

    #[test]
    fn development_has_no_limits() {
        let mut settings = Settings::development();
        settings.registry.registrations_per_minute = 1;
        settings.registry.registration_burst = 1;
        let throttle = Throttle::new(&settings);
        let request = TestRequest::default().to_http_request();
        for _ in 0..10 {
            throttle.admit(Cost::Registration, &request).unwrap();
        }
    }
}
