//! Other hubs that sell at a test hub: let in, frozen, announced, away; and what strangers try.

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
        asked.iter().filter(|request| request.url.starts_with(url)).count()
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
        let Exact::Object(members) = Exact::from(said) else { unreachable!() };
        let discovery = document::sign(members, key).to_bytes();
        self.web.puts(&format!("{url}/.well-known/ai-market.json"), 200, "application/json", discovery);
        let draft = ManifestDraft {
            generated_at: now,
            base_url: url.to_owned(),
            tools: tools.iter().cloned().map(Exact::from).collect(),
            by_hub: Members::new(),
            further: Members::new(),
        };
        let manifest = draft.sign(key).unwrap().to_bytes();
        self.web.puts(&format!("{url}/ai-market/v2/manifest"), 200, "application/json", manifest);
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
        self.hub.hub.app.market.as_ref().unwrap().shelf.catch_up().await.unwrap();
    }

    async fn crawls_in(&self, duration: Duration) {
        self.hub.clock.advance(duration);
        self.crawls().await;
    }

    async fn peer(&self, url: &str) -> Value {
        let encoded = url.replace(':', "%3A").replace('/', "%2F");
        let answer = self.operator(TestRequest::get().uri(&format!("/admin/market/peer?url={encoded}"))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    async fn announces(&self, body: Value) -> Answer {
        self.hub.post("/ai-market/v2/federation/announce", body.to_string()).await
    }

    /// Names and hubs of what the manifest shows.
    async fn sold(&self) -> Vec<(String, String)> {
        // Documents are not made anew within a second.
        self.hub.clock.advance(Duration::from_secs(1));
        let manifest = self.hub.get("/ai-market/v2/manifest").await.json();
        let tools = manifest["tools"].as_array().unwrap().iter();
        let text = |tool: &Value, name: &str| tool[name].as_str().unwrap().to_owned();
        tools.map(|tool| (text(tool, "capability_id"), text(tool, "source_hub"))).collect()
    }
}

fn pair(capability: &str, hub: &str) -> (String, String) {
    (capability.to_owned(), hub.to_owned())
}

#[actix_web::test]
async fn what_an_approved_hub_sells_is_sold_here() {
    let world = World::with(|settings| settings.market_peers.routing_fee_bps = 250);
    world.hub.hub.follow_listings();
    world.serves(ONE, &key(1), &[tool("draw@v1"), tool("read@v1")]);
    world.approves(ONE).await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE), pair("read@v1", ONE)]);
    let manifest = world.hub.get("/ai-market/v2/manifest").await.json();
    assert_eq!((&manifest["local_capabilities"], &manifest["federated_capabilities"]), (&json!(0), &json!(2)));
    assert_eq!(manifest["by_hub"][ONE]["capabilities_count"], 2);
    assert_eq!(manifest["by_hub"][ONE]["trust_basis"], "unobserved");
    let shown = &manifest["tools"][0];
    assert_eq!((&shown["price_per_call_usd"], &shown["routed_price_usd"]), (&json!(0.01), &json!(0.01025)));
    assert_eq!((&shown["route_status"], &shown["source_hub_name"]), (&json!("live"), &json!("A hub")));
    let said = world.hub.get("/.well-known/ai-market.json").await.json();
    assert_eq!((&said["capabilities_count"], &said["federated_capabilities_count"]), (&json!(0), &json!(2)));
    assert_eq!((&said["peers"][0]["url"], &said["peers"][0]["capabilities_count"]), (&json!(ONE), &json!(2)));
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    assert_eq!((&peers["count"], &peers["peers"][0]["status"]), (&json!(1), &json!("active")));
    assert_eq!(peers["peers"][0]["public_key"], key_text(key(1).public()));
    // AIP's search finds it, too, and says whose it is.
    let found = world.hub.found("draw", 2).await;
    assert_eq!(found["results"][0]["attributes"]["source_hub"], ONE);
    assert_eq!(found["results"][0]["source_hub"], "one.example");
    for (query, count) in [
        ("intent=draw", 2),
        ("hub=any", 2),
        ("hub=local", 0),
        ("hub=https://One.example/", 2),
        ("hub=https://other.example", 0),
        ("budget=0.0102", 0),
        ("budget=0.01025", 2),
    ] {
        let answer = world.hub.get(&format!("/ai-market/v2/search?{query}")).await.json();
        assert_eq!(answer["total"], count, "{query}: {answer}");
        assert_eq!(answer["total_hubs_searched"], 2);
    }
    let answer = world.hub.get("/ai-market/v2/search?intent=draw").await.json();
    let found = &answer["matches"][0];
    assert_eq!((&found["source_hub"], &found["seller_kind"]), (&json!(ONE), &json!("hub")));
    assert_eq!((&found["routing_fee_bps"], &found["credits_eligible"]), (&json!(250), &json!(false)));
    let listing = format!("/api/v1/listings/{}", found["listing_id"].as_str().unwrap());
    assert_eq!(world.hub.get(&listing).await.json()["origin"], "peer");
}

