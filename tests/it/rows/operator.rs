//! Who may do what, at every door of a whole hub.

use aip_tests::raw::{Request, ask};
use aip_tests::{TestAgent, TestHub};
use serde_json::{Value, json};

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The operator's doors are on another listener, ask for another token, and are found by their absence here.
#[tokio::test]
async fn row_87_no_door_of_the_operator_opens_for_an_agent() {
    let hub = TestHub::start();
    let bob = TestAgent::registered(&hub, "bob").await;
    let token = bob.token(&hub).await;
    let document = ask(hub.url(), &Request::get("/openapi.json")).await.json();
    let mut doors = 0;
    for (template, item) in
        members(&document["paths"]).filter(|(template, _)| template.starts_with("/admin/"))
    {
        let target = template.replace("{name}", "bob").replace("{id}", "inv_1");
        for (method, _) in members(item) {
            doors += 1;
            let request = || {
                Request::new(method.to_uppercase(), &target)
                    .field("content-type", "application/json")
                    .body("{}")
            };
            let public = ask(hub.url(), &request().bearer(&token)).await;
            assert_eq!(public.status, 404, "{method} {target} is on the public listener");
            for request in [request(), request().bearer(&token), request().bearer("")] {
                let answer = ask(hub.operator_url(), &request).await;
                assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (401, "token_invalid"),
                    "{method} {target}"
                );
            }
        }
    }
    assert!(doors >= 6, "{doors} doors");
    assert_eq!(ask(hub.url(), &Request::get("/metrics")).await.status, 404);
}

/// What an agent says of itself in its own operations gives it nothing.
#[tokio::test]
async fn row_87_an_agents_own_words_give_it_no_rights() {
    let hub = TestHub::start();
    let wishes = json!({ "quota": { "mailbox_messages": 1_000_000 }, "standing": "active", "role": "admin", "admin": true });
    let boasting = TestAgent::draft(&hub, "mallory", |draft| {
        for (name, value) in members(&wishes) {
            draft.extra.insert(
                name.clone(),
                aip_client::protocol::json::Json::try_from(value.clone()).unwrap(),
            );
        }
    });
    // Unknown members are kept and signed over; they mean nothing.
    let mallory = boasting.register(&hub).await;
    let list = hub.operate(Request::get("/admin/agents")).await.json();
    let told = list.to_string();
    assert!(
        told.contains("mallory") && !told.contains("1000000") && !told.contains("\"admin\""),
        "{told}"
    );
    let mine = mallory.token(&hub).await;
    assert_eq!(
        ask(hub.operator_url(), &Request::get("/admin/agents").bearer(&mine))
            .await
            .status,
        401
    );
}
