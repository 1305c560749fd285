//! Paths, queries, methods and header fields: what a stranger can do with the head of a request.

use aip_tests::Vitals;
use aip_tests::raw::{Answer, Request, Wire, try_ask};

use super::{House, assert_discreet, assert_refused, code_of};

/// Segments of a path that stand for nothing.
const SEGMENTS: &[&str] = &[
    "%",
    "%2",
    "%zz",
    "%2F",
    "%2f..%2f",
    "a%2Fb",
    "%5C",
    "%00",
    "bob%00",
    "%0d%0aX-Injected:1",
    "%FF",
    "%C3",
    "%C0%AF",
    "%ED%A0%80",
    "%25",
    "%2523",
    "bob%2523localhost",
    "%252e%252e",
    "..%2F..%2Fetc%2Fpasswd",
    "%2e%2e",
    "%3Fx=1",
    "%3B",
    ";x=1",
    "%20",
    "bob%20",
    "bob+",
    "%F0%9F%98%80",
    "al%F0%9F%98%80ice",
    "b%C3%B6b",
    "%D1%80aypal",
    "bob%E2%80%8B",
    "b%CC%81ob",
    "-",
    "_",
    ".bob",
    "bob.",
    "b..b",
    "did:",
    "did:aip",
    "did:aip:",
    "did:aip::",
    "did:aip:x",
    "did%3Aaip%3A",
    "did:web:localhost",
    "did:aip:eip155:1:0x00",
    "%23",
    "%23%23",
    "bob%23",
    "%23localhost",
    "bob%23localhost%23x",
    "bob%40localhost",
    "bob%23127.0.0.1",
    "bob%23%5B%3A%3A1%5D",
    "bob%23localhost%3A99999",
    "bob%23localhost%3A-1",
    "bob%23LOCALHOST.",
    "bob%230x7f.1",
    "bob%23xn--",
    "bob%23%C3%9F",
    "-1",
    "0x10",
    "1e9",
    "18446744073709551616",
    "99999999999999999999999999",
    "null",
    "undefined",
    "NaN",
    "${jndi}",
    "{{7*7}}",
    "%3Cscript%3E",
    "'%20OR%201=1",
    "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11%00",
    "{name}",
    "%7Bname%7D",
];

/// The same, and long ones.
fn segments() -> Vec<String> {
    let mut segments: Vec<String> = SEGMENTS.iter().map(ToString::to_string).collect();
    segments.extend([
        "a".repeat(64),
        "a".repeat(2_000),
        "%61".repeat(1_000),
        "%F0%9F%98%80".repeat(500),
    ]);
    segments.push(format!("bob%23{}", "a.".repeat(1_000)));
    segments.push(format!("did:aip:{}", ":".repeat(2_000)));
    segments
}

/// The paths of all doors with one place filled with `segment`.
fn filled(template: &str, segment: &str) -> Option<String> {
    let place = template.find('{')?..=template.find('}')?;
    let mut path = template.to_owned();
    path.replace_range(place, segment);
    Some(path)
}

