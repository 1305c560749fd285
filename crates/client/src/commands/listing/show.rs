//! `aip listing show`, `status` and `list`: looking at listings.

use aip_client::protocol::json::Json;
use aip_client::protocol::listing::Offer;
use aip_client::protocol::name::Did;
use aip_client::{ChangedWords, HeldListing, Proof};
use serde_json::{Value, json};

use super::Outcome;
use crate::commands::table::{Column, Table, fitted};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

pub(super) async fn show(context: &Context, id: &str) -> Outcome {
    let client = context.client_without_keys(None)?;
    let held = client.find_listing(id, context.did().as_ref()).await?;
    if let Proof::Broken(why) = &held.proof {
        note(&format!("its signature is not good, so do not believe it: {why}"));
    }
    Ok(context.output.show(&held_json(&held), &text(&held))?)
}

pub(super) async fn status(context: &Context, id: &str) -> Outcome {
    let client = context.client_without_keys(None)?;
    let held = client.find_listing(id, context.did().as_ref()).await?;
    let status = client.listing_status(&held.id).await?;
    let value = serde_json::to_value(&status).map_err(std::io::Error::from)?;
    let fact = |(name, value): (&String, &Value)| format!("{name}: {}", words(value));
    let facts: Vec<String> = status.facts.iter().map(fact).collect();
    let lines = format!(
        "{} {}\n{}",
        status.id,
        fitted(&held.offer.name, 80),
        facts.join("\n")
    );
    Ok(context.output.show(&value, &lines)?)
}

/// A fact for people.
fn words(value: &Value) -> String {
    let words = match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    if words.is_empty() { "-".to_owned() } else { words }
}

pub(super) async fn list(context: &Context, agent: Option<Did>) -> Outcome {
    let agent = agent.or_else(|| context.did());
    let agent =
        agent.ok_or_else(|| Failure::Usage("whose? Name an agent, or a key file with --key".to_owned()))?;
    let client = context.client_without_keys(None)?;
    let (mut table, mut cursor, mut is_empty) = (Table::new(columns()), None, true);
    loop {
        let page = client.listings_of(agent.as_str(), cursor.as_deref()).await?;
        is_empty &= page.items.is_empty();
        if context.output.is_json() {
            for held in &page.items {
                context.output.show(&held_json(held), "")?;
            }
        } else if !page.items.is_empty() {
            let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
            context
                .output
                .show(&Value::Null, &table.lines(&rows).join("\n"))?;
        }
        // A hub that names the same page again would be asked for ever.
        if page.next_cursor.is_none() || page.next_cursor == cursor {
            break;
        }
        cursor = page.next_cursor;
    }
    if is_empty {
        note(&format!("{} offers nothing", agent.handle()));
    }
    Ok(())
}

fn columns() -> Vec<Column> {
    let column = |head, cells_max, is_number| Column {
        head,
        cells_max,
        is_number,
    };
    vec![
        column("ID", 40, false),
        column("LISTING", 32, false),
        column("KIND", 10, false),
        column("NAME", 40, false),
        column("PRICE", 24, true),
        column("VERSION", 16, true),
    ]
}

fn row(held: &HeldListing) -> Vec<String> {
    vec![
        held.id.clone(),
        held.offer.listing_id.clone(),
        held.offer.kind.as_str().to_owned(),
        held.offer.name.clone(),
        price(&held.offer),
        held.version.to_string(),
    ]
}

/// The price and its currency.
pub(super) fn price(offer: &Offer) -> String {
    let words = offer
        .price
        .iter()
        .chain(offer.currency.iter().filter(|_| offer.price.is_some()));
    words.map(String::as_str).collect::<Vec<_>>().join(" ")
}

fn proof(held: &HeldListing) -> &'static str {
    match held.proof {
        Proof::Signed => "signed",
        Proof::Ingested => "ingested",
        Proof::Broken(_) => "broken",
        _ => "unchecked",
    }
}

fn held_json(held: &HeldListing) -> Value {
    // Made here, of what the listing says.
    let wording = held.offer.wording();
    json!({
        "id": held.id,
        "version": held.version,
        "flags": held.flags,
        "held": held.held,
        "description_sha256": hash_of(wording.description),
        "schema_sha256": hash_of(wording.schemas),
        "description_changed": held.description_changed,
        "schema_changed": held.schema_changed,
        "updated_at": held.updated_at,
        "proof": proof(held),
        "listing": Value::from(held.json.clone()),
    })
}

/// 64 hexadecimal digits.
fn hash_of(hash: [u8; 32]) -> String {
    hash.as_chunks()
        .0
        .iter()
        .copied()
        .map(u64::from_be_bytes)
        .fold(String::new(), |text, part| format!("{text}{part:016x}"))
}

fn changed(words: Option<&ChangedWords>) -> String {
    words
        .map(|words| format!("{} (sha256 before {})", words.at, words.previous_sha256))
        .unwrap_or_default()
}

fn text(held: &HeldListing) -> String {
    let offer = &held.offer;
    let by = match held.proof {
        Proof::Signed => "signed by",
        Proof::Ingested => "handed in by the hub's operator or a provider for",
        _ => "NOT signed by",
    };
    let mut lines = vec![
        offer.name.clone(),
        format!(
            "{} {} version {}, {by} {}",
            held.id,
            offer.kind.as_str(),
            held.version,
            held.agent.handle()
        ),
    ];
    let said = [
        ("price", price(offer)),
        (
            "available",
            offer
                .available
                .map(|available| available.to_string())
                .unwrap_or_default(),
        ),
        ("tags", offer.tags.join(", ")),
        ("language", offer.lang.clone().unwrap_or_default()),
        (
            "expires",
            offer
                .expires_at
                .map(|moment| moment.to_string())
                .unwrap_or_default(),
        ),
        ("unusual", held.flags.join(", ")),
        ("held", held.held.clone().unwrap_or_default()),
        ("description changed", changed(held.description_changed.as_ref())),
        ("schemas changed", changed(held.schema_changed.as_ref())),
    ];
    let said = said.into_iter().filter(|(_, value)| !value.is_empty());
    lines.extend(said.map(|(name, value)| format!("{name}: {value}")));
    let attributes = offer.attributes.iter().map(|(name, value)| match value {
        Json::Str(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    });
    lines.extend(attributes);
    lines.extend(offer.extra.iter().map(|(name, value)| format!("{name}: {value}")));
    if !offer.description.is_empty() {
        lines.push(format!("\n{}", offer.description));
    }
    lines.join("\n")
}
