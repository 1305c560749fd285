//! A hub in memory for the tests of handlers: the same wiring as the process, a clock that stands still, no socket.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::dev::Service as _;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::test::{self, TestRequest};
use actix_web::web::ServiceConfig;
use aip_protocol::challenge::challenge_object;
use aip_protocol::clock::{Clock as _, ManualClock};
use aip_protocol::envelope::{Envelope, EnvelopeDraft, new_id};
use aip_protocol::identity::{Identity, Keys, Operation, OperationDraft};
use aip_protocol::json::Json;
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::{Did, Handle};
use aip_protocol::signature::{Tag, sign};
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::Epoch;
use aip_relay::mailbox::rocks::{Disk, DiskGuard, RocksMailboxes, RocksOptions, Space};
use bytes::Bytes;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::config::Settings;
use crate::server;
use crate::wiring::{self, Hub, Seams};

/// The domain of every test hub.
pub(crate) const DOMAIN: &str = "hub.example";

/// A hub that forgets everything.
pub(crate) struct TestHub {
    pub(crate) hub: Hub,
    pub(crate) clock: Arc<ManualClock>,
}

/// A disk that is full when told so.
#[derive(Debug, Default)]
pub(crate) struct TestDisk {
    pub(crate) full: AtomicBool,
}

impl Disk for TestDisk {
    fn space(&self, _dir: &Path) -> io::Result<Space> {
        let total_bytes = 1 << 40;
        let free_bytes = if self.full.load(Ordering::SeqCst) {
            0
        } else {
            total_bytes
        };
        Ok(Space {
            total_bytes,
            free_bytes,
        })
    }
}

fn settings() -> Settings {
    let mut settings = Settings::development();
    settings.hub.domain = DOMAIN.to_owned();
    settings.hub.public_url = format!("https://{DOMAIN}");
    settings
}

/// What a hub answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem document, after its form was checked.
    pub(crate) fn code(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16(), "{problem}");
        assert_eq!(problem["request_id"], self.header("x-request-id"), "{problem}");
        let code = problem["code"].as_str().unwrap_or_default().to_owned();
        assert_eq!(problem["type"], format!("https://{DOMAIN}/docs/errors/{code}"));
        assert!(
            problem["detail"].as_str().is_some_and(|detail| detail.len() > 15),
            "{problem}"
        );
        code
    }

    /// A header, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    }
}

/// An agent with its keys.
pub(crate) struct TestAgent {
    pub(crate) did: Did,
    pub(crate) signing: SigningKey,
    pub(crate) rotation: SigningKey,
    pub(crate) opening: OpeningKey,
    pub(crate) identity: Identity,
}

impl TestAgent {
    /// Operation 0 as it goes over the wire.
    pub(crate) fn genesis(&self) -> Vec<u8> {
        self.identity.head().json.to_jcs()
    }

    /// The next operation, after `change`; the agent follows it.
    pub(crate) fn next(&mut self, at: Timestamp, change: impl FnOnce(&mut OperationDraft)) -> Vec<u8> {
        let mut draft = self.identity.next_draft(at);
        change(&mut draft);
        let operation: Operation = draft.sign(&self.rotation).unwrap();
        let wire = operation.json.to_jcs();
        self.identity = self.identity.apply(operation).unwrap();
        wire
    }

    /// Its signature for a challenge of the test hub.
    pub(crate) fn answer(&self, challenge: &str) -> String {
        sign(
            &self.signing,
            Tag::Challenge,
            &challenge_object(DOMAIN, challenge, &self.did),
        )
        .to_string()
    }

    /// The name of its signing key.
    pub(crate) fn kid(&self) -> String {
        format!("{}#{}", self.did, self.signing.public())
    }
}

