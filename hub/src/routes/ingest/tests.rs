//! Rows of providers, good and bad.

use actix_web::http::{Method, StatusCode};
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::catalog::limits::LISTING_BYTES_MAX;
use crate::config::Secret;
use crate::routes::admin::{PROVIDER_PATH, PROVIDERS_PATH};
use crate::testing::{Answer, TestHub};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const PATH: &str = "/api/v1/ingest/listings";

fn hub() -> TestHub {
    TestHub::with(|settings| settings.http.operator_token = Secret::new(TOKEN))
}

fn request(method: Method, path: &str, token: &str) -> TestRequest {
    let request = TestRequest::default().method(method).uri(path);
    request.insert_header(("authorization", format!("Bearer {token}")))
}

/// A provider of `shop`: its key and its id.
async fn provider(hub: &TestHub) -> (String, String) {
    let body = json!({ "name": "feed", "agent": "shop#hub.example" });
    let made = hub
        .ask_operator(request(Method::POST, PROVIDERS_PATH, TOKEN).set_json(body))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let text = |member: &str| made.json()[member].as_str().unwrap().to_owned();
    (text("key"), text("id"))
}

async fn send(hub: &TestHub, method: Method, key: &str, body: impl Into<bytes::Bytes>) -> Answer {
    let request = request(method, PATH, key).insert_header(("content-type", "application/x-ndjson"));
    hub.ask(request.set_payload(body)).await
}

fn row(id: &str, name: &str) -> Value {
    json!({ "listing_id": id, "kind": "product", "name": name, "price": "12.50", "currency": "EUR" })
}

fn lines(rows: &[Value]) -> String {
    rows.iter()
        .flat_map(|row| [row.to_string(), "\n".to_owned()])
        .collect()
}

#[actix_web::test]
async fn rows_are_stored_once_changed_and_deleted() {
    let hub = hub();
    hub.registered("shop").await;
    let (key, _) = provider(&hub).await;
    let body = lines(&[row("a", "Telephone"), row("b", "Case")]);
    let report = send(&hub, Method::POST, &key, body.clone()).await.json();
    assert_eq!(
        (&report["stored"], &report["refused"]),
        (&json!(2), &json!(0)),
        "{report}"
    );
    assert_eq!(
        (&report["rows"][1]["row"], &report["rows"][1]["version"]),
        (&json!(2), &json!(1))
    );
    let id = report["rows"][0]["id"].as_str().unwrap().to_owned();
    let shown = hub.get(&format!("/api/v1/listings/{id}")).await.json();
    assert_eq!(
        (&shown["origin"], &shown["listing"]["name"]),
        (&json!("ingested"), &json!("Telephone"))
    );
    assert_eq!(shown["listing"]["agent"], "did:aip:hub.example:shop");

    let report = send(&hub, Method::POST, &key, body).await.json();
    assert_eq!(report["unchanged"], 2, "{report}");
    let changed = lines(&[
        row("a", "Phone"),
        row("a", "Phone 2"),
        json!({ "listing_id": "b", "deleted": true }),
    ]);
    let report = send(&hub, Method::POST, &key, changed).await.json();
    assert_eq!(
        (&report["stored"], &report["deleted"]),
        (&json!(2), &json!(1)),
        "{report}"
    );
    assert_eq!(report["rows"][1]["version"], 3);

    let gone = send(
        &hub,
        Method::DELETE,
        &key,
        lines(&[json!({ "listing_id": "a" }), json!({ "listing_id": "a" })]),
    )
    .await;
    let report = gone.json();
    assert_eq!(
        (&report["deleted"], &report["rows"][1]["code"]),
        (&json!(1), &json!("not_found")),
        "{report}"
    );
    let again = hub.ask(request(Method::DELETE, &format!("{PATH}/a"), &key)).await;
    assert_eq!(again.code(), "not_found");
    send(&hub, Method::POST, &key, lines(&[row("ä/b", "Odd")])).await;
    let gone = hub
        .ask(request(Method::DELETE, &format!("{PATH}/%C3%A4%2Fb"), &key))
        .await;
    assert_eq!(
        (gone.status.as_u16(), &gone.json()["status"]),
        (200, &json!("deleted"))
    );
}

