//! Which IP addresses are public: a pure function over the IANA special-purpose registries
//! (RFC 6890 and its successors), after taking the IPv4 address out of the IPv6 forms that hide one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not reached over the public internet.
const SPECIAL_V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),       // this network
    ([10, 0, 0, 0], 8),      // private
    ([100, 64, 0, 0], 10),   // carrier-grade NAT
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local, cloud metadata
    ([172, 16, 0, 0], 12),   // private
    ([192, 0, 0, 0], 24),    // IETF protocol assignments
    ([192, 0, 2, 0], 24),    // documentation
    ([192, 88, 99, 0], 24),  // retired 6to4 relays
    ([192, 168, 0, 0], 16),  // private
    ([198, 18, 0, 0], 15),   // benchmarking
    ([198, 51, 100, 0], 24), // documentation
    ([203, 0, 113, 0], 24),  // documentation
    ([224, 0, 0, 0], 4),     // multicast
    ([240, 0, 0, 0], 4),     // reserved, broadcast
];

/// IPv6 blocks inside `2000::/3` that are not reached over the public internet. What lies outside
/// `2000::/3` is not public at all: loopback, link-local, unique local, multicast and the rest.
const SPECIAL_V6: &[([u16; 8], u32)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), // IETF protocol assignments, Teredo
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), // documentation
];

/// Whether an address is globally routable.
///
/// IPv4-mapped (`::ffff:0:0/96`), NAT64 (`64:ff9b::/96`) and 6to4 (`2002::/16`) addresses are
/// judged by the IPv4 address inside.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => embedded_v4(v6).map_or_else(|| is_public_v6(v6), is_public_v4),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4
        .iter()
        .any(|&(net, bits)| (address.to_bits() ^ Ipv4Addr::from(net).to_bits()) >> (32 - bits) == 0)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    address.to_bits() >> 125 == 0b001
        && !SPECIAL_V6
            .iter()
            .any(|&(net, bits)| (address.to_bits() ^ Ipv6Addr::from(net).to_bits()) >> (128 - bits) == 0)
}

/// The IPv4 address that a translating form of IPv6 address leads to.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |a: u16, b: u16| Ipv4Addr::from_bits((u32::from(a) << 16) | u32::from(b));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => {
            Some(low(a, b))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &[&str], public: bool) {
        for text in addresses {
            let address: IpAddr = text.parse().expect(text);
            assert_eq!(is_public(address), public, "{text}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        check(
            &[
                "1.1.1.1",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
                "169.253.255.255",
                "172.15.255.255",
                "172.32.0.0",
                "192.0.1.0",
                "192.167.255.255",
                "198.17.255.255",
                "198.20.0.0",
                "223.255.255.255",
                "2606:4700:4700::1111",
                "2a00:1450:4001::200e",
                "2001:200::1",
                "::ffff:8.8.8.8",
                "64:ff9b::8.8.8.8",
                "2002:808:808::1",
            ],
            true,
        );
    }

    #[test]
    fn special_ipv4_is_not_public() {
        check(
            &[
                "0.0.0.0",
                "0.1.2.3",
                "10.0.0.0",
                "10.255.255.255",
                "100.64.0.0",
                "100.127.255.255",
                "127.0.0.1",
                "127.255.255.255",
                "169.254.169.254",
                "172.16.0.0",
                "172.31.255.255",
                "192.0.0.8",
                "192.0.2.1",
                "192.88.99.1",
                "192.168.0.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.51.100.7",
                "203.0.113.9",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
            ],
            false,
        );
    }

    #[test]
    fn special_ipv6_is_not_public() {
        check(
            &[
                "::",
                "::1",
                "::127.0.0.1",
                "::8.8.8.8",
                "::ffff:0:127.0.0.1",
                "100::1",
                "64:ff9b:1::10.0.0.1",
                "2001::1",
                "2001:2::1",
                "2001:10::1",
                "2001:20::1",
                "2001:db8::1",
                "3fff::1",
                "3fff:fff::1",
                "5f00::1",
                "4000::1",
                "fc00::1",
                "fd12:3456:789a::1",
                "fe80::1",
                "fec0::1",
                "ff02::1",
            ],
            false,
        );
    }

    #[test]
    fn row_59_forms_that_hide_an_ipv4_address_are_judged_by_it() {
        check(
            &[
                "::ffff:127.0.0.1",
                "::ffff:10.0.0.1",
                "::ffff:100.64.0.1",
                "::ffff:169.254.169.254",
                "64:ff9b::7f00:1",
                "64:ff9b::a9fe:a9fe",
                "64:ff9b::192.168.1.1",
                "2002:7f00:1::",
                "2002:a00:1::1",
                "2002:c0a8:101::1",
            ],
            false,
        );
    }
}
