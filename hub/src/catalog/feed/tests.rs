//! Rows of shops and of tool servers.

use serde_json::{Value as Any, json};

use super::*;

fn agent() -> Did {
    Did::parse("did:aip:hub.example:shop").unwrap()
}

fn read(feed: Feed, row: &str) -> Result<(Any, Vec<String>), Refusal> {
    let now = Timestamp::parse("2026-11-29T20:15:30Z").unwrap();
    let fed = feed.read(row.as_bytes(), &agent(), now)?;
    let listing = fed.row.into_listing(&agent(), 1, "feed");
    Ok((
        serde_json::from_slice(&listing.json).unwrap_or_default(),
        fed.left_out,
    ))
}

#[test]
fn a_product_is_read_as_shops_write_it() {
    let row = r#"{"id": 17, "name": "Telephone", "price": 79000.50, "currency": "RUB", "availability": "https://schema.org/InStock",
        "url": "https://shop.example/17", "weight_kg": 0.25, "rooms": 2, "images": ["a.jpg"], "tags": ["phone"], "brand": "Acme"}"#;
    let (listing, left_out) = read(Feed::Products, row).unwrap();
    assert_eq!(
        listing,
        json!({
            "aip": "1", "agent": "did:aip:hub.example:shop", "version": 1, "created_at": "2026-11-29T20:15:30.000Z",
            "kind": "product", "listing_id": "17", "name": "Telephone", "description": "", "price": "79000.5",
            "currency": "RUB", "available": true, "tags": ["phone"],
            "attributes": { "url": "https://shop.example/17", "weight_kg": "0.25", "rooms": 2, "brand": "Acme" },
        })
    );
    assert_eq!(left_out, ["images"]);
}

#[test]
fn prices_are_taken_as_they_are_written() {
    for (written, price) in [
        ("79000", "79000"),
        ("1e-05", "0.00001"),
        ("\"12.50\"", "12.50"),
        ("0.1", "0.1"),
        ("5.0", "5"),
    ] {
        let row = format!(r#"{{"id": "a", "name": "A", "price": {written}, "currency": "EUR"}}"#);
        assert_eq!(read(Feed::Products, &row).unwrap().0["price"], price, "{written}");
    }
}

#[test]
fn a_tool_of_a_manifest_or_of_mcp_is_read_as_a_capability() {
    let row = r#"{"name": "sortes.draw", "display_name": "Draw", "description": "Draws lots.", "product_id": "sortes",
        "capability_id": "draw@v1", "price_per_call_usd": 0.01, "inputSchema": {"type": "object", "minProperties": 1.0},
        "invoke_url": "https://shop.example/draw", "source_hub": "local", "category": "chance", "p50_latency_ms": 12.5}"#;
    let (listing, left_out) = read(Feed::Capabilities, row).unwrap();
    assert_eq!(
        (&listing["listing_id"], &listing["name"]),
        (&json!("draw@v1"), &json!("Draw"))
    );
    assert_eq!(
        (&listing["price"], &listing["currency"]),
        (&json!("0.01"), &json!("USD"))
    );
    assert_eq!(listing["invoke"], json!({ "url": "https://shop.example/draw" }));
    assert_eq!(
        listing["input_schema"],
        json!({ "type": "object", "minProperties": 1 })
    );
    assert_eq!(
        listing["attributes"],
        json!({ "product_id": "sortes", "capability_id": "draw@v1", "category": "chance", "p50_latency_ms": "12.5" })
    );
    assert!(left_out.is_empty());
    let plain = read(
        Feed::Capabilities,
        r#"{"name": "echo", "invoke": {"relay": true}}"#,
    )
    .unwrap()
    .0;
    assert_eq!(
        (&plain["listing_id"], &plain["name"]),
        (&json!("echo"), &json!("echo"))
    );
}

#[test]
fn a_row_can_take_its_listing_away() {
    let now = Timestamp::UNIX_EPOCH;
    let gone = Feed::Products
        .read(br#"{"id": "a", "deleted": true}"#, &agent(), now)
        .unwrap();
    assert_eq!((gone.row.listing_id.as_str(), gone.row.offer), ("a", None));
}

/// The code and the member that a row is refused for.
fn refused(feed: Feed, row: &str) -> (&'static str, String) {
    let refusal = read(feed, row).unwrap_err();
    let named = refusal.members.iter().find(|(name, _)| *name == "member");
    let named = named.and_then(|(_, value)| value.as_str()).unwrap_or_default();
    (refusal.code.as_str(), named.to_owned())
}

#[test]
fn hostile_rows_are_refused_by_name() {
    for (row, code, name) in [
        (r#"{"name": "A"}"#, "member_missing", "listing_id"),
        (r#"{"id": "a"}"#, "member_missing", "name"),
        (r#"{"id": {"a": 1}, "name": "A"}"#, "member_invalid", "listing_id"),
        (
            r#"{"id": "a", "name": "A", "price": -1}"#,
            "member_invalid",
            "price",
        ),
        (
            r#"{"id": "a", "name": "A", "price": 1e300}"#,
            "member_invalid",
            "price",
        ),
        (
            r#"{"id": "a", "name": "A", "price": [1]}"#,
            "member_invalid",
            "price",
        ),
        (
            r#"{"id": "a", "name": "A", "currency": "euro"}"#,
            "member_invalid",
            "currency",
        ),
        (
            r#"{"id": "a", "name": "A", "availability": "perhaps"}"#,
            "member_invalid",
            "availability",
        ),
        (
            r#"{"id": "a", "name": "A", "attributes": [1]}"#,
            "member_invalid",
            "attributes",
        ),
        (
            r#"{"id": "a", "name": "A", "agent": "did:aip:hub.example:other"}"#,
            "not_yours",
            "agent",
        ),
        (r#"{"id": "a", "id": "b", "name": "A"}"#, "json_invalid", ""),
        ("[1]", "member_invalid", ""),
        ("nonsense", "json_invalid", ""),
    ] {
        assert_eq!(refused(Feed::Products, row), (code, name.to_owned()), "{row}");
    }
    let fraction = r#"{"name": "a", "input_schema": {"minimum": 0.5}}"#;
    assert_eq!(
        refused(Feed::Capabilities, fraction),
        ("member_invalid", "input_schema".to_owned())
    );
}
