//! Callers that take their time: half a head, half a body, half a connection. Each is let go, and holds nobody else up.

use aip_tests::Vitals;
use aip_tests::raw::{Request, Wire};
use futures_util::future::join_all;

use super::{Door, House, assert_refused};

/// Short patience, so that the test is quick; the deadlines of the test only end a hang.
const IMPATIENT: &str =
    "[http]\nheader_timeout_secs = 1\nbody_timeout_secs = 1\nbody_bytes_per_sec_min = 0\nkeep_alive_secs = 1";

#[tokio::test]
async fn half_a_head_is_not_waited_for() {
    let house = House::with(IMPATIENT).await;
    let before = Vitals::of(&house.hub).await;
    for start in [
        "G",
        "GET /health/live HTTP/1.1\r\n",
        "GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow: a",
    ] {
        let mut wire = Wire::open(house.hub.url()).await.unwrap();
        wire.send(start.as_bytes()).await.unwrap();
        let said = String::from_utf8_lossy(&wire.rest().await).into_owned();
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 408"),
            "{start:?}: {said}"
        );
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// A head that never ends, byte after byte, is not kept alive by its bytes.
#[tokio::test]
async fn a_dripping_head_is_not_waited_for() {
    let house = House::with(IMPATIENT).await;
    let before = Vitals::of(&house.hub).await;
    let mut wire = Wire::open(house.hub.url()).await.unwrap();
    wire.send(b"GET /health/live HTTP/1.1\r\nx-slow: ").await.unwrap();
    let dripping = async {
        while wire.send(b"a").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let ended = tokio::time::timeout(aip_tests::raw::DEADLINE, dripping).await;
    assert!(ended.is_ok(), "a head may drip for ever");
    Vitals::assert_unharmed(&house.hub, &before).await;
}

#[tokio::test]
async fn half_a_body_is_not_waited_for() {
    let house = House::with(IMPATIENT).await;
    let before = Vitals::of(&house.hub).await;
    let doors = house.doors().await.into_iter().filter(|door| door.body);
    let framings = [
        ("content-length", "100", "{\"a\""),
        ("transfer-encoding", "chunked", "64\r\n{\"a\""),
    ];
    let halves = doors.flat_map(|door| framings.map(|framing| send_half(&house, door.clone(), framing)));
    join_all(halves).await;
    Vitals::assert_unharmed(&house.hub, &before).await;
}

async fn send_half(house: &House, door: Door, (name, value, start): (&str, &str, &str)) {
    let what = format!("{} {} with {name}", door.method, door.template);
    let head = door.request().field("content-type", door.media_type());
    let mut bytes = head.unframed().field(name, value).to_bytes();
    bytes.extend_from_slice(start.as_bytes());
    let mut wire = Wire::open(house.hub.url()).await.unwrap();
    wire.send(&bytes).await.unwrap();
    let answer = wire.answer().await;
    let answer = answer.unwrap_or_else(|| panic!("{what}: closed without a word"));
    // Another hub comes again with the same, and must not be told that its mail is at fault.
    let code = if door.template == "/federation/v1/messages" {
        "rate_limited"
    } else {
        "json_invalid"
    };
    assert_eq!(assert_refused(&answer, &what), code, "{what}");
    assert!(wire.rest().await.is_empty(), "{what}");
}

/// The sender has closed its side in the middle of a body: nobody waits for the rest.
#[tokio::test]
async fn half_open_connections_end() {
    let house = House::with(IMPATIENT).await;
    let before = Vitals::of(&house.hub).await;
    let wire_of = async |bytes: &[u8]| {
        let mut wire = Wire::open(house.hub.url()).await.unwrap();
        wire.send(bytes).await.unwrap();
        wire.half_close().await.unwrap();
        String::from_utf8_lossy(&wire.rest().await).into_owned()
    };
    let whole = wire_of(&Request::get("/health/live").to_bytes()).await;
    assert!(whole.is_empty() || whole.starts_with("HTTP/1.1 200"), "{whole}");
    for request in [
        "GET /hea",
        "POST /api/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{\"a",
    ] {
        let said = wire_of(request.as_bytes()).await;
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 4"),
            "{request:?}: {said}"
        );
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// An envelope of which the last byte is missing is no envelope, whoever cut it off.
#[tokio::test]
async fn a_body_cut_short_is_not_taken() {
    let house = House::with(IMPATIENT).await;
    let before = Vitals::of(&house.hub).await;
    let wire_bytes = Request::post("/api/v1/messages", house.alice.envelope(&house.bob).to_wire()).to_bytes();
    for missing in [1, 2, 100] {
        let mut wire = Wire::open(house.hub.url()).await.unwrap();
        wire.send(&wire_bytes[..wire_bytes.len() - missing])
            .await
            .unwrap();
        wire.half_close().await.unwrap();
        let said = String::from_utf8_lossy(&wire.rest().await).into_owned();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// A reader that never takes its answers does not keep the hub from answering others.
#[tokio::test]
async fn answers_nobody_reads_hold_nobody_up() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let many = Request::get("/openapi.json").to_bytes().repeat(200);
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut wire = Wire::open(house.hub.url()).await.unwrap();
        // The hub stops reading from a connection whose answers pile up.
        let sending = tokio::time::timeout(std::time::Duration::from_secs(2), wire.send(&many)).await;
        drop(sending);
        silent.push(wire);
    }
    for _ in 0..20 {
        assert_eq!(house.ask(&Request::get("/health/ready")).await.status, 200);
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}
