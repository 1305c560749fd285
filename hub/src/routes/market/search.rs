//! `GET /ai-market/v2/search?intent=`: capabilities that are sold here, in the form of AIMarket v2.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use aip_catalog::limits::{PAGE_RESULTS_MAX, QUERY_BYTES_MAX};
use aip_catalog::{FoundItem, Price, Query as CatalogQuery};
use aip_market::money::Usd;
use aip_market::offer::{Notes, Offer, Source};
use aip_market::peers::peer_url;
use aip_market::refusal::MarketRefusal;
use aip_market::schema::Schema;
use aip_protocol::fusion::Ranks;
use aip_protocol::listing::ListingKind;
use aip_protocol::market::{Number, time_text};
use aip_protocol::time::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{PROTOCOL, room};
use crate::app::App;
use crate::error::{ApiError, MarketError};
use crate::extract::Query;
use crate::limits::{MARKET_OFFSET_MAX, MARKET_PAGES_MAX, SEARCH_LIMIT_DEFAULT, SEARCH_WORD_BYTES_MAX};
use crate::market::MarketRoom;
use crate::market::peers::Routed;
use crate::routes::search::answer::{ResultAgent, agent_of, millis, search as ask};
use crate::throttle::Cost;

/// Every parameter of that protocol's search.
const PARAMETERS: &[&str] = &[
    "intent",
    "budget",
    "max_latency_ms",
    "min_trust",
    "hub",
    "category",
    "include_demo",
    "include_stale",
    "limit",
    "offset",
];

/// What a search for capabilities found.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketAnswer {
    /// The intent that was searched for.
    pub query: String,
    /// The category that was asked for.
    pub category: Option<String>,
    /// The capabilities, best first.
    pub matches: Vec<MarketMatch>,
    /// How many there are, as far as they were counted.
    pub total: u64,
    /// How many were stepped over.
    pub offset: u64,
    /// How many were asked for.
    pub limit: u64,
    /// Whether there are more.
    pub has_more: bool,
    /// How it was searched.
    #[schema(value_type = Object)]
    pub search: Value,
    /// How many hubs hold what was searched.
    pub total_hubs_searched: usize,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// One capability that was found.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketMatch {
    /// AIMarket's id of the product.
    pub product_id: String,
    /// AIMarket's id of the capability.
    pub capability_id: String,
    /// This hub's id of the listing.
    pub listing_id: String,
    /// The version of the listing.
    pub version: u64,
    /// `local`, or the address of the hub that sells it: what a call names, and where a receipt's key is looked for.
    pub source_hub: String,
    /// This hub's domain, or what the other one calls itself.
    pub source_hub_name: String,
    /// Its name.
    pub name: String,
    /// The same, for people.
    pub display_name: String,
    /// What it does.
    pub description: String,
    /// Its category.
    pub category: Option<String>,
    /// 1.0 is first in every list.
    pub score: f64,
    /// `hybrid`, `lexical`, `semantic` or `browse`: the lists that hold it.
    pub match_type: &'static str,
    /// The same as a share of the score, by list.
    #[schema(value_type = Object)]
    pub score_breakdown: Value,
    /// The price of a call.
    pub price_per_call_usd: f64,
    /// The same with what this hub adds; of its own it adds nothing.
    pub routed_price_usd: f64,
    /// Hundredths of a percent that this hub adds.
    pub routing_fee_bps: u16,
    /// The price exactly as its agent wrote it.
    pub price_text: Option<String>,
    /// Its currency.
    pub currency: Option<String>,
    /// `public_free` or `paid`.
    pub access_mode: &'static str,
    /// Whether an account can pay it.
    pub credits_eligible: bool,
    /// What may be had for nothing: the largest number of a field of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_tier_max: Option<BTreeMap<String, f64>>,
    /// The trust in its agent, 0 to 1.
    pub trust_score: f64,
    /// The agent's DID.
    pub publisher_id: String,
    /// The agent's handle, percent-encoded.
    pub seller_id: String,
    /// `agent`, or `hub` where another one sells it.
    pub seller_kind: &'static str,
    /// Where it is paid on a chain (x402), where it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payout_address: Option<String>,
    /// Always false: this hub lists nothing for show.
    pub demo: bool,
    /// Always true: what cannot be had now is not found.
    pub offerable: bool,
    /// `local`, or `live` where another hub sells it.
    pub route_status: &'static str,
    /// What a call must bring.
    pub input_required: Vec<String>,
    /// SHA-256 of the description, in hexadecimal.
    pub description_sha256: String,
    /// SHA-256 of both schemas, in hexadecimal.
    pub schema_sha256: String,
    /// What is odd about its words, such as `injection_suspected`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// When its description or its schemas became others lately, and what they were.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub changed: BTreeMap<&'static str, Value>,
}

