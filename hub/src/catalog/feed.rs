//! Rows as shops and tool servers have them, read as listings: `{id, name, price, currency}` of a product, the tools of a
//! manifest or of an MCP server. Unlike a listing (§2 of the specification) such a row may hold fractions: a price is taken
//! as it is written, and where a fraction cannot be in a listing the row is refused, or an attribute becomes text.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::{Json, Object};
use aip_protocol::market::{Members, Number, Value};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::Row;
use super::limits::ATTRIBUTE_TEXT_BYTES_MAX;

/// What kind of rows a feed has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// Things with a price.
    Products,
    /// What can be called.
    Capabilities,
}

/// A row that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Fed {
    /// What it asks for.
    pub row: Row,
    /// Members that a listing has no place for.
    pub left_out: Vec<String>,
}

/// Members of a product, by the names that feeds give them; the first that is there counts.
const PRODUCT: [(&str, &[&str]); 6] = [
    ("listing_id", &["listing_id", "id", "sku"]),
    ("name", &["name", "title"]),
    ("description", &["description"]),
    ("lang", &["lang", "language"]),
    ("price", &["price"]),
    ("currency", &["currency", "price_currency"]),
];
/// The same of a capability.
const CAPABILITY: [(&str, &[&str]); 6] = [
    ("listing_id", &["listing_id", "id", "capability_id", "name"]),
    ("name", &["display_name", "title", "name"]),
    ("description", &["description"]),
    ("lang", &["lang", "language"]),
    ("price", &["price_per_call_usd", "price_usd", "price"]),
    ("currency", &["currency"]),
];
/// What a capability is called with, by the names that manifests and MCP give it.
const SCHEMAS: [(&str, &[&str]); 2] = [
    ("input_schema", &["input_schema", "inputSchema", "parameters"]),
    ("output_schema", &["output_schema", "outputSchema"]),
];
/// Members that a listing has under the same name.
const KEPT: [&str; 10] = [
    "agent",
    "aip",
    "created_at",
    "deleted",
    "expires_at",
    "invoke",
    "commerce",
    "tags",
    "version",
    "kind",
];
/// What a hub adds to a tool, and no provider says.
const OF_HUBS: [&str; 13] = [
    "access_mode",
    "offerable",
    "source_hub",
    "source_hub_name",
    "route_status",
    "routed_price_usd",
    "routing_fee_bps",
    "publisher_id",
    "description_sha256",
    "schema_sha256",
    "flags",
    "free_tier_max",
    "annotations",
];

impl Feed {
    /// Reads one row for the agent `agent`.
    ///
    /// # Errors
    /// `json_invalid`, `member_invalid`, `member_missing`, and what else a listing is refused for ([`Row::read`]).
    pub fn read(self, text: &[u8], agent: &Did, now: Timestamp) -> Result<Fed, Refusal> {
        let Value::Object(members) = Value::parse(text)? else {
            return Err(Refusal::new(ErrorCode::MemberInvalid, "A row is a JSON object."));
        };
        let mut draft = Draft {
            members,
            listing: Object::new(),
        };
        match self {
            Self::Products => draft.product()?,
            Self::Capabilities => draft.capability()?,
        }
        let (listing, left_out) = draft.finish()?;
        let row = Row::read(&Json::Object(listing).to_jcs(), agent, now)?;
        Ok(Fed { row, left_out })
    }

    /// Members of an object in which a feed keeps its rows.
    pub const fn lists(self) -> &'static [&'static str] {
        match self {
            Self::Products => &["products", "items"],
            Self::Capabilities => &["tools", "capabilities"],
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Products => "product",
            Self::Capabilities => "capability",
        }
    }
}

/// A row in the making: what is taken out of `members` goes into `listing`.
struct Draft {
    members: Members,
    listing: Object,
}

impl Draft {
    fn product(&mut self) -> Result<(), Refusal> {
        self.listing.insert("kind", Feed::Products.kind());
        self.named(&PRODUCT)?;
        if let Some(stock) = self
            .members
            .remove("availability")
            .or_else(|| self.members.remove("in_stock"))
        {
            self.listing.insert("available", available(&stock)?);
        }
        if let Some(available) = self.members.remove("available") {
            self.listing.insert("available", json("available", available)?);
        }
        self.kept()
    }

    fn capability(&mut self) -> Result<(), Refusal> {
        self.listing.insert("kind", Feed::Capabilities.kind());
        let in_dollars = ["price_per_call_usd", "price_usd"]
            .iter()
            .any(|name| self.members.contains_key(*name));
        // One id can be the listing's and the capability's, and a name both as well.
        let (capability, name) = (
            self.members.get("capability_id").cloned(),
            self.members.get("name").cloned(),
        );
        self.named(&CAPABILITY)?;
        if in_dollars && !self.listing.contains("currency") {
            self.listing.insert("currency", "USD");
        }
        if !self.listing.contains("name")
            && let Some(name) = name.or_else(|| capability.clone())
        {
            self.listing.insert("name", text("name", name)?);
        }
        if let Some(capability) = capability {
            self.members.insert("capability_id".to_owned(), capability);
        }
        for (name, aliases) in SCHEMAS {
            if let Some(schema) = self.take(aliases) {
                self.listing.insert(name, json(name, schema)?);
            }
        }
        if let Some(url) = self.members.remove("invoke_url") {
            self.listing
                .insert("invoke", [("url", Json::from(text("invoke_url", url)?))]);
        }
        for name in OF_HUBS.iter().chain(&["name", "title"]) {
            self.members.remove(*name);
        }
        self.kept()
    }

