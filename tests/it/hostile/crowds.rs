//! Many strangers at once: they get their time and no more, and an agent among them is served.

use aip_tests::raw::{DEADLINE, Request, Wire, ask};
use aip_tests::vitals::GROWTH_BYTES_MAX;
use aip_tests::ws::Socket;
use aip_tests::{HubOptions, TestAgent, TestHub, Vitals, keyed};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{House, assert_refused};

/// As many as the issue asks for.
const CROWD: usize = 1_000;

#[tokio::test]
async fn a_thousand_sockets_that_never_sign_in_are_sent_away() {
    let house = House::with("[receive]\nauth_timeout_secs = 30").await;
    let before = Vitals::of(&house.hub).await;
    let mut crowd = Vec::with_capacity(CROWD);
    while crowd.len() < CROWD {
        let more = (0..100).map(|_| Socket::open(&house.hub));
        crowd.extend(
            join_all(more)
                .await
                .into_iter()
                .map(|(socket, _challenge)| socket),
        );
    }
    // Among them an agent is served as ever.
    let (mut bob, _ready) = Socket::signed_in(&house.hub, &house.bob, json!({})).await;
    assert_eq!(house.alice.send(&house.hub, &house.bob).await.status, 202);
    assert_eq!(bob.frame("msg").await["seq"], 1);
    // More of them than the hub has places for are told to wait.
    let mut refused = Vec::new();
    while refused.is_empty() && crowd.len() < 2 * CROWD {
        match Socket::try_open(&house.hub, &[("sec-websocket-protocol", "aip.v1")]).await {
            Ok(socket) => crowd.push(socket),
            Err(status) => refused.push(status),
        }
    }
    assert_eq!(refused, [429], "{} sockets are signing in", crowd.len());
    for code in join_all(crowd.iter_mut().map(Socket::close_code)).await {
        assert_eq!(code, 4408);
    }
    Vitals::assert_well(&house.hub, &before).await;
}

#[tokio::test]
async fn a_thousand_silent_connections_are_let_go() {
    let house = House::with("[http]\nheader_timeout_secs = 20").await;
    let before = Vitals::of(&house.hub).await;
    let mut crowd = Vec::with_capacity(CROWD);
    for number in 0..CROWD {
        let mut wire = Wire::open(house.hub.url()).await.unwrap();
        if number % 2 == 0 {
            wire.send(b"GET /health/live HTTP/1.1\r\nx: ").await.unwrap();
        }
        crowd.push(wire);
    }
    assert_eq!(house.alice.send(&house.hub, &house.bob).await.status, 202);
    for said in join_all(crowd.iter_mut().map(Wire::rest)).await {
        assert!(
            said.is_empty() || said.starts_with(b"HTTP/1.1 408"),
            "{}",
            String::from_utf8_lossy(&said)
        );
    }
    Vitals::assert_well(&house.hub, &before).await;
}

