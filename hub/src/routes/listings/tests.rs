//! Listings at the HTTP door, good and bad.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use aip_protocol::clock::Clock as _;
use aip_protocol::json::Json;
use aip_protocol::signature::{Tag, sign};
use serde_json::{Value, json};

use crate::catalog::limits::LISTING_BYTES_MAX;
use crate::testing::{Answer, TestAgent, TestHub};

async fn delete(hub: &TestHub, id: &str, body: &Value) -> Answer {
    let request = TestRequest::default()
        .method(Method::DELETE)
        .uri(&format!("/api/v1/listings/{id}"))
        .insert_header(("content-type", "application/json"));
    hub.ask(request.set_payload(body.to_string())).await
}

/// A listing with one member set, signed.
fn with(hub: &TestHub, agent: &TestAgent, member: &str, value: &Value) -> Value {
    hub.listing(agent, "x-1", 1, |listing| listing[member] = value.clone())
}

#[actix_web::test]
async fn a_listing_is_published_shown_replaced_and_deleted() {
    let hub = TestHub::new();
    let shop = hub.registered("shop").await;
    let first = hub.listing(&shop, "phone", 2, |listing| listing["name"] = json!("Telephone"));
    let answer = hub.publish(&first).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        answer.json(),
        json!({ "id": id, "version": 2, "status": "stored" })
    );
    assert!(id.starts_with("lst_"), "{id}");
    let again = hub.publish(&first).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["status"]),
        (200, &json!("unchanged"))
    );

    let shown = hub.get(&format!("/api/v1/listings/{id}")).await.json();
    assert_eq!(shown["listing"], first);
    assert_eq!(
        (&shown["origin"], &shown["version"]),
        (&json!("signed"), &json!(2))
    );

    for version in [1, 2] {
        let other = hub.listing(&shop, "phone", version, |listing| {
            listing["name"] = json!("Other");
        });
        let answer = hub.publish(&other).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (409, "version_conflict")
        );
        assert_eq!(answer.json()["version"], 2);
    }
    let third = hub.listing(&shop, "phone", 3, |_| {});
    assert_eq!(hub.publish(&third).await.json()["version"], 3);

    let gone = hub.listing(&shop, "phone", 4, |listing| listing["deleted"] = json!(true));
    for _ in 0..2 {
        let answer = delete(&hub, &id, &gone).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["status"]),
            (200, &json!("deleted"))
        );
    }
    for path in ["", "/status"] {
        let answer = hub.get(&format!("/api/v1/listings/{id}{path}")).await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    let late = hub.publish(&third).await;
    assert_eq!(
        late.code(),
        "version_conflict",
        "a deletion is not undone by an old version"
    );
}

#[actix_web::test]
async fn only_its_agent_speaks_for_a_listing() {
    let hub = TestHub::new();
    let (shop, eve) = (hub.registered("shop").await, hub.registered("eve").await);
    let good = hub.listing(&shop, "x-1", 1, |_| {});
    let mut tampered = good.clone();
    tampered["price"] = json!("1");
    let mut stolen = good.clone();
    stolen["kid"] = json!(format!("{}#{}", shop.did, eve.signing.public()));
    stolen.as_object_mut().unwrap().remove("sig");
    let unsigned = Json::parse(stolen.to_string().as_bytes()).unwrap();
    stolen["sig"] = json!(sign(&eve.signing, Tag::Listing, &unsigned).to_string());
    let nobody = hub.agent("nobody");
    for (listing, status, code) in [
        (tampered, 401, "signature_invalid"),
        (stolen, 401, "key_unknown"),
        (hub.listing(&nobody, "x-1", 1, |_| {}), 401, "sender_unknown"),
    ] {
        let answer = hub.publish(&listing).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, code));
    }
    let id = hub.publish(&good).await.json()["id"].as_str().unwrap().to_owned();
    let gone =
        |agent, version| hub.listing(agent, "x-1", version, |listing| listing["deleted"] = json!(true));
    assert_eq!(delete(&hub, &id, &gone(&eve, 2)).await.code(), "not_yours");
    assert_eq!(
        delete(&hub, &id, &hub.listing(&shop, "x-1", 2, |_| {}))
            .await
            .code(),
        "member_invalid"
    );
    assert_eq!(
        delete(&hub, &id, &gone(&shop, 1)).await.code(),
        "version_conflict"
    );
    assert_eq!(hub.publish(&gone(&shop, 2)).await.code(), "member_invalid");
    assert_eq!(hub.get(&format!("/api/v1/listings/{id}")).await.status, 200);
    let empty = hub
        .ask(TestRequest::delete().uri(&format!("/api/v1/listings/{id}")))
        .await;
    assert_eq!(empty.code(), "json_invalid");
    let other = hub.listing(&shop, "never", 1, |listing| listing["deleted"] = json!(true));
    let unknown = aip_registry::listings::listing_id(&shop.did, "never");
    assert_eq!(delete(&hub, &unknown, &other).await.code(), "not_found");
}

