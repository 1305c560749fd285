//! An agent whose keys a test holds in its hands, for envelopes and operations that no client would make.
//! Well-behaved agents are in [`crate::clients`].

use aip_client::{Entropy, SystemClock};
use aip_protocol::challenge::challenge_object;
use aip_protocol::clock::Clock as _;
use aip_protocol::envelope::{Envelope, EnvelopeDraft};
use aip_protocol::error::Refusal;
use aip_protocol::identity::{Identity, Keys, Operation, OperationDraft};
use aip_protocol::json::Json;
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::{Did, Handle};
use aip_protocol::signature::{Tag, sign};
use aip_protocol::time::Timestamp;
use serde_json::{Value, json};

use crate::TestHub;
use crate::raw::{Answer, Request, ask};

/// Now, by this machine's clock.
#[must_use]
pub fn now() -> Timestamp {
    SystemClock.now()
}

/// Sends bytes that may be an envelope, or an array of them, at the home door.
pub async fn send(hub: &TestHub, wire: impl Into<Vec<u8>>) -> Answer {
    ask(hub.url(), &Request::post("/api/v1/messages", wire)).await
}

/// An agent with its keys.
#[derive(Debug)]
pub struct TestAgent {
    /// Who it is.
    pub did: Did,
    /// What it signs envelopes and challenges with.
    pub signing: SigningKey,
    /// What opens its mail.
    pub opening: OpeningKey,
    /// What changes its identity.
    pub rotation: SigningKey,
    /// Its history, as far as it knows.
    pub identity: Identity,
    entropy: Entropy,
}

impl TestAgent {
    /// An agent of `hub`'s domain in relay mode, with fresh keys, not registered yet.
    ///
    /// # Panics
    /// When `name` is no name.
    #[must_use]
    pub fn new(hub: &TestHub, name: &str) -> Self {
        Self::draft(hub, name, |_| ())
    }

    /// An agent of any domain.
    ///
    /// # Panics
    /// When no such agent can be.
    #[must_use]
    pub fn at(domain: &str, name: &str) -> Self {
        must(Self::try_at(domain, name, |_| ()))
    }

    /// The same, with another operation 0.
    ///
    /// # Panics
    /// When no such agent can be.
    #[must_use]
    pub fn draft(hub: &TestHub, name: &str, change: impl FnOnce(&mut OperationDraft)) -> Self {
        must(Self::try_draft(hub, name, change))
    }

    /// The same, for operations that may have a form that nobody takes.
    ///
    /// # Errors
    /// What is wrong with its form.
    pub fn try_draft(
        hub: &TestHub,
        name: &str,
        change: impl FnOnce(&mut OperationDraft),
    ) -> Result<Self, Refusal> {
        Self::try_at(&hub.domain(), name, change)
    }

    fn try_at(domain: &str, name: &str, change: impl FnOnce(&mut OperationDraft)) -> Result<Self, Refusal> {
        let entropy = Entropy::system();
        let key = || SigningKey::from_seed(entropy.bytes());
        let (signing, rotation) = (key(), key());
        let opening = OpeningKey::from_seed(entropy.bytes());
        let did = Handle::parse(&format!("{name}#{domain}"))?.did();
        let keys = Keys {
            signing: vec![signing.public().clone()],
            sealing: vec![opening.public().clone()],
            rotation: vec![rotation.public().clone()],
        };
        let mut draft = OperationDraft::genesis(did.clone(), now(), keys);
        change(&mut draft);
        let identity = Identity::genesis(draft.sign(&rotation)?)?;
        Ok(Self {
            did,
            signing,
            opening,
            rotation,
            identity,
            entropy,
        })
    }

    /// A registered agent.
    ///
    /// # Panics
    /// When the hub does not take it.
    pub async fn registered(hub: &TestHub, name: &str) -> Self {
        Self::new(hub, name).register(hub).await
    }

    /// Registers it.
    ///
    /// # Panics
    /// When the hub does not take it.
    pub async fn register(self, hub: &TestHub) -> Self {
        let answer = ask(hub.url(), &Request::post("/api/v1/agents", self.genesis())).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        self
    }

    /// Operation 0 as it goes over the wire.
    #[must_use]
    pub fn genesis(&self) -> Vec<u8> {
        self.identity.head().json.to_jcs()
    }

    /// The next operation after `change`, signed but not sent.
    ///
    /// # Panics
    /// When there is no such operation.
    pub fn operation(&self, change: impl FnOnce(&mut OperationDraft)) -> Operation {
        let mut draft = self.identity.next_draft(now());
        change(&mut draft);
        must(draft.sign(&self.rotation))
    }

