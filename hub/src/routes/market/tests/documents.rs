//! The signed documents: verified with the key that the hub publishes, the same bytes until something changes.

use std::time::Duration;

use aip_protocol::market::{Value as Wire, document, manifest, signature};
use serde_json::{Value, json};

use super::{Shop, refused};

const WELL_KNOWN: &str = "/.well-known/ai-market.json";
const MANIFEST: &str = "/ai-market/v2/manifest";
const PRICES: &str = "/ai-market/v2/prices";

/// The document, after its signature was checked.
async fn verified(shop: &Shop, path: &str) -> Value {
    let known = shop.hub.get(WELL_KNOWN).await.json();
    let key = signature::parse_key(known["signer_public_key"].as_str().unwrap()).unwrap();
    let answer = shop.hub.get(path).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let wire = Wire::parse(&answer.body).unwrap();
    let check = match path {
        MANIFEST => manifest::verify(&wire, &[key]),
        _ => document::verify(&wire, &[key]),
    };
    assert!(check.verdict.is_true(), "{check:?}");
    answer.json()
}

#[actix_web::test]
async fn what_is_sold_is_in_signed_documents() {
    let shop = Shop::open(|settings| settings.market.trials_per_visitor = 3).await;
    shop.sells_with("b@v1", Some("0.00001"), |listing| {
        listing["input_schema"] = json!({ "type": "object", "required": ["x"] });
        listing["invoke"]["free_tier"] = json!({ "field": "x.T", "max": 10 });
    })
    .await;
    shop.sells("a@v1", None).await;
    // Listed, and not sold: in another currency, without a way to call it, taken by an older one.
    shop.sells_with("euro@v1", Some("1"), |listing| listing["currency"] = json!("EUR"))
        .await;
    shop.sells_with("mute@v1", None, |listing| {
        drop(listing.as_object_mut().unwrap().remove("invoke"));
    })
    .await;
    shop.sells_with("twin", None, |listing| {
        listing["attributes"]["capability_id"] = json!("a@v1");
    })
    .await;

    let known = verified(&shop, WELL_KNOWN).await;
    assert_eq!(
        (
            &known["capabilities_count"],
            &known["products_count"],
            &known["protocol_versions"]
        ),
        (&json!(2), &json!(1), &json!(["v2"]))
    );
    assert_eq!(known["free_trial"]["max_invokes_per_visitor"], 3);
    assert_eq!(known["payment_rails"]["channel"]["header"], "X-Payment-Channel");
    let manifest = verified(&shop, MANIFEST).await;
    assert_eq!(
        (
            &manifest["capabilities_count"],
            &manifest["total_capabilities"],
            &manifest["truncated"]
        ),
        (&json!(2), &json!(2), &Value::Null)
    );
    let tools = manifest["tools"].as_array().unwrap();
    let named: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    // In the order in which they were listed: what readers do not take of a long list is what came last.
    assert_eq!(named, ["shop.b@v1", "shop.a@v1"]);
    assert_eq!(
        (&tools[1]["access_mode"], &tools[1]["input_schema"]),
        (&json!("public_free"), &json!({ "type": "object" }))
    );
    assert_eq!(
        (
            &tools[0]["price_per_call_usd"],
            &tools[0]["free_tier_max"],
            &tools[0]["category"]
        ),
        (&json!(0.00001), &json!({ "x.T": 10.0 }), &json!("tests"))
    );
    assert!(
        !manifest.to_string().contains("provider.example"),
        "the address of a provider is told"
    );
    let prices = verified(&shop, PRICES).await;
    assert_eq!(
        (&prices["count"], &prices["prices"][0]["price_usd"]),
        (&json!(2), &json!(0.00001))
    );
    refused(
        &shop.calls("mute@v1", &[], &json!({})).await,
        404,
        "capability_not_invocable",
    );
    refused(
        &shop.calls("euro@v1", &[], &json!({})).await,
        404,
        "capability_not_invocable",
    );
}

#[actix_web::test]
async fn pitfall_62_a_document_is_the_same_until_it_changes() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("a@v1", None).await;
    for path in [WELL_KNOWN, MANIFEST, PRICES] {
        let first = shop.hub.get(path).await;
        let tag = first.header("etag").to_owned();
        assert_eq!(
            (first.status.as_u16(), first.header("cache-control")),
            (200, "public, max-age=60")
        );
        shop.hub.clock.advance(Duration::from_mins(2));
        let again = shop.hub.get(path).await;
        assert_eq!((&again.body, again.header("etag")), (&first.body, tag.as_str()));
        for held in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let unchanged = shop.reads(path, &[("if-none-match", &held)]).await;
            assert_eq!(
                (unchanged.status.as_u16(), unchanged.body.len()),
                (304, 0),
                "{held}"
            );
            assert_eq!(unchanged.header("etag"), tag);
        }
        let other = shop.reads(path, &[("if-none-match", "\"x\"")]).await;
        assert_eq!(other.status, 200);
    }
    let before = shop.hub.get(MANIFEST).await.body;
    shop.sells("b@v1", None).await;
    assert_ne!(shop.hub.get(MANIFEST).await.body, before);
    let before = shop.hub.get(MANIFEST).await.json()["generated_at"].clone();
    shop.hub.clock.advance(Duration::from_hours(1));
    assert_ne!(shop.hub.get(MANIFEST).await.json()["generated_at"], before);
}

/// What changes often is signed once a second at most.
#[actix_web::test]
async fn a_document_that_changes_often_is_made_once_a_second() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("a@v1", None).await;
    let first = shop.hub.get(MANIFEST).await.body;
    shop.sells("b@v1", None).await;
    assert_eq!(shop.hub.get(MANIFEST).await.body, first);
    shop.hub.clock.advance(Duration::from_secs(1));
    assert_eq!(shop.hub.get(MANIFEST).await.json()["capabilities_count"], 2);
}

#[actix_web::test]
async fn what_has_expired_is_in_no_document() {
    let shop = Shop::open(|_| ()).await;
    let end = aip_protocol::clock::Clock::now(&*shop.hub.clock) + Duration::from_mins(10);
    shop.sells_with("a@v1", None, |listing| {
        listing["expires_at"] = json!(end.to_string());
    })
    .await;
    assert_eq!(shop.hub.get(MANIFEST).await.json()["capabilities_count"], 1);
    shop.hub.clock.advance(Duration::from_mins(10));
    assert_eq!(shop.hub.get(MANIFEST).await.json()["capabilities_count"], 0);
    refused(
        &shop.calls("a@v1", &[], &json!({})).await,
        404,
        "capability_unknown",
    );
}

#[actix_web::test]
async fn the_schemas_are_served() {
    let shop = Shop::open(|_| ()).await;
    let list = shop.hub.get("/schemas").await.json();
    for listed in list["schemas"].as_array().unwrap() {
        let path = format!("/schemas/{}", listed["file"].as_str().unwrap());
        let schema = shop.hub.get(&path).await;
        assert_eq!(
            (schema.status.as_u16(), schema.header("content-type")),
            (200, "application/schema+json")
        );
        assert!(schema.json()["$schema"].is_string(), "{path}");
    }
    refused(&shop.hub.get("/schemas/none.json").await, 404, "not_found");
}