#[actix_web::test]
async fn pitfall_46_what_a_stranger_names_waits_and_is_sold_nowhere() {
    let world = World::new();
    world.serves(TWO, &key(2), &[tool("draw@v1")]);
    let answer = world.announces(json!({ "hub_url": format!("{TWO}/"), "capabilities_count": 99 })).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (200, &json!("pending")));
    world.crawls().await;
    assert_eq!(world.sold().await, []);
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    assert_eq!((&peers["count"], &peers["pending_count"]), (&json!(0), &json!(1)));
    let said = world.hub.get("/.well-known/ai-market.json").await.json();
    assert_eq!(said["peers"], json!([]));
    let peer = world.peer(TWO).await;
    assert_eq!((&peer["status"], &peer["found"]), (&json!("pending"), &json!("announced")));
    assert_eq!((&peer["preview"][0]["capability_id"], &peer["preview"][0]["price"]), (&json!("draw@v1"), &json!("0.01")));
    // Said again, by whomever, it changes nothing; nor of one that is active.
    let again = world.announces(json!({ "hub_url": TWO, "hub_name": "X" })).await.json();
    assert_eq!((&again["status"], &again["peer_added"]), (&json!("known"), &json!(false)));
    world.approves(TWO).await;
    assert_eq!(world.sold().await, [pair("draw@v1", TWO)]);
    let before = world.peer(TWO).await;
    let stranger = json!({ "hub_url": TWO, "hub_name": "X", "signer_public_key": key_text(key(9).public()),
                           "signature": { "algorithm": "ed25519", "value": "AAAA" } });
    let answer = world.announces(stranger).await.json();
    assert_eq!((&answer["trusted"], &answer["crawl_scheduled"]), (&json!(true), &json!(false)));
    assert_eq!(world.peer(TWO).await, before);
}

/// Whoever it is: what cannot be asked is not even kept.
#[actix_web::test]
async fn pitfall_47_an_address_that_must_not_be_asked_is_not_announced() {
    let world = World::with(|settings| settings.egress.allowed_private_ranges = Vec::new());
    for url in [
        "http://127.0.0.1",
        "http://10.1.2.3/",
        "http://169.254.169.254/latest",
        "http://100.64.0.1",
        "http://[::1]",
        "http://[fc00::1]",
        "http://[::ffff:127.0.0.1]",
        "http://[64:ff9b::7f00:1]",
        "http://[2002:7f00:1::]",
        "https://user@one.example",
        "https://one.example?x",
        "ftp://one.example",
        "one.example",
        "https://hub.example",
        "https://HUB.example:443/",
        "",
    ] {
        let answer = world.announces(json!({ "hub_url": url })).await;
        let told = (answer.status.as_u16(), answer.json()["error"].as_str().unwrap().to_owned());
        assert_eq!(told, (400, "hub_url_invalid".to_owned()), "{url}");
    }
    let elsewhere = json!({ "hub_url": ONE, "well_known_url": "https://two.example/.well-known/ai-market.json" });
    assert_eq!(world.announces(elsewhere).await.status, 400);
    assert_eq!(world.announces(json!({ "hub_url": 7 })).await.status, 422);
    assert_eq!(world.room().book.all(), []);
    // A redirect is an answer, and not followed.
    world.web.puts(&format!("{ONE}/.well-known/ai-market.json"), 302, "application/json", "{}");
    world.approves(ONE).await;
    let error = world.peer(ONE).await["last_error"].as_str().unwrap().to_owned();
    assert!(error.contains("status 302"), "{error}");
    assert_eq!(world.web.asked(""), 1);
}

#[actix_web::test]
async fn a_hub_that_is_closed_takes_no_strangers() {
    for change in [
        (|settings: &mut Settings| settings.market_peers.open = false) as fn(&mut Settings),
        |settings| settings.market_peers.enabled = false,
    ] {
        let world = World::with(change);
        let answer = world.announces(json!({ "hub_url": ONE })).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (403, &json!("announcements_closed")));
    }
}

