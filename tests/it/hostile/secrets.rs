//! What must be in no log, at no level, and in no store but where it belongs: bodies, keys, tokens, challenges, invites.

use std::path::{Path, PathBuf};

use aip_tests::raw::{Request, ask};
use aip_tests::ws::Socket;
use aip_tests::{HubOptions, TestAgent, TestHub, keyed};
use serde_json::{Value, json};

/// Everything is logged, and the operator lets in by invite.
const TALKATIVE: &str =
    "[hub]\nregistration = \"invite\"\n[log]\nfilter = \"trace\"\n[relay]\ndirect_timeout_secs = 1\n";

/// A secret, and what it is.
#[derive(Debug)]
struct Canary {
    what: &'static str,
    text: String,
}

/// Collects what must not be found.
#[derive(Debug, Default)]
struct Cage(Vec<Canary>);

impl Cage {
    fn put(&mut self, what: &'static str, text: impl Into<String>) -> String {
        let text = text.into();
        assert!(text.len() > 15, "{what} is too short to be looked for: {text}");
        self.0.push(Canary {
            what,
            text: text.clone(),
        });
        text
    }

    fn put_sealed(&mut self, envelope: &Value) {
        for member in ["ct", "enc"] {
            let text = envelope["encrypted_body"][member].as_str().unwrap().to_owned();
            self.0.push(Canary {
                what: "a sealed body",
                text,
            });
        }
    }
}

async fn operator(hub: &TestHub, request: Request) -> Value {
    let answer = hub.operate(request).await;
    assert!(answer.status < 300, "{}", answer.text());
    answer.json()
}

async fn register(hub: &TestHub, cage: &mut Cage, name: &str, endpoint: Option<String>) -> TestAgent {
    let made = operator(hub, Request::post("/admin/invites", "{\"uses\":1}")).await;
    let invite = cage.put("an invite", made["code"].as_str().unwrap());
    let agent = TestAgent::draft(hub, name, |draft| {
        if endpoint.is_some() {
            draft.route_mode = aip_client::protocol::identity::RouteMode::Direct;
        }
        draft.endpoint = endpoint;
    });
    let request = Request::post("/api/v1/agents", agent.genesis()).field("x-aip-invite", invite);
    assert_eq!(ask(hub.url(), &request).await.status, 201);
    agent
}

/// Good traffic through every door that handles a secret.
async fn good_traffic(hub: &TestHub, cage: &mut Cage) -> (TestAgent, TestAgent) {
    let alice = register(hub, cage, "alice", None).await;
    let bob = register(hub, cage, "bob", None).await;
    // An endpoint that takes nothing, so that a body is also on its way out.
    let port = aip_tests::free_port();
    let carol = register(
        hub,
        cage,
        "carol",
        Some(format!("http://127.0.0.1:{port}/canary-of-an-endpoint")),
    )
    .await;
    let plaintext = cage.put("a body", "canary-of-a-body-4711");
    for to in [&bob, &carol] {
        let envelope = alice.envelope_with(to, plaintext.as_bytes(), |draft| {
            draft.thread = Some("canary-of-a-thread".to_owned());
        });
        cage.put_sealed(&Value::from(envelope.json.clone()));
        for _again in 0..2 {
            assert!(keyed::send(hub, envelope.to_wire()).await.status < 300);
        }
    }
    cage.put("a thread", "canary-of-a-thread");
    let answered = bob.answered_challenge(hub).await;
    cage.put("a challenge", answered["challenge"].as_str().unwrap());
    cage.put("an answer to a challenge", answered["sig"].as_str().unwrap());
    let answer = ask(
        hub.url(),
        &Request::post("/api/v1/auth/token", answered.to_string()),
    )
    .await;
    let token = cage.put("a token", answer.json()["token"].as_str().unwrap());
    for target in ["/api/v1/inbox", "/api/v1/inbox/dead"] {
        assert_eq!(
            ask(hub.url(), &Request::get(target).bearer(&token)).await.status,
            200
        );
    }
    let (mut socket, challenge) = Socket::open(hub).await;
    cage.put("a socket's challenge", challenge);
    socket.say(&json!({ "t": "auth", "token": token })).await;
    socket.frame("ready").await;
    let message = socket.frame("msg").await;
    socket.say(&json!({ "t": "reject", "epoch": message["epoch"], "seq": message["seq"], "code": "canary-of-a-code-1" })).await;
    let envelope = bob.envelope_with(&alice, plaintext.as_bytes(), |_| ());
    cage.put_sealed(&Value::from(envelope.json.clone()));
    socket
        .say(&json!({ "t": "send", "ref": "1", "envelope": Value::from(envelope.json.clone()) }))
        .await;
    socket.frame("sent").await;
    (alice, bob)
}

