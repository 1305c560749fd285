//! Requests of the search door, good and bad.

use serde_json::json;

use crate::testing::TestHub;

#[actix_web::test]
async fn a_hub_without_a_catalog_says_so() {
    let hub = TestHub::new();
    for path in [
        "/api/v1/search",
        "/api/v1/search?q=iphone&kind=product&price_max=12.50&limit=100&trust_min=0.5",
    ] {
        let answer = hub.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(answer.json()["results"], json!([]));
        assert_eq!(answer.json()["next_cursor"], json!(null));
        assert_eq!(answer.json()["degraded"], json!(["fts", "semantic"]));
    }
    let answer = hub
        .post(
            "/api/v1/search",
            json!({ "q": "((a", "limit": 5, "available": true }).to_string(),
        )
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["query"].clone()),
        (200, json!("((a"))
    );
}

#[actix_web::test]
async fn parameters_out_of_form_are_refused() {
    let hub = TestHub::new();
    for (query, code) in [
        ("colour=red", "parameter_unknown"),
        ("q=a&q=b", "parameter_invalid"),
        ("limit=0", "parameter_invalid"),
        ("limit=101", "parameter_invalid"),
        ("limit=ten", "parameter_invalid"),
        ("limit=-1", "parameter_invalid"),
        ("kind=weapon", "parameter_invalid"),
        ("price_min=1e3", "parameter_invalid"),
        ("price_max=-1", "parameter_invalid"),
        ("price_max=NaN", "parameter_invalid"),
        ("currency=eur", "parameter_invalid"),
        ("available=yes", "parameter_invalid"),
        ("trust_min=1.5", "parameter_invalid"),
        ("domain=127.0.0.1", "parameter_invalid"),
        ("cursor=abc", "cursor_invalid"),
    ] {
        let answer = hub.get(&format!("/api/v1/search?{query}")).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, code.to_owned()),
            "{query}"
        );
    }
    for (body, code) in [
        (r#"{"q":[]}"#, "parameter_invalid"),
        (r#"{"q":null}"#, "parameter_invalid"),
        (r#"{"x":1}"#, "parameter_unknown"),
        (r#"{"trust_min":0.5}"#, "json_invalid"),
        ("[]", "parameter_invalid"),
    ] {
        let answer = hub.post("/api/v1/search", body.to_owned()).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, code.to_owned()),
            "{body}"
        );
    }
}
