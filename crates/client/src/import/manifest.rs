//! Lists of capabilities in JSON: `AIMarket` manifests, MCP `tools/list`, lists of functions, and listings as plain objects.

use aip_protocol::json::Json;
use aip_protocol::listing::ListingKind;
use serde_json::value::RawValue;

use super::json::{Loose, Shape, shape, values};
use super::row::{IdRank, RowDraft, broken, short};
use super::{Format, ImportError, Options, Row};
use crate::limits::IMPORT_ROWS_MAX;

/// Where a document keeps its list.
const LISTS: [&str; 7] = [
    "tools",
    "capabilities",
    "listings",
    "functions",
    "products",
    "items",
    "results",
];
/// What a list may be wrapped in.
const WRAPPERS: [&str; 2] = ["result", "data"];
/// Members that become attributes as they are.
const ATTRIBUTES: [&str; 6] = [
    "product_id",
    "capability_id",
    "access_mode",
    "p50_latency_ms",
    "category",
    "brand",
];

pub(super) fn read(text: &str, options: &Options) -> Result<Vec<Row>, ImportError> {
    let malformed = |why: String| ImportError::Malformed {
        format: Format::Manifest,
        why,
    };
    let values = values(text).map_err(|error| malformed(error.to_string()))?;
    let rows = match values.as_slice() {
        [one] => rows_of(one, WRAPPERS.len()).map_err(|error| malformed(error.to_string()))?,
        // One object a line.
        many => Some(many.to_vec()),
    };
    let rows = rows.ok_or_else(|| {
        let lists = LISTS.join(", ");
        malformed(format!(
            "it holds no list; a list is an array, or a member {lists} of an object"
        ))
    })?;
    if rows.len() > IMPORT_ROWS_MAX {
        return Err(ImportError::TooManyRows);
    }
    Ok(rows
        .into_iter()
        .zip(1..)
        .map(|(raw, number)| row(raw, number, options))
        .collect())
}

fn rows_of(raw: &RawValue, wrappers_left: usize) -> Result<Option<Vec<&RawValue>>, serde_json::Error> {
    let members = match shape(raw)? {
        Shape::Array(items) => return Ok(Some(items)),
        Shape::Object(members) => members,
        Shape::Scalar => return Ok(None),
    };
    let member = |name: &str| {
        members
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, raw)| *raw)
    };
    for list in LISTS.iter().filter_map(|name| member(name)) {
        if let Shape::Array(items) = shape(list)? {
            return Ok(Some(items));
        }
    }
    if let Some(wrappers_left) = wrappers_left.checked_sub(1) {
        for wrapped in WRAPPERS.iter().filter_map(|name| member(name)) {
            if let Some(rows) = rows_of(wrapped, wrappers_left)? {
                return Ok(Some(rows));
            }
        }
    }
    // A single capability is a list of one.
    Ok(member("name").map(|_| vec![raw]))
}

fn row(raw: &RawValue, number: usize, options: &Options) -> Row {
    let read = match Loose::read(raw) {
        Ok(read @ Loose::Object(_)) => read,
        Ok(_) => {
            return broken(
                number,
                None,
                "it is not an object",
                "write each capability as an object",
            );
        }
        Err(why) => return broken(number, None, why, "mend the row"),
    };
    // `{"type": "function", "function": {…}}`
    let tool = read
        .get("function")
        .filter(|tool| matches!(tool, Loose::Object(_)))
        .unwrap_or(&read);
    let mut draft = RowDraft::new(ListingKind::Capability, options);
    identify(&mut draft, tool);
    describe(&mut draft, tool);
    charge(&mut draft, tool);
    attach(&mut draft, tool);
    draft.finish(number, None)
}

