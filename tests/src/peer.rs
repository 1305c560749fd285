//! A hub of another domain that a test plays by hand: it answers what the test wants, signs what the test wants, and remembers
//! what it was asked.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aip_protocol::discovery::{HubDocumentDraft, HubKey};
use aip_protocol::envelope::Envelope;
use aip_protocol::http_signature::{Body, SignedHeaders, Stamp, Target, sign_request};
use aip_protocol::identity::Operation;
use aip_protocol::json::Object;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use crate::keyed::now;
use crate::raw::{Answer, Request, try_ask};
use crate::{TestAgent, TestHub};

/// Largest head or body that a peer of a test reads.
const READ_BYTES_MAX: usize = 2 * 1024 * 1024;
const JSON: &str = "application/json";

/// How the peer answers a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Every item is stored.
    Kind,
    /// 503, as a hub says it.
    Busy,
    /// A page of a proxy.
    Html,
    /// The head of an answer, and then nothing.
    Hangs,
    /// An answer that does not end.
    Endless,
    /// 200 with something that is no answer.
    Nonsense,
}

/// A hub that a test plays.
#[derive(Debug)]
pub struct TestPeer {
    shared: Arc<Shared>,
    /// Its domain: `localhost` and its port.
    pub domain: Domain,
    /// Its key.
    pub key: SigningKey,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    mood: Mood,
    document: Vec<u8>,
    histories: BTreeMap<String, Vec<Operation>>,
    asked: Vec<String>,
    batches: Vec<Value>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TestPeer {
    /// A peer that listens on a free port, with an epoch of its own.
    ///
    /// # Panics
    /// When there is no port, or no such peer can be.
    pub async fn start(epoch: &str) -> Self {
        let listener = must(TcpListener::bind("127.0.0.1:0").await);
        let port = must(listener.local_addr()).port();
        Self::at(listener, &format!("localhost:{port}"), epoch)
    }

    /// A peer of this domain that listens here, on the runtime of the caller.
    ///
    /// # Panics
    /// When no such peer can be.
    #[must_use]
    pub fn at(listener: TcpListener, domain: &str, epoch: &str) -> Self {
        let domain = must(Domain::parse(domain));
        let key = SigningKey::from_seed(aip_client::Entropy::system().bytes());
        let state = State {
            mood: Mood::Kind,
            document: document(&domain, &key, None, epoch),
            histories: BTreeMap::new(),
            asked: Vec::new(),
            batches: Vec::new(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Self {
            shared,
            domain,
            key,
            _serving: serving,
        }
    }

    /// From now on it answers pushes like this.
    pub fn turn(&self, mood: Mood) {
        self.shared.lock().mood = mood;
    }

    /// From now on its document is signed by another key, which the old one vouches for or not.
    pub fn show(&mut self, key: SigningKey, is_vouched: bool, epoch: &str) {
        let previous = is_vouched.then_some(&self.key);
        self.shared.lock().document = document(&self.domain, &key, previous, epoch);
        self.key = key;
    }

    /// An agent of its domain, which it knows.
    pub fn agent(&self, name: &str) -> TestAgent {
        let agent = TestAgent::at(self.domain.as_str(), name);
        self.publish(name, vec![agent.identity.head().clone()]);
        agent
    }

    /// The history that it shows of an agent.
    pub fn publish(&self, name: &str, operations: Vec<Operation>) {
        self.shared.lock().histories.insert(name.to_owned(), operations);
    }

    /// What it was asked for so far.
    pub fn asked(&self) -> Vec<String> {
        self.shared.lock().asked.clone()
    }

    /// The items that were pushed to it so far.
    pub fn items(&self) -> Vec<Value> {
        let state = self.shared.lock();
        let items = state
            .batches
            .iter()
            .filter_map(|batch| batch.get("items").and_then(Value::as_array));
        items.flatten().cloned().collect()
    }

    /// A batch as this peer hands it in.
    #[must_use]
    pub fn batch(&self, epoch: &str, items: &[Value]) -> String {
        json!({ "aip": "1", "domain": self.domain.as_str(), "epoch": epoch, "items": items }).to_string()
    }

    /// A push of `body`, signed by its key.
    ///
    /// # Panics
    /// When the hub's address cannot be read.
    #[must_use]
    pub fn push(&self, hub: &TestHub, body: impl Into<Vec<u8>>) -> Request {
        signed_push(hub, &self.key, self.domain.as_str(), body)
    }

    /// Hands in items and returns the answer.
    pub async fn hand_in(&self, hub: &TestHub, epoch: &str, items: &[Value]) -> Option<Answer> {
        try_ask(hub.url(), &self.push(hub, self.batch(epoch, items))).await
    }
}

/// A push of `body`, signed by any key in the name of any domain.
///
/// # Panics
/// When the hub's address cannot be read.
#[must_use]
pub fn signed_push(hub: &TestHub, key: &SigningKey, domain: &str, body: impl Into<Vec<u8>>) -> Request {
    let body = body.into();
    let signed = signature(hub, key, domain, &body);
    Request::new("POST", "/federation/v1/messages")
        .field("content-type", JSON)
        .field("content-digest", signed.content_digest.unwrap_or_default())
        .field("signature-input", signed.signature_input)
        .field("signature", signed.signature)
        .body(body)
}

fn signature(hub: &TestHub, key: &SigningKey, domain: &str, body: &[u8]) -> SignedHeaders {
    let url = format!("http://{}/federation/v1/messages", hub.domain());
    let created_secs = now().unix_millis().div_euclid(1_000);
    let nonce = format!("{:032x}", rand::random::<u128>());
    let stamp = Stamp {
        created_secs,
        expires_secs: created_secs + 60,
        nonce: &nonce,
    };
    let body = Body {
        content_type: JSON,
        bytes: body,
    };
    let keyid = format!("{domain}#{}", key.public());
    let target = Target::of_url("POST", &must(Url::parse(&url)));
    sign_request(key, &keyid, &target, Some(body), stamp)
}

/// The header fields of a push that has the form of a signed one, in the name of the hub itself: it is let in as far as the body,
/// and no further.
///
/// # Panics
/// When the hub's address cannot be read.
#[must_use]
pub fn plausible_fields(hub: &TestHub) -> Vec<(&'static str, String)> {
    let key = SigningKey::from_seed([9; 32]);
    let signed = signature(hub, &key, &hub.domain(), b"");
    vec![
        ("content-digest", signed.content_digest.unwrap_or_default()),
        ("signature-input", signed.signature_input),
        ("signature", signed.signature),
    ]
}

/// One item.
#[must_use]
pub fn item(peer_seq: u64, envelope: &Envelope) -> Value {
    let envelope: Value = serde_json::from_slice(&envelope.to_wire()).unwrap_or_default();
    item_of(peer_seq, envelope)
}

/// One item around anything.
#[must_use]
pub fn item_of(peer_seq: u64, envelope: Value) -> Value {
    let mut item = Map::new();
    item.insert("peer_seq".to_owned(), peer_seq.into());
    item.insert("accepted_at".to_owned(), now().to_string().into());
    item.insert("envelope".to_owned(), envelope);
    Value::Object(item)
}

fn document(domain: &Domain, key: &SigningKey, previous: Option<&SigningKey>, epoch: &str) -> Vec<u8> {
    let draft = HubDocumentDraft {
        domain: domain.clone(),
        hub: must(Url::parse(&format!("http://{domain}"))),
        keys: vec![HubKey {
            key: key.public().clone(),
            not_after: None,
        }],
        features: vec!["mail".to_owned()],
        limits: Object::new(),
        software: Object::new(),
        epoch: epoch.to_owned(),
        generated_at: now(),
    };
    must(draft.sign(key, previous)).json.to_jcs()
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer_all(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers requests of one connection until it ends.
async fn answer_all(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut read = Vec::new();
    while let Ok(Some((method, target, body))) = request(&mut stream, &mut read).await {
        if answer(&mut stream, &shared, &method, &target, &body)
            .await
            .is_err()
        {
            return;
        }
    }
}

/// The next request: method, target, body.
async fn request(
    stream: &mut TcpStream,
    read: &mut Vec<u8>,
) -> io::Result<Option<(String, String, Vec<u8>)>> {
    loop {
        if let Some((head, length)) = head(read) {
            let (method, target) = head;
            while read.len() < length.0 + length.1 {
                if more(stream, read).await? == 0 {
                    return Ok(None);
                }
            }
            let rest = read.split_off(length.0 + length.1);
            let body = read.split_off(length.0);
            *read = rest;
            return Ok(Some((method, target, body)));
        }
        if more(stream, read).await? == 0 || read.len() > READ_BYTES_MAX {
            return Ok(None);
        }
    }
}

async fn more(stream: &mut TcpStream, read: &mut Vec<u8>) -> io::Result<usize> {
    stream.read_buf(read).await
}

/// Method and target of a whole head, its length, and that of the body.
fn head(read: &[u8]) -> Option<((String, String), (usize, usize))> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(length) = parsed.parse(read).ok()? else {
        return None;
    };
    let body = parsed
        .headers
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case("content-length"))
        .and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok())
        .unwrap_or(0);
    Some((
        (parsed.method?.to_owned(), parsed.path?.to_owned()),
        (length, body),
    ))
}

async fn answer(
    stream: &mut TcpStream,
    shared: &Shared,
    method: &str,
    target: &str,
    body: &[u8],
) -> io::Result<()> {
    shared.lock().asked.push(target.to_owned());
    if method == "POST" {
        return answer_push(stream, shared, body).await;
    }
    if target == "/.well-known/aip" {
        let document = shared.lock().document.clone();
        return respond(stream, 200, JSON, &document).await;
    }
    let name = target
        .strip_prefix("/api/v1/agents/")
        .and_then(|rest| rest.split_once("/history"));
    let found = name.and_then(|(name, _)| shared.lock().histories.get(name).cloned());
    match found {
        Some(operations) => {
            let operations: Vec<Value> = operations
                .iter()
                .map(|operation| Value::from(operation.json.clone()))
                .collect();
            let page = json!({ "operations": operations, "next_cursor": null }).to_string();
            respond(stream, 200, JSON, page.as_bytes()).await
        }
        None => {
            respond(
                stream,
                404,
                "application/problem+json",
                problem(404, "not_found").as_bytes(),
            )
            .await
        }
    }
}

async fn answer_push(stream: &mut TcpStream, shared: &Shared, body: &[u8]) -> io::Result<()> {
    let batch: Value = serde_json::from_slice(body).unwrap_or_default();
    let mood = {
        let mut state = shared.lock();
        state.batches.push(batch.clone());
        state.mood
    };
    match mood {
        Mood::Kind => {
            let items = batch
                .get("items")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let results: Vec<Value> = items
                .iter()
                .map(|item| json!({ "peer_seq": item["peer_seq"], "status": "stored" }))
                .collect();
            let answer = json!({ "results": results, "acked_through": 0 }).to_string();
            respond(stream, 200, JSON, answer.as_bytes()).await
        }
        Mood::Busy => {
            respond(
                stream,
                503,
                "application/problem+json",
                problem(503, "unavailable").as_bytes(),
            )
            .await
        }
        Mood::Html => respond(stream, 200, "text/html", b"<html>It works!</html>").await,
        Mood::Nonsense => respond(stream, 200, JSON, b"{\"results\":[17],\"acked_through\":\"all\"}").await,
        Mood::Hangs => {
            stream
                .write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n",
                )
                .await?;
            let _closed = timeout(Duration::from_mins(5), stream.read_u8()).await;
            Err(io::Error::other("hung long enough"))
        }
        Mood::Endless => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
                .await?;
            loop {
                stream.write_all(&[b' '; 4_096]).await?;
            }
        }
    }
}

async fn respond(stream: &mut TcpStream, status: u16, media_type: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await
}

fn problem(status: u16, code: &str) -> String {
    json!({ "type": "about:blank", "title": code, "status": status, "detail": code, "code": code, "request_id": "1" })
        .to_string()
}

fn must<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("no such peer: {error:?}"),
    }
}
