//! What is sold follows the listings and their agents, also where the log forgets.

use std::time::Duration;

use actix_web::test::TestRequest;
use aip_market::offer::Source;
use aip_protocol::clock::Clock as _;
use aip_registry::listings::listing_id;
use serde_json::json;

use super::*;
use crate::testing::{TestAgent, TestHub};

struct World {
    hub: TestHub,
    shelf: Arc<Shelf>,
    shop: TestAgent,
}

impl World {
    async fn new() -> Self {
        let hub = TestHub::new();
        let shelf = hub.hub.app.market.as_ref().unwrap().shelf.clone();
        let shop = hub.registered("shop").await;
        Self { hub, shelf, shop }
    }

    async fn lists(&self, agent: &TestAgent, id: &str, version: u64, capability: &str) {
        let listing = self.hub.listing(agent, id, version, |listing| {
            listing["kind"] = json!("capability");
            listing["invoke"] = json!({ "relay": true });
            listing["attributes"] = json!({ "product_id": "product", "capability_id": capability });
        });
        let answer = self.hub.publish(&listing).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    async fn takes_away(&self, id: &str, version: u64) {
        let gone = self.hub.listing(&self.shop, id, version, |listing| {
            listing["deleted"] = json!(true);
        });
        let request = TestRequest::delete()
            .uri(&format!("/api/v1/listings/{}", listing_id(&self.shop.did, id)))
            .insert_header(("content-type", "application/json"));
        assert_eq!(
            self.hub.ask(request.set_payload(gone.to_string())).await.status,
            200
        );
    }

    /// The listing that is sold under this id, after a look at the log.
    async fn sold(&self, capability: &str) -> Option<String> {
        self.shelf.catch_up().await.unwrap();
        self.shelf
            .find(&here("product", capability))
            .map(|offer| offer.id.clone())
    }
}

#[actix_web::test]
async fn who_listed_a_name_first_sells_it() {
    let world = World::new().await;
    let other = world.hub.registered("other").await;
    world.lists(&world.shop, "one", 1, "same").await;
    world.lists(&other, "two", 1, "same").await;
    let first = listing_id(&world.shop.did, "one");
    assert_eq!(world.sold("same").await, Some(first.clone()));
    // A newer version keeps its place.
    world.lists(&world.shop, "one", 2, "same").await;
    assert_eq!(world.sold("same").await, Some(first));
    assert_eq!(world.shelf.sold(10).count, 1);
    world.lists(&world.shop, "one", 3, "another").await;
    assert_eq!(world.sold("same").await, Some(listing_id(&other.did, "two")));
    assert_eq!(world.shelf.sold(10).count, 2);
    world.takes_away("one", 4).await;
    assert_eq!((world.sold("another").await, world.shelf.len()), (None, 1));
}

#[actix_web::test]
async fn the_name_of_an_agent_is_its_own_product_and_what_cannot_be_called_stands_in_nobodys_way() {
    let world = World::new().await;
    let other = world.hub.registered("other").await;
    let lists = async |agent: &TestAgent, id: &str, product: &str, invoke: serde_json::Value| {
        let listing = world.hub.listing(agent, id, 1, |listing| {
            listing["kind"] = json!("capability");
            listing["invoke"] = invoke;
            listing["attributes"] = json!({ "product_id": product, "capability_id": "same" });
        });
        let answer = world.hub.publish(&listing).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    };
    let sold = async |product: &str| {
        world.shelf.catch_up().await.unwrap();
        world
            .shelf
            .find(&here(product, "same"))
            .map(|offer| offer.id.clone())
    };
    lists(&world.shop, "taken", "other", json!({ "relay": true })).await;
    assert_eq!(sold("other").await, Some(listing_id(&world.shop.did, "taken")));
    lists(&other, "own", "other", json!({ "relay": true })).await;
    assert_eq!(sold("other").await, Some(listing_id(&other.did, "own")));
    lists(&world.shop, "shown", "word", json!({})).await;
    lists(&other, "sold", "word", json!({ "relay": true })).await;
    assert_eq!(sold("word").await, Some(listing_id(&other.did, "sold")));
}

#[actix_web::test]
async fn who_is_suspended_sells_nothing() {
    let world = World::new().await;
    world.lists(&world.shop, "one", 1, "work").await;
    assert!(world.sold("work").await.is_some());
    let (registry, listings) = (&world.hub.hub.app.registry, &world.hub.hub.app.listings);
    let name = world.shop.did.handle().name;
    for (standing, is_sold) in [
        (aip_registry::Standing::Suspended, false),
        (aip_registry::Standing::Active, true),
    ] {
        registry.set_standing(&name, standing).await.unwrap();
        listings.touch_of(&world.shop.did).await.unwrap();
        assert_eq!(world.sold("work").await.is_some(), is_sold);
    }
}

/// Who was away while deletions were forgotten reads everything anew.
#[actix_web::test]
async fn a_deletion_that_the_log_has_forgotten_is_noticed() {
    let world = World::new().await;
    world.lists(&world.shop, "one", 1, "one").await;
    assert!(world.sold("one").await.is_some());
    world.takes_away("one", 2).await;
    world.lists(&world.shop, "two", 1, "two").await;
    let later = world.hub.clock.now() + Duration::from_secs(1);
    let listings = &world.hub.hub.app.listings;
    assert_eq!(listings.forget_deleted(later, 10).await.unwrap(), 1);
    assert!(listings.complete_from().await.unwrap() > 1);
    assert_eq!(world.sold("one").await, None);
    assert!(world.sold("two").await.is_some());
}

#[test]
fn one_agent_does_not_fill_the_shelf() {
    let change = |number: u64, agent: &str, bytes: usize| Change {
        seq: number,
        number,
        shelved: Some(Shelved {
            offer: Arc::new(plain(agent, &format!("c{number}"), None)),
            expires_at: None,
            bytes,
        }),
    };
    let gone = |number: u64| Change {
        seq: number,
        number,
        shelved: None,
    };
    let (big, other) = ("did:aip:hub.example:big", "did:aip:hub.example:other");
    let half = OFFER_BYTES_PER_AGENT_MAX / 2;
    let mut held = Held::default();
    for number in 1..=3 {
        held.apply(change(number, big, half));
    }
    assert_eq!(held.by_number.len(), 2, "the third is too much");
    held.apply(change(4, other, half));
    assert_eq!(held.by_number.len(), 3, "for others there is room");
    held.apply(change(1, big, 1));
    held.apply(change(3, big, half - 1));
    assert_eq!(held.by_number.len(), 4, "a lighter version makes room");
    for number in 1..=4 {
        held.apply(gone(number));
    }
    assert_eq!((held.by_number.len(), held.bytes, held.by_agent.len()), (0, 0, 0));
}

#[test]
fn a_schema_weighs_more_than_its_text() {
    let agent = "did:aip:hub.example:shop";
    assert_eq!(weight(&plain(agent, "c1", None), 100), 100);
    let schema = Schema::new(json!({ "type": "object" })).unwrap();
    let weighed = weight(&plain(agent, "c1", Some(schema)), 100);
    assert_eq!(weighed, 100 + 2 * SCHEMA_VALUE_BYTES);
}

fn here<'a>(product_id: &'a str, capability_id: &'a str) -> Asked<'a> {
    Asked {
        product_id,
        capability_id,
        hub: None,
    }
}

fn plain(agent: &str, capability_id: &str, input_schema: Option<Schema>) -> Offer {
    Offer {
        id: "lst_1".to_owned(),
        agent: Did::parse(agent).unwrap(),
        source: Source::Local,
        product_id: "product".to_owned(),
        capability_id: capability_id.to_owned(),
        version: 1,
        name: String::new(),
        description: String::new(),
        category: None,
        price: aip_market::money::Usd::ZERO,
        input_schema,
        output_schema: None,
        way: None,
        timeout: None,
        free_tier: None,
        provider_key: None,
        payout: None,
        notes: aip_market::offer::Notes::default(),
    }
}