#[actix_web::test]
async fn pitfall_50_a_hub_that_shows_another_key_sells_nothing_until_the_operator_decides() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    world.serves(ONE, &key(2), &[tool("draw@v1")]);
    world.crawls_in(Duration::from_hours(1)).await;
    assert_eq!(world.sold().await, []);
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    let shown = &peers["peers"][0];
    assert_eq!((&shown["status"], &shown["trusted"]), (&json!("key_mismatch"), &json!(false)));
    assert_eq!(shown["public_key"], key_text(key(1).public()));
    assert_eq!(shown["advertised_public_key"], key_text(key(2).public()));
    world.approves(ONE).await;
    assert_eq!(world.sold().await, [], "approving it again is no answer");
    let answer = world.decides("/admin/market/peer/repin", json!({ "url": ONE })).await;
    assert_eq!(answer.json()["status"], "active");
    world.crawls().await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE)]);
    let log = world.operator(TestRequest::get().uri("/admin/market/peers/log")).await.json();
    let actions: Vec<_> = log["items"].as_array().unwrap().iter().rev().map(|line| line["action"].clone()).collect();
    assert_eq!(actions, ["approve", "pin", "freeze", "approve", "repin"]);
}

#[actix_web::test]
async fn pitfall_51_what_a_hub_that_is_away_sold_ends_after_six_hours_and_nobody_elses() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1"), tool("read@v1")]);
    world.serves(TWO, &key(2), &[tool("draw@v1")]);
    world.approves(ONE).await;
    world.approves(TWO).await;
    // It takes one thing away.
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.crawls_in(Duration::from_hours(1)).await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE), pair("draw@v1", TWO)]);
    // One is away, whatever it answers; the other one is not.
    let pages = [(500, "application/json", "{}"), (200, "text/html", "<html>"), (200, "application/json", "{")];
    for hour in 1..=8 {
        let (status, media, body) = pages[hour % 3];
        world.web.puts(&format!("{ONE}/.well-known/ai-market.json"), status, media, body);
        world.serves(TWO, &key(2), &[tool("draw@v1")]);
        world.crawls_in(Duration::from_hours(1)).await;
        let sold = world.sold().await;
        assert!(sold.contains(&pair("draw@v1", TWO)));
        assert_eq!(sold.contains(&pair("draw@v1", ONE)), hour < 5, "hour {hour}");
    }
    assert!(world.peer(ONE).await["failures"].as_u64().unwrap() >= 8);
    assert!(world.room().stalest_secs().unwrap() >= 8 * 3_600);
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.crawls_in(Duration::from_hours(1)).await;
    assert_eq!(world.sold().await.len(), 2);
}

#[actix_web::test]
async fn pitfall_48_an_answer_that_does_not_end_is_cut_off() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    let large = "x".repeat(3 * 1_024 * 1_024);
    world.web.puts(&format!("{ONE}/ai-market/v2/manifest"), 200, "application/json", large);
    world.approves(ONE).await;
    assert_eq!(world.sold().await, []);
    let error = world.peer(ONE).await["last_error"].as_str().unwrap().to_owned();
    assert!(error.contains("manifest"), "{error}");
}

#[actix_web::test]
async fn pitfall_49_a_hub_is_no_peer_of_itself_and_one_hub_is_one_peer() {
    let world = World::new();
    let own = world.decides("/admin/market/peers", json!({ "url": "https://HUB.example/" })).await;
    assert_eq!(own.status, 400);
    // Under an old name it shows its own key.
    let own_key = world.hub.hub.app.hub_key.clone();
    world.serves("https://old.example", &own_key, &[tool("draw@v1")]);
    world.approves("https://old.example").await;
    assert_eq!(world.room().book.all(), []);
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.serves(TWO, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    world.approves(TWO).await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE)]);
    assert_eq!(world.peer(TWO).await["status"], "pending");
    let twice = world.decides("/admin/market/peers", json!({ "url": TWO, "key": key_text(key(1).public()) })).await;
    assert_eq!(twice.status, 409);
}

#[actix_web::test]
async fn pitfall_45_a_hub_is_asked_for_what_it_sells_itself() {
    let world = World::new();
    let mut resold = tool("other@v1");
    resold["source_hub"] = json!("https://other.example");
    let mut ours = tool("ours@v1");
    ours["source_hub"] = json!("https://hub.example");
    world.serves(ONE, &key(1), &[tool("draw@v1"), resold, ours]);
    world.approves(ONE).await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE)]);
    let asked = world.web.asked.lock().unwrap().clone();
    assert!(asked.iter().all(|request| request.method == Method::Get));
    let crawler = ("x-aimarket-crawler", "https://hub.example".to_owned());
    assert!(asked.iter().all(|request| request.headers.contains(&crawler)));
}

