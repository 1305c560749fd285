//! The search page as it is sent. What a browser makes of it, the integration tests show.

use serde_json::json;

use crate::testing::TestHub;

async fn text(hub: &TestHub, path: &str) -> (u16, String) {
    let answer = hub.get(path).await;
    (
        answer.status.as_u16(),
        String::from_utf8(answer.body.to_vec()).unwrap(),
    )
}

#[actix_web::test]
async fn a_listing_becomes_a_card_and_never_markup() {
    let hub = TestHub::searching();
    let shop = hub.registered("shop").await;
    let listing = hub.listing(&shop, "x", 1, |listing| {
        listing["name"] = json!("zqcard <script>alert(1)</script>");
        listing["description"] = json!(format!("\"quoted\" & {}", "long ".repeat(200)));
        listing["price"] = json!("12.50");
        listing["currency"] = json!("EUR");
        listing["available"] = json!(false);
        listing["tags"] = json!(["<b>"]);
    });
    assert_eq!(hub.publish(&listing).await.status, 201);
    hub.found("zqcard", 1).await;
    let (status, page) = text(&hub, "/search?q=zqcard&kind=&price_max=13&currency=").await;
    assert_eq!(status, 200);
    for expected in [
        "zqcard &lt;script&gt;alert(1)&lt;/script&gt;",
        "12.50 EUR",
        "not available",
        "&quot;quoted&quot; &amp;",
        "…",
        "&lt;b&gt;",
        "<code class=\"handle\">shop#hub.example</code>",
        "href=\"/api/v1/resolve/shop%23hub.example\"",
        "href=\"/agents/shop\"",
        "value=\"zqcard\"",
        "value=\"13\"",
        "<details open>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert_eq!(
        page.matches("<script").count(),
        1,
        "its own, and none of a listing's"
    );
}

#[actix_web::test]
async fn pages_lead_on_and_keep_what_was_asked() {
    let hub = TestHub::searching();
    let shop = hub.registered("shop").await;
    for number in 0..25 {
        let listing = hub.listing(&shop, &format!("l{number}"), 1, |listing| {
            listing["name"] = json!(format!("zqmany {number}"));
        });
        assert_eq!(hub.publish(&listing).await.status, 201);
    }
    hub.found("zqmany", 25).await;
    let (_, first) = text(&hub, "/search?q=zqmany&kind=product").await;
    let next = first.split("href=\"/search?").nth(1).expect("a link to more");
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    assert!(next.starts_with("q=zqmany&kind=product&cursor="), "{next}");
    let (status, second) = text(&hub, &format!("/search?{next}")).await;
    assert_eq!((status, second.matches("<li>").count()), (200, 5));
    assert!(!second.contains(">More<"), "{second}");
}

#[actix_web::test]
async fn what_cannot_be_asked_is_said_on_the_page() {
    let hub = TestHub::searching();
    for (query, word) in [
        ("price_max=cheap", "<code>price_max</code>"),
        ("currency=euro", "<code>currency</code>"),
        ("q=a&cursor=forged", "role=\"alert\""),
    ] {
        let (status, page) = text(&hub, &format!("/search?{query}")).await;
        assert_eq!(status, 400, "{page}");
        assert!(page.contains(word) && page.contains("<form"), "{query}: {page}");
    }
    let answer = hub.get("/search?colour=red").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (400, "parameter_unknown")
    );
}

#[actix_web::test]
async fn the_page_runs_its_own_script_only() {
    let hub = TestHub::searching();
    let answer = hub.get("/search").await;
    let policy = answer.header("content-security-policy");
    assert!(
        policy.contains("script-src 'self'") && policy.contains("default-src 'none'"),
        "{policy}"
    );
    let script = hub.get("/search.js").await;
    assert_eq!(script.status, 200);
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
}