#[tokio::test]
async fn no_segment_finds_what_it_does_not_name() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    for door in house.doors().await {
        for segment in segments() {
            let Some(target) = filled(&door.template, &segment) else {
                continue;
            };
            let what = format!("{} {target}", door.method);
            let mut request = door.request_to(&target);
            if door.body {
                request = request
                    .field("content-type", door.media_type())
                    .body(house.bob.envelope(&house.alice).to_wire());
            }
            let answer = house.ask(&request).await;
            assert_nothing_found(&answer, &what);
            assert!(answer.header("x-injected").is_empty(), "{what}: {answer:?}");
        }
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// A refusal, or the error of a DID resolver in its own form.
fn assert_nothing_found(answer: &Answer, what: &str) {
    // W3C DID Resolution answers 501 to another method than ours.
    let another_method = answer.status == 501 && what.contains("/1.0/identifiers/did:web:");
    let refused = another_method || (400..500).contains(&answer.status);
    assert!(refused, "{what}: {} {}", answer.status, answer.text());
    assert_discreet(answer, what);
    if answer.header("content-type") == "application/did-resolution" && what.contains("/1.0/identifiers/") {
        let result = answer.json();
        let error = &result["didResolutionMetadata"]["error"];
        assert!(
            error["type"].is_string() && error["title"].is_string(),
            "{what}: {result}"
        );
        assert!(result["didDocument"].is_null(), "{what}: {result}");
    } else {
        assert!(!code_of(answer, what).is_empty(), "{what}");
    }
}

/// The other spellings of a path lead to nothing, or to the same; never to somebody else.
#[tokio::test]
async fn paths_are_not_normalised_into_other_doors() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let nowhere = [
        "//api/v1/messages",
        "/api//v1/messages",
        "/./api/v1/messages",
        "/api/v1/../v1/messages",
        "/API/v1/messages",
        "/api/v1/messages%2F",
        "/api%2Fv1%2Fmessages",
        "/api/v1/agents/bob/%6Fperations",
        "/api/v1/agents/bob;x/history",
        "/api/v1/resolve",
        "/api/v1/resolve/",
        "/relay",
        "/relay/",
        "/relay/a/b",
        "/agents",
        "/agents/",
        "/docs/../metrics",
        "/metrics",
        "/admin/agents",
        "/admin/invites",
        "/admin/backups",
        "/..",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/.git/config",
        "/.env",
        "/%",
        "/%00",
        "/\\..\\",
        "/favicon.ico",
        "/robots.txt",
        "/wp-login.php",
        "/api",
        "/api/v2/messages",
        "*",
        "/*",
        "/?",
        "/api/v1/agents/bob/operations/0",
        "/federation/v1/outbox/x/y",
    ];
    for target in nowhere {
        for method in ["GET", "POST"] {
            let what = format!("{method} {target}");
            let Some(answer) = try_ask(house.hub.url(), &Request::new(method, target)).await else {
                continue;
            };
            assert_discreet(&answer, &what);
            // What only looks like nothing may be the start page, or the door that a slash or a query leads to.
            let start = matches!(target, "/?" | "/..");
            if start && answer.status == 200 {
                continue;
            }
            assert!(
                (400..500).contains(&answer.status),
                "{what}: {} {}",
                answer.status,
                answer.text()
            );
        }
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

#[tokio::test]
async fn row_01_a_raw_hash_never_reaches_somebody_else() {
    let house = House::open().await;
    let domain = house.hub.domain().replace(':', "%3A");
    // What a careless client's request becomes: everything from the hash on is cut off, or sent as it is.
    for target in ["/api/v1/resolve/bob", "/api/v1/resolve?id=bob"] {
        let answer = house.ask(&Request::get(target)).await;
        assert_eq!(assert_refused(&answer, target), "handle_domain_missing");
        assert!(answer.text().contains("%23"), "{}", answer.text());
    }
    for target in [
        format!("/api/v1/resolve/bob#{domain}"),
        format!("/api/v1/resolve?id=bob#{domain}"),
    ] {
        if let Some(answer) = try_ask(house.hub.url(), &Request::get(&target)).await {
            assert!((400..500).contains(&answer.status), "{target}: {}", answer.text());
        }
    }
    for target in [
        format!("/api/v1/resolve/bob%23{domain}"),
        format!("/api/v1/resolve?id=bob%23{domain}"),
    ] {
        let answer = house.ask(&Request::get(&target)).await;
        assert_eq!(
            (answer.status, answer.json()["did"].as_str()),
            (200, Some(house.bob.did.as_str())),
            "{target}"
        );
    }
}

#[tokio::test]
async fn queries_hold_nothing_unknown_and_nothing_twice() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let unknown = [
        "x=1",
        "X",
        "=",
        "%00=1",
        "id%00=x",
        "limit[]=1",
        "LIMIT=1",
        "__proto__=1",
        "%FF=1",
        "limit%20=1",
    ];
    let bad = [
        "limit=0",
        "limit=-1",
        "limit=1.5",
        "limit=1e3",
        "limit=",
        "limit=NaN",
        "limit=18446744073709551616",
        "limit=1&limit=1",
        "limit=1&limit=2",
        "cursor=%FF",
        "wait_s=-1",
        "wait_s=x",
        "wait_s=601",
        "after=x",
        "after=:",
        "after=a:b",
        "after=x:18446744073709551616",
        "after=%00",
        "to=%FF",
        "to=%2523",
        "id=%FF",
        "id=%00",
        "id=&id=",
    ];
    for door in house
        .doors()
        .await
        .into_iter()
        .filter(|door| door.template.starts_with("/api/"))
    {
        for query in unknown.iter().chain(&bad) {
            let what = format!("{} {}?{query}", door.method, door.template);
            let request = door
                .request_to(&format!("{}?{query}", door.target))
                .field("host", "localhost");
            let answer = house.ask(&request).await;
            let code = assert_refused(&answer, &what);
            if unknown.contains(query) && door.method == "GET" && !door.template.ends_with("/connect") {
                assert_eq!(code, "parameter_unknown", "{what}");
            }
        }
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

#[tokio::test]
async fn other_methods_are_told_which_there_are() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let doors = house.doors().await;
    let methods = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get", "PROPFIND",
        "M-SEARCH",
    ];
    for door in &doors {
        let served: Vec<&str> = doors
            .iter()
            .filter(|other| other.template == door.template)
            .map(|other| other.method.as_str())
            .collect();
        for method in methods {
            if served.contains(&method) || (method == "HEAD" && served.contains(&"GET")) {
                continue;
            }
            let what = format!("{method} {}", door.target);
            let answer = house.ask(&Request::new(method, &door.target)).await;
            assert_eq!(answer.status, 405, "{what}");
            // An answer to HEAD is a head.
            assert!(method == "HEAD" || assert_refused(&answer, &what) == "method_not_allowed");
            for name in &served {
                assert!(answer.header("allow").contains(name), "{what}: {answer:?}");
            }
        }
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// Heads that are no HTTP, or more of it than anybody needs. `LONG` stands for a mebibyte.
const HEADS: &[&str] = &[
    "\r\n\r\n",
    "GET\r\n\r\n",
    "GET /health/live\r\n\r\n",
    "GET /health/live HTTP/9.9\r\nhost: x\r\n\r\n",
    "GET /health/live HTTP/1.1\nhost: x\n\n",
    "GET  /health/live  HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /health/live\0 HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /health/live HTTP/1.1\r\nho st: x\r\n\r\n",
    "GET /health/live HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n",
    "GET /health/live HTTP/1.1\r\nhost: x\r\n folded: x\r\n\r\n",
    "GET /health/live HTTP/1.1\r\nhost: x\r\n: x\r\n\r\n",
    "GET /LONG HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /health/live?LONG HTTP/1.1\r\nhost: x\r\n\r\n",
    "LONG /health/live HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /health/live HTTP/1.1\r\nhost: x\r\nx: LONG\r\n\r\n",
    "GET /health/live HTTP/1.1\r\nhost: x\r\nLONG: x\r\n\r\n",
    "GET /health/live HTTP/1.1\r\nhost: x\r\nauthorization: Bearer LONG\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT localhost:22 HTTP/1.1\r\nhost: localhost:22\r\n\r\n",
];

fn heads() -> Vec<Vec<u8>> {
    let long = "A".repeat(1 << 20);
    let mut heads: Vec<Vec<u8>> = HEADS
        .iter()
        .map(|head| head.replace("LONG", &long).into_bytes())
        .collect();
    heads.extend([
        format!(
            "GET /health/live HTTP/1.1\r\nhost: x\r\n{}\r\n",
            "x: 1\r\n".repeat(2_000)
        )
        .into_bytes(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(50),
        b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
        b"GET /health/live HTTP/1.1\r\nhost: x\r\nx: \xff\xfe\r\n\r\n".to_vec(),
        vec![0; 4_096],
    ]);
    heads
}

/// They get 400 or a closed connection, at no cost to anybody else.
#[tokio::test]
async fn heads_that_are_no_http_are_refused() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    for head in heads() {
        let start = String::from_utf8_lossy(&head)
            .chars()
            .take(50)
            .collect::<String>();
        let mut wire = Wire::open(house.hub.url()).await.unwrap();
        // A hub that has heard enough closes while we are still sending.
        let _sent = wire.send(&head).await;
        let _sent = wire.half_close().await;
        let said = String::from_utf8_lossy(&wire.rest().await).into_owned();
        let status = said
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse::<u16>().ok());
        assert!(status.is_none_or(|status| status < 500), "{start:?}: {said}");
        let lenient = start.starts_with("GET /health/live");
        assert!(
            lenient || status.is_none_or(|status| status >= 400),
            "{start:?}: {said}"
        );
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}
