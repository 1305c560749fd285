//! The body of an invocation.

use aip_protocol::market::{Members, Value};
use sha2::{Digest as _, Sha256};

use crate::limits::{
    ID_CHARS_MAX, ID_CHARS_MIN, INPUT_BYTES_MAX, MAX_PRICE_USD_MAX, PUBLISHER_ID_BYTES_MAX,
    SOURCE_HUB_CHARS_MAX,
};
use crate::money::Usd;
use crate::offer::{Asked, is_id};
use crate::refusal::{MarketCode, MarketRefusal};

/// What is asked.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) product_id: String,
    pub(super) capability_id: String,
    /// `local` where it is absent.
    pub(super) source_hub: String,
    pub(super) input: serde_json::Value,
    /// The input as JSON.
    pub(super) input_bytes: usize,
    /// Whose offer it has to be, where the buyer says so.
    pub(super) publisher_id: Option<String>,
    /// What the buyer pays at most.
    pub(super) max_price: Option<Usd>,
    /// A verdict is asked for.
    pub(super) verify: bool,
    pub(super) subcontract: bool,
    pub(super) authorization: bool,
    /// Of what makes this request another one.
    pub(super) digest: [u8; 32],
}

impl Request {
    /// Reads it.
    ///
    /// # Errors
    /// `json_invalid`, `request_invalid`, `id_invalid`.
    pub(super) fn read(body: &[u8]) -> Result<Self, MarketRefusal> {
        let body = Value::parse(body)
            .map_err(|refusal| MarketRefusal::new(MarketCode::JsonInvalid, refusal.detail))?;
        let members = body
            .as_object()
            .ok_or_else(|| MarketRefusal::request(&["body"], "The body is an object."))?;
        let product_id = id(members, "product_id")?;
        let capability_id = id(members, "capability_id")?;
        let source_hub = source_hub(members)?;
        let input = input(members)?;
        let publisher_id = publisher_id(members)?;
        let max_price = max_price(members)?;
        let verify = verify(members)?;
        let subcontract = is_object(members, "subcontract")?;
        let authorization = is_object(members, "payment_authorization")?;
        for id in [&product_id, &capability_id] {
            if !is_id(id) {
                let detail = "An id is of A-Z a-z 0-9 _ . @ - without two points side by side.";
                return Err(MarketRefusal::new(MarketCode::IdInvalid, detail));
            }
        }
        let asked = Value::from([
            ("product_id", product_id.as_str().into()),
            ("capability_id", capability_id.as_str().into()),
            ("source_hub", source_hub.as_str().into()),
            ("publisher_id", publisher_id.as_deref().map(Value::from).into()),
            ("input", input.clone()),
            (
                "max_price_usd",
                max_price.map(|most| Value::usd(most.micros())).into(),
            ),
        ]);
        Ok(Self {
            digest: Sha256::digest(asked.to_bytes()).into(),
            input_bytes: input.to_bytes().len(),
            input: input.into(),
            product_id,
            capability_id,
            source_hub,
            publisher_id,
            max_price,
            verify,
            subcontract,
            authorization,
        })
    }

    /// What is asked for, as offers are found: at another hub, or at this one.
    pub(super) fn asked<'a>(&'a self, hub: Option<&'a str>) -> Asked<'a> {
        Asked {
            product_id: &self.product_id,
            capability_id: &self.capability_id,
            hub,
        }
    }

    /// Whether the input is larger than is taken.
    pub(super) fn is_too_large(&self) -> bool {
        self.input_bytes > INPUT_BYTES_MAX
    }
}

fn invalid(name: &str, message: &'static str) -> MarketRefusal {
    MarketRefusal::request(&["body", name], message)
}

fn id(members: &Members, name: &'static str) -> Result<String, MarketRefusal> {
    let text = match members.get(name) {
        None => return Err(invalid(name, "Field required")),
        Some(value) => value
            .as_str()
            .ok_or_else(|| invalid(name, "Input should be a valid string"))?,
    };
    if (ID_CHARS_MIN..=ID_CHARS_MAX).contains(&text.chars().count()) {
        Ok(text.to_owned())
    } else {
        Err(invalid(name, "String should have 2 to 80 characters"))
    }
}

fn source_hub(members: &Members) -> Result<String, MarketRefusal> {
    let text = members.get("source_hub").map_or(Some("local"), Value::as_str);
    text.filter(|text| text.chars().count() <= SOURCE_HUB_CHARS_MAX)
        .map(str::to_owned)
        .ok_or_else(|| invalid("source_hub", "Input should be a string of at most 256 characters"))
}

fn publisher_id(members: &Members) -> Result<Option<String>, MarketRefusal> {
    match members.get("publisher_id") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let text = value.as_str().filter(|text| text.len() <= PUBLISHER_ID_BYTES_MAX);
            let text = text.ok_or_else(|| invalid("publisher_id", "Input should be the DID of an agent"))?;
            Ok(Some(text.to_owned()))
        }
    }
}

fn input(members: &Members) -> Result<Value, MarketRefusal> {
    match members.get("input") {
        None => Ok(Members::new().into()),
        Some(input @ Value::Object(_)) => Ok(input.clone()),
        Some(_) => Err(invalid("input", "Input should be an object")),
    }
}

/// To the nearest millionth: it crosses JSON as a double.
fn max_price(members: &Members) -> Result<Option<Usd>, MarketRefusal> {
    let refusal = || invalid("max_price_usd", "Input should be a number from 0 to 1000000");
    let most = match members.get("max_price_usd") {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value.as_number().ok_or_else(refusal)?.as_f64(),
    };
    if !(0.0..=MAX_PRICE_USD_MAX).contains(&most) {
        return Err(refusal());
    }
    let nearest = Usd::from_f64(most).map_err(|_refusal| refusal())?;
    Ok(Some(nearest))
}

fn verify(members: &Members) -> Result<bool, MarketRefusal> {
    match members.get("verify") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Object(block)) => match block.get("requested") {
            None => Ok(true),
            Some(requested) => requested
                .as_bool()
                .ok_or_else(|| invalid("verify", "`requested` should be a boolean")),
        },
        Some(_) => Err(invalid("verify", "Input should be an object")),
    }
}

fn is_object(members: &Members, name: &'static str) -> Result<bool, MarketRefusal> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Object(_)) => Ok(true),
        Some(_) => Err(invalid(name, "Input should be an object")),
    }
}
