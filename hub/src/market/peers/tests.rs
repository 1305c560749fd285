//! Other hubs that sell at a test hub: let in, frozen, announced, away; and what strangers try.

mod decisions;
mod selling;
mod strangers;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use actix_web::test::TestRequest;
use aip_federation::egress::{Limits, Method, Request, Response};
use aip_protocol::market::manifest::ManifestDraft;
use aip_protocol::market::signature::key_text;
use aip_protocol::market::{Members, Value as Exact, document};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::testing::{Answer, TestHub};

const OPERATOR: &str = "0123456789abcdef0123456789abcdef";
const ONE: &str = "https://one.example";
const TWO: &str = "https://two.example/family";

/// The web, as a table: nobody is at other addresses.
#[derive(Default)]
struct Web {
    pages: Mutex<BTreeMap<String, (u16, &'static str, Bytes)>>,
    asked: Mutex<Vec<Request>>,
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Web")
    }
}

impl Web {
    fn pages(&self) -> MutexGuard<'_, BTreeMap<String, (u16, &'static str, Bytes)>> {
        self.pages.lock().unwrap()
    }

    fn puts(&self, url: &str, status: u16, media: &'static str, body: impl Into<Bytes>) {
        self.pages().insert(url.to_owned(), (status, media, body.into()));
    }

    /// How often something at this hub was asked.
    fn asked(&self, url: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|request| request.url.starts_with(url))
            .count()
    }
}

#[async_trait]
impl Exchange for Web {
    async fn exchange(&self, request: Request, limits: Limits) -> Result<Response, EgressError> {
        self.asked.lock().unwrap().push(request.clone());
        let Some((status, media, body)) = self.pages().get(&request.url).cloned() else {
            return Err(EgressError::ConnectFailed("nobody is there".into()));
        };
        if body.len() > limits.answer_bytes_max {
            let bytes_max = limits.answer_bytes_max;
            return Err(EgressError::AnswerTooLarge { bytes_max });
        }
        Ok(Response {
            status,
            content_type: Some(media.to_owned()),
            body,
            ..Response::default()
        })
    }
}

struct World {
    hub: TestHub,
    web: Arc<Web>,
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed([number; 32])
}

fn tool(capability: &str) -> Value {
    json!({
        "name": format!("p.{capability}"), "product_id": "pd", "capability_id": capability, "description": "Draws lots.",
        "input_schema": { "type": "object", "required": ["seed"] }, "price_per_call_usd": 0.01, "source_hub": "local",
    })
}

impl World {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let web = Arc::new(Web::default());
        let way = web.clone();
        let hub = TestHub::plugged(
            |settings| {
                settings.http.operator_token = crate::config::Secret::new(OPERATOR);
                change(settings);
            },
            |seams| seams.exchange = way,
        );
        Self { hub, web }
    }

    fn room(&self) -> &PeerRoom {
        &self.hub.hub.app.market.as_ref().unwrap().peers
    }

    /// A hub at this address sells these, and signs with this key.
    fn serves(&self, url: &str, key: &SigningKey, tools: &[Value]) {
        self.serves_with(url, key, tools, |_| ());
    }

    fn serves_with(&self, url: &str, key: &SigningKey, tools: &[Value], change: impl FnOnce(&mut Value)) {
        let now = self.room().now();
        let mut said = json!({
            "name": "A hub", "protocol_versions": ["v2"], "hub_version": "1.0", "signer_public_key": key_text(key.public()),
            "manifest_url": format!("{url}/ai-market/v2/manifest"),
        });
        change(&mut said);
        let Exact::Object(members) = Exact::from(said) else {
            unreachable!()
        };
        let discovery = document::sign(members, key).to_bytes();
        self.web.puts(
            &format!("{url}/.well-known/ai-market.json"),
            200,
            "application/json",
            discovery,
        );
        let draft = ManifestDraft {
            generated_at: now,
            base_url: url.to_owned(),
            tools: tools.iter().cloned().map(Exact::from).collect(),
            by_hub: Members::new(),
            further: Members::new(),
        };
        let manifest = draft.sign(key).unwrap().to_bytes();
        self.web.puts(
            &format!("{url}/ai-market/v2/manifest"),
            200,
            "application/json",
            manifest,
        );
    }

    async fn operator(&self, request: TestRequest) -> Answer {
        let request = request.insert_header(("authorization", format!("Bearer {OPERATOR}")));
        self.hub.ask_operator(request).await
    }

    async fn decides(&self, path: &str, body: Value) -> Answer {
        let request = TestRequest::post().uri(path).set_json(body);
        self.operator(request).await
    }

    async fn approves(&self, url: &str) {
        let answer = self.decides("/admin/market/peers", json!({ "url": url })).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        self.crawls().await;
    }

    /// Asks whoever is due, and has the market look at the listings.
    async fn crawls(&self) {
        while self.room().crawl_due().await.unwrap() > 0 {}
        self.hub
            .hub
            .app
            .market
            .as_ref()
            .unwrap()
            .shelf
            .catch_up()
            .await
            .unwrap();
    }

    async fn crawls_in(&self, duration: Duration) {
        self.hub.clock.advance(duration);
        self.crawls().await;
    }

    async fn peer(&self, url: &str) -> Value {
        let encoded = url.replace(':', "%3A").replace('/', "%2F");
        let answer = self
            .operator(TestRequest::get().uri(&format!("/admin/market/peer?url={encoded}")))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    async fn announces(&self, body: Value) -> Answer {
        self.hub
            .post("/ai-market/v2/federation/announce", body.to_string())
            .await
    }

    /// Names and hubs of what the manifest shows.
    async fn sold(&self) -> Vec<(String, String)> {
        // Documents are not made anew within a second.
        self.hub.clock.advance(Duration::from_secs(1));
        let manifest = self.hub.get("/ai-market/v2/manifest").await.json();
        let tools = manifest["tools"].as_array().unwrap().iter();
        let text = |tool: &Value, name: &str| tool[name].as_str().unwrap().to_owned();
        tools
            .map(|tool| (text(tool, "capability_id"), text(tool, "source_hub")))
            .collect()
    }
}

fn pair(capability: &str, hub: &str) -> (String, String) {
    (capability.to_owned(), hub.to_owned())
}
