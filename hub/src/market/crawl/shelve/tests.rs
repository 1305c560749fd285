//! Listings of peers, on the registry's store in memory.

use std::sync::Arc;

use aip_market::money::Usd;
use aip_market::offer::{Source, Way};
use aip_market::peers::{Declared, Found, PeerStatus, RouteMode};
use aip_registry::MemoryStore;
use serde_json::json;

use super::*;
use crate::market::offer::offer;

const ONE: &str = "https://one.example/family";
const TWO: &str = "https://one.example/other";

fn own() -> Domain {
    Domain::parse("hub.example").unwrap()
}

fn at(hours: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_000 + hours * 3_600_000)
}

fn peer(url: &str) -> MarketPeer {
    MarketPeer {
        url: url.to_owned(),
        status: PeerStatus::Active,
        mode: RouteMode::Broker,
        key: None,
        advertised_key: None,
        found: Found::Operator,
        depth: 0,
        declared: Declared {
            name: Some("One".to_owned()),
            ..Declared::default()
        },
        first_seen: at(0),
        crawl_at: at(0),
        last_try: None,
        last_crawl: None,
        failures: 0,
        last_error: None,
        capabilities: 0,
    }
}

fn row(capability: &str) -> Row {
    Row {
        product_id: "pd".to_owned(),
        capability_id: capability.to_owned(),
        name: "Draw".to_owned(),
        description: "Draws.".to_owned(),
        category: Some("chance".to_owned()),
        price: Usd::parse("0.01").unwrap(),
        input_schema: Some(json!({ "type": "object", "properties": { "x": { "minimum": 0.5 } } })),
        output_schema: Some(json!({ "type": "object" })),
    }
}

async fn shelve(store: &MemoryStore, url: &str, rows: &[Row], hours: i64) -> usize {
    let own = own();
    let shelving = Shelving {
        listings: store,
        own: &own,
        now: at(hours),
    };
    shelving.shelve(&peer(url), rows).await.unwrap()
}

/// What is there, oldest first.
async fn live(store: &MemoryStore) -> Vec<StoredListing> {
    let changes = store.changes(0, 100).await.unwrap();
    changes.into_iter().filter(|stored| !stored.deleted).collect()
}

#[tokio::test]
async fn what_a_peer_sells_is_an_offer_of_that_hub() {
    let store = MemoryStore::new();
    assert_eq!(shelve(&store, ONE, &[row("draw@v1")], 0).await, 1);
    let stored = live(&store).await.remove(0);
    assert_eq!(stored.origin, Origin::Peer { hub: ONE.to_owned() });
    assert_eq!(stored.agent.as_str(), "did:aip:one.example:hub");
    assert_eq!(stored.expires_at, Some(at(6)));
    let offer = offer(&stored).unwrap();
    assert_eq!(
        (offer.product_id.as_str(), offer.capability_id.as_str()),
        ("pd", "draw@v1")
    );
    assert_eq!(
        (offer.price.micros(), offer.way.clone()),
        (10_000, Some(Way::Peer))
    );
    let Source::Peer(source) = &offer.source else {
        unreachable!()
    };
    assert_eq!((source.hub.as_str(), source.name.as_str()), (ONE, "One"));
    let schema = offer.input_schema.unwrap();
    assert_eq!(
        schema.value()["properties"]["x"]["minimum"],
        json!(0.5),
        "floats come back"
    );
    // Nobody else can hand in a listing that is called at another hub.
    let forged = StoredListing {
        origin: Origin::Signed,
        ..stored
    };
    let forged = crate::market::offer::offer(&forged).unwrap();
    assert_eq!((forged.source, forged.way), (Source::Local, None));
}

#[tokio::test]
async fn the_same_again_changes_nothing_until_it_is_to_be_renewed() {
    let store = MemoryStore::new();
    let rows = [row("a1"), row("b1")];
    assert_eq!(shelve(&store, ONE, &rows, 0).await, 2);
    let first = live(&store).await;
    assert_eq!(shelve(&store, ONE, &rows, 1).await, 0);
    assert_eq!(live(&store).await, first);
    let mut changed = rows.clone();
    changed[1].price = Usd::parse("0.02").unwrap();
    assert_eq!(shelve(&store, ONE, &changed, 2).await, 1);
    assert_eq!(
        shelve(&store, ONE, &changed, 3).await,
        1,
        "the other one ends in three hours"
    );
    let after = live(&store).await;
    let numbers = |listings: &[StoredListing]| {
        let mut numbers: Vec<_> = listings.iter().map(|stored| stored.number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(&after), numbers(&first), "they keep their places");
    let created = |stored: &StoredListing| Json::parse(&stored.json).unwrap().get("created_at").cloned();
    assert!(after.iter().all(|stored| created(stored) == created(&first[0])));
}

#[tokio::test]
async fn pitfall_51_what_is_delisted_goes_and_only_of_that_peer() {
    let store = MemoryStore::new();
    shelve(&store, ONE, &[row("a1"), row("b1")], 0).await;
    shelve(&store, TWO, &[row("a1")], 0).await;
    assert_eq!(
        live(&store).await.len(),
        3,
        "two hubs at one host sell the same ids"
    );
    assert_eq!(shelve(&store, ONE, &[row("b1")], 1).await, 1);
    let left: Vec<_> = live(&store)
        .await
        .into_iter()
        .map(|stored| stored.origin)
        .collect();
    assert_eq!(left.len(), 2);
    assert!(left.contains(&Origin::Peer { hub: TWO.to_owned() }));
    // It comes back with a higher version.
    assert_eq!(shelve(&store, ONE, &[row("a1"), row("b1")], 2).await, 1);
    assert_eq!(live(&store).await.len(), 3);
    let own = own();
    let shelving = Shelving {
        listings: &store,
        own: &own,
        now: at(2),
    };
    assert_eq!(shelving.take_down(ONE).await.unwrap(), 2);
    assert_eq!(shelving.take_down(ONE).await.unwrap(), 0);
    assert_eq!(live(&store).await.len(), 1);
}

#[test]
fn every_address_has_an_agent_and_none_is_of_this_hub() {
    let of = |url: &str| agent_of(url, &own()).unwrap().to_string();
    assert_eq!(of("https://one.example/a"), "did:aip:one.example:hub");
    assert_eq!(of("http://localhost:9083"), "did:aip:localhost%3A9083:hub");
    for url in [
        "http://127.0.0.1:9083",
        "http://[::1]",
        "https://hub.example/x",
        "https://under_score.example",
    ] {
        let agent = of(url);
        assert!(
            agent.starts_with("did:aip:hub-") && agent.ends_with(".invalid:hub"),
            "{agent}"
        );
        assert_eq!(of(url), agent);
    }
    assert_ne!(of("http://127.0.0.1:1"), of("http://127.0.0.1:2"));
}

#[tokio::test]
async fn a_thousand_are_put_at_once() {
    let store: Arc<MemoryStore> = Arc::default();
    let rows: Vec<_> = (0..1_000).map(|number| row(&format!("c{number}"))).collect();
    assert_eq!(shelve(&store, ONE, &rows, 0).await, 1_000);
    assert_eq!(shelve(&store, ONE, &rows[..1], 1).await, 999);
    assert_eq!(store.count_listings().await.unwrap().live, 1);
}
