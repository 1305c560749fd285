//! What is sold, as its documents say it: signed, the same everywhere, not made anew for every reader.

use std::path::Path;

use aip_client::protocol::market::{Value as Wire, document, manifest, signature};
use aip_tests::clients::folder;
use aip_tests::market::{Purse, call, capability, listed, micros, sell, until_sold};
use aip_tests::raw::Request;
use aip_tests::{Vitals, binary};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Shop, made, refused};

const WELL_KNOWN: &str = "/.well-known/ai-market.json";
const MANIFEST: &str = "/ai-market/v2/manifest";
const PRICES: &str = "/ai-market/v2/prices";

/// The 47 capabilities of a public market, sold by one agent.
pub(super) async fn forty_seven(shop: &Shop, invoke: &Value) -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/live_manifest.json");
    let mut captured: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let tools = captured["tools"].as_array_mut().context("no tools")?;
    for tool in tools.iter_mut() {
        tool["invoke"] = invoke.clone();
    }
    let tools = tools.clone();
    let file = shop.hub.folder().join("tools.json");
    std::fs::write(&file, serde_json::to_vec(&captured)?)?;
    let output = tokio::process::Command::new(binary("aip"))
        .args(["--hub", shop.hub.url(), "--key"])
        .arg(folder(&shop.hub, "shop").join("agent.key"))
        .args(["listing", "import"])
        .arg(file)
        .kill_on_drop(true)
        .output()
        .await?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    until_sold(&shop.hub, tools.len()).await;
    Ok(tools)
}

/// The document, verified with the key that the hub publishes.
async fn verified(shop: &Shop, path: &str) -> Result<Value> {
    let known = shop.ask(&Request::get(WELL_KNOWN)).await;
    let key = known.json()["signer_public_key"]
        .as_str()
        .context("no key")?
        .to_owned();
    let key = signature::parse_key(&key)?;
    let answer = shop.ask(&Request::get(path)).await;
    ensure!(answer.status == 200, "{}", answer.text());
    let wire = Wire::parse(&answer.body)?;
    let check = match path {
        MANIFEST => manifest::verify(&wire, &[key]),
        _ => document::verify(&wire, &[key]),
    };
    ensure!(check.verdict.is_true(), "{path}: {check:?}");
    Ok(answer.json())
}

/// That a tool of the manifest says of itself what was listed.
fn assert_listed(tool: &Value, wanted: &Value) {
    assert_eq!(
        micros(&tool["price_per_call_usd"]),
        micros(&wanted["price_per_call_usd"])
    );
    for member in ["product_id", "capability_id", "description"] {
        assert_eq!(tool[member], wanted[member]);
    }
    assert_eq!(
        tool["input_schema"]["required"],
        wanted["input_schema"]["required"]
    );
    assert_eq!(
        (&tool["source_hub"], &tool["offerable"]),
        (&json!("local"), &json!(true))
    );
    assert!(
        tool["output_schema"].is_object() && tool["routed_price_usd"].is_number(),
        "{tool}"
    );
}

#[tokio::test]
async fn forty_seven_capabilities_are_listed_and_signed() -> Result<()> {
    let shop = Shop::open("").await?;
    let captured = forty_seven(&shop, &json!({ "url": shop.provider.url() })).await?;
    let known = verified(&shop, WELL_KNOWN).await?;
    assert_eq!(
        (&known["capabilities_count"], &known["protocol_versions"]),
        (&json!(47), &json!(["v2"]))
    );
    let manifest = verified(&shop, MANIFEST).await?;
    assert_eq!(
        (&manifest["capabilities_count"], &manifest["total_capabilities"]),
        (&json!(47), &json!(47))
    );
    assert_eq!(verified(&shop, PRICES).await?["count"], 47);
    let tools = manifest["tools"].as_array().context("no tools")?;
    for wanted in &captured {
        let same = |tool: &&Value| {
            ["product_id", "capability_id"]
                .iter()
                .all(|id| tool[id] == wanted[id])
        };
        let tool = tools
            .iter()
            .find(same)
            .with_context(|| format!("{wanted} is not sold"))?;
        assert_listed(tool, wanted);
    }
    let text = shop.ask(&Request::get(MANIFEST)).await.text();
    assert!(
        !text.contains(shop.provider.url()),
        "the provider's address is told"
    );
    Ok(())
}

