//! `GET /ai-market/v2/search?intent=`: capabilities, in the form of the AI-Market protocol v2.

use std::collections::HashMap;

use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_catalog::limits::{PAGE_RESULTS_MAX, QUERY_BYTES_MAX};
use aip_catalog::{FoundItem, Price, Query as CatalogQuery};
use aip_protocol::error::ErrorCode;
use aip_protocol::fusion::Ranks;
use aip_protocol::json::Json;
use aip_protocol::listing::ListingKind;
use aip_protocol::name::Domain;
use aip_registry::listings::StoredListing;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::limits::{MARKET_OFFSET_MAX, SEARCH_LIMIT_DEFAULT, SEARCH_WORD_BYTES_MAX};
use crate::routes::search::answer::{ResultAgent, agent_of, millis, price, search as ask};
use crate::throttle::Cost;

/// The version of the protocol that is answered in.
const PROTOCOL: &str = "v2";

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
    pub total_hubs_searched: u32,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// One capability that was found.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketMatch {
    /// The attribute `product_id`, or the agent's name.
    pub product_id: String,
    /// The attribute `capability_id`, or the agent's own id of the listing.
    pub capability_id: String,
    /// This hub's id of the listing.
    pub listing_id: String,
    /// The hub that holds it.
    pub source_hub: String,
    /// The same, for people.
    pub source_hub_name: String,
    /// Its name.
    pub name: String,
    /// The same, for people.
    pub display_name: String,
    /// What it does.
    pub description: String,
    /// 1.0 is first in every list.
    pub score: f64,
    /// `hybrid`, `lexical`, `semantic` or `browse`: the lists that hold it.
    pub match_type: &'static str,
    /// The same as a share of the score, by list.
    #[schema(value_type = Object)]
    pub score_breakdown: Value,
    /// The price of a call, where it is in US dollars.
    #[schema(value_type = Option<f64>)]
    pub price_per_call_usd: Option<Box<RawValue>>,
    /// The same: this hub adds no fee.
    #[schema(value_type = Option<f64>)]
    pub routed_price_usd: Option<Box<RawValue>>,
    /// Hundredths of a percent that this hub adds.
    pub routing_fee_bps: u32,
    /// The price exactly as its agent wrote it.
    pub price_text: Option<String>,
    /// Its currency.
    pub currency: Option<String>,
    /// The trust in its agent, 0 to 1.
    pub trust_score: f64,
    /// The agent's DID.
    pub publisher_id: String,
    /// The agent's handle, percent-encoded.
    pub seller_id: String,
    /// `agent`.
    pub seller_kind: &'static str,
    /// Always false: this hub lists nothing for show.
    pub demo: bool,
    /// Whether it can be had now.
    pub offerable: bool,
    /// What a call must bring.
    pub input_required: Vec<String>,
}

/// Searches for capabilities.
#[utoipa::path(
    get,
    path = "/ai-market/v2/search",
    operation_id = "market_search",
    tag = "search",
    summary = "Search capabilities, in the form of AI-Market v2",
    description = "The same search as `/api/v1/search?kind=capability`, for clients of that protocol. `max_latency_ms`, \
                   `include_demo` and `include_stale` are taken and change nothing: this hub lists nothing for show and \
                   nothing stale.",
    params(
        ("intent" = Option<String>, Query, description = "What is to be done"),
        ("budget" = Option<String>, Query, description = "The highest price of a call, in US dollars"),
        ("max_latency_ms" = Option<String>, Query, description = "Taken and not used"),
        ("min_trust" = Option<f64>, Query, description = "From 0 to 1"),
        ("hub" = Option<String>, Query, description = "`any`, or the domain of a hub"),
        ("category" = Option<String>, Query, description = "Only of this category"),
        ("include_demo" = Option<bool>, Query, description = "Taken and not used"),
        ("include_stale" = Option<bool>, Query, description = "Taken and not used"),
        ("limit" = Option<u64>, Query, description = "0 to 100, 20 by default; 0 is as many as there may be"),
        ("offset" = Option<u64>, Query, description = "How many to step over, at most 1,000"),
    ),
    responses(
        (status = 200, description = "What was found", body = MarketAnswer),
        (status = 422, description = "A parameter is unknown or not in its form: `{\"detail\": […]}`",
         body = Object, content_type = "application/json"),
        (status = 429, description = "Too many requests from one address: `{\"detail\": …}`",
         body = Object, content_type = "application/json"),
        (status = 503, description = "The catalog cannot be asked now"),
    )
)]
pub async fn search(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    match answer(&app, &req).await {
        Ok(answer) => Ok(HttpResponse::Ok().json(answer)),
        Err(Stop::Invalid { parameter, should }) => {
            let problem = json!({ "type": "value_error", "loc": ["query", parameter], "msg": should });
            Ok(HttpResponse::UnprocessableEntity().json(json!({ "detail": [problem] })))
        }
        Err(Stop::Refused(error)) if error.status().is_client_error() => {
            let mut response = HttpResponse::build(error.status());
            if let Some(secs) = error.refusal().retry_after_secs {
                response.insert_header((RETRY_AFTER, secs));
            }
            Ok(response.json(json!({ "detail": error.refusal().detail })))
        }
        Err(Stop::Refused(error)) => Err(error),
    }
}