    /// Sends the next operation, and follows it.
    ///
    /// # Panics
    /// When the hub does not take it.
    pub async fn change(&mut self, hub: &TestHub, change: impl FnOnce(&mut OperationDraft)) {
        let operation = self.operation(change);
        let path = format!("/api/v1/agents/{}/operations", self.did.name());
        let answer = ask(hub.url(), &Request::post(path, operation.json.to_jcs())).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        self.identity = must(self.identity.apply(operation));
    }

    /// The name of its signing key.
    #[must_use]
    pub fn kid(&self) -> String {
        format!("{}#{}", self.did, self.signing.public())
    }

    /// A message to `to` that says little.
    #[must_use]
    pub fn envelope(&self, to: &Self) -> Envelope {
        self.envelope_with(
            to,
            b"{\"content_type\":\"text/plain\",\"body\":\"hello\"}",
            |_| (),
        )
    }

    /// A message to `to`, with another header.
    ///
    /// # Panics
    /// When there is no such envelope.
    #[must_use]
    pub fn envelope_with(
        &self,
        to: &Self,
        plaintext: &[u8],
        change: impl FnOnce(&mut EnvelopeDraft),
    ) -> Envelope {
        let id = self.entropy.message_id();
        let mut draft = EnvelopeDraft::new(id, self.did.clone(), to.did.clone(), "aip.message", now());
        change(&mut draft);
        let key = to.opening.public();
        must(
            self.entropy
                .with(|mut rng| draft.seal(&self.signing, key, plaintext, &mut rng)),
        )
    }

    /// `envelope` after `change`, with a good signature: wrong only in what the test changed.
    ///
    /// # Panics
    /// When the change leaves no JSON object of the protocol.
    #[must_use]
    pub fn resigned(&self, envelope: &Envelope, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut value = Value::from(envelope.json.clone());
        change(&mut value);
        let unsigned = must(Json::try_from(value)).without(&["sig"]);
        let mut value = Value::from(unsigned.clone());
        if let Some(members) = value.as_object_mut() {
            let signature = sign(&self.signing, Tag::Envelope, &unsigned);
            members.insert("sig".to_owned(), signature.to_string().into());
        }
        value.to_string().into_bytes()
    }

    /// Sends a message to `to` at the home door.
    pub async fn send(&self, hub: &TestHub, to: &Self) -> Answer {
        send(hub, self.envelope(to).to_wire()).await
    }

    /// The answer to a challenge of the HTTP door: the body for `/api/v1/auth/token`.
    ///
    /// # Panics
    /// When the hub gives no challenge.
    pub async fn answered_challenge(&self, hub: &TestHub) -> Value {
        let asked = json!({ "did": self.did }).to_string();
        let answer = ask(hub.url(), &Request::post("/api/v1/auth/challenge", asked)).await;
        match answer.json().get("challenge").and_then(Value::as_str) {
            Some(challenge) => self.sign_challenge(challenge, &hub.domain()),
            None => panic!("no challenge: {}", answer.text()),
        }
    }

    /// `{did, kid, challenge, sig}` for a challenge of a hub.
    #[must_use]
    pub fn sign_challenge(&self, challenge: &str, domain: &str) -> Value {
        let object = challenge_object(domain, challenge, &self.did);
        let signature = sign(&self.signing, Tag::Challenge, &object).to_string();
        json!({ "did": self.did, "kid": self.kid(), "challenge": challenge, "sig": signature })
    }

    /// A token.
    ///
    /// # Panics
    /// When the hub gives none.
    pub async fn token(&self, hub: &TestHub) -> String {
        let body = self.answered_challenge(hub).await.to_string();
        let answer = ask(hub.url(), &Request::post("/api/v1/auth/token", body)).await;
        match answer.json().get("token").and_then(Value::as_str) {
            Some(token) => token.to_owned(),
            None => panic!("no token: {}", answer.text()),
        }
    }

    /// The frame `auth` for a socket's challenge, with further members.
    #[must_use]
    pub fn auth_frame(&self, hub: &TestHub, challenge: &str, more: Value) -> Value {
        let mut frame = self.sign_challenge(challenge, &hub.domain());
        if let (Some(members), Value::Object(more)) = (frame.as_object_mut(), more) {
            members.remove("challenge");
            members.insert("t".to_owned(), json!("auth"));
            members.extend(more);
        }
        frame
    }
}

fn must<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error:?}"),
    }
}