/// Bodies that are as large as they may be, all at once, and never finished. Together they may take 256 MiB, and a
/// buffer that grows has up to as much again in hand.
#[tokio::test]
async fn large_bodies_together_are_bounded() {
    const BODIES: usize = 300;
    const BODY_BYTES: usize = 4 << 20;
    const TOGETHER_BYTES_MAX: u64 = 2 * 256 * 1024 * 1024 + GROWTH_BYTES_MAX;
    let house = House::with("[http]\nbody_timeout_secs = 60\n").await;
    let before = house.hub.resident_bytes().unwrap();
    let body = vec![b' '; BODY_BYTES - 1];
    let head = Request::post("/api/v1/messages", vec![b' '; BODY_BYTES]).to_bytes();
    let head = &head[..head.len() - BODY_BYTES];
    let mut crowd = Vec::new();
    for _ in 0..BODIES {
        let mut wire = Wire::open(house.hub.url()).await.unwrap();
        let _sent = wire.send(&[head, &body].concat()).await;
        crowd.push(wire);
    }
    let grown = house.hub.resident_bytes().unwrap().saturating_sub(before);
    assert!(grown < TOGETHER_BYTES_MAX, "the hub grew by {grown} bytes");
    // Who sends a message of the usual size is served; who comes last with a large one is told to wait.
    assert_eq!(house.alice.send(&house.hub, &house.bob).await.status, 202);
    let answer = crowd.last_mut().unwrap().answer().await.unwrap();
    assert_eq!(
        (answer.status, assert_refused(&answer, "one of many").as_str()),
        (429, "rate_limited")
    );
    drop(crowd);
    let large = house
        .alice
        .envelope_with(&house.bob, &vec![b'x'; 150_000], |_| ())
        .to_wire();
    let sending = async {
        while keyed::send(&house.hub, large.clone()).await.status != 202 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    assert!(
        tokio::time::timeout(DEADLINE, sending).await.is_ok(),
        "the room is not given back"
    );
}

/// Answers to challenges by the hundred, all wrong: each costs a signature check and leaves nothing behind.
#[tokio::test]
async fn floods_of_sign_ins_leave_nothing_behind() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let mut forged = house.bob.answered_challenge(&house.hub).await;
    for round in 0..20 {
        let attempts = (0..25).map(|number| {
            forged["challenge"] = json!(format!("{round}-{number}-{}", "x".repeat(40)));
            let request = Request::post("/api/v1/auth/token", forged.to_string());
            let url = house.hub.url();
            async move { ask(url, &request).await }
        });
        for answer in join_all(attempts.collect::<Vec<_>>()).await {
            assert_eq!(assert_refused(&answer, "a forged answer"), "challenge_invalid");
        }
    }
    for _ in 0..200 {
        let asked = json!({ "did": house.bob.did }).to_string();
        assert_eq!(
            house
                .ask(&Request::post("/api/v1/auth/challenge", asked))
                .await
                .status,
            200
        );
    }
    let (before, after) = (
        before.count("aip_registry_tokens"),
        Vitals::of(&house.hub).await.count("aip_registry_tokens"),
    );
    assert!(
        (before - after).abs() < f64::EPSILON,
        "tokens went from {before} to {after}"
    );
}

/// A hub as it runs in production limits what one network address may do at the doors that cost a look-up.
#[tokio::test]
async fn one_address_cannot_take_all() {
    let hub = TestHub::start_with(HubOptions {
        config: Some(
            "[hub]\npublic_url = \"https://hub.example\"\nregistration = \"open\"\n\
             [http]\nrequests_per_sec = 1\nrequest_burst = 20\n[registry]\nregistrations_per_minute = 1\nregistration_burst = 2\n"
                .to_owned(),
        ),
        production: Some("hub.example".to_owned()),
        ..HubOptions::default()
    });
    let limited = |answer: &aip_tests::raw::Answer| {
        let code = answer.code();
        let seconds = answer.header("retry-after").parse::<u64>().unwrap_or(0);
        (answer.status, code, seconds > 0)
    };
    let mut last = None;
    for _ in 0..30 {
        // An address that a stranger makes up is not believed.
        let request =
            Request::get("/api/v1/resolve/nobody%23hub.example").field("x-forwarded-for", "203.0.113.7");
        last = Some(ask(hub.url(), &request).await);
    }
    assert_eq!(limited(&last.unwrap()), (429, "rate_limited".to_owned(), true));
    let mut refused = 0;
    for number in 0..5 {
        let agent = TestAgent::new(&hub, &format!("agent-{number}"));
        let answer = ask(hub.url(), &Request::post("/api/v1/agents", agent.genesis())).await;
        if answer.status != 201 {
            assert_eq!(limited(&answer), (429, "rate_limited".to_owned(), true));
            refused += 1;
        }
    }
    assert_eq!(refused, 3);
    let problem: Value = ask(hub.url(), &Request::get("/health/live")).await.json();
    assert_eq!(problem["status"], "live", "health is not limited");
}