fn identify(draft: &mut RowDraft<'_>, tool: &Loose) {
    if let Some(kind) = tool.text_of(&["kind"]) {
        draft.kind(kind);
    }
    match (
        tool.text_of(&["listing_id"]),
        tool.text_of(&["product_id"]),
        tool.text_of(&["capability_id"]),
    ) {
        (Some(id), _, _) | (None, None, Some(id)) => draft.id(IdRank::Own, id),
        // One capability may be sold as part of several products.
        (None, Some(product), Some(capability)) => draft.id(IdRank::Own, &format!("{product}/{capability}")),
        (None, _, None) => {
            if let Some(id) = tool.text_of(&["id", "sku"]) {
                draft.id(IdRank::Sku, id);
            }
            // The name of a tool is what it is called by, so it is its id.
            if let Some(name) = tool.text_of(&["name"]) {
                draft.id(IdRank::Iri, name);
            }
        }
    }
    for name in ["display_name", "title"] {
        draft.name(tool.text_of(&[name]).unwrap_or_default());
    }
    let title = tool
        .get("annotations")
        .and_then(|annotations| annotations.text_of(&["title"]));
    draft.name(title.unwrap_or_default());
    draft.name(tool.text_of(&["name"]).unwrap_or_default());
}

fn describe(draft: &mut RowDraft<'_>, tool: &Loose) {
    draft.description(tool.text_of(&["description"]).unwrap_or_default());
    draft.lang(tool.text_of(&["lang", "language"]).unwrap_or_default());
    match tool.first(&["tags", "keywords"]) {
        Some(Loose::Array(tags)) => tags.iter().filter_map(Loose::text).for_each(|tag| draft.tag(tag)),
        Some(tags) => draft.tags(tags.text().unwrap_or_default()),
        None => {}
    }
    match tool.first(&["available", "availability", "offerable"]) {
        Some(Loose::Bool(available)) => draft.availability(if *available { "true" } else { "false" }),
        Some(other) => draft.availability(other.text().unwrap_or_default()),
        None => {}
    }
    draft.expires_at(tool.text_of(&["expires_at"]).unwrap_or_default());
}

fn charge(draft: &mut RowDraft<'_>, tool: &Loose) {
    if let Some(usd) = tool.text_of(&["price_per_call_usd", "price_usd"]) {
        draft.price("price_per_call_usd", usd);
        return draft.currency("USD");
    }
    match tool.first(&["price"]) {
        Some(price @ Loose::Object(_)) => {
            draft.price(
                "price",
                price.text_of(&["amount", "value", "price"]).unwrap_or_default(),
            );
            draft.currency(price.text_of(&["currency"]).unwrap_or_default());
        }
        Some(price) => draft.price("price", price.text().unwrap_or_default()),
        None => {}
    }
    draft.currency(tool.text_of(&["currency"]).unwrap_or_default());
}

fn attach(draft: &mut RowDraft<'_>, tool: &Loose) {
    for name in ATTRIBUTES {
        if let Some(value) = tool.get(name).and_then(Loose::plain) {
            draft.attribute(name, value);
        }
    }
    match tool.text_of(&["source_hub"]) {
        None | Some("local" | "") => {}
        Some(hub) => draft.attribute_text("source_hub", hub),
    }
    if let Some(Loose::Object(attributes)) = tool.get("attributes") {
        for (name, value) in attributes {
            match value.plain() {
                Some(value) => draft.attribute(name, value),
                None => draft.note(
                    &short(name),
                    "it is left out",
                    "attributes hold text, whole numbers, true and false",
                ),
            }
        }
    }
    for (name, names) in [
        ("input_schema", ["input_schema", "inputSchema", "parameters"]),
        (
            "output_schema",
            ["output_schema", "outputSchema", "output_schema"],
        ),
    ] {
        if let Some(schema @ Loose::Object(_)) = tool.first(&names) {
            schema_of(draft, name, schema);
        }
    }
    match tool.first(&["invoke", "invoke_url"]) {
        Some(Loose::Text(url)) => draft.extra("invoke", Json::from([("url", Json::from(url.as_str()))])),
        Some(invoke @ Loose::Object(_)) => schema_of(draft, "invoke", invoke),
        _ => {}
    }
}

/// A signed object holds no fractions.
fn schema_of(draft: &mut RowDraft<'_>, name: &str, schema: &Loose) {
    let mut left_out = Vec::new();
    if let Some(json) = schema.to_json("", &mut left_out) {
        draft.extra(name, json);
    }
    if let Some(path) = left_out.first() {
        let more = match left_out.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        draft.note(
            name,
            format!("{}{more} is left out", short(path)),
            "a listing holds whole numbers only; say the fraction in the description",
        );
    }
}
