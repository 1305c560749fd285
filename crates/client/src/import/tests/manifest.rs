//! Manifests, tools of MCP, functions, and listings as plain objects.

use super::*;
use aip_protocol::listing::ListingKind;

const MANIFEST: &str = r#"{
  "protocol_version": "v2", "base_url": "https://hub.example",
  "tools": [
    {"name": "prod-lumen.lumen.reputation@v1", "description": "Compute reputation.",
     "price_per_call_usd": 0.005, "product_id": "prod-lumen", "capability_id": "lumen.reputation@v1",
     "source_hub": "local", "access_mode": "paid", "p50_latency_ms": 12.34, "category": "graphs",
     "invoke_url": "https://hub.example/invoke",
     "input_schema": {"type": "object", "properties": {
        "damping": {"type": "number", "default": 0.85, "exclusiveMaximum": 1.0, "exclusiveMinimum": 0},
        "n": {"type": "integer", "enum": [1, 2.5]}}}},
    {"display_name": "Sequence", "name": "seq", "price_usd": 1e-05, "capability_id": "seq@v1"}
  ]}"#;

#[test]
fn a_manifest_is_a_list_of_capabilities() {
    let rows = rows(MANIFEST, Format::Manifest, &Options::default());
    let (first, second) = (rows[0].offer.as_ref().unwrap(), rows[1].offer.as_ref().unwrap());
    assert_eq!(first.kind, ListingKind::Capability);
    assert_eq!(first.listing_id, "prod-lumen/lumen.reputation@v1");
    assert_eq!(
        (cost(first), cost(second)),
        ("0.005 USD".to_owned(), "0.00001 USD".to_owned())
    );
    assert_eq!(
        (attribute(first, "category"), attribute(first, "p50_latency_ms")),
        ("graphs", "12.34")
    );
    assert_eq!(attribute(first, "source_hub"), "", "local says nothing");
    assert_eq!(
        first.extra.get("invoke").unwrap().to_string(),
        r#"{"url":"https://hub.example/invoke"}"#
    );
    assert_eq!(
        (second.listing_id.as_str(), second.name.as_str()),
        ("seq@v1", "Sequence")
    );
}

#[test]
fn a_schema_keeps_what_can_be_signed() {
    let rows = rows(MANIFEST, Format::Manifest, &Options::default());
    let schema = rows[0].offer.as_ref().unwrap().extra.get("input_schema").unwrap();
    let properties = schema.get("properties").unwrap();
    assert_eq!(
        properties.to_string(),
        r#"{"damping":{"exclusiveMaximum":1,"exclusiveMinimum":0,"type":"number"},"n":{"type":"integer"}}"#
    );
    assert_eq!(
        rows[0].notes[0].to_string(),
        "input_schema: /properties/damping/default and 1 more is left out; a listing holds whole numbers only; say the \
         fraction in the description"
    );
}

#[test]
fn tools_of_mcp_and_functions_are_read() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"get_weather","title":"Weather","description":"d",
            "inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}"#,
        r#"[{"type":"function","function":{"name":"get_weather","title":"Weather","description":"d",
            "parameters":{"type":"object"},"output_schema":{"type":"object"}}}]"#,
        r#"{"name":"get_weather","annotations":{"title":"Weather"},"description":"d","input_schema":{"type":"object"},
            "output_schema":{"type":"object"}}"#,
    ] {
        let [tool] = good(text, Format::Manifest).try_into().unwrap();
        assert_eq!(
            (tool.listing_id.as_str(), tool.name.as_str()),
            ("get_weather", "Weather"),
            "{text}"
        );
        assert!(tool.price.is_none() && tool.currency.is_none());
        for schema in ["input_schema", "output_schema"] {
            assert_eq!(
                tool.extra.get(schema).unwrap().to_string(),
                r#"{"type":"object"}"#,
                "{text}"
            );
        }
    }
}

#[test]
fn listings_are_read_one_a_line() {
    let text = r#"{"listing_id":"p-1","kind":"product","name":"Phone","price":79000.50,"currency":"RUB","available":false,
        "tags":["a","b","a"],"attributes":{"gb":256,"new":true,"inch":6.1,"x":[1]},"lang":"ru","expires_at":"2030-01-01T00:00:00Z"}
        {"listing_id":"k-1","kind":"concept","name":"Knowledge","tags":"x, y"}"#;
    let rows = rows(text, Format::Manifest, &Options::default());
    let phone = rows[0].offer.as_ref().unwrap();
    assert_eq!(
        (cost(phone), phone.available),
        ("79000.50 RUB".to_owned(), Some(false))
    );
    assert_eq!(phone.tags, ["a", "b"]);
    assert_eq!(
        Json::Object(phone.attributes.clone()).to_string(),
        r#"{"gb":256,"inch":"6.1","new":true}"#
    );
    assert_eq!(phone.expires_at.unwrap().to_string(), "2030-01-01T00:00:00.000Z");
    assert_eq!(rows[0].notes[0].member, "x");
    let knowledge = rows[1].offer.as_ref().unwrap();
    assert_eq!((knowledge.kind, knowledge.tags.len()), (ListingKind::Concept, 2));
}

#[test]
fn a_bad_row_does_not_stop_the_others() {
    let text = r#"[{"name":"good"}, 7, {"description":"no name"}, {"name":"twice","name":"twice"},
        {"name":"dear","price":"1,299"}, {"name":"bad","kind":"weapon"}, {"name":"\ud800"}, {"name":"fine"}]"#;
    let rows = rows(text, Format::Manifest, &euros());
    let said: Vec<String> = rows
        .iter()
        .map(|row| row.flaws.first().map(ToString::to_string).unwrap_or_default())
        .collect();
    assert!(said[0].is_empty() && said[7].is_empty());
    assert!(said[1].contains("not an object"), "{said:?}");
    assert!(said[2].contains("name: it is missing"), "{said:?}");
    assert!(said[3].contains("`name` comes twice"), "{said:?}");
    assert!(said[4].contains("write 1299 or 1.299"), "{said:?}");
    assert!(said[5].contains("capability, product or concept"), "{said:?}");
    assert!(said[6].contains("not JSON"), "{said:?}");
}

#[test]
fn a_document_without_a_list_says_what_a_list_is() {
    for text in ["{}", "7", "{\"tools\":7}", "", "{\"a\":", "[1,]"] {
        let error = read(text.as_bytes(), Some(Format::Manifest), &euros()).map(|import| import.rows.len());
        if text.is_empty() {
            assert_eq!(error, Ok(0), "no value is no row");
        } else {
            assert!(
                matches!(error, Err(ImportError::Malformed { .. })),
                "{text}: {error:?}"
            );
        }
    }
}