    fn named(&mut self, names: &[(&'static str, &'static [&'static str])]) -> Result<(), Refusal> {
        for (name, aliases) in names {
            let Some(value) = self.take(aliases) else { continue };
            let value = match *name {
                "price" => price(&value)?,
                name => text(name, value)?,
            };
            self.listing.insert(*name, value);
        }
        Ok(())
    }

    /// The first that is there and says something; the others are names of something else.
    fn take(&mut self, aliases: &[&str]) -> Option<Value> {
        let found = aliases.iter().find(|name| {
            self.members
                .get(**name)
                .is_some_and(|value| *value != Value::Null)
        })?;
        self.members.remove(*found)
    }

    fn kept(&mut self) -> Result<(), Refusal> {
        for name in KEPT {
            if let Some(value) = self.members.remove(name) {
                self.listing.insert(name, json(name, value)?);
            }
        }
        Ok(())
    }

    /// What is left becomes attributes where it can.
    fn finish(mut self) -> Result<(Object, Vec<String>), Refusal> {
        let (mut attributes, mut left_out) = (Object::new(), Vec::new());
        let own = match self.members.remove("attributes") {
            Some(Value::Object(own)) => own,
            None | Some(Value::Null) => Members::new(),
            Some(_) => return Err(invalid("attributes", "an object")),
        };
        let said = self.members.into_iter().chain(own);
        for (name, value) in said.filter(|(_, value)| *value != Value::Null) {
            match attribute(value) {
                Some(value) => drop(attributes.insert(name, value)),
                None => left_out.push(name),
            }
        }
        if !attributes.is_empty() {
            self.listing.insert("attributes", attributes);
        }
        Ok((self.listing, left_out))
    }
}

fn invalid(member: &'static str, should: &str) -> Refusal {
    let detail = format!("The member `{member}` is {should}.");
    Refusal::new(ErrorCode::MemberInvalid, detail).with("member", member)
}

/// A text; ids may be numbers.
fn text(name: &'static str, value: Value) -> Result<String, Refusal> {
    match value {
        Value::Str(text) => Ok(text),
        Value::Number(number) if !number.is_float() => Ok(number.to_string()),
        _ => Err(invalid(name, "text")),
    }
}

/// As decimal digits, exactly as it was written up to the 15 digits that a number of JSON holds.
fn price(value: &Value) -> Result<String, Refusal> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        Value::Number(number) if number.is_float() => Ok(number.as_f64().to_string()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(invalid("price", "a number, or decimal digits as text")),
    }
}

fn available(value: &Value) -> Result<bool, Refusal> {
    let should =
        "true or false, or one of in_stock, out_of_stock, preorder, backorder, discontinued, sold_out";
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::Str(text) => {
            // schema.org writes an address: https://schema.org/InStock.
            let word = text
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_lowercase()
                .replace(['_', ' ', '-'], "");
            match word.as_str() {
                "instock" | "preorder" | "backorder" | "limitedavailability" | "onlineonly" => Ok(true),
                "outofstock" | "soldout" | "discontinued" => Ok(false),
                _ => Err(invalid("availability", should)),
            }
        }
        _ => Err(invalid("availability", should)),
    }
}

/// As a listing can hold it.
fn json(name: &'static str, value: Value) -> Result<Json, Refusal> {
    let fraction = || {
        invalid(
            name,
            "free of fractions: a listing holds whole numbers, and decimal digits as text",
        )
    };
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(truth),
        Value::Number(number) => Json::Int(whole(number).ok_or_else(fraction)?),
        Value::Str(text) => Json::Str(text),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| json(name, item));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let mut object = Object::new();
            for (member, value) in members {
                object.insert(member, json(name, value)?);
            }
            Json::Object(object)
        }
    })
}

/// Also of one that is written with a fraction of nothing.
fn whole(number: Number) -> Option<i64> {
    number
        .as_i64()
        .or_else(|| number.as_f64().to_string().parse().ok())
}

/// A value that an attribute can have.
fn attribute(value: Value) -> Option<Json> {
    match value {
        Value::Bool(truth) => Some(Json::Bool(truth)),
        Value::Number(number) => {
            Some(whole(number).map_or_else(|| Json::Str(number.as_f64().to_string()), Json::Int))
        }
        Value::Str(text) if text.len() <= ATTRIBUTE_TEXT_BYTES_MAX => Some(Json::Str(text)),
        Value::Str(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests;