#[actix_web::test]
async fn a_hub_that_sells_here_says_that_it_has_changed() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    world.hub.clock.advance(Duration::from_mins(5));
    let draft = aip_protocol::market::announce::AnnounceDraft {
        hub_url: ONE,
        well_known_url: &format!("{ONE}/.well-known/ai-market.json"),
        capabilities_count: 2,
        hub_name: "A hub",
    };
    let announcement: Value = serde_json::from_slice(&draft.sign(&key(1)).unwrap().to_bytes()).unwrap();
    let forged: Value = serde_json::from_slice(&draft.sign(&key(2)).unwrap().to_bytes()).unwrap();
    assert_eq!(world.announces(forged).await.json()["crawl_scheduled"], false);
    world.serves(ONE, &key(1), &[tool("draw@v1"), tool("read@v1")]);
    world.crawls().await;
    assert_eq!(world.sold().await.len(), 1);
    assert_eq!(world.announces(announcement.clone()).await.json()["crawl_scheduled"], true);
    world.crawls().await;
    assert_eq!(world.sold().await.len(), 2);
    // Again and again it is not asked at once.
    let asked = world.web.asked(ONE);
    for _ in 0..3 {
        world.announces(announcement.clone()).await;
        world.crawls().await;
    }
    assert_eq!(world.web.asked(ONE), asked);
    world.crawls_in(Duration::from_mins(1)).await;
    assert_eq!(world.web.asked(ONE), asked + 2);
}

#[actix_web::test]
async fn a_hub_that_is_blocked_or_removed_sells_nothing() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    let blocked = world.decides("/admin/market/peer/block", json!({ "url": ONE })).await;
    assert_eq!(blocked.json()["status"], "blocked");
    let asked = world.web.asked(ONE);
    world.crawls_in(Duration::from_hours(2)).await;
    assert_eq!((world.sold().await, world.web.asked(ONE)), (vec![], asked));
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    assert_eq!((&peers["count"], &peers["pending_count"]), (&json!(0), &json!(0)));
    assert_eq!(world.announces(json!({ "hub_url": ONE })).await.json()["status"], "known");
    world.approves(ONE).await;
    assert_eq!(world.sold().await.len(), 1);
    let remove = TestRequest::delete().uri("/admin/market/peer?url=https%3A%2F%2Fone.example");
    assert_eq!(world.operator(remove).await.status, 204);
    world.crawls().await;
    assert_eq!(world.sold().await, []);
    let again = TestRequest::delete().uri("/admin/market/peer?url=https%3A%2F%2Fone.example");
    assert_eq!(world.operator(again).await.status, 404);
}

#[actix_web::test]
async fn hubs_that_a_hub_names_wait_for_the_operator() {
    let world = World::with(|settings| settings.market_peers.seeds = vec![ONE.to_owned()]);
    let named = |said: &mut Value| {
        said["peers"] = json!([{ "url": TWO, "name": "Two" }, { "url": "https://hub.example", "name": "us" }]);
    };
    world.serves_with(ONE, &key(1), &[tool("draw@v1")], named);
    world.room().prepare().await;
    world.crawls().await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE)], "the settings let it in");
    let peer = world.peer(TWO).await;
    assert_eq!((&peer["status"], &peer["found"], &peer["depth"]), (&json!("pending"), &json!(ONE), &json!(1)));
    let urls: Vec<_> = world.room().book.all().iter().map(|peer| peer.url.clone()).collect();
    assert_eq!(urls, [ONE, TWO]);
}

#[actix_web::test]
async fn only_the_operator_decides() {
    let world = World::new();
    let paths = [
        "/admin/market/peers",
        "/admin/market/peer/block",
        "/admin/market/peer/repin",
        "/admin/market/peer/crawl",
    ];
    for path in paths {
        let request = TestRequest::post().uri(path).set_json(json!({ "url": ONE }));
        assert_eq!(world.hub.ask_operator(request).await.status, 401, "{path}");
        let request = TestRequest::post().uri(path).set_json(json!({ "url": ONE }));
        assert_eq!(world.hub.ask(request).await.status, 404, "{path} is not at the public door");
    }
    assert_eq!(world.decides("/admin/market/peer/crawl", json!({ "url": ONE })).await.status, 404);
    assert_eq!(world.decides("/admin/market/peer/block", json!({ "url": "x" })).await.status, 400);
    world.approves(ONE).await;
    for (mode, status) in [("reseller", 200), ("sells_for", 200), ("broker", 200), ("", 400), ("Broker", 400)] {
        let body = json!({ "url": ONE, "mode": mode });
        let request = TestRequest::put().uri("/admin/market/peer/mode").set_json(body);
        assert_eq!(world.operator(request).await.status.as_u16(), status, "{mode}");
    }
    assert_eq!(world.peer(ONE).await["mode"], "broker");
    let page = world.operator(TestRequest::get().uri("/admin/market/peers?limit=1")).await.json();
    assert_eq!((&page["items"][0]["url"], &page["next_cursor"]), (&json!(ONE), &json!("https%3A%2F%2Fone%2Eexample")));
    let next = world.operator(TestRequest::get().uri("/admin/market/peers?after=https%3A%2F%2Fone%2Eexample")).await;
    assert_eq!(next.json()["items"], json!([]));
}
