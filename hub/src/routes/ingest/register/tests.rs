//! Shops without keys.

use actix_web::test::TestRequest;
use aip_protocol::multikey::SigningKey;
use serde_json::{Value, json};

use super::*;
use crate::config::Registration;
use crate::testing::{Answer, TestHub};

const PATH: &str = "/api/v1/ingest/register";

async fn register(hub: &TestHub, body: &Value) -> Answer {
    hub.post(PATH, body.to_string()).await
}

fn text<'a>(shop: &'a Value, member: &str) -> &'a str {
    shop[member].as_str().unwrap()
}

#[actix_web::test]
async fn a_shop_gets_an_agent_and_hands_in_what_it_sells() {
    let hub = TestHub::new();
    let body =
        json!({ "name": "Etaji Realty", "website": "https://www.etagi.example/", "description": "Flats." });
    let answer = register(&hub, &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let shop = answer.json();
    assert_eq!(text(&shop, "agent_handle"), "etaji-realty%23hub.example");
    assert_eq!(text(&shop, "agent_did"), "did:aip:hub.example:etaji-realty");
    let request = TestRequest::post()
        .uri("/api/v1/ingest/products")
        .insert_header(("x-provider-key", text(&shop, "api_key")));
    let rows = json!([{ "id": "doc_123", "name": "Two rooms", "price": 79000, "currency": "RUB" }]);
    let report = hub.ask(request.set_json(rows)).await.json();
    assert_eq!(report["stored"], 1, "{report}");
    let resolved = hub
        .get(&format!("/api/v1/resolve/{}", text(&shop, "agent_handle")))
        .await
        .json()
        .to_string();
    for said in ["Etaji Realty", "keys_drawn_by"] {
        let history = hub
            .get("/api/v1/agents/etaji-realty/history")
            .await
            .json()
            .to_string();
        assert!(
            resolved.contains(said) || history.contains(said),
            "{said}: {resolved} {history}"
        );
    }
}

/// The keys are those of the agent: with them it goes on by itself.
#[actix_web::test]
async fn the_keys_are_the_agents() {
    let hub = TestHub::new();
    let shop = register(&hub, &json!({ "name": "Tea" })).await.json();
    let file = &shop["agent_keys"];
    assert_eq!(
        (&file["format"], &file["did"]),
        (&json!("aip-keys/1"), &shop["agent_did"])
    );
    let did = Did::parse(text(&shop, "agent_did")).unwrap();
    let agent = hub.hub.app.registry.resolve(&did).await.unwrap().unwrap();
    let key = |secret: &Value| {
        let mut seed = [0; 32];
        seed.copy_from_slice(&URL_SAFE_NO_PAD.decode(secret.as_str().unwrap()).unwrap());
        SigningKey::from_seed(seed)
    };
    let keys = &agent.identity.head().keys;
    assert_eq!(keys.signing, [key(&file["secrets"]["signing"]).public().clone()]);
    assert_eq!(
        keys.rotation,
        [key(&file["secrets"]["rotation"]).public().clone()]
    );
}

#[actix_web::test]
async fn a_name_that_is_taken_gets_digits_and_a_chosen_one_is_told() {
    let hub = TestHub::new();
    hub.registered("tea").await;
    let second = register(&hub, &json!({ "name": "Tea" })).await.json();
    let handle = text(&second, "agent_handle");
    assert!(
        handle.starts_with("tea-") && handle.len() == "tea-012345%23hub.example".len(),
        "{handle}"
    );
    let chosen = json!({ "name": "Tea", "handle": "tea" });
    assert_eq!(register(&hub, &chosen).await.code(), "handle_taken");
    assert_eq!(
        register(&hub, &json!({ "name": "Tea", "handle": "hub" }))
            .await
            .code(),
        "name_reserved"
    );
    // A name without a letter of ASCII takes that of its website.
    let cyrillic = json!({ "name": "Этажи", "website": "https://www.etagi.example" });
    assert_eq!(
        text(&register(&hub, &cyrillic).await.json(), "agent_handle"),
        "etagi%23hub.example"
    );
    assert!(
        text(
            &register(&hub, &json!({ "name": "茶" })).await.json(),
            "agent_handle"
        )
        .starts_with("shop")
    );
}

#[actix_web::test]
async fn the_hubs_rules_for_registration_hold() {
    let closed = TestHub::with(|settings| settings.hub.registration = Registration::Closed);
    assert_eq!(
        register(&closed, &json!({ "name": "Tea" })).await.code(),
        "registration_closed"
    );
    let invite = TestHub::with(|settings| settings.hub.registration = Registration::Invite);
    assert_eq!(
        register(&invite, &json!({ "name": "Tea" })).await.code(),
        "invite_required"
    );
    let off = TestHub::with(|settings| settings.search.ingest_registration = false);
    assert_eq!(
        register(&off, &json!({ "name": "Tea" })).await.code(),
        "registration_closed"
    );
    let hub = TestHub::new();
    for (body, member) in [
        (json!({}), "name"),
        (json!({ "name": " " }), "name"),
        (json!({ "name": "a\u{7}" }), "name"),
        (json!({ "name": "x".repeat(SHOP_NAME_BYTES_MAX + 1) }), "name"),
        (
            json!({ "name": "A", "website": "javascript:alert(1)" }),
            "website",
        ),
        (
            json!({ "name": "A", "website": "https://user:pw@shop.example" }),
            "website",
        ),
        (json!({ "name": "A", "description": 7 }), "description"),
    ] {
        let answer = register(&hub, &body).await;
        assert_eq!(
            (answer.code().as_str(), &answer.json()["member"]),
            ("member_invalid", &json!(member)),
            "{body}"
        );
    }
    assert_eq!(
        register(&hub, &json!({ "name": "A", "handle": "ä" }))
            .await
            .code(),
        "name_invalid"
    );
}