/// Secrets in every place of a request where one can end up.
fn careless_requests(lost: &str, said: &str, alice: &TestAgent, bob: &TestAgent) -> Vec<Request> {
    let mut requests = vec![
        Request::get("/api/v1/inbox").bearer(lost),
        Request::get(format!("/api/v1/inbox?token={lost}")),
        Request::get(format!("/api/v1/resolve/{said}")),
        Request::get(format!("/api/v1/resolve?id={said}")),
        Request::get(format!("/{said}/{said}")),
        Request::new(said, "/"),
        Request::get("/")
            .field("user-agent", said.to_owned())
            .field("cookie", said.to_owned())
            .field(said.to_owned(), said.to_owned()),
        Request::get("/api/v1/inbox").field("authorization", format!("Basic {said}")),
        Request::post("/api/v1/agents", bob.genesis()).field("x-aip-invite", said.to_owned()),
        Request::post(
            "/api/v1/auth/token",
            json!({ "did": said, "kid": said, "challenge": said, "sig": said }).to_string(),
        ),
        Request::get("/api/v1/agents/connect").field("origin", format!("https://{said}.example")),
    ];
    for body in [
        format!("{{\"{said}\":\"{said}\"}}"),
        said.to_owned(),
        format!("[{{\"{said}\":1}}, \"{said}\"]"),
    ] {
        for path in [
            "/api/v1/messages",
            "/relay/bob",
            "/api/v1/agents",
            "/api/v1/agents/bob/operations",
            "/api/v1/auth/challenge",
        ] {
            requests.push(Request::post(path, body.clone()));
            requests.push(Request::post(path, body.clone()).field("content-type", said.to_owned()));
        }
    }
    let tampered = alice.resigned(&alice.envelope(bob), |envelope| {
        envelope["type"] = json!(format!("aip.{said}"));
    });
    let tampered = String::from_utf8(tampered)
        .unwrap()
        .replace("aip.message", "aip.other")
        .replace(":\"ed25519:z", ":\"ed25519:z1");
    requests.push(Request::post("/api/v1/messages", tampered));
    requests
}

/// The same secrets where they do not belong, as a careless or curious caller sends them.
async fn bad_traffic(hub: &TestHub, cage: &mut Cage, alice: &TestAgent, bob: &TestAgent) {
    let lost = cage.put("a lost token", "canary-of-a-lost-token-4711");
    let said = cage.put("a word of a stranger", "canary-of-a-stranger-4711");
    let requests = careless_requests(&lost, &said, alice, bob);
    for request in &requests {
        let _answer = aip_tests::raw::try_ask(hub.url(), request).await;
    }
    for frame in [
        json!({ "t": "auth", "token": lost }),
        json!({ "t": said }),
        json!({ "t": "auth", "did": said, "kid": said, "sig": said }),
    ] {
        let (mut socket, _challenge) = Socket::open(hub).await;
        socket.say(&frame).await;
        socket.close_code().await;
    }
    let token = Request::get("/admin/agents").bearer(&lost);
    assert_eq!(ask(hub.operator_url(), &token).await.status, 401);
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn logs_counters_and_files_hold_no_secret() {
    let mut hub = TestHub::start_with(HubOptions {
        config: Some(TALKATIVE.to_owned()),
        ..HubOptions::default()
    });
    let mut cage = Cage::default();
    let (alice, bob) = good_traffic(&hub, &mut cage).await;
    bad_traffic(&hub, &mut cage, &alice, &bob).await;
    let metrics = ask(hub.operator_url(), &Request::get("/metrics")).await.body;
    let token = std::fs::read_to_string(hub.data().join("operator.token")).unwrap();
    cage.put("the operator's token", token.trim());
    let key = std::fs::read_to_string(hub.data().join("hub.key")).unwrap();
    let key = key.lines().find(|line| !line.starts_with('#')).unwrap();
    cage.put("the hub's key", key.trim());
    assert!(
        hub.terminate(std::time::Duration::from_mins(1))
            .is_some_and(|status| status.success())
    );

    let log = hub.log().into_bytes();
    assert!(log.len() > 10_000 && holds(&log, "TRACE"), "nothing was logged");
    for canary in &cage.0 {
        assert!(
            !holds(&log, &canary.text),
            "the log holds {canary:?}:\n{}",
            line_of(&log, &canary.text)
        );
        assert!(!holds(&metrics, &canary.text), "the counters hold {canary:?}");
    }
    for file in files(&hub.data()) {
        let bytes = std::fs::read(&file).unwrap();
        let store = file.strip_prefix(hub.data()).unwrap().display().to_string();
        for canary in &cage.0 {
            // Each has one place: a sealed body waits in the mailboxes with its header, the two secrets have their files.
            let at_home = match canary.what {
                "a sealed body" | "a thread" => !store.starts_with("registry"),
                "the operator's token" => store == "operator.token",
                "the hub's key" => store == "hub.key",
                _ => false,
            };
            assert!(
                at_home || !holds(&bytes, &canary.text),
                "{store} holds {canary:?}"
            );
        }
    }
}

fn line_of(log: &[u8], text: &str) -> String {
    let log = String::from_utf8_lossy(log).into_owned();
    log.lines()
        .filter(|line| line.contains(text))
        .take(5)
        .collect::<Vec<_>>()
        .join("\n")
}
