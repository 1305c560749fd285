//! Requests of the search door, good and bad.

use aip_registry::Standing;
use serde_json::{Value, json};

use crate::testing::{TestAgent, TestHub};

#[actix_web::test]
async fn an_empty_catalog_finds_nothing() {
    let hub = TestHub::searching();
    let full = "/api/v1/search?q=iphone&kind=product,concept&price_max=12.50&limit=100&trust_min=0.5&category=a&brand=b\
                &lang=fr&attr.gb=256&updated_after=2026-11-29T20:15:30Z&domain=hub.example&currency=EUR&available=true\
                &explain=true&facets=true";
    // There is no model to look for a meaning; without text there is none to look for.
    for (path, degraded) in [("/api/v1/search", json!([])), (full, json!(["semantic"]))] {
        let answer = hub.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(answer.json()["results"], json!([]));
        assert_eq!(answer.json()["next_cursor"], json!(null));
        assert_eq!(answer.json()["degraded"], degraded, "{path}");
    }
    let body = json!({ "q": "((a", "limit": 5, "available": true, "attr.a": 1, "attributes": { "gb": 256 } });
    let answer = hub.post("/api/v1/search", body.to_string()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["query"].clone()),
        (200, json!("((a"))
    );
}

/// Five listings with one word in common.
async fn fill(hub: &TestHub) -> TestAgent {
    let shop = hub.registered("shop").await;
    let phone = json!({ "price": "79000", "currency": "RUB", "available": true,
                        "attributes": { "gb": 256, "new": true, "brand": "Fone", "category": "phones" } });
    for (id, kind, more) in [
        ("telephone", "product", phone),
        ("case", "product", json!({ "price": "12.50", "currency": "EUR" })),
        (
            "charger",
            "product",
            json!({ "price": "30", "currency": "EUR", "available": false }),
        ),
        (
            "repair",
            "capability",
            json!({ "price": "5.00000001", "currency": "EUR" }),
        ),
        ("manual", "concept", json!({ "lang": "en" })),
    ] {
        let listing = hub.listing(&shop, id, 1, |listing| {
            listing["kind"] = json!(kind);
            listing["name"] = json!(format!("zqword {id}"));
            for (name, value) in more.as_object().unwrap() {
                listing[name] = value.clone();
            }
        });
        assert_eq!(hub.publish(&listing).await.status, 201);
    }
    hub.found("zqword", 5).await;
    shop
}

fn names(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap().iter();
    results.map(|row| row["name"].as_str().unwrap()).collect()
}