/// Searches for capabilities.
#[utoipa::path(
    get,
    path = "/ai-market/v2/search",
    operation_id = "market_search",
    tag = "market",
    summary = "Search capabilities that are sold here",
    description = "The same search as `/api/v1/search?kind=capability`, of what can be invoked. `max_latency_ms`, \
                   `include_demo` and `include_stale` are taken and change nothing: this hub lists nothing for show and \
                   nothing stale.",
    params(
        ("intent" = Option<String>, Query, description = "What is to be done"),
        ("budget" = Option<f64>, Query, description = "The highest price of a call, in US dollars"),
        ("max_latency_ms" = Option<String>, Query, description = "Taken and not used"),
        ("min_trust" = Option<f64>, Query, description = "From 0 to 1"),
        ("hub" = Option<String>, Query, description = "`any`, `local`, or this hub's domain or URL"),
        ("category" = Option<String>, Query, description = "Only of this category"),
        ("include_demo" = Option<bool>, Query, description = "Taken and not used"),
        ("include_stale" = Option<bool>, Query, description = "Taken and not used"),
        ("limit" = Option<u64>, Query, description = "0 to 100, 20 by default; 0 is as many as there may be"),
        ("offset" = Option<u64>, Query, description = "How many to step over, at most 1,000"),
    ),
    responses(
        (status = 200, description = "What was found", body = MarketAnswer),
        (status = 422, description = "A parameter is unknown or not in its form: `detail` is a list"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "The catalog cannot be asked now, or this hub has no market"),
    )
)]
pub async fn search(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, &req)?;
    let room = room(&app)?;
    let began = Instant::now();
    let wanted = wanted(&app, &req)?;
    let (offset, limit) = (wanted.offset, wanted.limit);
    let (query, category) = (wanted.query.text.clone(), wanted.query.filter.category.clone());
    let part = gather(&app, room, wanted).await?;
    let mut matches = Vec::with_capacity(part.items.len());
    for (item, offer) in part.items {
        if let Some(agent) = agent_of(&app, &offer.agent).await? {
            matches.push(found(&app, item, room.peers.routed(&offer), &offer, agent));
        }
    }
    Ok(HttpResponse::Ok().json(MarketAnswer {
        query,
        category,
        matches,
        total: part.total,
        offset,
        limit,
        has_more: part.has_more,
        search: json!({
            "mode": if part.degraded { "lexical" } else { "hybrid" },
            "languages": [],
            "interpreted_concepts": [],
            "latency_ms": millis(began.elapsed()),
            "query_stays_local": app.settings.search.embedder_url.is_empty(),
        }),
        total_hubs_searched: room.peers.book.active().len() + 1,
        protocol_version: PROTOCOL,
    }))
}

/// What was asked for.
struct Wanted {
    query: CatalogQuery,
    budget: Option<Usd>,
    offset: u64,
    limit: u64,
    place: Place,
}

/// The hub that sells what is asked for.
enum Place {
    Any,
    /// This one.
    Here,
    /// Another one, at this address.
    At(String),
}

impl Place {
    fn holds(&self, offer: &Offer) -> bool {
        match self {
            Self::Any => true,
            Self::Here => offer.source == Source::Local,
            Self::At(url) => offer.source.hub() == Some(url),
        }
    }
}

/// A part of what was found, by its place.
#[derive(Default)]
struct Part {
    items: Vec<(FoundItem, Arc<Offer>)>,
    total: u64,
    has_more: bool,
    degraded: bool,
}

