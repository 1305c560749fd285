//! Peers: hubs of other domains, what is known of them, and what the operator decides about them.

use actix_web::HttpRequest;
use aip_federation::peers::{PeerRecord, Stance};
use aip_protocol::error::ErrorCode;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::raw_segment;
use crate::federation::Federation;

pub mod audit;
pub mod evidence;
pub mod forget_history;
pub mod limits;
pub mod list;
pub mod repin;
pub mod retry;
pub mod show;
pub mod stance;

/// What was decided about one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StanceWord {
    /// Nothing: the hub's policy holds.
    Undecided,
    /// Mail and catalog.
    Allowed,
    /// Nothing in, nothing out.
    Blocked,
    /// Mail, no catalog.
    Limited,
}

impl From<StanceWord> for Stance {
    fn from(word: StanceWord) -> Self {
        match word {
            StanceWord::Undecided => Self::Undecided,
            StanceWord::Allowed => Self::Allowed,
            StanceWord::Blocked => Self::Blocked,
            StanceWord::Limited => Self::Limited,
        }
    }
}

impl From<Stance> for StanceWord {
    fn from(stance: Stance) -> Self {
        match stance {
            Stance::Undecided => Self::Undecided,
            Stance::Allowed => Self::Allowed,
            Stance::Blocked => Self::Blocked,
            Stance::Limited => Self::Limited,
        }
    }
}

impl StanceWord {
    /// What the audit log calls the decision.
    fn action(self) -> &'static str {
        match self {
            Self::Undecided => "undecide",
            Self::Allowed => "allow",
            Self::Blocked => "block",
            Self::Limited => "limit",
        }
    }
}

/// A peer in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct PeerLine {
    /// Its domain.
    #[schema(example = "two.example")]
    pub domain: String,
    /// What was decided about it.
    pub stance: StanceWord,
    /// Why it is frozen; `null` while it is not.
    pub frozen: Option<FrozenState>,
    /// The keys that are pinned.
    pub pinned: Vec<String>,
    /// When it was first met.
    #[schema(value_type = String, format = "date-time")]
    pub first_seen: Timestamp,
    /// When a request of it was last verified.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub last_in: Option<Timestamp>,
    /// When it last took a batch.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub last_out: Option<Timestamp>,
    /// Messages of it that were taken in, since the beginning.
    pub good_items: u64,
}

/// Why a peer is frozen.
#[derive(Debug, Serialize, ToSchema)]
pub struct FrozenState {
    /// The code.
    #[schema(example = "key_mismatch")]
    pub code: String,
    /// The key that it showed.
    pub kid: String,
    /// Since when.
    #[schema(value_type = String, format = "date-time")]
    pub since: Timestamp,
}

impl From<&PeerRecord> for PeerLine {
    fn from(peer: &PeerRecord) -> Self {
        Self {
            domain: peer.domain.to_string(),
            stance: peer.stance.into(),
            frozen: peer.frozen.as_ref().map(|frozen| FrozenState {
                code: frozen.code.clone(),
                kid: frozen.kid.clone(),
                since: frozen.since,
            }),
            pinned: peer.pinned.iter().map(|key| key.as_str().to_owned()).collect(),
            first_seen: peer.first_seen,
            last_in: peer.last_in,
            last_out: peer.last_out,
            good_items: peer.good_items,
        }
    }
}

/// Federation, where it is on.
fn federation(app: &App) -> Result<&Federation, ApiError> {
    app.federation.as_deref().ok_or_else(|| {
        ApiError::refused(
            ErrorCode::NotFound,
            "This hub does not federate: `federation.enabled` is off.",
        )
    })
}

/// The domain in the path.
fn path_domain(req: &HttpRequest) -> Result<Domain, ApiError> {
    Ok(Domain::parse(raw_segment(req, "domain"))?)
}

/// The peer of the path, which was met before.
async fn known_peer(federation: &Federation, domain: &Domain) -> Result<PeerRecord, ApiError> {
    federation.store.peer(domain).await?.ok_or_else(|| {
        ApiError::refused(
            ErrorCode::NotFound,
            "This hub has never met a peer of that domain.",
        )
    })
}
