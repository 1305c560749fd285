//! What a search answers with: the form of §9, whichever door it came through.

use std::time::Duration;

use aip_catalog::{Found, FoundItem, Query, SearchError};
use aip_protocol::document::delivery_endpoint;
use aip_protocol::error::ErrorCode;
use aip_protocol::fusion::{Fusion, Ranks};
use aip_protocol::json::Json;
use aip_protocol::name::Did;
use aip_registry::Agent;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;

/// What a search found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SearchAnswer)]
pub struct Answer {
    /// The text that was searched for.
    pub query: String,
    /// The listings, best first.
    pub results: Vec<ResultItem>,
    /// Where the next page begins; `null` at the end.
    pub next_cursor: Option<String>,
    /// The time it took, in milliseconds.
    pub took_ms: u64,
    /// The legs that did not run: `semantic` where there is no model, or none that answered in time.
    pub degraded: Vec<&'static str>,
    /// How many of what was found are of which kind, category, brand, currency, language and hub; where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub facets: Option<serde_json::Value>,
    /// The numbers of the formula, where they are not 60 and 0.3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fusion: Option<FusionNumbers>,
}

/// The numbers of the formula of a hub that sets its own.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = SearchFusion)]
pub struct FusionNumbers {
    /// How slowly a place loses weight.
    pub k: f64,
    /// How much full trust adds.
    pub trust_weight: f64,
}

/// One listing that was found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SearchResult)]
pub struct ResultItem {
    /// The hub's id of the listing.
    pub id: String,
    /// `capability`, `product` or `concept`.
    #[schema(example = "product")]
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The price as a number, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub price: Option<Box<RawValue>>,
    /// The price exactly as its agent wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_text: Option<String>,
    /// The price's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Whether it can be had now, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<bool>,
    /// The language that it says it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// Further words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its attributes.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    #[schema(value_type = Object)]
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// 1.0 is first in both lists; `null` without text.
    pub relevance_score: Option<f64>,
    /// The trust in its agent, 0 to 1.
    pub trust_score: f64,
    /// What the order goes by; `null` without text.
    pub final_score: Option<f64>,
    /// The places in the lists, from 1.
    pub ranks: ResultRanks,
    /// Who offers it.
    pub agent: ResultAgent,
    /// The hub that holds it.
    pub source_hub: String,
    /// Why it stands where it stands; where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub explain: Option<serde_json::Value>,
}

/// The places of a result in the two lists; one that a list does not hold has none there.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = SearchRanks)]
pub struct ResultRanks {
    /// By text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fts: Option<u32>,
    /// By meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semantic: Option<u32>,
}

/// The agent of a result.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SearchAgent)]
pub struct ResultAgent {
    /// `name%23domain`, percent-encoded: it can be put into a URL as it is.
    #[schema(example = "etagi%23aigentix.org")]
    pub handle: String,
    /// Its DID.
    pub did: String,
    /// What it calls itself.
    pub name: String,
    /// Where to POST an envelope to; `null` where this hub does not know it.
    pub endpoint: Option<String>,
}

/// Asks the catalog.
///
/// # Errors
/// 400 `cursor_invalid` and whatever else the catalog refuses; 503 while it cannot be asked.
pub(crate) async fn find(app: &App, query: Query) -> Result<Answer, ApiError> {
    let began = Instant::now();
    let found = search(app, &query).await?;
    let mut results = Vec::with_capacity(found.items.len());
    for item in found.items {
        if let Some(agent) = agent_of(app, &item.entry.agent).await? {
            results.push(result(item, agent));
        }
    }
    Ok(Answer {
        query: query.text,
        results,
        next_cursor: found.next_cursor,
        took_ms: millis(began.elapsed()),
        degraded: found.degraded,
        facets: found.facets.and_then(|facets| serde_json::to_value(facets).ok()),
        fusion: fusion(app),
    })
}

/// Asks the catalog, and counts what came of it.
pub(crate) async fn search(app: &App, query: &Query) -> Result<Found, ApiError> {
    let began = Instant::now();
    let found = app.catalog.search(query).await.map_err(|error| match error {
        SearchError::Refused(refusal) => refusal.into(),
        failure => ApiError::failed(ErrorCode::Unavailable, failure),
    })?;
    app.metrics.searched(began.elapsed(), &found.degraded);
    Ok(found)
}

/// Who offers it; `None` for one that may not take part, whose listings are not shown.
pub(crate) async fn agent_of(app: &App, did: &Did) -> Result<Option<ResultAgent>, ApiError> {
    let handle = did.handle();
    let known = app.registry.resolve(did).await?;
    if known.as_ref().is_some_and(|agent| !agent.takes_part()) {
        return Ok(None);
    }
    Ok(Some(ResultAgent {
        name: known
            .as_deref()
            .and_then(profile_name)
            .unwrap_or(handle.name.as_str())
            .to_owned(),
        endpoint: known
            .as_deref()
            .map(|agent| delivery_endpoint(agent.identity.head(), &app.public_url)),
        handle: handle.encoded(),
        did: did.to_string(),
    }))
}

fn profile_name(agent: &Agent) -> Option<&str> {
    let name = agent.identity.head().profile.get("name").and_then(Json::as_str);
    name.filter(|name| !name.trim().is_empty())
}

fn result(item: FoundItem, agent: ResultAgent) -> ResultItem {
    let FoundItem { entry, ranks, .. } = item;
    let Ranks { fts, semantic } = ranks;
    let attribute = |(name, value)| Some((name, serde_json::to_value(value).ok()?));
    ResultItem {
        id: entry.id,
        kind: entry.kind.as_str(),
        name: entry.name,
        description: entry.description,
        price: entry.price_text.as_deref().and_then(price),
        price_text: entry.price_text,
        currency: entry.currency,
        available: entry.available,
        lang: entry.lang,
        tags: entry.tags,
        attributes: entry.attributes.into_iter().filter_map(attribute).collect(),
        relevance_score: item.relevance_score,
        trust_score: item.trust_score,
        final_score: item.final_score,
        ranks: ResultRanks { fts, semantic },
        agent,
        source_hub: entry.source_hub.to_string(),
        explain: item
            .explain
            .and_then(|explain| serde_json::to_value(explain).ok()),
    }
}

/// The price as a JSON number with its own digits: never through a float.
pub(crate) fn price(text: &str) -> Option<Box<RawValue>> {
    let price = aip_catalog::Price::parse(text).ok()?;
    RawValue::from_string(price.to_string()).ok()
}

fn fusion(app: &App) -> Option<FusionNumbers> {
    let Fusion { k, trust_weight } = app.settings.search.fusion();
    let differs = app.settings.search.fusion() != Fusion::default();
    differs.then_some(FusionNumbers { k, trust_weight })
}

/// Whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
