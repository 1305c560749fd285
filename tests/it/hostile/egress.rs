//! What a stranger can make the hub call: nothing on this machine, nothing in a private network, nothing without TLS.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aip_client::protocol::identity::RouteMode;
use aip_tests::raw::{Request, ask};
use aip_tests::{HubOptions, TestAgent, TestHub, Vitals};
use serde_json::json;
use tokio::net::TcpListener;

/// The hub of a stranger's dreams is closed: what production has, with loopback shut.
const STRICT: &str =
    "[egress]\nallow_http = false\nallowed_private_ranges = []\n[relay]\ndirect_timeout_secs = 2\n";
/// Plain http is allowed, private addresses are not.
const HTTP: &str =
    "[egress]\nallow_http = true\nallowed_private_ranges = []\n[relay]\ndirect_timeout_secs = 2\n";

/// Counts who connects to this machine.
struct Trap {
    port: u16,
    caught: Arc<AtomicUsize>,
}

impl Trap {
    async fn set() -> Self {
        let caught = Arc::new(AtomicUsize::new(0));
        // All addresses of this machine, IPv6 too where it has it.
        let listener = match TcpListener::bind("[::]:0").await {
            Ok(listener) => listener,
            Err(_no_ipv6) => TcpListener::bind("0.0.0.0:0").await.unwrap(),
        };
        let port = listener.local_addr().unwrap().port();
        let counter = Arc::clone(&caught);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, caught }
    }

    fn caught(&self) -> usize {
        self.caught.load(Ordering::SeqCst)
    }
}

/// Ways to write an address of this machine or of a private network. `PORT` stands for the trap's.
const INSIDE: &[&str] = &[
    "127.0.0.1:PORT",
    "127.1.2.3:PORT",
    "localhost:PORT",
    "LOCALHOST:PORT",
    "localhost.:PORT",
    "x.localhost:PORT",
    "0.0.0.0:PORT",
    "[::1]:PORT",
    "[::]:PORT",
    "[::ffff:127.0.0.1]:PORT",
    "[::ffff:7f00:1]:PORT",
    "[::127.0.0.1]:PORT",
    "[64:ff9b::7f00:1]:PORT",
    "[2002:7f00:1::]:PORT",
    "2130706433:PORT",
    "0x7f000001:PORT",
    "0x7f.1:PORT",
    "0177.0.0.1:PORT",
    "127.1:PORT",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "[fd00::1]",
    "[fe80::1]",
    "[ff02::1]",
    "224.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "198.18.0.1",
    "240.0.0.1",
    "[fec0::1]",
    "[2001:db8::1]",
];

/// An endpoint is either refused when it is registered, or never called: the message waits in the mailbox.
#[tokio::test]
async fn private_endpoints_are_never_called() {
    let trap = Trap::set().await;
    for (config, schemes) in [(STRICT, ["https", "https"]), (HTTP, ["https", "http"])] {
        let hub = TestHub::start_with(HubOptions {
            config: Some(config.to_owned()),
            ..HubOptions::default()
        });
        let before = Vitals::of(&hub).await;
        let alice = TestAgent::registered(&hub, "alice").await;
        let mut waiting = 0;
        for (number, host) in INSIDE.iter().enumerate() {
            let scheme = schemes[number % 2];
            let endpoint = format!("{scheme}://{}/aip", host.replace("PORT", &trap.port.to_string()));
            let Some(agent) = direct(&hub, &format!("direct-{number}"), &endpoint).await else {
                continue;
            };
            let answer = alice.send(&hub, &agent).await;
            assert_eq!(answer.status, 202, "{endpoint}: {}", answer.text());
            assert_eq!(
                (&answer.json()["status"], &answer.json()["route"]),
                (&json!("stored"), &json!("mailbox")),
                "{endpoint}"
            );
            let inbox = ask(
                hub.url(),
                &Request::get("/api/v1/inbox").bearer(&agent.token(&hub).await),
            )
            .await;
            assert_eq!(inbox.json()["items"][0]["seq"], 1, "{endpoint}: {}", inbox.text());
            waiting += 1;
        }
        assert!(
            waiting > 5,
            "nearly everything was refused at registration, so nothing was tried"
        );
        Vitals::assert_well(&hub, &before).await;
    }
    assert_eq!(trap.caught(), 0, "the hub called into its own machine");
}

