//! Hubs of strangers and their agents, for the tests of this room and of those above it: honest, until a test changes them.

use aip_protocol::discovery::{HubDocument, HubDocumentDraft, HubKey, hub_kid};
use aip_protocol::identity::{Identity, Keys, Operation, OperationDraft};
use aip_protocol::json::{Json, Object};
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use url::Url;

use crate::egress::fake::{FakeExchange, Told};

/// A hub of another domain.
#[derive(Debug, Clone)]
pub struct FakeHub {
    /// Its domain.
    pub domain: Domain,
    /// Where it is: `https://hub.` and the domain.
    pub url: Url,
    /// The key it signs with.
    pub key: SigningKey,
    /// The key that vouches for it, if any.
    pub previous: Option<SigningKey>,
    /// The epoch of its outboxes.
    pub epoch: String,
    /// What it offers.
    pub features: Vec<String>,
}

impl FakeHub {
    /// A hub whose key follows from `seed`.
    pub fn new(domain: &str, seed: u8) -> Self {
        Self {
            domain: Domain::parse(domain).unwrap(),
            url: Url::parse(&format!("https://hub.{domain}")).unwrap(),
            key: SigningKey::from_seed([seed; 32]),
            previous: None,
            epoch: "1".to_owned(),
            features: vec!["mail".to_owned()],
        }
    }

    /// Its `keyid`.
    pub fn kid(&self) -> String {
        hub_kid(&self.domain, self.key.public())
    }

    /// Takes another key, which the one before vouches for.
    pub fn rotate(&mut self, seed: u8) {
        let next = SigningKey::from_seed([seed; 32]);
        self.previous = Some(std::mem::replace(&mut self.key, next));
    }

    /// Its document, signed now.
    pub fn document(&self, at: Timestamp) -> HubDocument {
        let key = HubKey {
            key: self.key.public().clone(),
            not_after: None,
        };
        let draft = HubDocumentDraft {
            domain: self.domain.clone(),
            hub: self.url.clone(),
            keys: vec![key],
            features: self.features.clone(),
            limits: Object::new(),
            software: Object::new(),
            epoch: self.epoch.clone(),
            generated_at: at,
        };
        draft.sign(&self.key, self.previous.as_ref()).unwrap()
    }

    /// Where its document is.
    pub fn document_url(&self) -> String {
        format!("https://{}/.well-known/aip", self.domain)
    }

    /// Answers with its document from now on.
    pub fn publish(&self, net: &FakeExchange, at: Timestamp) {
        let told = Told::json(200, &self.document(at).json).cached("public, max-age=600");
        net.tell(&self.document_url(), [told]);
    }

    /// Where the history of one of its agents is.
    pub fn history_url(&self, name: &str) -> String {
        format!("{}api/v1/agents/{name}/history", self.url)
    }

    /// Answers with the history of this agent from now on.
    pub fn serve(&self, net: &FakeExchange, agent: &FakeAgent) {
        net.tell(
            &self.history_url(agent.did.name()),
            [Told::json(200, &agent.page())],
        );
    }

    /// Says from now on that there is no agent of this name.
    pub fn deny(&self, net: &FakeExchange, name: &str) {
        net.tell(&self.history_url(name), [Told::problem(404, "not_found")]);
    }

    /// A new agent of it, whose keys follow from `seed`.
    pub fn agent(&self, name: &str, seed: u8, at: Timestamp) -> FakeAgent {
        let did = Did::parse_input(&format!(
            "did:aip:{}:{name}",
            self.domain.as_str().replace(':', "%3A")
        ))
        .unwrap();
        let (signing, opening) = (
            SigningKey::from_seed([seed; 32]),
            OpeningKey::from_seed([seed; 32]),
        );
        let rotation = SigningKey::from_seed([seed.wrapping_add(100); 32]);
        let keys = Keys {
            signing: vec![signing.public().clone()],
            sealing: vec![opening.public().clone()],
            rotation: vec![rotation.public().clone()],
        };
        let genesis = OperationDraft::genesis(did.clone(), at, keys)
            .sign(&rotation)
            .unwrap();
        FakeAgent {
            did,
            signing,
            opening,
            rotation,
            operations: vec![genesis],
        }
    }
}

/// An agent of another hub.
#[derive(Debug, Clone)]
pub struct FakeAgent {
    /// Who it is.
    pub did: Did,
    /// The key it signs envelopes with.
    pub signing: SigningKey,
    /// The key that opens what is sealed for it.
    pub opening: OpeningKey,
    /// The key it signs operations with.
    pub rotation: SigningKey,
    /// Its history, oldest first.
    pub operations: Vec<Operation>,
}

impl FakeAgent {
    /// What its history makes it.
    pub fn identity(&self) -> Identity {
        Identity::replay(self.operations.clone()).unwrap()
    }

    /// Its history on one page.
    pub fn page(&self) -> Json {
        let operations: Vec<Json> = self
            .operations
            .iter()
            .map(|operation| operation.json.clone())
            .collect();
        Json::from([
            ("operations", Json::Array(operations)),
            ("next_cursor", Json::Null),
        ])
    }

    /// The `kid` of its signing key.
    pub fn kid(&self) -> String {
        format!("{}#{}", self.did, self.signing.public())
    }

    /// Takes another signing key.
    pub fn rotate(&mut self, seed: u8, at: Timestamp) {
        self.signing = SigningKey::from_seed([seed; 32]);
        let mut draft = self.identity().next_draft(at);
        draft.keys.signing = vec![self.signing.public().clone()];
        let operation = draft.sign(&self.rotation).unwrap();
        self.operations.push(operation);
    }
}