/// A hub as it runs in production, behind a proxy that says who calls.
fn behind_a_proxy(more: &str) -> TestHub {
    TestHub::start_with(HubOptions {
        config: Some(format!(
            "[hub]\npublic_url = \"https://hub.example\"\nregistration = \"open\"\n[http]\ntrusted_proxies = \
             [\"127.0.0.0/8\"]\nrequests_per_sec = 10000\nrequest_burst = 10000\n{more}"
        )),
        production: Some("hub.example".to_owned()),
        ..HubOptions::default()
    })
}

/// Who has agents of invented domains looked up does not have the hub ask for as many as he likes.
#[tokio::test]
async fn one_network_cannot_have_any_number_of_domains_looked_up() {
    let hub = &behind_a_proxy("");
    let resolve = |domain: String, from: &'static str| {
        let path = format!("/api/v1/resolve/nobody%23{domain}");
        let request = Request::get(path).field("x-forwarded-for", from);
        async move { ask(hub.url(), &request).await }
    };
    let invented = (0..100).map(|n| resolve(format!("invented-{n}.example"), "203.0.113.7"));
    let answers = join_all(invented).await;
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(!refused.is_empty() && refused.len() < answers.len());
    for answer in refused {
        assert_eq!(answer.code(), "rate_limited");
        assert!(
            answer
                .header("retry-after")
                .parse::<u64>()
                .is_ok_and(|secs| secs > 0)
        );
    }
    let other = resolve("invented.example".to_owned(), "203.0.114.7").await;
    assert_ne!(other.status, 429, "another network has its own budget");
}

/// Who keeps bodies open at the least rate holds a part of the room for them, whatever the number of connections.
#[tokio::test]
async fn slow_bodies_of_one_address_leave_room_for_others() {
    const BODIES: usize = 80;
    const BODY_BYTES: usize = 4 << 20;
    let hub = behind_a_proxy("body_timeout_secs = 60\n");
    let (alice, bob) = (
        TestAgent::registered(&hub, "alice").await,
        TestAgent::registered(&hub, "bob").await,
    );
    let stranger =
        |body: Vec<u8>| Request::post("/api/v1/messages", body).field("x-forwarded-for", "203.0.113.7");
    let whole = stranger(vec![b' '; BODY_BYTES]).to_bytes();
    // More than the whole room, all but the last byte.
    let mut crowd = Vec::new();
    for _ in 0..BODIES {
        let mut wire = Wire::open(hub.url()).await.unwrap();
        let _sent = wire.send(&whole[..whole.len() - 1]).await;
        crowd.push(wire);
    }
    let answer = crowd.last_mut().unwrap().answer().await.unwrap();
    assert_eq!(
        (answer.status, assert_refused(&answer, "one of many").as_str()),
        (429, "rate_limited")
    );
    let large = alice.envelope_with(&bob, &vec![b'x'; 150_000], |_| ()).to_wire();
    let answer = ask(hub.url(), &stranger(large.clone())).await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    let other = Request::post("/api/v1/messages", large).field("x-forwarded-for", "198.51.100.1");
    let answer = ask(hub.url(), &other).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
}

/// Nor does one address take all places of sockets that are signing in.
#[tokio::test]
async fn sockets_of_one_address_leave_places_to_sign_in() {
    let hub = behind_a_proxy("[receive]\nauth_timeout_secs = 30\n");
    let open = async |address: &str| {
        let fields = [("sec-websocket-protocol", "aip.v1"), ("x-forwarded-for", address)];
        Socket::try_open(&hub, &fields).await
    };
    let mut crowd = Vec::new();
    let refused = loop {
        match open("203.0.113.7").await {
            Ok(socket) => crowd.push(socket),
            Err(status) => break status,
        }
    };
    assert_eq!((refused, crowd.len()), (429, 128));
    assert!(open("198.51.100.1").await.is_ok());
    drop(crowd.pop());
    let freed = async { while open("203.0.113.7").await.is_err() {} };
    assert!(
        tokio::time::timeout(DEADLINE, freed).await.is_ok(),
        "the place is not given back"
    );
}