#[actix_web::test]
async fn what_is_found_has_the_form_of_the_protocol() {
    let hub = TestHub::searching();
    let shop = fill(&hub).await;
    let answer = hub
        .get("/api/v1/search?q=zqword%20telephone&limit=1&explain=true&facets=true")
        .await
        .json();
    let row = &answer["results"][0];
    assert_eq!(row["name"], "zqword telephone");
    assert_eq!(
        (&row["price"], &row["price_text"], &row["currency"]),
        (&json!(79000), &json!("79000"), &json!("RUB"))
    );
    assert_eq!(
        (&row["kind"], &row["available"], &row["attributes"]["gb"]),
        (&json!("product"), &json!(true), &json!(256))
    );
    assert_eq!(row["agent"]["handle"], "shop%23hub.example");
    assert_eq!(row["agent"]["did"], shop.did.as_str());
    assert_eq!(row["agent"]["endpoint"], "https://hub.example/relay/shop");
    assert_eq!(
        (&row["source_hub"], &row["ranks"]),
        (&json!("hub.example"), &json!({ "fts": 1 }))
    );
    assert_eq!(
        (&row["relevance_score"], &row["trust_score"]),
        (&json!(1.0), &json!(0.0))
    );
    assert!(
        (row["final_score"].as_f64().unwrap() - 1.0 / 61.0).abs() < 1e-12,
        "{row}"
    );
    assert!(
        row["explain"].is_object() && answer["facets"].is_object(),
        "{answer}"
    );
    assert!(answer.get("fusion").is_none(), "these are the defaults");
    let all = hub.get("/api/v1/search?q=").await.json();
    assert_eq!(all["results"].as_array().unwrap().len(), 5);
    assert_eq!(all["results"][0]["final_score"], json!(null));
    let exact = hub.get("/api/v1/search?q=zqword%20repair&limit=1").await;
    let text = String::from_utf8(exact.body.to_vec()).unwrap();
    assert!(
        text.contains(r#""price":5.00000001,"price_text":"5.00000001""#),
        "{text}"
    );
}

#[actix_web::test]
async fn filters_hold_for_every_result() {
    let hub = TestHub::searching();
    fill(&hub).await;
    for (query, expected) in [
        ("kind=capability", vec!["zqword repair"]),
        ("kind=concept,capability", vec!["zqword manual", "zqword repair"]),
        (
            "currency=EUR&price_max=12.5",
            vec!["zqword case", "zqword repair"],
        ),
        (
            "price_min=5.00000002&currency=EUR",
            vec!["zqword case", "zqword charger"],
        ),
        ("available=false", vec!["zqword charger"]),
        ("category=PHONES", vec!["zqword telephone"]),
        ("brand=fone", vec!["zqword telephone"]),
        ("attr.gb=256&attr.new=true", vec!["zqword telephone"]),
        ("trust_min=0.1", vec![]),
        ("domain=other.example", vec![]),
        ("updated_after=2027-01-01T00:00:00Z", vec![]),
    ] {
        for text in ["", "zqword"] {
            let answer = hub.get(&format!("/api/v1/search?q={text}&{query}")).await.json();
            let mut found = names(&answer);
            found.sort_unstable();
            assert_eq!(found, expected, "q={text}&{query}");
        }
    }
}

#[actix_web::test]
async fn pages_follow_each_other_and_their_cursors_cannot_be_made() {
    let hub = TestHub::searching();
    fill(&hub).await;
    for text in ["", "zqword"] {
        let whole = hub
            .get(&format!("/api/v1/search?q={text}&limit=100"))
            .await
            .json();
        let (mut seen, mut cursor, mut first) = (Vec::new(), String::new(), String::new());
        loop {
            let page = hub
                .get(&format!("/api/v1/search?q={text}&limit=2{cursor}"))
                .await
                .json();
            seen.extend(names(&page).into_iter().map(str::to_owned));
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            if first.is_empty() {
                next.clone_into(&mut first);
            }
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, names(&whole), "{text:?}");
        let mut forged = first.clone();
        let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
        forged.push(last);
        for (query, cursor) in [
            (format!("q={text}&limit=2"), forged.as_str()),
            (format!("q={text}x&limit=2"), first.as_str()),
            (format!("q={text}&limit=2&kind=product"), first.as_str()),
        ] {
            let answer = hub.get(&format!("/api/v1/search?{query}&cursor={cursor}")).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code().as_str()),
                (400, "cursor_invalid"),
                "{query}"
            );
        }
    }
}

#[actix_web::test]
async fn a_listing_says_why_it_is_found_or_not() {
    let hub = TestHub::searching();
    let shop = hub.registered("shop").await;
    let listing = hub.listing(&shop, "lamp", 1, |listing| {
        listing["name"] = json!("Une lampe de bureau pour la maison et le jardin");
        listing["expires_at"] = json!("2026-11-30T00:00:00Z");
    });
    let id = hub.publish(&listing).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    hub.found("lampe", 1).await;
    let path = format!("/api/v1/listings/{id}/status");
    let status = hub.get(&path).await.json();
    assert_eq!(
        (&status["status"], &status["reasons"]),
        (&json!("found"), &json!([])),
        "{status}"
    );
    assert_eq!(
        (&status["indexed"], &status["language"]),
        (&json!(true), &json!("fr")),
        "{status}"
    );
    hub.clock.advance(std::time::Duration::from_hours(12));
    let status = hub.get(&path).await.json();
    assert_eq!(
        (&status["status"], &status["reasons"]),
        (&json!("hidden"), &json!(["expired"])),
        "{status}"
    );
    assert_eq!(names(&hub.get("/api/v1/search?q=lampe").await.json()), [""; 0]);
}

#[actix_web::test]
async fn an_agent_that_is_suspended_is_not_shown() {
    let hub = TestHub::searching();
    let shop = fill(&hub).await;
    let name = shop.did.handle().name;
    let app = &hub.hub.app;
    app.registry
        .set_standing(&name, Standing::Suspended)
        .await
        .unwrap();
    assert_eq!(
        hub.get("/api/v1/search?q=zqword").await.json()["results"],
        json!([]),
        "at once"
    );
    app.listings.touch_of(&shop.did).await.unwrap();
    app.catalog.nudge();
    hub.found("zqword", 0).await;
    app.registry.set_standing(&name, Standing::Active).await.unwrap();
    app.listings.touch_of(&shop.did).await.unwrap();
    app.catalog.nudge();
    hub.found("zqword", 5).await;
}

