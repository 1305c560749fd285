//! Everything that a stranger can send to a hub, at every door that it has.
//!
//! The list of doors is the hub's own OpenAPI document, so that a new one is tried from its first day. Whatever comes,
//! the answer is a refusal in the form of §7 or a closed connection; the hub stays up, fails nowhere, stores nothing,
//! tells nothing of its inside, and does not grow.

mod bodies;
mod crowds;
mod egress;
mod framing;
mod secrets;
mod slow;
mod sockets;
mod targets;

pub(crate) use egress::answering;

use aip_tests::peer::plausible_fields;
use aip_tests::raw::{Answer, Request, ask};
use aip_tests::{HubOptions, TestAgent, TestHub};
use serde_json::Value;

/// What a door of the public listener is.
#[derive(Debug, Clone)]
struct Door {
    method: String,
    /// The path as the document has it.
    template: String,
    /// The path to a thing that exists, or could.
    target: String,
    /// What opens it, where it is locked: bob's token, or the key of his provider.
    key: Option<String>,
    /// Whether it takes a body.
    body: bool,
    /// What a request needs beside, so that its body is looked at.
    fields: Vec<(&'static str, String)>,
}

/// The media type of JSON, one value a line.
const LINES: &str = "application/x-ndjson";

impl Door {
    /// A request to it, with what opens it.
    fn request(&self) -> Request {
        self.request_to(&self.target)
    }

    /// The same to another path of its kind.
    fn request_to(&self, target: &str) -> Request {
        let request = Request::new(&self.method, target);
        let fields = self.fields.iter().cloned();
        let request = fields.fold(request, |request, (name, value)| request.field(name, value));
        match &self.key {
            Some(key) => request.bearer(key),
            None => request,
        }
    }

    /// The media type of bodies that it takes.
    fn media_type(&self) -> &'static str {
        if self.takes_rows() {
            LINES
        } else {
            "application/json"
        }
    }

    /// The same with a body of JSON, or of what pretends to be JSON.
    fn with_body(&self, body: impl Into<Vec<u8>>) -> Request {
        self.request().field("content-type", self.media_type()).body(body)
    }

    /// Whether it is one of the two that take what a provider hands in, row by row.
    fn takes_rows(&self) -> bool {
        self.body && self.template == "/api/v1/ingest/listings"
    }

    /// Whether it says of each row that it is handed what became of it.
    fn reports_rows(&self) -> bool {
        let feeds = ["products", "capabilities"];
        let name = self.template.strip_prefix("/api/v1/ingest/");
        self.takes_rows() || self.body && name.is_some_and(|name| feeds.contains(&name))
    }

    /// Whether it takes any object: what it knows of it may be there, and need not.
    fn takes_any_object(&self) -> bool {
        let doors = ["accounts", "account/keys", "account/rotate-key"];
        let name = self.template.strip_prefix("/ai-market/v2/");
        self.body && name.is_some_and(|name| doors.contains(&name))
    }

    /// Whether it is one of the two that take envelopes, and so arrays.
    fn takes_envelopes(&self) -> bool {
        self.body && (self.template == "/api/v1/messages" || self.template == "/relay/{name}")
    }
}

/// A new key of a provider that hands in listings for an agent.
async fn provider_key(hub: &TestHub, agent: &TestAgent) -> String {
    let body = serde_json::json!({ "name": "feed", "agent": agent.did.as_str() }).to_string();
    let made = hub.operate(Request::post("/admin/providers", body)).await;
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["key"].as_str().expect("a key").to_owned()
}

/// A hub with two agents; bob's token opens what is locked, and the key of his provider the doors of providers.
struct House {
    hub: TestHub,
    alice: TestAgent,
    bob: TestAgent,
    token: String,
    provider_key: String,
}

impl House {
    async fn open() -> Self {
        Self::with("").await
    }

    async fn with(config: &str) -> Self {
        let hub = TestHub::start_with(HubOptions {
            config: Some(config.to_owned()),
            ..HubOptions::default()
        });
        let alice = TestAgent::registered(&hub, "alice").await;
        let bob = TestAgent::registered(&hub, "bob").await;
        let token = bob.token(&hub).await;
        let provider_key = provider_key(&hub, &bob).await;
        let account = Request::post("/ai-market/v2/accounts", "{}").bearer(&token);
        assert_eq!(ask(hub.url(), &account).await.status, 200, "bob has no account");
        Self {
            hub,
            alice,
            bob,
            token,
            provider_key,
        }
    }

