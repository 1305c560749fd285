//! A hub in memory, just real enough, that fails on command. It speaks the wire of the specification over real sockets.

mod http;
pub(crate) mod listings;
mod mailbox;
pub(crate) mod market;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use aip_client::protocol::envelope::Envelope;
use aip_client::protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_client::protocol::json::Json;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

pub(crate) use mailbox::Mailbox;

/// How one request goes wrong.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The line breaks before anything is done.
    HangUp,
    /// It is done, and the answer is lost.
    LoseAnswer,
    /// This is the answer.
    Answer(u16, Value),
}

/// What the hub knows and what it saw.
#[derive(Debug, Default)]
pub(crate) struct State {
    histories: BTreeMap<String, Vec<Operation>>,
    pub(crate) mailboxes: BTreeMap<String, Mailbox>,
    /// By path prefix: what goes wrong next.
    faults: Vec<(String, VecDeque<Fault>)>,
    /// Every request: method, path, body.
    pub(crate) requests: Vec<(String, String, Vec<u8>)>,
    /// Their heads.
    pub(crate) heads: Vec<String>,
    pub(crate) listings: listings::Listings,
    pub(crate) market: market::Market,
    /// Every frame of an agent.
    pub(crate) frames: Vec<Value>,
    /// What the challenge frame says instead of the hub's domain.
    pub(crate) claimed_domain: Option<String>,
    /// Messages after which each of the next sessions breaks.
    pub(crate) break_sessions_after: VecDeque<usize>,
    /// Acks are read and forgotten.
    pub(crate) forget_acks: bool,
    /// How long a token lives, by the hub's word.
    pub(crate) token_expires_at: Option<String>,
    pub(crate) sessions: u64,
    challenges: u64,
    /// Closes the session that is open with this code.
    pub(crate) kick: Option<u16>,
    /// How the next upgrades to WebSocket go wrong.
    pub(crate) upgrades: VecDeque<Fault>,
    /// How often an upgrade was asked for.
    pub(crate) upgrades_asked: usize,
    /// With which codes the next envelopes that come over a socket are refused.
    pub(crate) refuse_sends: VecDeque<&'static str>,
    /// What a status says beside the id.
    pub(crate) status: Option<Value>,
}

/// The hub.
#[derive(Debug, Clone)]
pub(crate) struct FakeHub {
    pub(crate) domain: String,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

impl FakeHub {
    /// Starts on a free port and lives as long as the runtime.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let domain = format!("localhost:{}", listener.local_addr().unwrap().port());
        let hub = Self {
            domain,
            state: Arc::default(),
            changed: Arc::default(),
        };
        let serving = hub.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        hub
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.domain.replace("localhost", "127.0.0.1"))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The next requests under this path go wrong like this, one each.
    pub(crate) fn fail(&self, path: &str, faults: impl IntoIterator<Item = Fault>) {
        self.state()
            .faults
            .push((path.to_owned(), faults.into_iter().collect()));
    }

    /// Bodies of the requests under this path.
    pub(crate) fn bodies(&self, path: &str) -> Vec<Vec<u8>> {
        let state = self.state();
        let matching = state
            .requests
            .iter()
            .filter(|(_, requested, _)| requested == path);
        matching.map(|(_, _, body)| body.clone()).collect()
    }

