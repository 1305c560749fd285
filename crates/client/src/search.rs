//! Searching what agents offer (spec §9): the query, and the answer.

use std::collections::BTreeMap;

use aip_protocol::fusion::Ranks;
use aip_protocol::json::{Json, Object};
use aip_protocol::listing::ListingKind;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::message::parse_agent;

/// What is looked for. Text is text, never a query language; every member that is set must hold of a result.
///
/// ```
/// use aip_client::search::Query;
/// let query = Query { price_max: Some("80000".to_owned()), ..Query::text("iPhone 15 Pro") };
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// What people type. Empty: all that passes the filters, by trust, then id.
    pub text: String,
    /// One of these kinds; all of them when empty.
    pub kinds: Vec<ListingKind>,
    /// Costs at least this: plain decimal digits.
    pub price_min: Option<String>,
    /// Costs at most this: plain decimal digits.
    pub price_max: Option<String>,
    /// Three upper-case letters.
    pub currency: Option<String>,
    /// Is, or is not, available.
    pub available: Option<bool>,
    /// The trust in its agent is at least this: decimal text from 0 to 1.
    pub trust_min: Option<String>,
    /// Listed at this hub.
    pub domain: Option<String>,
    /// Of this category.
    pub category: Option<String>,
    /// Of this brand.
    pub brand: Option<String>,
    /// Of this language.
    pub lang: Option<String>,
    /// Each of these attributes has this value.
    pub attributes: BTreeMap<String, String>,
    /// The hub took it at or after this moment.
    pub updated_after: Option<Timestamp>,
    /// Results on a page, 1 to 100; the hub's default when `None`.
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Each result says why it stands where it stands.
    pub explain: bool,
    /// The answer counts what was found by kind, category, brand and so on.
    pub facets: bool,
}

impl Query {
    /// A query for this text and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// The body of `POST /api/v1/search`.
    pub(crate) fn to_json(&self) -> Json {
        let mut body = Object::from([("q", Json::from(self.text.as_str()))]);
        let updated_after = self.updated_after.map(|moment| moment.to_string());
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        let kinds = (!kinds.is_empty()).then(|| kinds.join(","));
        for (name, text) in [
            ("kind", &kinds),
            ("price_min", &self.price_min),
            ("price_max", &self.price_max),
            ("currency", &self.currency),
            ("trust_min", &self.trust_min),
            ("domain", &self.domain),
            ("category", &self.category),
            ("brand", &self.brand),
            ("lang", &self.lang),
            ("updated_after", &updated_after),
            ("cursor", &self.cursor),
        ] {
            if let Some(text) = text {
                body.insert(name, text.as_str());
            }
        }
        if let Some(available) = self.available {
            body.insert("available", available);
        }
        if let Some(limit) = self.limit {
            body.insert("limit", limit);
        }
        for (name, flag) in [("explain", self.explain), ("facets", self.facets)] {
            if flag {
                body.insert(name, true);
            }
        }
        if !self.attributes.is_empty() {
            let attributes = self
                .attributes
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            body.insert("attributes", attributes.collect::<Object>());
        }
        Json::Object(body)
    }
}

/// One page of what was found.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Answer {
    /// The text that was searched for.
    #[serde(default)]
    pub query: String,
    /// The listings, best first.
    pub results: Vec<Hit>,
    /// Where the next page begins; `None` at the end.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// The time it took the hub, in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
    /// What did not run: `fts` or `semantic`. The answer is good, and might have been better.
    #[serde(default)]
    pub degraded: Vec<String>,
    /// How many of what was found are of which kind, category and so on; where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facets: Option<BTreeMap<String, Vec<FacetCount>>>,
}

/// A value, and how many of what was found have it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FacetCount {
    /// The value.
    pub value: String,
    /// How many have it.
    pub count: u64,
}

/// One listing that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// The hub's id of the listing.
    pub id: String,
    /// `capability`, `product` or `concept`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The exact price: plain decimal digits, as its agent wrote them.
    pub price: Option<String>,
    /// Three upper-case letters.
    pub currency: Option<String>,
    /// Whether it can be had now, where it says so.
    pub available: Option<bool>,
    /// Its attributes.
    pub attributes: Map<String, Value>,
    /// 1.0 is first in both lists; `None` without text.
    pub relevance_score: Option<f64>,
    /// The trust in its agent, 0 to 1.
    pub trust_score: f64,
    /// What the order goes by; `None` without text.
    pub final_score: Option<f64>,
    /// Its place in the full-text list, from 1.
    pub rank_fts: Option<u32>,
    /// Its place in the semantic list, from 1.
    pub rank_semantic: Option<u32>,
    /// Who offers it.
    pub agent: HitAgent,
    /// The hub that holds it.
    pub source_hub: String,
    /// Why it stands where it stands; where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Value>,
}

impl Hit {
    /// Its places in the lists.
    pub fn ranks(&self) -> Ranks {
        Ranks {
            fts: self.rank_fts,
            semantic: self.rank_semantic,
        }
    }
}

/// Who offers a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HitAgent {
    /// `name#domain`, as people read it.
    pub handle: String,
    /// Its DID.
    pub did: Did,
    /// What it calls itself.
    pub name: Option<String>,
    /// Where to POST an envelope to, where the hub knows it.
    pub endpoint: Option<String>,
}

/// A result on the wire: the price is a number there, and text beside it.
#[derive(Deserialize)]
struct HitAnswer {
    id: String,
    kind: String,
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    price: Option<Box<RawValue>>,
    #[serde(default)]
    price_text: Option<String>,
    #[serde(default)]
    currency: Option<String>,
    #[serde(default)]
    available: Option<bool>,
    #[serde(default)]
    attributes: Map<String, Value>,
    #[serde(default)]
    relevance_score: Option<f64>,
    #[serde(default)]
    trust_score: f64,
    #[serde(default)]
    final_score: Option<f64>,
    #[serde(default)]
    ranks: RanksAnswer,
    agent: AgentAnswer,
    #[serde(default)]
    source_hub: String,
    #[serde(default)]
    explain: Option<Value>,
}

#[derive(Default, Deserialize)]
struct RanksAnswer {
    #[serde(default)]
    fts: Option<u32>,
    #[serde(default)]
    semantic: Option<u32>,
}

#[derive(Deserialize)]
struct AgentAnswer {
    handle: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    endpoint: Option<String>,
}

impl<'de> Deserialize<'de> for Hit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let answer = HitAnswer::deserialize(deserializer)?;
        // Its digits, not the float that they would make.
        let digits = answer.price.as_ref().map(|price| price.get().to_owned());
        let did = parse_agent(&answer.agent.handle).map_err(serde::de::Error::custom)?;
        Ok(Self {
            id: answer.id,
            kind: answer.kind,
            name: answer.name,
            description: answer.description,
            price: answer.price_text.or(digits),
            currency: answer.currency,
            available: answer.available,
            attributes: answer.attributes,
            relevance_score: answer.relevance_score,
            trust_score: answer.trust_score,
            final_score: answer.final_score,
            rank_fts: answer.ranks.fts,
            rank_semantic: answer.ranks.semantic,
            agent: HitAgent {
                handle: did.handle().to_string(),
                did,
                name: answer.agent.name,
                endpoint: answer.agent.endpoint,
            },
            source_hub: answer.source_hub,
            explain: answer.explain,
        })
    }
}

#[cfg(test)]
mod tests;
