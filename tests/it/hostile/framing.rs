//! Requests with two ends: what a proxy in front and the hub behind could understand differently.

use aip_tests::Vitals;
use aip_tests::raw::Wire;
use futures_util::future::join_all;

use super::House;

/// The request that hides in the body of another.
const HIDDEN: &str = "GET /hidden-from-the-proxy HTTP/1.1\r\nhost: x\r\n\r\n";

/// Header fields that say in two ways, or in a wrong one, where a body ends, and the body. `LEN` stands for the length
/// of the hidden request, `HEX` for the same in hexadecimal, `HIDDEN` for itself.
const SHAPES: &[(&str, &str)] = &[
    ("content-length: 0\r\ncontent-length: LEN", "HIDDEN"),
    ("content-length: LEN\r\ncontent-length: 0", "HIDDEN"),
    ("content-length: 0, LEN", "HIDDEN"),
    ("content-length: +LEN", "HIDDEN"),
    ("content-length: -LEN", "HIDDEN"),
    ("content-length: 0xHEX", "HIDDEN"),
    ("content-length: LEN.0", "HIDDEN"),
    ("content-length: 99999999999999999999999", "HIDDEN"),
    ("content-length:", "HIDDEN"),
    ("content-length : 5", "HIDDEN"),
    (
        "content-length: 5\r\ntransfer-encoding: chunked",
        "0\r\n\r\nHIDDEN",
    ),
    (
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "0\r\n\r\nHIDDEN",
    ),
    ("content-length: LEN\r\ntransfer-encoding: identity", "HIDDEN"),
    ("transfer-encoding: xchunked", CHUNK),
    ("transfer-encoding: chunked, identity", CHUNK),
    ("transfer-encoding: chunked, chunked", CHUNK),
    ("transfer-encoding: gzip, chunked", CHUNK),
    ("transfer-encoding: chunked\r\ntransfer-encoding: identity", CHUNK),
    ("transfer-encoding: identity\r\ntransfer-encoding: chunked", CHUNK),
    ("transfer-encoding:\u{b}chunked", CHUNK),
    ("transfer-encoding : chunked", CHUNK),
    ("transfer-encoding: \"chunked\"", CHUNK),
    ("x: y\r\n transfer-encoding: chunked", CHUNK),
    ("transfer-encoding: chunked", "ffffffffffffffffff\r\nHIDDEN"),
    ("transfer-encoding: chunked", "-1\r\nHIDDEN"),
    ("transfer-encoding: chunked", "0x5\r\nHIDDEN"),
    ("transfer-encoding: chunked", "5;a\nHIDDEN"),
    ("transfer-encoding: chunked", "\r\nHIDDEN"),
    ("transfer-encoding: chunked", "1\r\nab\r\n0\r\n\r\nHIDDEN"),
];
const CHUNK: &str = "HEX\r\nHIDDEN\r\n0\r\n\r\n";

fn filled(text: &str) -> String {
    let (length, hex) = (HIDDEN.len().to_string(), format!("{:x}", HIDDEN.len()));
    text.replace("LEN", &length)
        .replace("HEX", &hex)
        .replace("HIDDEN", HIDDEN)
}

/// Only a request that both read alike may be followed by another on the same connection.
#[tokio::test]
async fn an_ambiguous_request_is_the_last_on_its_connection() {
    let house =
        House::with("[http]\nheader_timeout_secs = 1\nbody_timeout_secs = 1\nkeep_alive_secs = 1").await;
    let before = Vitals::of(&house.hub).await;
    let shapes = SHAPES
        .iter()
        .map(|(fields, body)| send_shape(&house, filled(fields), filled(body)));
    join_all(shapes).await;
    Vitals::assert_unharmed(&house.hub, &before).await;
}

async fn send_shape(house: &House, fields: String, body: String) {
    let mut wire = Wire::open(house.hub.url()).await.unwrap();
    let head = format!("POST /api/v1/auth/challenge HTTP/1.1\r\nhost: x\r\n{fields}\r\n\r\n{body}");
    let _sent = wire.send(head.as_bytes()).await;
    let said = String::from_utf8_lossy(&wire.rest().await).into_owned();
    assert!(
        !said.contains("not_found"),
        "{fields:?}: the hidden request was answered: {said}"
    );
    assert!(said.matches("HTTP/1.1 ").count() <= 1, "{fields:?}: {said}");
    let taken = said.contains("HTTP/1.1 2") || said.contains("HTTP/1.1 5");
    assert!(!taken, "{fields:?}: {said}");
}

/// After a refusal whose body was not read to its end, the rest of it is no request.
#[tokio::test]
async fn the_rest_of_a_refused_body_is_no_request() {
    let house = House::with("[http]\nbody_timeout_secs = 1\nkeep_alive_secs = 1").await;
    let before = Vitals::of(&house.hub).await;
    let filler = HIDDEN.repeat((9 << 20) / HIDDEN.len());
    let doors = house.doors().await.into_iter().filter(|door| door.body);
    let refused = doors.map(|door| {
        let (request, url) = (door.with_body(filler.clone()), house.hub.url());
        async move {
            let mut wire = Wire::open(url).await.unwrap();
            let _sent = wire.send(&request.to_bytes()).await;
            let said = String::from_utf8_lossy(&wire.rest().await).into_owned();
            let one = said.matches("HTTP/1.1 ").count() <= 1 && !said.contains("not_found");
            assert!(one, "{}: {said}", door.template);
        }
    });
    join_all(refused).await;
    // Also where nobody looks at the body at all.
    for head in [
        "GET /health/live",
        "POST /nowhere",
        "DELETE /api/v1/messages",
        "GET /docs",
    ] {
        let mut wire = Wire::open(house.hub.url()).await.unwrap();
        let framing = format!("content-length: {}", HIDDEN.len() * 2);
        let text = format!("{head} HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n{HIDDEN}{HIDDEN}");
        let _sent = wire.send(text.as_bytes()).await;
        let said = String::from_utf8_lossy(&wire.rest().await).into_owned();
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{head}: {said}");
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// Good requests one after another, sent at once, are answered one after another.
#[tokio::test]
async fn honest_pipelining_is_answered_in_order() {
    let house = House::open().await;
    let mut wire = Wire::open(house.hub.url()).await.unwrap();
    let one = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
    let targets = ["/health/live", "/nowhere", "/health/ready", "/api/v1/resolve/x"];
    let all = targets.map(one).concat();
    wire.send(all.as_bytes()).await.unwrap();
    for status in [200, 404, 200, 400] {
        assert_eq!(wire.answer().await.unwrap().status, status);
    }
}
