//! The market's form of a search: what is sold, and nothing else.

use serde_json::{Value, json};

use super::{Shop, refused};

/// A shop whose catalog follows its listings.
async fn shop() -> Shop {
    let shop = Shop::open(|_| ()).await;
    shop.hub.hub.follow_listings();
    shop
}

fn ids(answer: &Value) -> Vec<&str> {
    let found = answer["matches"].as_array().unwrap().iter();
    let mut ids: Vec<&str> = found
        .map(|found| found["capability_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

#[actix_web::test]
async fn capabilities_that_are_sold_are_found_in_the_markets_form() {
    let shop = shop().await;
    shop.sells_with("draw", Some("0.01"), |listing| {
        listing["name"] = json!("sortes.draw@v1");
        listing["attributes"] = json!({ "capability_id": "sortes.draw@v1", "product_id": "sortes" });
        listing["input_schema"] = json!({ "type": "object", "required": ["seed"] });
    })
    .await;
    shop.sells_with("mute", None, |listing| {
        listing["name"] = json!("sortes mute");
        listing.as_object_mut().unwrap().remove("invoke");
    })
    .await;
    let thing = shop.hub.listing(&shop.seller, "thing", 1, |listing| {
        listing["name"] = json!("sortes draw thing");
    });
    shop.hub.publish(&thing).await;
    shop.hub.found("sortes", 3).await;
    let answer = shop
        .hub
        .get("/ai-market/v2/search?intent=sortes.draw@v1&budget=1e-02&hub=any&limit=5")
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(
        (&answer["protocol_version"], &answer["total"], &answer["has_more"]),
        (&json!("v2"), &json!(1), &json!(false))
    );
    let found = &answer["matches"][0];
    assert_eq!(
        (
            &found["capability_id"],
            &found["product_id"],
            &found["source_hub"]
        ),
        (&json!("sortes.draw@v1"), &json!("sortes"), &json!("local"))
    );
    assert_eq!(
        (
            &found["price_per_call_usd"],
            &found["input_required"],
            &found["access_mode"]
        ),
        (&json!(0.01), &json!(["seed"]), &json!("paid"))
    );
    assert_eq!(
        (&found["match_type"], &found["source_hub_name"]),
        (&json!("lexical"), &json!("hub.example"))
    );
    let past = shop
        .hub
        .get("/ai-market/v2/search?intent=sortes&offset=1")
        .await
        .json();
    assert_eq!(
        (&past["matches"], &past["offset"], &past["total"]),
        (&json!([]), &json!(1), &json!(1))
    );
}

#[actix_web::test]
async fn a_budget_is_any_number_and_what_is_free_is_within_it() {
    let shop = shop().await;
    shop.sells("paid", Some("0.01")).await;
    shop.sells("free", None).await;
    shop.sells("dear", Some("5")).await;
    shop.hub.found("Listing", 3).await;
    for (query, expected) in [
        ("limit=0", vec!["dear", "free", "paid"]),
        ("budget=3.0", vec!["free", "paid"]),
        ("budget=1e-05", vec!["free"]),
        ("budget=0", vec!["free"]),
        ("hub=local&budget=0", vec!["free"]),
        ("hub=hub.example&budget=0", vec!["free"]),
        ("hub=https://hub.example/&budget=0", vec!["free"]),
        ("hub=https://elsewhere.example", vec![]),
        ("category=other", vec![]),
    ] {
        let answer = shop
            .hub
            .get(&format!("/ai-market/v2/search?{query}"))
            .await
            .json();
        assert_eq!(ids(&answer), expected, "{query}");
    }
}

#[actix_web::test]
async fn pitfall_57_errors_have_the_markets_shape() {
    let shop = Shop::open(|_| ()).await;
    for (query, parameter) in [
        ("q=x", "q"),
        ("budget=cheap", "budget"),
        ("budget=-1", "budget"),
        ("budget=NaN", "budget"),
        ("min_trust=2", "min_trust"),
        ("limit=101", "limit"),
        ("offset=-1", "offset"),
        ("intent=a&intent=b", "intent"),
    ] {
        let answer = shop.hub.get(&format!("/ai-market/v2/search?{query}")).await;
        let body = refused(&answer, 422, "request_invalid");
        assert_eq!(body["detail"][0]["loc"], json!(["query", parameter]), "{query}");
    }
}
