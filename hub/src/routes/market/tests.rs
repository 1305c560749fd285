//! The market's form of a search.

use serde_json::json;

use crate::testing::TestHub;

#[actix_web::test]
async fn capabilities_are_found_in_the_markets_form() {
    let hub = TestHub::searching();
    let shop = hub.registered("shop").await;
    let draw = hub.listing(&shop, "draw", 1, |listing| {
        listing["kind"] = json!("capability");
        listing["name"] = json!("sortes.draw@v1");
        listing["price"] = json!("0.01");
        listing["currency"] = json!("USD");
        listing["attributes"] = json!({ "capability_id": "sortes.draw@v1", "product_id": "sortes" });
        listing["input_schema"] = json!({ "type": "object", "required": ["seed"] });
    });
    assert_eq!(hub.publish(&draw).await.status, 201);
    hub.publish(&hub.listing(&shop, "thing", 1, |listing| {
        listing["name"] = json!("sortes draw thing");
    }))
    .await;
    hub.found("sortes", 2).await;
    let answer = hub
        .get("/ai-market/v2/search?intent=sortes.draw@v1&budget=0.01&hub=any&limit=5")
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(
        (&answer["protocol_version"], &answer["total"], &answer["has_more"]),
        (&json!("v2"), &json!(1), &json!(false))
    );
    let found = &answer["matches"][0];
    assert_eq!(
        (&found["capability_id"], &found["product_id"]),
        (&json!("sortes.draw@v1"), &json!("sortes"))
    );
    assert_eq!(
        (&found["price_per_call_usd"], &found["input_required"]),
        (&json!(0.01), &json!(["seed"]))
    );
    assert_eq!(found["source_hub"], "hub.example");
    assert_eq!(found["match_type"], "lexical");
    let cheap = hub
        .get("/ai-market/v2/search?intent=sortes&budget=0.001")
        .await
        .json();
    assert_eq!(cheap["matches"], json!([]));
    let past = hub
        .get("/ai-market/v2/search?intent=sortes&offset=1")
        .await
        .json();
    assert_eq!((&past["matches"], &past["offset"]), (&json!([]), &json!(1)));
}

#[actix_web::test]
async fn errors_have_the_markets_shape() {
    let hub = TestHub::new();
    for (query, parameter) in [
        ("q=x", "q"),
        ("budget=cheap", "budget"),
        ("min_trust=2", "min_trust"),
        ("hub=127.0.0.1", "hub"),
        ("limit=101", "limit"),
        ("offset=-1", "offset"),
        ("intent=a&intent=b", "intent"),
    ] {
        let answer = hub.get(&format!("/ai-market/v2/search?{query}")).await;
        assert_eq!(answer.status, 422, "{query}: {answer:?}");
        assert_eq!(
            answer.json()["detail"][0]["loc"],
            json!(["query", parameter]),
            "{query}"
        );
    }
}