#[actix_web::test]
async fn whatever_people_type_is_text() {
    let hub = TestHub::searching();
    fill(&hub).await;
    let long = "word ".repeat(1_600);
    for text in [
        "\"iphone",
        "AND OR NOT",
        "((a",
        "price:>10",
        "*",
        "\\",
        "/a[",
        "a^b~2",
        "📱 256",
        "айфон",
        "a\u{0}b",
        "\u{202e}\u{200b}",
        "(a+)+$",
        "', DROP TABLE listings; --",
        "<script>alert(1)</script>",
        " ",
        &long,
    ] {
        let answer = hub.post("/api/v1/search", json!({ "q": text }).to_string()).await;
        assert_eq!(answer.status, 200, "{text:?}: {answer:?}");
        assert_eq!(answer.json()["query"], text);
    }
}

#[actix_web::test]
async fn parameters_out_of_form_are_refused_by_name() {
    let hub = TestHub::searching();
    let long = "x".repeat(300);
    for (query, parameter) in [
        ("colour=red", "colour"),
        ("intent=x", "intent"),
        ("q=a&q=b", "q"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=1e9", "limit"),
        ("limit=1000000000000000000000", "limit"),
        ("limit=+5", "limit"),
        ("limit=ten", "limit"),
        ("limit=-1", "limit"),
        ("kind=weapon", "kind"),
        ("kind=", "kind"),
        ("price_min=1e3", "price_min"),
        ("price_min=1e400", "price_min"),
        ("price_max=-1", "price_max"),
        ("price_max=NaN", "price_max"),
        ("price_max=Infinity", "price_max"),
        ("currency=eur", "currency"),
        ("available=yes", "available"),
        ("trust_min=1.5", "trust_min"),
        ("trust_min=NaN", "trust_min"),
        ("domain=127.0.0.1", "domain"),
        ("lang=!", "lang"),
        ("category=", "category"),
        (&format!("brand={long}"), "brand"),
        ("updated_after=yesterday", "updated_after"),
        ("explain=1", "explain"),
        ("facets=maybe", "facets"),
        ("attr.=x", "attributes"),
        ("attr.a=1&attr.a=2", "attributes"),
        ("q=%ff", "q"),
    ] {
        let answer = hub.get(&format!("/api/v1/search?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(answer.code().starts_with("parameter_"), "{query}: {answer:?}");
        assert_eq!(answer.json()["parameter"], parameter, "{query}");
    }
    for cursor in ["abc", "", "..", &"A".repeat(3_000)] {
        let answer = hub.get(&format!("/api/v1/search?q=a&cursor={cursor}")).await;
        assert_eq!(answer.status, 400, "{cursor}: {answer:?}");
    }
}

#[actix_web::test]
async fn bodies_out_of_form_are_refused() {
    let hub = TestHub::searching();
    let tokens = format!(r#"{{"q":"{}"}}"#, "a ".repeat(30_000));
    let million = format!(r#"{{"q":"{}"}}"#, "a ".repeat(1_000_000));
    let attributes: Value = (0..17).map(|number| (number.to_string(), json!(1))).collect();
    for (body, status, code) in [
        (r#"{"q":[]}"#, 400, "parameter_invalid"),
        (r#"{"q":null}"#, 400, "parameter_invalid"),
        (r#"{"x":1}"#, 400, "parameter_unknown"),
        (r#"{"trust_min":0.5}"#, 400, "json_invalid"),
        (r#"{"price_max":1e400}"#, 400, "json_invalid"),
        (r#"{"q":"\ud800"}"#, 400, "json_invalid"),
        (r#"{"q":"a","q":"b"}"#, 400, "json_invalid"),
        (r#"{"attributes":{"a":null}}"#, 400, "parameter_invalid"),
        (r#"{"attributes":[]}"#, 400, "parameter_invalid"),
        (
            &json!({ "attributes": attributes }).to_string(),
            400,
            "parameter_invalid",
        ),
        ("[]", 400, "parameter_invalid"),
        ("", 400, "json_invalid"),
        (&tokens, 400, "parameter_invalid"),
        (&million, 413, "body_too_large"),
    ] {
        let answer = hub.post("/api/v1/search", body.to_owned()).await;
        let shown: String = body.chars().take(60).collect();
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (status, code),
            "{shown}"
        );
    }
}

#[actix_web::test]
async fn a_hub_with_its_own_formula_says_so() {
    let hub = TestHub::with(|settings| settings.search.fusion_k = 10);
    let answer = hub.get("/api/v1/search?q=x").await.json();
    assert_eq!(answer["fusion"], json!({ "k": 10.0, "trust_weight": 0.3 }));
}