/// An endpoint that is no URL of a place to call is refused when it is registered.
#[tokio::test]
async fn an_endpoint_that_is_none_is_refused() {
    let hub = TestHub::start_with(HubOptions {
        config: Some(STRICT.to_owned()),
        ..HubOptions::default()
    });
    let before = Vitals::of(&hub).await;
    let endpoints = [
        "",
        "x",
        "/relative",
        "//host/x",
        "ftp://host.example/",
        "file:///etc/passwd",
        "gopher://host.example/",
        "data:,x",
        "javascript:alert(1)",
        "http://host.example/",
        "https://",
        "https://host.example:99999/",
        "https://ho st.example/",
        "https://host.example/\r\nx: y",
        "unix:/var/run/docker.sock",
        " https://host.example/",
        "https://host.example/\u{a0}",
        "https://h\u{f6}st.example/",
        "https://host.example/\t",
    ];
    let good = TestAgent::new(&hub, "mallory");
    for endpoint in endpoints {
        let mut genesis = serde_json::Value::from(good.identity.head().json.clone());
        genesis["route_mode"] = json!("direct");
        genesis["endpoint"] = json!(endpoint);
        let answer = ask(hub.url(), &Request::post("/api/v1/agents", genesis.to_string())).await;
        assert!(
            matches!(answer.status, 400 | 401),
            "{endpoint}: {}",
            answer.text()
        );
        assert_ne!(answer.code(), "signature_invalid", "{endpoint} passed for a form");
    }
    Vitals::assert_unharmed(&hub, &before).await;
}

/// An endpoint that answers with a redirect, a flood, or nothing gets no second chance within the call.
#[tokio::test]
async fn redirects_are_not_followed_and_answers_are_bounded() {
    let trap = Trap::set().await;
    let hub = TestHub::start_with(HubOptions {
        config: Some("[relay]\ndirect_timeout_secs = 1\n".to_owned()),
        ..HubOptions::default()
    });
    let before = Vitals::of(&hub).await;
    let alice = TestAgent::registered(&hub, "alice").await;
    let location = format!(
        "location: http://127.0.0.1:{}/\r\ncontent-length: 0\r\n\r\n",
        trap.port
    );
    let answers: Vec<(&str, Vec<u8>)> = vec![
        (
            "a redirect",
            format!("HTTP/1.1 302 Found\r\n{location}").into_bytes(),
        ),
        (
            "a permanent redirect",
            format!("HTTP/1.1 308 Permanent Redirect\r\n{location}").into_bytes(),
        ),
        (
            "a refusal",
            b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n".to_vec(),
        ),
        (
            "a failure",
            b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n".to_vec(),
        ),
        ("no HTTP", b"220 smtp.example ESMTP\r\n".to_vec()),
        ("silence", Vec::new()),
        (
            "an endless head",
            [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'a'; 8 << 20]].concat(),
        ),
    ];
    for (number, (what, bytes)) in answers.into_iter().enumerate() {
        let endpoint = answering(bytes).await;
        let agent = direct(&hub, &format!("direct-{number}"), &endpoint)
            .await
            .unwrap();
        let answer = alice.send(&hub, &agent).await;
        assert_eq!(
            (answer.status, &answer.json()["route"]),
            (202, &json!("mailbox")),
            "{what}: {}",
            answer.text()
        );
    }
    assert_eq!(trap.caught(), 0, "a redirect was followed");
    Vitals::assert_well(&hub, &before).await;
}

/// Registers an agent in direct mode; `None` where the hub refuses its endpoint.
async fn direct(hub: &TestHub, name: &str, endpoint: &str) -> Option<TestAgent> {
    let made = TestAgent::try_draft(hub, name, |draft| {
        draft.route_mode = RouteMode::Direct;
        draft.endpoint = Some(endpoint.to_owned());
    });
    // A form that the library refuses to sign is one that the hub refuses to take; it has the same reader.
    let agent = made.ok()?;
    let answer = ask(hub.url(), &Request::post("/api/v1/agents", agent.genesis())).await;
    match answer.status {
        201 => Some(agent),
        400 => None,
        other => panic!("{endpoint}: {other} {}", answer.text()),
    }
}

/// An endpoint on this machine that says the same to everybody.
pub(crate) async fn answering(bytes: Vec<u8>) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 64 * 1024];
            let _read = stream.read(&mut request).await;
            let _written = stream.write_all(&bytes).await;
            // Held open: the hub's own time limit ends the call.
            tokio::spawn(async move { while stream.read(&mut request).await.is_ok_and(|read| read > 0) {} });
        }
    });
    format!("http://127.0.0.1:{port}/aip")
}
