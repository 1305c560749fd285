//! The discovery document as a peer checks it.

use std::time::Duration;

use aip_protocol::json::Json;
use aip_protocol::signature::{Signature, Tag, verify};

use crate::testing::{DOMAIN, TestHub};

#[actix_web::test]
async fn the_document_is_signed_by_the_key_it_names() {
    let hub = TestHub::new();
    let answer = hub.get("/.well-known/aip").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.header("cache-control").contains("max-age="));
    let document = Json::parse(&answer.body).unwrap();
    let text = |name: &str| {
        document
            .get(name)
            .and_then(Json::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        (text("aip"), text("domain"), text("hub")),
        ("1".into(), DOMAIN.into(), format!("https://{DOMAIN}"))
    );
    let key = hub.hub.app.hub_key.public();
    assert_eq!(text("kid"), format!("{DOMAIN}#{}", key.as_str()));
    let signature = Signature::parse(&text("sig")).unwrap();
    assert!(verify(
        key,
        Tag::Hub,
        &document.without(&["sig", "prev_kid", "prev_sig"]),
        &signature
    ));
}

#[actix_web::test]
async fn the_document_holds_everything_that_peers_ask_for() {
    let document = TestHub::new().get("/.well-known/aip").await.json();
    for member in ["keys", "features", "limits", "software", "epoch", "generated_at"] {
        assert!(!document[member].is_null(), "{member}");
    }
    assert_eq!(document["limits"]["envelope_bytes"], 262_144);
    assert_eq!(document["keys"][0]["kid"], document["kid"]);
}

#[actix_web::test]
async fn the_document_is_made_anew_before_it_gets_old() {
    let hub = TestHub::new();
    let first = hub.get("/.well-known/aip").await;
    hub.clock.advance(Duration::from_mins(1));
    assert_eq!(hub.get("/.well-known/aip").await.body, first.body);
    hub.clock.advance(Duration::from_mins(30));
    assert_ne!(
        hub.get("/.well-known/aip").await.json()["generated_at"],
        first.json()["generated_at"]
    );
}