/// Follows the pages of the catalog to the part that was asked for. The catalog also holds what is not sold, so that their
/// number has a bound of its own.
async fn gather(app: &App, room: &MarketRoom, wanted: Wanted) -> Result<Part, ApiError> {
    let mut part = Part::default();
    let (mut query, (offset, end)) = (wanted.query, (wanted.offset, wanted.offset + wanted.limit));
    let fits = |offer: &Arc<Offer>| {
        let routed = room.peers.routed(offer).price;
        wanted.place.holds(offer)
            && room.peers.is_open(offer)
            && wanted.budget.is_none_or(|budget| routed <= budget)
    };
    query.limit = PAGE_RESULTS_MAX;
    for _page in 0..MARKET_PAGES_MAX {
        let found = ask(app, &query).await?;
        part.degraded |= !found.degraded.is_empty();
        for item in found.items {
            let Some(offer) = room.shelf.sold_as(item.entry.number).filter(fits) else {
                continue;
            };
            if (offset..end).contains(&part.total) {
                part.items.push((item, offer));
            }
            part.total += 1;
        }
        query.cursor = found.next_cursor;
        if query.cursor.is_none() || part.total >= end {
            break;
        }
    }
    part.has_more = query.cursor.is_some() || part.total > end;
    Ok(part)
}

fn invalid(parameter: &str, should: impl Into<String>) -> MarketError {
    MarketRefusal::request(&["query", parameter], should.into()).into()
}

/// The same refusal in the market's shape.
fn reshaped(error: &ApiError) -> MarketError {
    let refusal = error.refusal();
    let named = refusal.members.iter().find(|(name, _)| *name == "parameter");
    let named = named.and_then(|(_, value)| value.as_str()).unwrap_or_default();
    invalid(named, refusal.detail.clone())
}

fn wanted(app: &App, req: &HttpRequest) -> Result<Wanted, MarketError> {
    let parameters = Query::parse(req, PARAMETERS).map_err(|error| reshaped(&error))?;
    let text = |name: &'static str| {
        let text = parameters.text(name);
        text.map_err(|error| invalid(name, error.refusal().detail.clone()))
    };
    let number = |name: &'static str, most: u64, default: u64| {
        let number = parameters.number(name, 0..=most, default);
        number.map_err(|error| invalid(name, error.refusal().detail.clone()))
    };
    let mut query = CatalogQuery {
        text: text("intent")?.unwrap_or_default(),
        ..CatalogQuery::default()
    };
    if query.text.len() > QUERY_BYTES_MAX {
        let should = format!("is text of at most {QUERY_BYTES_MAX} bytes");
        return Err(invalid("intent", should));
    }
    query.filter.kinds = vec![ListingKind::Capability];
    let budget = text("budget")?.map(|budget| dollars(&budget)).transpose()?;
    if let Some(trust) = text("min_trust")? {
        let plain = Price::parse(&trust).is_ok();
        let trust = trust.parse::<f64>().ok().filter(|_| plain);
        let trust = trust.filter(|trust| (0.0..=1.0).contains(trust));
        query.filter.trust_min = Some(trust.ok_or_else(|| invalid("min_trust", "is a number from 0 to 1"))?);
    }
    let place = text("hub")?.map_or(Place::Any, |hub| place(app, &hub));
    query.filter.category = text("category")?.filter(|category| !category.is_empty());
    let fits = |word: &String| word.len() <= SEARCH_WORD_BYTES_MAX;
    if !query.filter.category.as_ref().is_none_or(fits) {
        let should = format!("is text of at most {SEARCH_WORD_BYTES_MAX} bytes");
        return Err(invalid("category", should));
    }
    let most = u64::from(PAGE_RESULTS_MAX);
    let limit = match number("limit", most, u64::from(SEARCH_LIMIT_DEFAULT))? {
        0 => most,
        limit => limit,
    };
    Ok(Wanted {
        query,
        budget,
        offset: number("offset", MARKET_OFFSET_MAX, 0)?,
        limit,
        place,
    })
}