impl TestHub {
    /// A hub with open registration and no limits per address.
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// A hub with other settings.
    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        Self::built(settings, |_| ())
    }

    /// A hub with other settings and other seams.
    pub(crate) fn plugged(change: impl FnOnce(&mut Settings), plug: impl FnOnce(&mut Seams)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        Self::built(settings, plug)
    }

    /// A hub whose mailboxes lie on such a disk, in the folder `dir`.
    pub(crate) fn on_disk(dir: &Path, disk: Arc<TestDisk>) -> Self {
        let options = RocksOptions {
            guard: DiskGuard::default(),
            disk,
        };
        let store = RocksMailboxes::open(dir, options, &Epoch::from_random(1)).unwrap();
        Self::built(settings(), |seams| seams.mailboxes = Arc::new(store))
    }

    fn built(settings: Settings, change: impl FnOnce(&mut Seams)) -> Self {
        let clock = Arc::new(ManualClock::new(
            Timestamp::parse("2026-11-29T20:15:30Z").unwrap(),
        ));
        let mut seams = Seams::in_memory(&settings, clock.clone()).unwrap();
        change(&mut seams);
        Self {
            hub: wiring::build(settings, seams).unwrap(),
            clock,
        }
    }

    /// Asks the public listener.
    pub(crate) async fn ask(&self, request: TestRequest) -> Answer {
        self.ask_at(server::public, request).await
    }

    /// Asks the operator's listener.
    pub(crate) async fn ask_operator(&self, request: TestRequest) -> Answer {
        self.ask_at(server::operator, request).await
    }

    /// Asks a listener with the given routes.
    pub(crate) async fn ask_at(&self, doors: fn(&mut ServiceConfig), request: TestRequest) -> Answer {
        let service = test::init_service(server::application(self.hub.app.clone(), doors)).await;
        let response = service.call(request.to_request()).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        // A stream is read to its end.
        let body = actix_web::body::to_bytes(response.into_body()).await;
        Answer {
            status,
            headers,
            body: body.unwrap_or_else(|_| panic!("a body that breaks off")),
        }
    }

    /// `GET` at the public listener.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(TestRequest::get().uri(path)).await
    }

    /// `POST` of JSON at the public listener.
    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        let request = TestRequest::post()
            .uri(path)
            .insert_header(("content-type", "application/json"));
        self.ask(request.set_payload(body)).await
    }

    /// An agent that is not registered; the same name has the same keys every time.
    pub(crate) fn agent(&self, name: &str) -> TestAgent {
        let seed = name.bytes().fold(7, |seed: u64, byte| {
            seed.wrapping_mul(31).wrapping_add(byte.into())
        });
        let mut rng = StdRng::seed_from_u64(seed);
        let did = Handle::parse(&format!("{name}#{DOMAIN}")).unwrap().did();
        let (signing, rotation) = (SigningKey::generate(&mut rng), SigningKey::generate(&mut rng));
        let opening = OpeningKey::generate(&mut rng);
        let keys = Keys {
            signing: vec![signing.public().clone()],
            sealing: vec![opening.public().clone()],
            rotation: vec![rotation.public().clone()],
        };
        let genesis = OperationDraft::genesis(did.clone(), self.clock.now(), keys)
            .sign(&rotation)
            .unwrap();
        TestAgent {
            did,
            signing,
            rotation,
            opening,
            identity: Identity::genesis(genesis).unwrap(),
        }
    }

    /// A token of a registered agent.
    pub(crate) async fn token(&self, agent: &TestAgent) -> String {
        let did = agent.did.as_str();
        let answer = self
            .post("/api/v1/auth/challenge", json!({ "did": did }).to_string())
            .await;
        let challenge = answer.json()["challenge"].as_str().unwrap().to_owned();
        let sig = agent.answer(&challenge);
        let body = json!({ "did": did, "kid": agent.kid(), "challenge": challenge, "sig": sig });
        let answer = self.post("/api/v1/auth/token", body.to_string()).await;
        answer.json()["token"].as_str().unwrap().to_owned()
    }

    /// An envelope between two agents; the same number gives the same bytes.
    pub(crate) fn envelope(&self, from: &TestAgent, to: &TestAgent, number: u64) -> Envelope {
        let mut rng = StdRng::seed_from_u64(number);
        let (id, now) = (new_id(&mut rng), self.clock.now());
        let draft = EnvelopeDraft::new(id, from.did.clone(), to.did.clone(), "aip.message", now);
        let key = to.identity.sealing_key().unwrap();
        draft.seal(&from.signing, key, b"{}", &mut rng).unwrap()
    }

    /// Sends such an envelope over HTTP; returns its place in the mailbox.
    pub(crate) async fn send(&self, from: &TestAgent, to: &TestAgent, number: u64) -> u64 {
        let answer = self
            .post("/api/v1/messages", self.envelope(from, to, number).to_wire())
            .await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["seq"].as_u64().unwrap()
    }

    /// A hub whose catalog follows the store.
    pub(crate) fn searching() -> Self {
        let hub = Self::new();
        hub.hub.follow_listings();
        hub
    }

    /// A signed listing of an agent, after `change`.
    pub(crate) fn listing(
        &self,
        agent: &TestAgent,
        listing_id: &str,
        version: u64,
        change: impl FnOnce(&mut Value),
    ) -> Value {
        let mut listing = json!({
            "aip": "1", "agent": agent.did.as_str(), "listing_id": listing_id, "version": version, "kind": "product",
            "name": format!("Listing {listing_id}"), "description": "", "created_at": self.clock.now().to_string(),
            "kid": agent.kid(),
        });
        change(&mut listing);
        let unsigned = Json::parse(listing.to_string().as_bytes()).unwrap();
        listing["sig"] = json!(sign(&agent.signing, Tag::Listing, &unsigned).to_string());
        listing
    }

    /// Publishes a listing.
    pub(crate) async fn publish(&self, listing: &Value) -> Answer {
        self.post("/api/v1/listings", listing.to_string()).await
    }

    /// Searches until so many are found, and returns that answer.
    pub(crate) async fn found(&self, text: &str, count: usize) -> Value {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        loop {
            let answer = self.get(&format!("/api/v1/search?q={text}&limit=100")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let answer = answer.json();
            if answer["results"].as_array().unwrap().len() == count {
                return answer;
            }
            assert!(tokio::time::Instant::now() < deadline, "{text:?} finds {answer}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A registered agent.
    pub(crate) async fn registered(&self, name: &str) -> TestAgent {
        let agent = self.agent(name);
        let answer = self.post("/api/v1/agents", agent.genesis()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        agent
    }
}
