//! The table of hostile targets (spec §8): what a stranger may write where an address is due, and what becomes of it. Each is
//! tried on both ways out, and nothing listens to anything but silence.

mod dns;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;

use super::{EgressError, Exchange, GuardedClient, Limits, Method, Outbound, Policy, Request, Resolve};
use crate::limits::URL_BYTES_MAX;

/// Addresses of the operator's own network, of this machine or of nobody, in every spelling that becomes one of them.
const LITERALS: &[&str] = &[
    // This machine, in decimal, octal and hexadecimal, short, long and mixed.
    "https://127.0.0.1/",
    "https://127.0.0.1:8443/",
    "https://127.1/",
    "https://127.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://0X7F.0x0.0x0.0x1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://0000000177.0.0.01/",
    "https://0177.0x0.0.1/",
    "https://127.255.255.254/",
    "https://127.0.0.1./",
    // Percent-encoded, full-width, circled, with ideographic full stops; what a browser repairs.
    "https://%31%32%37.0.0.1/",
    "https://１２７.０.０.１/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https://127.0\t.0.1/",
    "https:\\\\127.0.0.1\\",
    "https:127.0.0.1",
    "https://127.0.0.1#@example.org/",
    "https://127.0.0.1?@example.org/",
    // This network.
    "https://0/",
    "https://00/",
    "https://0x0/",
    "https://0.0.0.0:443/",
    "https://0.1.2.3/",
    // Private networks, carrier-grade NAT.
    "https://10.0.0.1:8443/",
    "https://10.1/",
    "https://0xa.1/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.0.1/",
    "https://3232235521/",
    "https://0300.0250.0.1/",
    "https://100.64.0.1/",
    "https://100.127.255.254/",
    // What clouds answer to.
    "https://169.254.169.254/latest/meta-data/",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://0251.0376.0251.0376/",
    "https://１６９.２５４.１６９.２５４/",
    "https://169.254.169.254./",
    "https://100.100.100.200/",
    "https://192.0.0.192/",
    "https://[fd00:ec2::254]/",
    // Multicast, broadcast, reserved, benchmarks, documentation, retired relays.
    "https://224.0.0.1/",
    "https://239.255.255.250/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://198.18.0.1/",
    "https://198.19.255.255/",
    "https://192.0.2.1/",
    "https://198.51.100.1/",
    "https://203.0.113.1/",
    "https://192.88.99.1/",
    // The same in IPv6.
    "https://[::]/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[fd00::1]/",
    "https://[fc00::1]/",
    "https://[fe80::1]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[100::1]/",
    "https://[2001:2::1]/",
    "https://[5f00::1]/",
    "https://[4000::1]/",
    // Forms that hide an IPv4 address: mapped, compatible, translated, NAT64, 6to4, Teredo.
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[0:0:0:0:0:ffff:127.0.0.1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:0:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b::169.254.169.254]/",
    "https://[64:ff9b:1::10.0.0.1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:a9fe:a9fe::1]/",
    "https://[2001::1]/",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
];

/// URLs that are none, are no `https`, or bring a user along.
const OTHERS: &[(&str, &str)] = &[
    ("http://example.org/", "scheme_refused"),
    ("HTTP://example.org/", "scheme_refused"),
    ("ftp://example.org/", "scheme_refused"),
    ("ws://example.org/", "scheme_refused"),
    ("file:///etc/passwd", "scheme_refused"),
    ("gopher://example.org/", "scheme_refused"),
    ("unix:/run/docker.sock", "scheme_refused"),
    ("data:text/plain,x", "scheme_refused"),
    ("javascript:alert(1)", "scheme_refused"),
    ("https://user@example.org/", "userinfo_refused"),
    ("https://user:pass@example.org/", "userinfo_refused"),
    ("https://:pass@example.org/", "userinfo_refused"),
    ("https://example.org@127.0.0.1/", "userinfo_refused"),
    ("https://127.0.0.1@example.org/", "userinfo_refused"),
    ("https://example.org:443@10.0.0.1/", "userinfo_refused"),
    ("", "url_invalid"),
    ("/relative", "url_invalid"),
    ("example.org", "url_invalid"),
    ("https://", "url_invalid"),
    ("https://?x", "url_invalid"),
    ("https://:443/", "url_invalid"),
    ("https://[::1", "url_invalid"),
    ("https://[]/", "url_invalid"),
    ("https://[fe80::1%25eth0]/", "url_invalid"),
    ("https://[::ffff:1.2.3.256]/", "url_invalid"),
    ("https://1.2.3.256/", "url_invalid"),
    ("https://1.2.3.4.5/", "url_invalid"),
    ("https://4294967296/", "url_invalid"),
    ("https://0x100000000/", "url_invalid"),
    ("https://exa mple.org/", "url_invalid"),
    ("https://example.org:99999/", "url_invalid"),
    ("https://example.org:-1/", "url_invalid"),
];

