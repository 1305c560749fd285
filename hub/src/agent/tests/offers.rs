//! Details of what is offered, asked of the hub's agent.

use aip_market::schema::{Checked, Schema};
use aip_registry::listings::{Verdict, listing_id};
use serde_json::{Value, json};

use super::{asking, inbox, taken, with_agent};
use crate::agent::Fate;
use crate::agent::receive::Verdict as Fallen;
use crate::testing::{TestAgent, TestHub};

const REQUEST: &str = "aip.commerce.offer.request";

/// What comes of asking: the content type and the body, which fits the published schema.
async fn answer(hub: &TestHub, asker: &str, body: Value, fate: Fate) -> Value {
    let asker = hub.registered(asker).await;
    assert_eq!(
        taken(hub, &asker, REQUEST, &asking(body)).await,
        Fallen::Done(fate)
    );
    let (envelope, plaintext) = inbox(hub, &asker).await.remove(0);
    assert_eq!(envelope.kind, "aip.commerce.offer.response");
    if fate == Fate::Answered {
        let schema = include_str!("../../../../docs/protocol/types/aip.commerce.offer.response.json");
        let mut schema: Value = serde_json::from_str(schema).unwrap();
        schema.as_object_mut().unwrap().remove("$id");
        let bytes = plaintext.body.to_string().len();
        assert_eq!(
            Schema::new(schema).unwrap().check(&plaintext.body, bytes),
            Checked::Fits,
            "{}",
            plaintext.body
        );
    }
    plaintext.body
}

async fn flat(hub: &TestHub, shop: &TestAgent, change: impl FnOnce(&mut Value)) -> String {
    let listing = hub.listing(shop, "flat-7", 3, |listing| {
        listing["name"] = json!("Appartement, 2 pièces");
        listing["description"] = json!("Rue Tverskaya, 68 m²");
        listing["price"] = json!("79000");
        listing["currency"] = json!("RUB");
        listing["available"] = json!(true);
        listing["attributes"] = json!({ "rooms": 2, "floor": 5, "balcony": true });
        listing["commerce"] = json!({
            "answered_by": "hub",
            "media": [{ "url": "https://etagi.example/7.jpg", "type": "image/jpeg", "title": "Plan" }, "x", { "url": "javascript:1" }],
            "contact": { "phone": "+7 900 000 00 00", "email": "sale@etagi.example", "hours": 9 },
        });
        change(listing);
    });
    assert_eq!(hub.publish(&listing).await.status, 201);
    listing_id(&shop.did, "flat-7")
}

#[actix_web::test]
async fn the_hub_answers_from_a_listing_that_asks_it_to() {
    let hub = with_agent(TestHub::new()).await;
    let shop = hub.registered("etagi").await;
    let id = flat(&hub, &shop, |_| {}).await;
    let said = answer(
        &hub,
        "a",
        json!({ "item_id": id, "note": "ignored" }),
        Fate::Answered,
    )
    .await;
    assert_eq!(
        (&said["status"], &said["answered_by"]),
        (&json!("offered"), &json!("hub"))
    );
    assert_eq!(
        said["agent"],
        json!({ "did": shop.did.as_str(), "handle": "etagi#hub.example" })
    );
    assert_eq!(
        (&said["version"], &said["kind"], &said["listing_id"]),
        (&json!(3), &json!("product"), &json!("flat-7"))
    );
    assert_eq!(said["price"], json!({ "amount": "79000", "currency": "RUB" }));
    assert_eq!(
        said["details"],
        json!({ "rooms": 2, "floor": 5, "balcony": true })
    );
    assert_eq!(
        said["media"],
        json!([{ "url": "https://etagi.example/7.jpg", "type": "image/jpeg", "title": "Plan" }])
    );
    assert_eq!(
        said["contact"],
        json!({ "phone": "+7 900 000 00 00", "email": "sale@etagi.example" })
    );
}

#[actix_web::test]
async fn of_any_other_listing_it_says_whom_to_ask() {
    let hub = with_agent(TestHub::new()).await;
    let shop = hub.registered("etagi").await;
    let id = flat(&hub, &shop, |listing| {
        listing["commerce"] = json!({ "answered_by": "agent" });
    })
    .await;
    let said = answer(&hub, "a", json!({ "item_id": id }), Fate::Answered).await;
    let expected = json!({ "item_id": id, "status": "elsewhere", "ask": { "did": shop.did.as_str(), "handle": "etagi#hub.example" } });
    assert_eq!(said, expected);
}

#[actix_web::test]
async fn what_is_not_offered_is_refused() {
    let hub = with_agent(TestHub::new()).await;
    let shop = hub.registered("etagi").await;
    let id = flat(&hub, &shop, |_| {}).await;
    for (asker, body, code) in [
        ("a", json!({ "item_id": "lst_none" }), "not_found"),
        ("b", json!({ "item_id": "x".repeat(300) }), "member_invalid"),
        ("c", json!({ "item_id": 7 }), "member_invalid"),
        ("d", json!({}), "member_missing"),
        ("e", json!([]), "member_missing"),
    ] {
        assert_eq!(
            answer(&hub, asker, body, Fate::Refused).await["code"],
            code,
            "{asker}"
        );
    }
    let listings = &hub.hub.app.listings;
    listings.review(&id, None, Some(Verdict::Rejected)).await.unwrap();
    assert_eq!(
        answer(&hub, "f", json!({ "item_id": id }), Fate::Refused).await["code"],
        "not_found"
    );
    listings.review(&id, None, Some(Verdict::Released)).await.unwrap();
    assert_eq!(
        answer(&hub, "g", json!({ "item_id": id }), Fate::Answered).await["status"],
        "offered"
    );
    let gone = hub.listing(&shop, "flat-7", 4, |listing| listing["deleted"] = json!(true));
    let request = actix_web::test::TestRequest::delete().uri(&format!("/api/v1/listings/{id}"));
    let request = request.insert_header(("content-type", "application/json"));
    assert_eq!(hub.ask(request.set_payload(gone.to_string())).await.status, 200);
    assert_eq!(
        answer(&hub, "h", json!({ "item_id": id }), Fate::Refused).await["code"],
        "not_found"
    );
}

#[test]
fn the_schema_of_a_request_names_what_is_read() {
    let schema = include_str!("../../../../docs/protocol/types/aip.commerce.offer.request.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["required"], json!(["item_id"]));
    assert_eq!(
        schema["properties"]["item_id"]["maxLength"],
        crate::agent::limits::ITEM_ID_BYTES_MAX
    );
}
