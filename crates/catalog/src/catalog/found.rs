//! What a search answers with, and what the catalog says of itself.

use std::collections::BTreeMap;

use aip_protocol::error::Refusal;
use aip_protocol::fusion::Ranks;
use serde::Serialize;

use crate::entry::Entry;
use crate::error::CatalogError;
use crate::text::Facets;

/// No answer to a search.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The caller must change something, or come back.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is not the caller's fault.
    #[error(transparent)]
    Failed(#[from] CatalogError),
}

/// One page of results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Best first.
    pub items: Vec<FoundItem>,
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<String>,
    /// The lists that could not be made: `semantic`.
    pub degraded: Vec<&'static str>,
    /// What passes the filter, counted; where it was asked for.
    pub facets: Option<Facets>,
}

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundItem {
    /// The listing, as it is now.
    pub entry: Entry,
    /// Its places in the two lists.
    pub ranks: Ranks,
    /// 1.0 is first in every list that ran; none without text.
    pub relevance_score: Option<f64>,
    /// The trust in its agent, 0 to 1.
    pub trust_score: f64,
    /// What the order goes by; none without text.
    pub final_score: Option<f64>,
    /// Why it stands here; where it was asked for.
    pub explain: Option<Explain>,
}

/// Why a result stands where it stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Explain {
    /// What the list by text says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<ExplainText>,
    /// The cosine of query and listing, by embedder.
    pub cosines: BTreeMap<String, f32>,
    /// The words of the query that it says, and where.
    pub matched: Vec<ExplainMatch>,
    /// Sum of `1 / (k + rank)`.
    pub rrf: f64,
    /// How slowly a rank loses weight.
    pub k: f64,
    /// How much full trust adds.
    pub trust_weight: f64,
}

/// What the list by text says of a result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExplainText {
    /// Only to be compared within one search.
    pub score: f64,
    /// The share of the query that it says, 0 to 1.
    pub coverage: f64,
    /// It holds a code of the query, or what stood in quotes, or is named just so.
    pub exact: bool,
}

/// Words of the query in one part of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainMatch {
    /// `name`, `description`, `tags`, `category`, `brand` or `attributes`.
    pub field: &'static str,
    /// As they are compared.
    pub terms: Vec<String>,
}

/// How one listing stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryState {
    /// It is found by its text.
    pub indexed: bool,
    /// It is found by its meaning, as it reads now.
    pub embedded: bool,
    /// The language that it is taken to be in.
    pub language: Option<String>,
    /// It is past its end and thus no longer found.
    pub is_expired: bool,
}

/// How far the catalog has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogStats {
    /// Listings that are found by their text.
    pub documents: u64,
    /// The last change that is in the index.
    pub applied_change: u64,
    /// The last change that the source was seen to have.
    pub latest_change: u64,
    /// Changes that the index does not hold yet; while it is built anew, how many are left.
    pub behind_changes: u64,
    /// The index held all that the source had, once since it was opened or begun anew.
    pub is_caught_up: bool,
    /// Listings that wait for the embedder that is farthest behind, at most.
    pub pending_embeddings: u64,
    /// The vectors, by embedder.
    pub spaces: Vec<SpaceStats>,
}

/// How far the vectors of one embedder have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceStats {
    /// The embedder's id.
    pub embedder: String,
    /// Listings that have a vector.
    pub vectors: u64,
    /// Listings that wait for one, at most.
    pub pending: u64,
    /// Every listing had one, at some time.
    pub is_whole: bool,
    /// Queries are compared with it.
    pub is_serving: bool,
    /// Bytes of its file.
    pub bytes: u64,
}