    /// How many requests came in under this path prefix.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.state()
            .requests
            .iter()
            .filter(|(_, requested, _)| requested.starts_with(path))
            .count()
    }

    /// Frames of this kind, in order.
    pub(crate) fn frames(&self, kind: &str) -> Vec<Value> {
        self.state()
            .frames
            .iter()
            .filter(|frame| frame["t"] == kind)
            .cloned()
            .collect()
    }

    /// Puts an envelope into a mailbox past all admission, as a hub with a fault might.
    pub(crate) fn put(&self, name: &str, wire: &[u8]) {
        self.state()
            .mailboxes
            .entry(name.to_owned())
            .or_default()
            .append(wire);
        self.changed.notify_waiters();
    }

    /// Restores the mailboxes from a backup: a new epoch, and everything is open again.
    pub(crate) fn restore(&self) {
        for mailbox in self.state().mailboxes.values_mut() {
            mailbox.restore();
        }
        self.state().kick = Some(1001);
        self.changed.notify_waiters();
    }

    /// The same while the session stays open: it does not hear of it before it says something of the old epoch.
    pub(crate) fn restore_behind_the_session(&self) {
        for mailbox in self.state().mailboxes.values_mut() {
            mailbox.restore();
        }
    }

    /// Loses every acknowledgement, in the same epoch, and ends the session.
    pub(crate) fn lose_acks(&self) {
        for mailbox in self.state().mailboxes.values_mut() {
            mailbox.lose_acks();
        }
        self.kick(1001);
    }

    /// Closes the open session with this code.
    pub(crate) fn kick(&self, code: u16) {
        self.state().kick = Some(code);
        self.changed.notify_waiters();
    }

    async fn serve(self, stream: TcpStream) {
        let mut start = [0; 64];
        // A short first packet would be mistaken; clients on loopback send their request line in one.
        let length = stream.peek(&mut start).await.unwrap_or(0);
        if start[..length].starts_with(b"GET /api/v1/agents/connect") {
            let fault = {
                let mut state = self.state();
                state.upgrades_asked += 1;
                state.upgrades.pop_front()
            };
            match fault {
                None => socket::serve(self, stream).await,
                Some(Fault::Answer(status, body)) => http::refuse(stream, status, &body).await,
                Some(Fault::HangUp | Fault::LoseAnswer) => {}
            }
        } else {
            http::serve(self, stream).await;
        }
    }

    /// One request: what goes wrong with it, and what the answer is.
    fn handle(&self, method: &str, path: &str, body: &[u8]) -> Option<(u16, Value)> {
        let fault = {
            let mut state = self.state();
            state
                .requests
                .push((method.to_owned(), path.to_owned(), body.to_vec()));
            let faults = state
                .faults
                .iter_mut()
                .filter(|(prefix, _)| path.starts_with(prefix.as_str()));
            faults.into_iter().find_map(|(_, faults)| faults.pop_front())
        };
        match fault {
            Some(Fault::HangUp) => None,
            Some(Fault::Answer(status, body)) => Some((status, body)),
            Some(Fault::LoseAnswer) => {
                self.answer(method, path, body);
                None
            }
            None => Some(self.answer(method, path, body)),
        }
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let (route, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = route.trim_start_matches('/').split('/').collect();
        if let ["api", "v1", door @ ..] = parts.as_slice()
            && let Some(answer) = self.listing_door(method, door, query, body)
        {
            return answer;
        }
        if let ["ai-market", "v2", door @ ..] = parts.as_slice() {
            return self.market_door(method, door, body);
        }
        match (method, parts.as_slice()) {
            ("GET", [".well-known", "ai-market.json"]) => self.well_known_market(),
            ("GET", ["api", "v1", "market", "earnings"]) => (
                200,
                json!({"currency": "USD", "earned": "0.25", "paid_out": "0.1", "owed": "0.15", "calls": 25}),
            ),
            ("GET", [".well-known", "aip"]) => {
                (200, json!({"aip": "1", "domain": self.domain, "hub": self.url()}))
            }
            ("POST", ["api", "v1", "agents"]) => self.register(body),
            ("POST", ["api", "v1", "agents", name, "operations"]) => self.operate(name, body),
            ("GET", ["api", "v1", "agents", name, "history"]) => self.history(name, query),
            ("GET", ["api", "v1", "resolve", id]) => self.resolve(id.rsplit("%3A").next().unwrap()),
            ("POST", ["api", "v1", "messages"]) => self.messages(body),
            ("POST", ["api", "v1", "auth", "challenge"]) => (200, json!({"challenge": self.challenge()})),
            ("POST", ["api", "v1", "auth", "token"]) => self.token(),
            ("GET", ["api", "v1", "messages", id, "status"]) => (200, self.status(id)),
            ("GET", ["api", "v1", "inbox"]) => self.state().mailboxes.entry("bob".into()).or_default().page(),
            ("POST", ["api", "v1", "inbox", "ack"]) => self.ack(body),
            _ => problem(404, "not_found"),
        }
    }

    fn status(&self, id: &str) -> Value {
        let status = self.state().status.clone();
        let mut status = status.unwrap_or_else(|| json!({"status": "stored"}));
        status["id"] = id.into();
        status
    }

    fn challenge(&self) -> String {
        let mut state = self.state();
        state.challenges += 1;
        format!("challenge-{}", state.challenges)
    }

    fn token(&self) -> (u16, Value) {
        let mut state = self.state();
        state.challenges += 1;
        let expires_at = state
            .token_expires_at
            .clone()
            .unwrap_or_else(|| "2099-01-01T00:00:00Z".to_owned());
        (
            200,
            json!({"token": format!("token-{}", state.challenges), "expires_at": expires_at}),
        )
    }

    fn ack(&self, body: &[u8]) -> (u16, Value) {
        let body: Value = serde_json::from_slice(body).unwrap();
        let mut state = self.state();
        let mailbox = state.mailboxes.entry("bob".into()).or_default();
        if body["epoch"] != mailbox.epoch() {
            return problem(409, "epoch_changed");
        }
        mailbox.ack(body["upto"].as_u64().unwrap(), &seqs(&body["also"]));
        (200, json!({"epoch": mailbox.epoch(), "floor": mailbox.floor()}))
    }

    fn register(&self, body: &[u8]) -> (u16, Value) {
        let operation = Operation::parse(body, EndpointPolicy { allow_http: true }).unwrap();
        let name = operation.did.name().to_owned();
        let known = self
            .state()
            .histories
            .get(&name)
            .and_then(|history| history.first())
            .map(|op| op.hash().to_owned());
        match known {
            Some(hash) if hash != operation.hash() => problem(409, "handle_taken"),
            Some(_) => (200, self.resolve(&name).1),
            None => {
                self.state().histories.insert(name.clone(), vec![operation]);
                (201, self.resolve(&name).1)
            }
        }
    }

    fn operate(&self, name: &str, body: &[u8]) -> (u16, Value) {
        let operation = Operation::parse(body, EndpointPolicy { allow_http: true }).unwrap();
        let history = self.state().histories.get(name).cloned().unwrap_or_default();
        if history.iter().any(|known| known.hash() == operation.hash()) {
            return (200, self.resolve(name).1);
        }
        let next = history.iter().cloned().chain([operation.clone()]);
        if let Err(refusal) = Identity::replay(next) {
            return problem(refusal.code.status(), refusal.code.as_str());
        }
        self.state().histories.get_mut(name).unwrap().push(operation);
        (200, self.resolve(name).1)
    }

    /// Two operations a page, so that paging is used.
    fn history(&self, name: &str, query: &str) -> (u16, Value) {
        let state = self.state();
        let Some(history) = state.histories.get(name) else {
            return problem(404, "not_found");
        };
        let from: usize = query
            .strip_prefix("cursor=")
            .map_or(0, |cursor| cursor.parse().unwrap());
        let page: Vec<Json> = history
            .iter()
            .skip(from)
            .take(2)
            .map(|operation| operation.json.clone())
            .collect();
        let next = (from + 2 < history.len()).then(|| (from + 2).to_string());
        (200, json!({"operations": page, "next_cursor": next}))
    }

    fn resolve(&self, name: &str) -> (u16, Value) {
        let history = self.state().histories.get(name).cloned();
        let Some(history) = history else {
            return problem(404, "not_found");
        };
        let identity = Identity::replay(history).unwrap();
        let document = aip_client::protocol::document::did_document(identity.head(), &self.url());
        let answer = json!({
            "handle": identity.did().handle(),
            "did": identity.did(),
            "route_mode": identity.head().route_mode.as_str(),
            "endpoint": format!("{}/relay/{name}", self.url()),
            "did_document": document,
            "history": identity.summary(),
            "expires_at": "2099-01-01T00:00:00Z",
        });
        (200, answer)
    }

    fn messages(&self, body: &[u8]) -> (u16, Value) {
        let parsed: Value = serde_json::from_slice(body).unwrap();
        match parsed {
            Value::Array(items) => {
                let results = items
                    .iter()
                    .map(|item| self.accept(item.to_string().as_bytes()).1);
                (200, results.collect())
            }
            _ => self.accept(body),
        }
    }

    fn accept(&self, wire: &[u8]) -> (u16, Value) {
        let envelope = Envelope::parse(wire).unwrap();
        let (id, name) = (envelope.id.to_string(), envelope.to.name().to_owned());
        let known = self
            .state()
            .mailboxes
            .entry(name.clone())
            .or_default()
            .seq_of(&id);
        if let Some(seq) = known {
            return (
                200,
                json!({"id": id, "status": "duplicate", "route": "mailbox", "seq": seq}),
            );
        }
        self.put(&name, wire);
        let seq = self.state().mailboxes[&name].seq_of(&id);
        (
            202,
            json!({"id": id, "status": "stored", "route": "mailbox", "seq": seq}),
        )
    }
}

fn problem(status: u16, code: &str) -> (u16, Value) {
    (
        status,
        json!({"status": status, "code": code, "detail": "as scripted", "request_id": "r-1"}),
    )
}

fn seqs(value: &Value) -> Vec<u64> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
        .collect()
}