/// Why there is no answer.
enum Stop {
    Invalid { parameter: String, should: String },
    Refused(ApiError),
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

/// What was asked for.
struct Wanted {
    query: CatalogQuery,
    offset: u64,
    limit: u64,
}

async fn answer(app: &App, req: &HttpRequest) -> Result<MarketAnswer, Stop> {
    app.throttle.admit(Cost::Request, req)?;
    let began = Instant::now();
    let Wanted { query, offset, limit } = wanted(req)?;
    let page = gather(app, query.clone(), offset, limit).await?;
    let ids: Vec<_> = page.items.iter().map(|item| item.entry.id.clone()).collect();
    let stored = app.listings.get_many(&ids).await.map_err(ApiError::from)?;
    let by_id = |stored: StoredListing| (stored.id.clone(), stored);
    let stored: HashMap<_, _> = stored.into_iter().map(by_id).collect();
    let mut matches = Vec::with_capacity(page.items.len());
    for item in page.items {
        // One that was deleted a moment ago is left out.
        let Some(stored) = stored.get(&item.entry.id).filter(|stored| !stored.deleted) else {
            continue;
        };
        if let Some(agent) = agent_of(app, &item.entry.agent).await? {
            matches.push(found(app, item, agent, stored)?);
        }
    }
    let mode = if page.degraded { "lexical" } else { "hybrid" };
    Ok(MarketAnswer {
        category: query.filter.category,
        query: query.text,
        matches,
        total: page.total,
        offset,
        limit,
        has_more: page.has_more,
        search: json!({
            "mode": mode,
            "languages": [],
            "interpreted_concepts": [],
            "latency_ms": millis(began.elapsed()),
            "query_stays_local": app.settings.search.embedder_url.is_empty(),
        }),
        total_hubs_searched: 1,
        protocol_version: PROTOCOL,
    })
}

/// A part of what was found, by its place.
struct Part {
    items: Vec<FoundItem>,
    total: u64,
    has_more: bool,
    degraded: bool,
}

/// Follows the pages of the catalog to the part that was asked for; their number is bounded by the offset's bound.
async fn gather(app: &App, mut query: CatalogQuery, offset: u64, limit: u64) -> Result<Part, ApiError> {
    let (mut seen, mut items, mut degraded) = (0_u64, Vec::new(), false);
    query.limit = PAGE_RESULTS_MAX;
    loop {
        let found = ask(app, &query).await?;
        degraded |= !found.degraded.is_empty();
        for item in found.items {
            if (offset..offset + limit).contains(&seen) {
                items.push(item);
            }
            seen += 1;
        }
        query.cursor = found.next_cursor;
        if query.cursor.is_none() || seen >= offset + limit {
            break;
        }
    }
    Ok(Part {
        items,
        total: seen,
        has_more: query.cursor.is_some() || seen > offset + limit,
        degraded,
    })
}

fn invalid(parameter: &str, should: impl Into<String>) -> Stop {
    Stop::Invalid {
        parameter: parameter.to_owned(),
        should: should.into(),
    }
}

/// The same refusal in the market's shape.
fn reshaped(error: &ApiError) -> Stop {
    let refusal = error.refusal();
    let named = refusal.members.iter().find(|(name, _)| *name == "parameter");
    let named = named.and_then(|(_, value)| value.as_str()).unwrap_or_default();
    invalid(named, refusal.detail.clone())
}

fn wanted(req: &HttpRequest) -> Result<Wanted, Stop> {
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
        return Err(invalid(
            "intent",
            format!("is text of at most {QUERY_BYTES_MAX} bytes"),
        ));
    }
    query.filter.kinds = vec![ListingKind::Capability];
    if let Some(budget) = text("budget")? {
        let should = "is plain decimal digits with an optional fraction";
        query.filter.price_max = Some(Price::parse(&budget).map_err(|_refusal| invalid("budget", should))?);
        query.filter.currency = Some("USD".to_owned());
    }
    if let Some(trust) = text("min_trust")? {
        let plain = Price::parse(&trust).is_ok();
        let trust = trust.parse::<f64>().ok().filter(|_| plain);
        let trust = trust.filter(|trust| (0.0..=1.0).contains(trust));
        query.filter.trust_min = Some(trust.ok_or_else(|| invalid("min_trust", "is a number from 0 to 1"))?);
    }
    if let Some(hub) = text("hub")?.filter(|hub| hub != "any") {
        let domain = Domain::parse(&hub).map_err(|_refusal| invalid("hub", "is `any` or a domain"))?;
        query.filter.domain = Some(domain);
    }
    query.filter.category = text("category")?.filter(|category| !category.is_empty());
    let fits = |word: &String| word.len() <= SEARCH_WORD_BYTES_MAX;
    if !query.filter.category.as_ref().is_none_or(fits) {
        return Err(invalid(
            "category",
            format!("is text of at most {SEARCH_WORD_BYTES_MAX} bytes"),
        ));
    }
    let most = u64::from(PAGE_RESULTS_MAX);
    let limit = match number("limit", most, u64::from(SEARCH_LIMIT_DEFAULT))? {
        0 => most,
        limit => limit,
    };
    Ok(Wanted {
        query,
        offset: number("offset", MARKET_OFFSET_MAX, 0)?,
        limit,
    })
}