#[tokio::test]
async fn forty_seven_capabilities_are_found_and_called() -> Result<()> {
    let shop = Shop::open("").await?;
    let captured = forty_seven(&shop, &json!({ "url": shop.provider.url() })).await?;
    let search = |query: &'static str| {
        let shop = &shop;
        async move {
            shop.ask(&Request::get(format!("/ai-market/v2/search?{query}")))
                .await
                .json()
        }
    };
    let found = || async {
        let all = search("limit=0").await["matches"].as_array().map(Vec::len);
        let first = search("intent=sortes.draw%40v1&limit=5").await["matches"][0]["capability_id"]
            == "sortes.draw@v1";
        all == Some(47) && first
    };
    crate::faults::until("all of them are found", found).await;
    let key = shop.key("10").await?;
    let mut paid = 0;
    for wanted in captured
        .iter()
        .filter(|wanted| wanted["input_schema"]["required"].is_null())
    {
        let id = |name: &str| wanted[name].as_str().unwrap_or_default();
        let answer = shop
            .ask(&key.on(call(id("product_id"), id("capability_id"), &json!({}))))
            .await;
        if wanted["output_schema"]["required"].is_null() {
            paid += micros(&made(&answer)["price_usd"]);
        }
    }
    assert!(paid > 0);
    assert_eq!(
        aip_tests::market::purse(&shop.hub, &key).await?,
        (10_000_000 - paid, 0)
    );
    Ok(())
}

/// The signed documents are the same bytes until something changes, and who has them is told so.
#[tokio::test]
async fn pitfall_62_documents_are_not_made_anew_for_every_reader() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("one@v1", Some("0.01")).await?;
    for path in [WELL_KNOWN, MANIFEST, PRICES] {
        let first = shop.ask(&Request::get(path)).await;
        let tag = first.header("etag").to_owned();
        assert!(first.status == 200 && tag.starts_with('"'), "{first:?}");
        assert!(first.header("cache-control").contains("max-age=60"), "{first:?}");
        let again = shop.ask(&Request::get(path)).await;
        let etag = again.header("etag").to_owned();
        assert_eq!((again.body, etag), (first.body.clone(), tag.clone()));
        let unchanged = shop.ask(&Request::get(path).field("If-None-Match", &tag)).await;
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{path}");
        assert_eq!(unchanged.header("etag"), tag);
    }
    let before = shop.ask(&Request::get(MANIFEST)).await;
    shop.sells("two@v1", Some("0.02")).await?;
    let after = shop
        .ask(&Request::get(MANIFEST).field("If-None-Match", before.header("etag")))
        .await;
    assert_eq!(
        (after.status, &after.json()["capabilities_count"]),
        (200, &json!(2))
    );
    Ok(())
}

#[tokio::test]
async fn pitfall_57_a_search_by_another_word_is_refused_not_answered_with_everything() -> Result<()> {
    let shop = Shop::open("").await?;
    let offers = [
        shop.offer("paid@v1", Some("0.01"), &json!({})),
        shop.offer("free@v1", None, &json!({})),
        shop.offer("dear@v1", Some("5"), &json!({})),
    ];
    sell(&shop.hub, &shop.seller, &offers).await?;
    // Listed, and not sold: found by its agents' own search only.
    shop.seller
        .publish_listing(&listed("euro@v1", Some("1"), &json!(null), &json!({})))
        .await?;
    let answer = shop.ask(&Request::get("/ai-market/v2/search?q=paid")).await;
    let body = refused(&answer, 422, "request_invalid");
    assert_eq!(body["detail"][0]["loc"], json!(["query", "q"]), "{body}");
    let found = |query: &'static str| {
        let shop = &shop;
        async move {
            let answer = shop
                .ask(&Request::get(format!("/ai-market/v2/search?{query}")))
                .await;
            assert_eq!(answer.status, 200, "{query}: {}", answer.text());
            let mut ids: Vec<String> = answer.json()["matches"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|found| {
                    assert_eq!(found["source_hub"], "local");
                    assert!(
                        found["price_per_call_usd"].is_number() && found["routed_price_usd"].is_number(),
                        "{found}"
                    );
                    found["capability_id"].as_str().unwrap_or_default().to_owned()
                })
                .collect();
            ids.sort();
            ids
        }
    };
    crate::faults::until("all are found", || async { found("limit=0").await.len() == 3 }).await;
    for (query, ids) in [
        ("limit=0", vec!["dear@v1", "free@v1", "paid@v1"]),
        ("budget=3.0", vec!["free@v1", "paid@v1"]),
        ("budget=0.0", vec!["free@v1"]),
        ("budget=1e-05", vec!["free@v1"]),
        ("budget=1e-02", vec!["free@v1", "paid@v1"]),
        ("hub=local&budget=0", vec!["free@v1"]),
        ("hub=any&budget=0", vec!["free@v1"]),
    ] {
        assert_eq!(found(query).await, ids, "{query}");
    }
    Ok(())
}

