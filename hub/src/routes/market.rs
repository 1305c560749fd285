//! The market's doors, in the form of AIMarket v2 (docs/protocol/market.md). Errors have that protocol's shape.

use std::sync::Arc;

use actix_web::http::header::HeaderName;
use actix_web::{FromRequest as _, HttpRequest, web};
use aip_market::market::Market;
use aip_market::money::Usd;
use aip_market::refusal::{MarketCode, MarketRefusal};
use aip_protocol::market::{Members, Value};
use aip_protocol::name::Did;
use uuid::Uuid;

use crate::app::App;
use crate::error::MarketError;
use crate::extract::{BodyLimit, Caller, JSON, read_typed};
use crate::market::MarketRoom;
use crate::market::limits::{BODY_BYTES_MAX, LABEL_BYTES_MAX};
use crate::routes::Endpoint;

pub mod account;
pub mod channel;
pub mod document;
pub mod earnings;
pub mod federation;
pub mod invoke;
pub mod job;
pub mod manifest;
pub mod prices;
pub mod receipts;
pub mod schema;
pub mod schemas;
pub mod search;
mod stream;
pub mod verification;
pub mod well_known;

/// The version of the protocol that is answered in.
const PROTOCOL: &str = aip_market::refusal::PROTOCOL_VERSION;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const CHANNEL: HeaderName = HeaderName::from_static("x-payment-channel");
const CHANNEL_SECRET: HeaderName = HeaderName::from_static("x-payment-channel-secret");
const VISITOR: HeaderName = HeaderName::from_static("x-aimarket-sandbox-visitor");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = vec![
        Endpoint::at("/ai-market/v2/invoke").post(invoke::invoke),
        Endpoint::at("/ai-market/v2/search").get(search::search),
        Endpoint::at("/ai-market/v2/manifest").get(manifest::manifest),
        Endpoint::at("/ai-market/v2/prices").get(prices::prices),
        Endpoint::at("/.well-known/ai-market.json").get(well_known::well_known),
        Endpoint::at("/schemas").get(schemas::schemas),
        Endpoint::at("/schemas/{file}").get(schema::schema),
        Endpoint::at("/api/v1/market/earnings").get(earnings::earnings),
    ];
    endpoints.extend(channel::endpoints());
    endpoints.extend(account::endpoints());
    endpoints.extend(job::endpoints());
    endpoints.extend(receipts::endpoints());
    endpoints.extend(federation::endpoints());
    endpoints.extend(verification::endpoints());
    endpoints
}

/// The market of this hub.
///
/// # Errors
/// 503 `market_disabled` where the settings say so.
fn room(app: &App) -> Result<&Arc<MarketRoom>, MarketError> {
    let disabled = "The operator of this hub has switched its market off.";
    app.market
        .as_ref()
        .ok_or_else(|| MarketError::refused(MarketCode::MarketDisabled, disabled))
}

/// Where a job is found.
fn poll_url(engine: &Market, id: Uuid) -> String {
    format!("{}/ai-market/v2/jobs/{id}", engine.config().base_url)
}

/// A header that is there once at most, as it came.
fn header(req: &HttpRequest, name: &HeaderName) -> Result<Option<String>, MarketError> {
    let mut values = req.headers().get_all(name);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    text.map(|text| Some(text.to_owned())).ok_or_else(|| {
        let detail = format!("The header {name} must be there once, in visible ASCII.");
        MarketRefusal::new(MarketCode::HeaderInvalid, detail)
            .with("header", name.as_str())
            .into()
    })
}

/// Reads a body that is a JSON object.
async fn read(app: &App, req: &HttpRequest, payload: web::Payload) -> Result<Members, MarketError> {
    read_within(app, req, payload, BODY_BYTES_MAX).await
}

async fn read_within(
    app: &App,
    req: &HttpRequest,
    payload: web::Payload,
    bytes_max: usize,
) -> Result<Members, MarketError> {
    let body = read_typed(app, req, payload, BodyLimit::new(bytes_max), JSON).await?;
    match Value::parse(&body)? {
        Value::Object(members) => Ok(members),
        _ => Err(unlike("body", "Send a JSON object.")),
    }
}

/// A body, or a member of it, is not of its form.
fn unlike(member: &str, should: &'static str) -> MarketError {
    let location = match member {
        "body" => vec!["body"],
        member => vec!["body", member],
    };
    MarketRefusal::request(&location, should).into()
}

/// A text that must be there.
fn text<'a>(body: &'a Members, name: &str) -> Result<&'a str, MarketError> {
    body.get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| unlike(name, "must be there, and be text"))
}

/// An amount of money that must be there, and be more than nothing; `code` is that of the refusal.
fn amount(body: &Members, name: &'static str, code: MarketCode) -> Result<Usd, MarketError> {
    let number = body.get(name).and_then(Value::as_number);
    let amount = number.and_then(|number| Usd::from_f64(number.as_f64()).ok());
    amount.filter(|amount| *amount > Usd::ZERO).ok_or_else(|| {
        let detail = format!("{name} is a number of US dollars, more than 0.");
        MarketRefusal::new(code, detail).with("member", name).into()
    })
}

/// A budget; absent or `null`: none.
fn budget(body: &Members) -> Result<Option<Usd>, MarketError> {
    let number = match body.get("budget_usd") {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value.as_number(),
    };
    let budget = number.and_then(|number| Usd::from_f64(number.as_f64()).ok());
    budget.map(Some).ok_or_else(|| {
        let detail = "budget_usd is a number of US dollars from 0 up, or null for no ceiling.";
        MarketRefusal::new(MarketCode::AmountInvalid, detail)
            .with("member", "budget_usd")
            .into()
    })
}

/// What something is called; absent: nothing.
fn label(body: &Members) -> Result<String, MarketError> {
    let label = match body.get("label") {
        None | Some(Value::Null) => return Ok(String::new()),
        Some(label) => label.as_str(),
    };
    let fits = |label: &&str| label.len() <= LABEL_BYTES_MAX && !label.chars().any(misleads);
    let should = "is text of at most 200 bytes without control characters";
    label
        .filter(fits)
        .map(str::to_owned)
        .ok_or_else(|| unlike("label", should))
}

/// What drives a terminal, ends a line there or turns its direction: the operator's list shows the labels of strangers.
fn misleads(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The agent whose token the request shows, if it shows one.
async fn agent(req: &HttpRequest) -> Result<Option<Did>, MarketError> {
    if !req.headers().contains_key(actix_web::http::header::AUTHORIZATION) {
        return Ok(None);
    }
    let Caller(did) = Caller::extract(req).await?;
    Ok(Some(did))
}

#[cfg(test)]
mod tests;