#[actix_web::test]
async fn what_is_no_listing_is_refused_by_its_member() {
    let hub = TestHub::new();
    let shop = hub.registered("shop").await;
    for (member, value) in [
        ("kind", json!("weapon")),
        ("price", json!(5)),
        ("price", json!("NaN")),
        ("price", json!("1e400")),
        ("price", json!("100000000000")),
        ("currency", json!("eur")),
        ("name", json!("")),
        ("name", json!("x".repeat(600))),
        ("lang", json!("!")),
        ("tags", json!("phone")),
        ("attributes", json!({ "a": { "b": 1 } })),
        ("attributes", json!({ "a": null })),
        ("version", json!(-1)),
        ("expires_at", json!("soon")),
    ] {
        let answer = hub.publish(&with(&hub, &shop, member, &value)).await;
        let shown = value.to_string();
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (400, "member_invalid"),
            "{member} {shown}"
        );
        assert_eq!(answer.json()["member"], *member, "{shown}");
    }
    let expired = hub.listing(&shop, "x-1", 1, |listing| {
        listing["created_at"] = json!("2026-11-01T00:00:00Z");
        listing["expires_at"] = json!("2026-11-29T20:15:30Z");
    });
    assert_eq!(hub.publish(&expired).await.code(), "expired");
    for created_at in ["2025-11-29T20:15:30Z", "2026-11-29T20:20:31Z"] {
        let answer = hub
            .publish(&with(&hub, &shop, "created_at", &json!(created_at)))
            .await;
        assert_eq!(answer.code(), "created_at_out_of_window", "{created_at}");
    }
    let text = hub.listing(&shop, "x-1", 1, |_| {}).to_string();
    for (body, code) in [
        (text.replace("\"version\":1", "\"version\":1.0"), "json_invalid"),
        (text.replacen('{', "{\"name\":\"twice\",", 1), "json_invalid"),
        (text.replace("Listing x-1", "\\ud800"), "json_invalid"),
        ("[]".to_owned(), "member_invalid"),
        (String::new(), "json_invalid"),
    ] {
        assert_eq!(
            hub.post("/api/v1/listings", body.clone()).await.code(),
            code,
            "{body}"
        );
    }
    let large = with(&hub, &shop, "x", &json!("x".repeat(LISTING_BYTES_MAX)));
    assert_eq!(hub.publish(&large).await.code(), "body_too_large");
    let query = hub.post("/api/v1/listings?x=1", text).await;
    assert_eq!(query.code(), "parameter_unknown");
}

#[actix_web::test]
async fn what_nobody_sees_is_taken_and_told() {
    let hub = TestHub::new();
    let shop = hub.registered("shop").await;
    let answer = hub
        .publish(&with(&hub, &shop, "name", &json!("tele\u{200b}phone \u{202e}")))
        .await;
    assert_eq!(answer.status, 201);
    assert_eq!(
        answer.json()["flags"],
        json!(["direction_controls", "invisible_characters"])
    );
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let status = hub.get(&format!("/api/v1/listings/{id}/status")).await.json();
    assert_eq!(status["flags"], answer.json()["flags"]);
}

#[actix_web::test]
async fn an_agent_has_so_many_listings_and_they_are_listed() {
    let hub = TestHub::with(|settings| settings.search.listings_per_agent_max = 3);
    let shop = hub.registered("shop").await;
    for number in 1..=3 {
        let listing = hub.listing(&shop, &format!("x-{number}"), 1, |_| {});
        assert_eq!(hub.publish(&listing).await.status, 201);
    }
    let answer = hub.publish(&hub.listing(&shop, "x-4", 1, |_| {})).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (507, "listings_full")
    );
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = hub
            .get(&format!("/api/v1/agents/shop/listings?limit=2{cursor}"))
            .await
            .json();
        for item in page["items"].as_array().unwrap() {
            ids.push(item["listing"]["listing_id"].as_str().unwrap().to_owned());
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    ids.sort();
    assert_eq!(ids, ["x-1", "x-2", "x-3"]);
    assert_eq!(
        hub.get("/api/v1/agents/nobody/listings").await.code(),
        "not_found"
    );
}

#[actix_web::test]
async fn an_agent_that_ended_offers_nothing() {
    let hub = TestHub::new();
    let mut shop = hub.registered("shop").await;
    let listing = hub.listing(&shop, "x-1", 1, |_| {});
    let id = hub.publish(&listing).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let end = shop.next(hub.clock.now(), |draft| draft.deactivated = true);
    assert!(
        hub.post("/api/v1/agents/shop/operations", end)
            .await
            .status
            .is_success()
    );
    assert_eq!(
        hub.get(&format!("/api/v1/listings/{id}")).await.code(),
        "not_found"
    );
    assert_eq!(hub.publish(&listing).await.code(), "sender_deactivated");
}

#[actix_web::test]
async fn what_an_agent_that_ended_still_offers_goes_with_the_same_operation_again() {
    let hub = TestHub::new();
    let mut shop = hub.registered("shop").await;
    let published = hub.publish(&hub.listing(&shop, "x-1", 1, |_| {})).await.json();
    let path = format!("/api/v1/listings/{}", published["id"].as_str().unwrap());
    let end = shop.next(hub.clock.now(), |draft| draft.deactivated = true);
    // As if the hub had been killed, or the store had failed, between the end and what follows from it.
    let name = aip_protocol::name::Name::parse("shop").unwrap();
    hub.hub.app.registry.operate(&name, &end).await.unwrap();
    assert_eq!(hub.get(&path).await.status, 200);
    assert_eq!(hub.post("/api/v1/agents/shop/operations", end).await.status, 200);
    assert_eq!(hub.get(&path).await.code(), "not_found");
}

#[actix_web::test]
async fn an_unknown_listing_is_not_found_whatever_its_name() {
    let hub = TestHub::new();
    for id in [
        "lst_aaaaaaaaaaaaaaaaaaaaaaaaaa",
        "x",
        "%00",
        "..%2f..",
        "lst_%F0%9F%98%80",
    ] {
        for path in ["", "/status"] {
            let answer = hub.get(&format!("/api/v1/listings/{id}{path}")).await;
            assert_eq!(answer.status, 404, "{id}{path}: {answer:?}");
        }
    }
}