/// In any spelling of JSON: clients write `3.0` and `1e-05`.
fn dollars(text: &str) -> Result<Usd, MarketError> {
    let number = Number::parse(text).and_then(|number| Usd::from_f64(number.as_f64()).ok());
    number.ok_or_else(|| invalid("budget", "is a number of US dollars from 0 up"))
}

/// The hub that is named.
fn place(app: &App, hub: &str) -> Place {
    if matches!(hub, "" | "any") {
        return Place::Any;
    }
    let url = peer_url(hub).unwrap_or_else(|| hub.to_owned());
    if hub == "local" || hub == app.domain.as_str() || url == app.public_url {
        return Place::Here;
    }
    Place::At(url)
}

fn found(app: &App, item: FoundItem, routed: Routed<'_>, offer: &Offer, agent: ResultAgent) -> MarketMatch {
    let price = offer.price.to_f64();
    let tier = offer.free_tier.as_ref();
    MarketMatch {
        product_id: offer.product_id.clone(),
        capability_id: offer.capability_id.clone(),
        listing_id: offer.id.clone(),
        version: offer.version,
        source_hub: routed.hub.to_owned(),
        source_hub_name: routed.name.unwrap_or(app.domain.as_str()).to_owned(),
        display_name: offer.name.clone(),
        name: offer.name.clone(),
        description: offer.description.clone(),
        category: offer.category.clone(),
        score: item.relevance_score.unwrap_or_default(),
        match_type: match_type(item.ranks),
        score_breakdown: breakdown(item.ranks, app.settings.search.fusion_k),
        price_per_call_usd: price,
        routed_price_usd: routed.price.to_f64(),
        routing_fee_bps: routed.fee_bps,
        price_text: item.entry.price_text,
        currency: item.entry.currency,
        access_mode: if offer.price == Usd::ZERO {
            "public_free"
        } else {
            "paid"
        },
        credits_eligible: routed.is_sold_here,
        free_tier_max: tier.map(|tier| BTreeMap::from([(tier.field.clone(), tier.max)])),
        trust_score: item.trust_score,
        publisher_id: agent.did,
        seller_id: agent.handle,
        seller_kind: if routed.name.is_some() { "hub" } else { "agent" },
        payout_address: payout(app, offer),
        demo: false,
        offerable: true,
        route_status: routed.status,
        input_required: required(offer),
        description_sha256: offer.notes.description_sha256.clone(),
        schema_sha256: offer.notes.schema_sha256.clone(),
        flags: offer.notes.flags.clone(),
        changed: changed(&offer.notes, app.clock.now()),
    }
}

/// Where it is paid on a chain, if this hub has such payments made.
fn payout(app: &App, offer: &Offer) -> Option<String> {
    let is_taken = app.settings.market_x402.enabled;
    let address = offer.payout.filter(|_| is_taken)?;
    Some(address.to_string())
}

fn changed(notes: &Notes, now: Timestamp) -> BTreeMap<&'static str, Value> {
    let told = notes.told(now).map(|(name, changed)| {
        let at = time_text(changed.at);
        (
            name,
            json!({ "at": at, "previous_sha256": changed.previous_sha256 }),
        )
    });
    told.collect()
}

fn match_type(ranks: Ranks) -> &'static str {
    match (ranks.fts, ranks.semantic) {
        (Some(_), Some(_)) => "hybrid",
        (Some(_), None) => "lexical",
        (None, Some(_)) => "semantic",
        (None, None) => "browse",
    }
}

/// What each list gives, 1.0 for the first place.
fn breakdown(ranks: Ranks, k: u32) -> Value {
    let k = f64::from(k);
    let part = |rank: Option<u32>| rank.map_or(0.0, |rank| (k + 1.0) / (k + f64::from(rank)));
    json!({ "lexical": part(ranks.fts), "semantic": part(ranks.semantic) })
}

/// The names under `required` of the input's schema.
fn required(offer: &Offer) -> Vec<String> {
    let schema = offer.input_schema.as_ref().map(Schema::value);
    let names = schema.and_then(|schema| schema.get("required"));
    let names = names.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}