fn found(
    app: &App,
    item: FoundItem,
    agent: ResultAgent,
    stored: &StoredListing,
) -> Result<MarketMatch, ApiError> {
    let json = Json::parse(&stored.json).map_err(|refusal| ApiError::failed(ErrorCode::Internal, refusal))?;
    let own = |name: &str| {
        json.get("attributes")
            .and_then(|all| all.get(name))
            .and_then(Json::as_str)
    };
    let in_dollars = item.entry.currency.as_deref() == Some("USD");
    let dollars = || {
        item.entry
            .price_text
            .as_deref()
            .filter(|_| in_dollars)
            .and_then(price)
    };
    let hub = item.entry.source_hub.to_string();
    Ok(MarketMatch {
        product_id: own("product_id").unwrap_or(item.entry.agent.name()).to_owned(),
        capability_id: own("capability_id").unwrap_or(&stored.listing_id).to_owned(),
        source_hub_name: hub.clone(),
        source_hub: hub,
        display_name: item.entry.name.clone(),
        score: item.relevance_score.unwrap_or_default(),
        match_type: match_type(item.ranks),
        score_breakdown: breakdown(item.ranks, app.settings.search.fusion_k),
        price_per_call_usd: dollars(),
        routed_price_usd: dollars(),
        routing_fee_bps: 0,
        price_text: item.entry.price_text,
        currency: item.entry.currency,
        trust_score: item.trust_score,
        publisher_id: agent.did,
        seller_id: agent.handle,
        seller_kind: "agent",
        demo: false,
        offerable: item.entry.available.unwrap_or(true),
        input_required: required(&json),
        listing_id: item.entry.id,
        name: item.entry.name,
        description: item.entry.description,
    })
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
fn required(listing: &Json) -> Vec<String> {
    let names = listing
        .get("input_schema")
        .and_then(|schema| schema.get("required"));
    let names = names.and_then(Json::as_array).unwrap_or_default().iter();
    names.filter_map(Json::as_str).map(str::to_owned).collect()
}