#[actix_web::test]
async fn each_row_is_judged_alone() {
    let hub = hub();
    let shop = hub.registered("shop").await;
    let (key, _) = provider(&hub).await;
    hub.publish(&hub.listing(&shop, "signed", 1, |_| {})).await;
    let mut other = row("c", "x");
    other["agent"] = json!("did:aip:hub.example:other");
    let mut body = lines(&[
        row("a", "good"),
        row("signed", "stolen"),
        other,
        row("d", "x\u{202e}"),
    ]);
    body.push_str("\r\n\n{\"listing_id\":\"e\",\"price\":1.5}\nnonsense\n");
    body.push_str(&lines(&[json!({ "x": "x".repeat(LISTING_BYTES_MAX * 3) })]));
    body.push_str(&row("last", "without a line's end").to_string());
    let answer = send(&hub, Method::POST, &key, body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let report = answer.json();
    let codes: Vec<_> = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["code"].as_str().unwrap_or(""))
        .collect();
    assert_eq!(
        codes,
        [
            "",
            "not_yours",
            "not_yours",
            "",
            "json_invalid",
            "json_invalid",
            "body_too_large",
            ""
        ],
        "{report}"
    );
    assert_eq!((&report["stored"], &report["refused"]), (&json!(3), &json!(5)));
    assert_eq!(report["rows"][2]["member"], "agent");
}

#[actix_web::test]
async fn a_row_about_the_same_listing_is_judged_by_what_is_stored() {
    let hub = TestHub::with(|settings| {
        settings.http.operator_token = Secret::new(TOKEN);
        settings.search.listings_per_agent_max = 1;
    });
    hub.registered("shop").await;
    let (key, _) = provider(&hub).await;
    let numbered = |name: &str, version: u64| {
        let mut row = row("a", name);
        row["version"] = json!(version);
        row
    };
    send(&hub, Method::POST, &key, lines(&[numbered("Telephone", 5)])).await;
    let rows = [
        numbered("Phone", 1),
        row("a", "Phone"),
        row("b", "x"),
        row("b", "x"),
    ];
    let report = send(&hub, Method::POST, &key, lines(&rows)).await.json();
    let said = |at: usize, member: &str| report["rows"][at][member].clone();
    assert_eq!(said(0, "code"), "version_conflict", "{report}");
    assert_eq!(
        (said(1, "status"), said(1, "version")),
        (json!("stored"), json!(6))
    );
    assert_eq!(said(2, "code"), "listings_full", "{report}");
    assert_eq!(said(3, "code"), "listings_full", "{report}");
}

#[actix_web::test]
async fn a_key_opens_while_it_is_good() {
    let hub = hub();
    hub.registered("shop").await;
    let (key, id) = provider(&hub).await;
    let listed = hub
        .ask_operator(request(Method::GET, PROVIDERS_PATH, TOKEN))
        .await
        .json();
    assert_eq!(
        (&listed["items"][0]["id"], &listed["items"][0]["state"]),
        (&json!(id), &json!("good"))
    );
    assert!(!listed.to_string().contains(&key));
    for wrong in ["", "x", key.strip_suffix(|_: char| true).unwrap(), TOKEN] {
        assert_eq!(
            send(&hub, Method::POST, wrong, lines(&[row("a", "x")]))
                .await
                .code(),
            "token_invalid"
        );
    }
    assert_eq!(send(&hub, Method::POST, &key, "").await.json()["rows"], json!([]));
    let path = PROVIDER_PATH.replace("{id}", &id);
    for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
        assert_eq!(
            hub.ask_operator(request(Method::DELETE, &path, TOKEN))
                .await
                .status,
            status
        );
    }
    assert_eq!(
        send(&hub, Method::POST, &key, lines(&[row("a", "x")]))
            .await
            .code(),
        "token_invalid"
    );
    let listed = hub
        .ask_operator(request(Method::GET, PROVIDERS_PATH, TOKEN))
        .await
        .json();
    assert_eq!(listed["items"][0]["state"], "revoked");
}

