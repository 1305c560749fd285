//! The directory against a scripted world.

mod caches;
mod pins;

use std::time::Duration;

use aip_protocol::clock::ManualClock;
use aip_protocol::error::ErrorCode;
use aip_protocol::json::Json;
use aip_protocol::multikey::SigningKey;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::egress::fake::{FakeExchange, Told};
use crate::egress::{Method, Request};
use crate::limits::{ANSWER_BYTES_MAX, EXCHANGE_TIMEOUT};
use crate::peers::fake::FakeStore;
use crate::peers::{AuditEntry, PeerChange, PeerStore, RecordStore};
use crate::testsuite::FakeHub;

const OWN: &str = "one.example";
const START_MS: i64 = 1_795_983_330_000;

/// A directory, and everything around it.
struct World {
    clock: Arc<ManualClock>,
    net: Arc<FakeExchange>,
    store: Arc<FakeStore>,
    hub: FakeHub,
    directory: Arc<Directory>,
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut DirectorySettings)) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(START_MS)));
        let net = Arc::new(FakeExchange::new());
        let store = Arc::new(FakeStore::new());
        let mut settings = DirectorySettings::new(Domain::parse(OWN).unwrap());
        change(&mut settings);
        let directory = directory(settings, &store, &net, &clock);
        let hub = FakeHub::new("two.example", 2);
        hub.publish(&net, clock.now());
        Self {
            clock,
            net,
            store,
            hub,
            directory,
        }
    }

    /// Another process, or this one after a restart: the same store, nothing in memory.
    fn sibling(&self) -> Arc<Directory> {
        let settings = self.directory.settings.clone();
        directory(settings, &self.store, &self.net, &self.clock)
    }

    async fn cached(&self) -> Found {
        self.directory.peer(&self.hub.domain, Freshness::Cached).await
    }

    async fn fresh(&self) -> Found {
        self.directory.peer(&self.hub.domain, Freshness::Fresh).await
    }

    /// How often the domain was asked for its document.
    fn asked(&self) -> usize {
        self.net.count(&self.hub.document_url())
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn pass(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    fn publish(&self) {
        self.hub.publish(&self.net, self.now());
    }

    fn tell(&self, told: Told) {
        self.net.tell(&self.hub.document_url(), [told]);
    }

    async fn record(&self) -> PeerRecord {
        self.store.peer(&self.hub.domain).await.unwrap().unwrap()
    }

    async fn change(&self, change: PeerChange) {
        self.store
            .change(&self.hub.domain, change, self.now())
            .await
            .unwrap();
    }

    /// What the hub decided by itself, as `action`s.
    async fn actions(&self) -> Vec<String> {
        let lines: Vec<AuditEntry> = self.store.audit_log(None, 0, 100).await.unwrap();
        assert!(
            lines
                .iter()
                .all(|line| line.actor == "hub" && line.peer == self.hub.domain)
        );
        lines.into_iter().map(|line| line.action).collect()
    }
}

fn directory(
    settings: DirectorySettings,
    store: &Arc<FakeStore>,
    net: &Arc<FakeExchange>,
    clock: &Arc<ManualClock>,
) -> Arc<Directory> {
    let seams = DirectorySeams {
        store: store.clone(),
        exchange: net.clone(),
        clock: clock.clone(),
    };
    Directory::new(settings, seams, Box::new(StdRng::seed_from_u64(7)))
}

fn code(found: &Found) -> ErrorCode {
    found.as_ref().unwrap_err().code()
}

#[tokio::test]
async fn a_domain_is_asked_at_its_well_known_place_within_bounds() {
    let world = World::new();
    let peer = world.cached().await.unwrap();
    assert_eq!(peer.domain, world.hub.domain);
    assert_eq!(peer.hub, world.hub.url);
    assert_eq!(peer.epoch.as_deref(), Some("1"));
    assert_eq!(
        peer.url("/federation/v1/messages"),
        "https://hub.two.example/federation/v1/messages"
    );
    assert!(peer.offers("mail") && !peer.offers("catalog"));
    assert_eq!(
        peer.key(&world.hub.kid(), world.now()),
        Some(world.hub.key.public())
    );
    assert_eq!(
        peer.key(&world.hub.kid().replace("two", "six"), world.now()),
        None
    );

    let Request { method, url, .. } = world.net.asked().remove(0);
    assert_eq!(
        (method, url.as_str()),
        (Method::Get, "https://two.example/.well-known/aip")
    );
    let limits = world.net.limits().remove(0);
    assert_eq!(
        (limits.timeout, limits.answer_bytes_max),
        (EXCHANGE_TIMEOUT, ANSWER_BYTES_MAX)
    );
}

#[tokio::test]
async fn a_key_is_good_until_its_end() {
    let world = World::new();
    let peer = world.cached().await.unwrap();
    let mut peer = Peer::clone(&peer);
    peer.keys[0].not_after = Some(world.now());
    assert_eq!(peer.keys_at(world.now()).count(), 1);
    world.pass(1);
    assert_eq!(peer.keys_at(world.now()).count(), 0);
    assert_eq!(peer.key(&world.hub.kid(), world.now()), None);
}

#[tokio::test]
async fn this_hubs_own_domain_is_no_peer() {
    let world = World::new();
    let own = Domain::parse(OWN).unwrap();
    let found = world.directory.peer(&own, Freshness::Cached).await;
    assert_eq!(code(&found), ErrorCode::PeerFailed);
    assert_eq!(world.net.asked().len(), 0);
}

#[tokio::test]
async fn what_is_no_hub_document_is_none() {
    let other = FakeHub::new("six.example", 6);
    let world = World::new();
    let document = world.hub.document(world.now()).json;
    let mut forged = document.as_object().unwrap().clone();
    forged.insert("hub", "https://evil.example");
    let forged = Json::Object(forged);
    let big = format!("{document}{}", " ".repeat(ANSWER_BYTES_MAX));
    // What it says, and whether another attempt soon may see something else.
    for (what, told, is_transient) in [
        (
            "another domain",
            Told::json(200, &other.document(world.now()).json),
            false,
        ),
        ("changed after it was signed", Told::json(200, &forged), false),
        ("no document", Told::json(200, &Json::from("hello")), false),
        ("no JSON", Told::text(200, "application/json", "<html>"), false),
        ("a redirect", Told::text(302, "text/html", ""), false),
        ("a moved domain", Told::text(308, "text/html", ""), false),
        ("nothing there", Told::text(404, "text/html", "not found"), false),
        ("gone", Told::text(410, "text/html", "gone"), false),
        ("an address inside", Told::Refused, false),
        ("a page of a proxy", Told::text(200, "text/html", "<html>"), true),
        (
            "a document that is called a page",
            Told::text(200, "text/plain", document.to_string()),
            true,
        ),
        ("a failing proxy", Told::text(502, "text/html", "<html>"), true),
        ("a busy hub", Told::problem(503, "unavailable"), true),
        ("a limit", Told::problem(429, "rate_limited"), true),
        ("silence", Told::TimedOut, true),
        ("nobody", Told::NoConnection, true),
        ("half an answer", Told::Broken, true),
        (
            "an endless answer",
            Told::text(200, "application/json", big),
            true,
        ),
    ] {
        let world = World::new();
        world.tell(told);
        let found = world.cached().await;
        assert_eq!(code(&found), ErrorCode::PeerFailed, "{what}");
        assert_eq!(found.unwrap_err().is_transient(), is_transient, "{what}");
        assert!(
            world.store.peer(&world.hub.domain).await.unwrap().is_none(),
            "{what}: nothing is kept"
        );
    }
}

#[tokio::test]
async fn a_hub_is_where_a_hub_can_be() {
    for (url, allow_http, is_good) in [
        ("https://hub.two.example", false, true),
        ("https://two.example:8443", false, true),
        ("http://hub.two.example", false, false),
        ("http://hub.two.example", true, true),
        ("https://user@hub.two.example", false, false),
        ("https://hub.two.example/?x=1", false, false),
        ("https://hub.two.example/#x", false, false),
    ] {
        let mut world = World::with(|settings| settings.allow_http = allow_http);
        world.hub.url = Url::parse(url).unwrap();
        world.publish();
        assert_eq!(world.cached().await.is_ok(), is_good, "{url}");
    }
}

#[tokio::test]
async fn plain_http_only_where_it_is_allowed_and_nobody_speaks_tls() {
    let [https, http] = ["https", "http"].map(|scheme| format!("{scheme}://two.example/.well-known/aip"));
    let world = World::with(|settings| settings.allow_http = true);
    let document = Told::json(200, &world.hub.document(world.now()).json);
    world.net.tell(&https, [Told::NoConnection]);
    world.net.tell(&http, [document.clone()]);
    world.cached().await.unwrap();
    assert_eq!([&https, &http].map(|url| world.net.count(url)), [1, 1]);

    // Not after any other failure, and not unless the operator allows it.
    for (told, allow_http) in [
        (Told::TimedOut, true),
        (Told::text(404, "text/html", ""), true),
        (Told::NoConnection, false),
    ] {
        let world = World::with(|settings| settings.allow_http = allow_http);
        world.net.tell(&https, [told]);
        world.net.tell(&http, [document.clone()]);
        world.cached().await.unwrap_err();
        assert_eq!(world.net.count(&http), 0);
    }
}

#[tokio::test]
async fn localhost_is_asked_over_http_where_that_is_allowed() {
    let domain = Domain::parse("localhost:8080").unwrap();
    let mut hub = FakeHub::new("localhost:8080", 3);
    hub.url = Url::parse("http://localhost:8080").unwrap();
    let world = World::with(|settings| settings.allow_http = true);
    let url = "http://localhost:8080/.well-known/aip";
    world
        .net
        .tell(url, [Told::json(200, &hub.document(world.now()).json)]);
    let peer = world.directory.peer(&domain, Freshness::Cached).await.unwrap();
    assert_eq!(peer.url("/x"), "http://localhost:8080/x");
    assert_eq!(world.net.asked().len(), 1);
    assert_eq!(world.net.count(url), 1);
}

#[tokio::test]
async fn a_configured_hub_wins_over_its_document() {
    let hub = Url::parse("https://10.0.0.7:8443").unwrap();
    let configured = StaticPeer {
        hub: hub.clone(),
        keys: Vec::new(),
    };
    let world = World::with(|settings| {
        settings
            .static_peers
            .insert(Domain::parse("two.example").unwrap(), configured);
    });
    let url = "https://10.0.0.7:8443/.well-known/aip";
    world
        .net
        .tell(url, [Told::json(200, &world.hub.document(world.now()).json)]);
    let peer = world.cached().await.unwrap();
    assert_eq!((&peer.hub, peer.epoch.as_deref()), (&hub, Some("1")));
    assert_eq!((world.net.count(url), world.asked()), (1, 0));
    let peer = world
        .sibling()
        .peer(&world.hub.domain, Freshness::Cached)
        .await
        .unwrap();
    assert_eq!(peer.hub, hub, "also out of the store");
    assert_eq!(
        world.actions().await,
        ["pin"],
        "its keys are pinned as those of others"
    );
}

#[tokio::test]
async fn a_peer_with_configured_keys_is_never_asked() {
    let key = SigningKey::from_seed([9; 32]);
    let configured = StaticPeer {
        hub: Url::parse("https://lab.example").unwrap(),
        keys: vec![key.public().clone()],
    };
    let world = World::with(|settings| {
        settings
            .static_peers
            .insert(Domain::parse("two.example").unwrap(), configured);
    });
    for freshness in [Freshness::Cached, Freshness::Fresh] {
        let peer = world.directory.peer(&world.hub.domain, freshness).await.unwrap();
        let kid = format!("two.example#{}", key.public());
        assert_eq!(peer.key(&kid, world.now()), Some(key.public()));
        assert_eq!(peer.key(&world.hub.kid(), world.now()), None);
    }
    assert_eq!(world.net.asked().len(), 0);
    // What the operator decided holds for it too.
    world.change(PeerChange::Stance(Stance::Blocked)).await;
    world.directory.forget(&world.hub.domain);
    assert_eq!(code(&world.cached().await), ErrorCode::PeerBlocked);
}

#[tokio::test]
async fn a_store_that_fails_is_our_own_trouble_and_is_not_remembered() {
    let world = World::new();
    world.store.fail(true);
    let found = world.cached().await;
    assert_eq!(code(&found), ErrorCode::Unavailable);
    assert!(found.unwrap_err().is_transient());
    assert_eq!(world.asked(), 0);
    world.store.fail(false);
    world.cached().await.unwrap();
}

#[test]
fn refusals_say_what_the_caller_needs_and_no_cause() {
    for (error, code, retry_after_secs) in [
        (PeerError::Blocked, ErrorCode::PeerBlocked, None),
        (
            PeerError::Frozen {
                kid: "a#b".to_owned(),
            },
            ErrorCode::HubKeyNotPinned,
            None,
        ),
        (PeerError::unreachable("secret"), ErrorCode::PeerFailed, None),
        (PeerError::Unfit("secret".into()), ErrorCode::PeerFailed, None),
        (
            PeerError::TooSoon { retry_after_secs: 4 },
            ErrorCode::Unavailable,
            Some(4),
        ),
        (PeerError::Busy, ErrorCode::Unavailable, Some(1)),
    ] {
        let refusal = error.refusal();
        assert_eq!((refusal.code, refusal.retry_after_secs), (code, retry_after_secs));
        assert!(
            !refusal.detail.contains("secret") && refusal.detail.ends_with(['.', 'n']),
            "{refusal}"
        );
    }
}