    async fn ask(&self, request: &Request) -> Answer {
        ask(self.hub.url(), request).await
    }

    /// The doors of the public listener.
    async fn doors(&self) -> Vec<Door> {
        let document = self.ask(&Request::get("/openapi.json")).await.json();
        let mut doors = Vec::new();
        for (template, item) in members(&document["paths"]) {
            if template == "/metrics" || template.starts_with("/admin/") {
                continue;
            }
            for (method, operation) in members(item) {
                doors.push(Door {
                    method: method.to_uppercase(),
                    target: self.target(template),
                    template: template.clone(),
                    key: self.key(operation.get("security")),
                    body: operation.get("requestBody").is_some(),
                    fields: if template == "/federation/v1/messages" {
                        plausible_fields(&self.hub)
                    } else {
                        Vec::new()
                    },
                });
            }
        }
        assert!(doors.len() > 20, "only {} doors: {doors:?}", doors.len());
        doors
    }

    /// What opens a door with this member `security`.
    fn key(&self, security: Option<&Value>) -> Option<String> {
        let asked = security?[0].as_object().expect("what is asked for");
        Some(if asked.contains_key("provider") {
            self.provider_key.clone()
        } else {
            self.token.clone()
        })
    }

    /// A template with something in its places.
    fn target(&self, template: &str) -> String {
        let did = self.bob.did.encoded().clone();
        let segment = |segment: &str| match segment {
            "{name}" => "bob".to_owned(),
            "{did}" | "{identifier}" | "{agent}" => did.clone(),
            "{id}" | "{job_id}" => "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11".to_owned(),
            "{code}" => "internal".to_owned(),
            "{seq}" => "1".to_owned(),
            "{listing_id}" => "lamp".to_owned(),
            "{channel_id}" => format!("ch_{:032x}", 7),
            "{key_id}" => format!("key_{:016x}", 7),
            "{nonce}" => format!("rcpt_{:032x}", 7),
            "{file}" => "receipt.json".to_owned(),
            other => {
                assert!(!other.starts_with('{'), "say here what stands for {other}");
                other.to_owned()
            }
        };
        template.split('/').map(segment).collect::<Vec<_>>().join("/")
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Parts of our own code, of our libraries and of this machine, which no answer may name.
const INTERNALS: &[&str] = &[
    ".rs",
    "src/",
    "panicked",
    "unwrap",
    "RUST_",
    "sqlx",
    "sqlite",
    "rocksdb",
    "actix",
    "serde",
    "tokio",
    "/tmp",
    "/home",
    "/root",
    "SELECT",
    "INSERT",
    "No such file",
    "os error",
];

/// That an answer is a refusal in the form of §7, or, on the market's paths, in that of the market, and says nothing of the
/// hub's inside. Returns its code.
fn assert_refused(answer: &Answer, what: &str) -> String {
    assert!(
        (400..500).contains(&answer.status),
        "{what}: {} {}",
        answer.status,
        answer.text()
    );
    assert_discreet(answer, what);
    code_of(answer, what)
}

/// The paths that answer in the form of the market.
const MARKET: &[&str] = &["/ai-market/", "/ai-market.json", " /schemas"];

/// The code of a refusal, in the form of the path that `what` names.
fn code_of(answer: &Answer, what: &str) -> String {
    if !MARKET.iter().any(|path| what.contains(path)) {
        return answer.code();
    }
    let (body, shown) = (answer.json(), answer.text());
    assert_eq!(
        answer.header("content-type"),
        "application/json",
        "{what}: {shown}"
    );
    assert_eq!(
        (&body["success"], &body["protocol_version"]),
        (&Value::Bool(false), &Value::from("v2")),
        "{what}: {shown}"
    );
    assert!(
        body["detail"].is_string() || body["detail"].is_array(),
        "{what}: {shown}"
    );
    body["error"].as_str().expect("a code").to_owned()
}

/// That an answer says nothing of the hub's inside.
pub(crate) fn assert_discreet(answer: &Answer, what: &str) {
    let text = answer.text();
    for part in INTERNALS {
        assert!(!text.contains(part), "{what} is told of {part}: {text}");
    }
    assert!(answer.header("server").is_empty(), "{what}: {answer:?}");
}