/// Names, and what their name servers say: one address that may not be called is enough to refuse them all.
const NAMES: &[(&str, &[&str])] = &[
    ("localhost", &["127.0.0.1", "::1"]),
    ("localhost.", &["127.0.0.1"]),
    ("LOCALHOST", &["127.0.0.1"]),
    ("a.localhost", &["::1"]),
    ("metadata.google.internal", &["169.254.169.254"]),
    ("127.0.0.1.rebind.example", &["127.0.0.1"]),
    ("public-then-private.example", &["8.8.8.8", "10.0.0.1"]),
    ("private-then-public.example", &["10.0.0.1", "8.8.8.8"]),
    ("mixed-families.example", &["8.8.8.8", "::1"]),
    ("mapped.example", &["::ffff:192.168.1.1"]),
    ("nat64.example", &["64:ff9b::a00:1"]),
    ("6to4.example", &["2002:c0a8:101::1"]),
    ("teredo.example", &["2001::1"]),
    ("cgnat.example", &["100.64.0.1"]),
    ("ula.example", &["fd12:3456:789a::1"]),
    ("link-local.example", &["fe80::1"]),
    ("unspecified.example", &["0.0.0.0"]),
    ("unspecified6.example", &["::"]),
    ("multicast.example", &["224.0.0.251"]),
    ("broadcast.example", &["255.255.255.255"]),
];

/// How many there have to be at least.
const TARGETS_MIN: usize = 60;

/// The name servers of [`NAMES`]; every other name is a public one.
#[derive(Debug, Default)]
struct Zone {
    lookups: AtomicUsize,
}

#[async_trait]
impl Resolve for Zone {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let known = NAMES.iter().find(|(name, _)| host.eq_ignore_ascii_case(name));
        let addresses = known.map_or(&["8.8.8.8"][..], |(_, addresses)| addresses);
        Ok(addresses.iter().map(|text| text.parse().unwrap()).collect())
    }
}

/// What both ways out say to a URL; they have to agree.
async fn both(client: &GuardedClient, url: &str) -> EgressError {
    let limits = Limits::default();
    let body = Bytes::from_static(b"{}");
    let posted = client
        .post(url, "application/json", body, limits)
        .await
        .expect_err(url);
    for method in [Method::Get, Method::Post] {
        let request = Request {
            method,
            url: url.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
        };
        let exchanged = client.exchange(request, limits).await.expect_err(url);
        assert_eq!(posted.kind(), exchanged.kind(), "{url}");
    }
    posted
}

#[tokio::test]
async fn row_58_urls_that_lead_inside_are_refused_before_anything_is_sent() {
    let resolver = Arc::new(Zone::default());
    let client = GuardedClient::new(Policy::default(), resolver.clone()).unwrap();
    for url in LITERALS {
        let error = both(&client, url).await;
        assert_eq!(error.kind(), "address_refused", "{url}");
        assert!(error.is_refusal(), "{url}");
    }
    for (url, expected) in OTHERS {
        let error = both(&client, url).await;
        assert_eq!(error.kind(), *expected, "{url}");
        assert!(error.is_refusal(), "{url}");
    }
    let long = format!("https://example.org/{}", "a".repeat(URL_BYTES_MAX));
    assert_eq!(both(&client, &long).await.kind(), "url_invalid");
    assert_eq!(
        resolver.lookups.load(Ordering::SeqCst),
        0,
        "a refused URL costs no look-up"
    );
}

#[tokio::test]
async fn a_name_with_one_address_inside_is_refused_as_a_whole() {
    let resolver = Arc::new(Zone::default());
    let client = GuardedClient::new(Policy::default(), resolver.clone()).unwrap();
    for (name, _) in NAMES {
        let before = resolver.lookups.load(Ordering::SeqCst);
        let error = both(&client, &format!("https://{name}/.well-known/aip")).await;
        assert!(
            matches!(error, EgressError::AddressRefused(_)),
            "{name}: {error:?}"
        );
        assert!(error.is_refusal(), "{name}");
        let lookups = resolver.lookups.load(Ordering::SeqCst) - before;
        assert_eq!(lookups, 3, "{name}: once for each request");
    }
}

#[test]
fn the_table_is_long_enough_and_says_nothing_twice() {
    let literals = LITERALS.iter().copied();
    let others = OTHERS.iter().map(|(url, _)| *url);
    let names = NAMES.iter().map(|(name, _)| *name);
    let mut targets: Vec<&str> = literals.chain(others).chain(names).collect();
    let count = targets.len();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(targets.len(), count);
    assert!(LITERALS.len() >= TARGETS_MIN, "{} literals", LITERALS.len());
    assert!(count >= 2 * TARGETS_MIN, "{count} targets");
}