#[actix_web::test]
async fn what_the_agent_took_away_stays_away() {
    let hub = hub();
    let shop = hub.registered("shop").await;
    let (key, _) = provider(&hub).await;
    let body = lines(&[row("a", "Telephone")]);
    let id = send(&hub, Method::POST, &key, body.clone()).await.json()["rows"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let gone = hub.listing(&shop, "a", 2, |listing| listing["deleted"] = json!(true));
    let path = format!("/api/v1/listings/{id}");
    let request = TestRequest::delete()
        .uri(&path)
        .insert_header(("content-type", "application/json"));
    assert_eq!(hub.ask(request.set_payload(gone.to_string())).await.status, 200);
    let report = send(&hub, Method::POST, &key, body).await.json();
    assert_eq!(report["rows"][0]["code"], "not_yours", "{report}");
    assert_eq!(hub.get(&path).await.status, 404);
    let again = send(&hub, Method::DELETE, &key, lines(&[json!({ "listing_id": "a" })])).await;
    assert_eq!(again.json()["rows"][0]["code"], "not_found");
}

#[actix_web::test]
async fn a_provider_needs_a_name_and_an_agent_of_this_hub() {
    let hub = hub();
    hub.registered("shop").await;
    for (body, code) in [
        (
            json!({ "name": "", "agent": "shop#hub.example" }),
            "member_invalid",
        ),
        (
            json!({ "name": "a\nb", "agent": "shop#hub.example" }),
            "member_invalid",
        ),
        (
            json!({ "name": "feed", "agent": "nobody#hub.example" }),
            "not_found",
        ),
        (
            json!({ "name": "feed", "agent": "shop#other.example" }),
            "not_found",
        ),
        (
            json!({ "name": "feed", "agent": "shop" }),
            "handle_domain_missing",
        ),
        (json!({ "name": "feed" }), "member_invalid"),
    ] {
        let answer = hub
            .ask_operator(request(Method::POST, PROVIDERS_PATH, TOKEN).set_json(&body))
            .await;
        assert_eq!(answer.code(), code, "{body}");
    }
}

#[actix_web::test]
async fn a_request_has_its_bounds() {
    let hub = TestHub::with(|settings| {
        settings.http.operator_token = Secret::new(TOKEN);
        settings.search.ingest_rows_max = 2;
        settings.search.ingest_bytes_max = 65_536;
        settings.search.listings_per_agent_max = 3;
    });
    hub.registered("shop").await;
    let (key, _) = provider(&hub).await;
    let three = lines(&[row("a", "x"), row("b", "x"), row("c", "x")]);
    let answer = send(&hub, Method::POST, &key, three).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["rows_max"]),
        (413, &json!(2))
    );
    let report = send(&hub, Method::POST, &key, lines(&[row("a", "x"), row("b", "x")]))
        .await
        .json();
    assert_eq!(report["unchanged"], 2, "what came before the bound is stored");
    let report = send(&hub, Method::POST, &key, lines(&[row("c", "x"), row("d", "x")]))
        .await
        .json();
    assert_eq!(report["rows"][1]["code"], "listings_full", "{report}");
    let answer = send(&hub, Method::POST, &key, "\n".repeat(65_537)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (413, "body_too_large")
    );
    let wrong = request(Method::POST, PATH, &key).insert_header(("content-type", "text/csv"));
    assert_eq!(
        hub.ask(wrong.set_payload("a,b")).await.code(),
        "media_type_unsupported"
    );
    let packed = request(Method::POST, PATH, &key).insert_header(("content-encoding", "gzip"));
    assert_eq!(
        hub.ask(packed.set_payload("a")).await.code(),
        "encoding_unsupported"
    );
}
