//! Requests that turned out not to be authentic, by where they came from.
//!
//! Counted by network, not by address: whoever has one address of a network can mostly have the others too.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aip_protocol::time::Timestamp;

use super::{Bucket, Rate};
use crate::limits::{ADDRESSES_TRACKED_MAX, FAILURES, LOOKUPS_PER_NETWORK};

/// The network of an address: /24 of IPv4, /48 of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Network(IpAddr);

impl Network {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << 8)).into()),
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 80)).into()),
        }
    }
}

/// What a network has used up.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    failures: Bucket,
    lookups: Bucket,
}

impl Used {
    fn is_nothing(&mut self, now: Timestamp) -> bool {
        self.failures.is_full(FAILURES, now) && self.lookups.is_full(LOOKUPS_PER_NETWORK, now)
    }
}

/// The budgets of the networks that have used some of theirs.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    used: HashMap<Network, Used>,
    /// Of all who find no room in the table, together.
    others: Used,
    swept_at_ms: i64,
}

impl Addresses {
    /// Whether requests from there are still looked at, or the seconds until they are.
    pub(super) fn check(&mut self, address: IpAddr, now: Timestamp) -> Result<(), u64> {
        // A look makes no entry.
        let has_room = self.used.len() < ADDRESSES_TRACKED_MAX;
        match self.used.get_mut(&Network::of(address)) {
            Some(used) => used.failures.look(FAILURES, now),
            None if has_room => Ok(()),
            None => self.others.failures.look(FAILURES, now),
        }
    }

    /// A request from there was not authentic.
    pub(super) fn failed(&mut self, address: IpAddr, now: Timestamp) {
        self.entry(address, now).failures.charge(1, FAILURES, now);
    }

    /// A request from there wants an unknown domain looked up.
    pub(super) fn lookup(&mut self, address: IpAddr, now: Timestamp) -> Result<(), u64> {
        self.entry(address, now).lookups.take(1, LOOKUPS_PER_NETWORK, now)
    }

    /// Networks that are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.used.len()
    }

    fn entry(&mut self, address: IpAddr, now: Timestamp) -> &mut Used {
        let network = Network::of(address);
        let is_full = self.used.len() >= ADDRESSES_TRACKED_MAX && !self.used.contains_key(&network);
        if is_full {
            self.sweep(now);
        }
        if self.used.len() >= ADDRESSES_TRACKED_MAX && !self.used.contains_key(&network) {
            return &mut self.others;
        }
        self.used.entry(network).or_default()
    }

    /// Forgets who has used nothing, at most once a second: a sweep reads the whole table.
    fn sweep(&mut self, now: Timestamp) {
        let now_ms = now.unix_millis();
        if now_ms.abs_diff(self.swept_at_ms) < Rate::per_sec(1, 1).period_ms {
            return;
        }
        self.swept_at_ms = now_ms;
        self.used.retain(|_, used| !used.is_nothing(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_unix_secs(1_796_000_000 + secs)
    }

    fn fail(addresses: &mut Addresses, address: &str, times: u64, now: Timestamp) {
        for _ in 0..times {
            addresses.failed(address.parse().unwrap(), now);
        }
    }

    #[test]
    fn neighbours_share_a_budget_and_others_have_their_own() {
        let mut addresses = Addresses::default();
        fail(&mut addresses, "203.0.113.9", FAILURES.burst(), at(0));
        fail(&mut addresses, "2001:db8:1:ff::1", FAILURES.burst(), at(0));
        let check = |addresses: &mut Addresses, text: &str| addresses.check(text.parse().unwrap(), at(0));
        for spent in [
            "203.0.113.9",
            "203.0.113.200",
            "::ffff:203.0.113.1",
            "2001:db8:1::2",
        ] {
            assert!(check(&mut addresses, spent).is_err(), "{spent}");
        }
        for other in ["203.0.114.9", "2001:db8:2::2", "127.0.0.1"] {
            assert!(check(&mut addresses, other).is_ok(), "{other}");
        }
        assert!(addresses.check("203.0.113.9".parse().unwrap(), at(3_600)).is_ok());
    }

    #[test]
    fn the_table_is_bounded_and_the_rest_shares_one_budget() {
        let mut addresses = Addresses::default();
        for index in 0..ADDRESSES_TRACKED_MAX + 500 {
            let address = Ipv4Addr::from_bits(u32::try_from(index).unwrap() << 8);
            addresses.failed(address.into(), at(0));
        }
        assert_eq!(addresses.len(), ADDRESSES_TRACKED_MAX);
        let newcomer: IpAddr = "250.1.1.1".parse().unwrap();
        assert!(addresses.check(newcomer, at(0)).is_err());
        addresses.failed(newcomer, at(3_600));
        assert_eq!(addresses.len(), 1, "whoever has used nothing is forgotten");
        assert!(addresses.check(newcomer, at(3_600)).is_ok());
    }
}