/// Schemas that nobody can use, or that were made to harm. The first six can never be checked.
fn hostile_schemas() -> Vec<Value> {
    let nested = |levels| {
        let inner = json!({ "type": "string" });
        (0..levels).fold(inner, |inner, _| json!({ "properties": { "a": inner } }))
    };
    let thrice = |name: &str| {
        let part = json!({ "$ref": format!("#/$defs/{name}") });
        json!({ "allOf": [part, part, part] })
    };
    let blowup = json!({
        "$ref": "#/$defs/a",
        "$defs": { "a": thrice("b"), "b": thrice("c"), "c": thrice("d"), "d": thrice("e"), "e": { "pattern": "^(a+)+$" } }
    });
    vec![
        json!({ "required": "text" }),
        json!({ "minimum": "0", "type": 7 }),
        json!({ "properties": [1] }),
        json!({ "$ref": "http://127.0.0.1:1/schema.json" }),
        json!({ "$ref": "file:///etc/passwd" }),
        json!({ "pattern": "(" }),
        json!("text"),
        json!([]),
        json!({ "$ref": "#" }),
        nested(13),
        blowup,
    ]
}

/// They cost their own capability and no other.
#[tokio::test]
async fn pitfalls_48_and_65_a_hostile_schema_harms_only_itself() -> Result<()> {
    let shop = Shop::open("").await?;
    let before = Vitals::of(&shop.hub).await;
    let schemas = hostile_schemas();
    let publish = |id: String, schema: &Value| {
        let more = json!({ "input_schema": schema });
        let offer = capability(&id, None, shop.provider.url(), &more);
        let seller = shop.seller.clone();
        async move { seller.publish_listing(&offer).await.map(drop) }
    };
    for (number, schema) in schemas.iter().enumerate() {
        // Refusing the listing is as good as not selling it.
        let _published = publish(format!("hostile-{number}@v1"), schema).await;
    }
    let zero = json!({ "properties": { "n": { "minimum": 0, "maximum": 0 } } });
    publish("zero@v1".to_owned(), &zero).await?;
    crate::faults::until("the good one is sold", || async {
        let sold = aip_tests::market::sold(&shop.hub).await;
        sold.contains(&"zero@v1".to_owned())
    })
    .await;
    let input = json!({ "text": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "n": 0, "a": {} });
    for number in 0..schemas.len() {
        let answer = shop
            .calls(&format!("hostile-{number}@v1"), &Purse::Empty, &input)
            .await;
        let is_one = if number < 6 {
            answer.status == 404
        } else {
            matches!(answer.status, 200 | 400 | 404)
        };
        assert!(is_one, "{number}: {}", answer.text());
    }
    made(&shop.calls("zero@v1", &Purse::Empty, &json!({ "n": 0 })).await);
    refused(
        &shop.calls("zero@v1", &Purse::Empty, &json!({ "n": 1 })).await,
        400,
        "invalid_input",
    );
    Vitals::assert_well(&shop.hub, &before).await;
    Ok(())
}

#[tokio::test]
async fn the_schemas_of_the_documents_are_served_and_the_documents_fit_them() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("one@v1", Some("0.01")).await?;
    let list = shop.ask(&Request::get("/schemas")).await;
    assert_eq!(list.status, 200, "{}", list.text());
    for file in ["well-known.json", "manifest.json", "prices.json", "receipt.json"] {
        assert!(list.text().contains(file), "{}", list.text());
        let schema = shop.ask(&Request::get(format!("/schemas/{file}"))).await;
        assert_eq!(
            (schema.status, schema.header("content-type")),
            (200, "application/schema+json"),
            "{file}"
        );
        assert!(schema.json()["$schema"].is_string(), "{file}");
    }
    let none = shop.ask(&Request::get("/schemas/none.json")).await;
    assert_eq!(none.status, 404, "{}", none.text());
    Ok(())
}
