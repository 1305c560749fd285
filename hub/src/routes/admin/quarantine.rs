//! Listings that are suspect, and what is decided about them: whether they are found and sold.

use actix_web::{HttpRequest, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use aip_protocol::listing::Offer;
use aip_protocol::time::Timestamp;
use aip_registry::listings::{Reviewed, StoredListing, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::catalog::Quarantine;
use crate::catalog::limits::SUSPECTS_PAGE;
use crate::error::ApiError;
use crate::extract::Query;

/// Characters of a name or a description that a line shows.
const SHOWN_CHARS_MAX: usize = 300;

/// A page of suspect listings.
#[derive(Debug, Serialize, ToSchema)]
pub struct SuspectPage {
    /// The listings, by their ids.
    pub items: Vec<SuspectLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<String>,
}

/// A listing that has flags, or that the operator decided about.
#[derive(Debug, Serialize, ToSchema)]
pub struct SuspectLine {
    /// The hub's id of the listing.
    pub id: String,
    /// Whose it is.
    pub agent: String,
    /// The version that is looked at.
    pub version: u64,
    /// `quarantined` (nobody finds it or buys it until it is released), `rejected` (nobody ever does), `released`, or `told`:
    /// it has flags, which hold nothing up here.
    #[schema(example = "quarantined")]
    pub state: &'static str,
    /// What is odd about it.
    pub flags: Vec<String>,
    /// Its name: a stranger's text, cut.
    pub name: String,
    /// Its description: a stranger's text, cut.
    pub description: String,
    /// When this version was stored.
    #[schema(value_type = String, format = "date-time")]
    pub stored_at: Timestamp,
}

impl SuspectLine {
    fn of(stored: StoredListing, quarantine: &Quarantine) -> Self {
        let offer = Json::parse(&stored.json)
            .ok()
            .and_then(|json| Offer::from_json(&json).ok());
        let (name, description) = offer
            .map(|offer| (offer.name, offer.description))
            .unwrap_or_default();
        let released = stored
            .trail
            .review
            .is_some_and(|review| review.verdict == Verdict::Released);
        let state = quarantine.of(&stored).as_str();
        Self {
            state: state.unwrap_or(if released { "released" } else { "told" }),
            id: stored.id,
            agent: stored.agent.to_string(),
            version: stored.version,
            flags: stored.flags,
            name: shown(&name),
            description: shown(&description),
            stored_at: stored.stored_at,
        }
    }
}

/// A stranger's text for an operator's terminal: on one line, and nothing in it that is not seen.
fn shown(text: &str) -> String {
    let seen = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain = seen.filter(|c| !matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'));
    plain.take(SHOWN_CHARS_MAX).collect()
}

/// What is decided.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerdictBody {
    /// `released` or `rejected`.
    #[schema(example = "released")]
    pub verdict: String,
    /// The version that was looked at; refused where the listing has another one by now.
    pub version: Option<u64>,
}

/// Lists suspect listings.
#[utoipa::path(
    get,
    path = "/admin/catalog/quarantine",
    tag = "administration",
    summary = "List suspect listings",
    params(
        ("after" = Option<String>, Query, description = "The id after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Listings in the page, 1 to 200; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = SuspectPage),
              (status = 401, description = "The operator's token is missing or wrong"))
)]
pub async fn suspects(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<SuspectPage>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.text("after")?;
    let limit = super::page_items(&query)?.min(SUSPECTS_PAGE);
    let found = app.listings.suspects(after.as_deref(), limit).await?;
    let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let quarantine = Quarantine::new(&app.settings.search.quarantine);
    let items: Vec<_> = found
        .into_iter()
        .map(|stored| SuspectLine::of(stored, &quarantine))
        .collect();
    let next_cursor = items.last().filter(|_| is_full).map(|last| last.id.clone());
    Ok(web::Json(SuspectPage { items, next_cursor }))
}

/// Decides about a listing.
#[utoipa::path(
    put,
    path = "/admin/catalog/quarantine/{id}",
    tag = "administration",
    summary = "Release a listing, or reject it",
    description = "What is released is found and sold whatever its flags say, until its words are others. What is rejected is \
                   not, in any version, until it is released.",
    params(("id" = String, Path, description = "The hub's id of the listing")),
    security(("operator" = [])),
    request_body = VerdictBody,
    responses((status = 200, description = "How it stands now", body = SuspectLine),
              (status = 400, description = "No verdict"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such listing"),
              (status = 409, description = "It has another version by now; the answer tells which"))
)]
pub async fn judge(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<web::Json<SuspectLine>, ApiError> {
    let id = req.match_info().get("id").unwrap_or("").to_owned();
    let body: VerdictBody = super::read(&app, &req, payload).await?;
    let Some(verdict) = Verdict::parse(&body.verdict) else {
        let refusal = Refusal::new(ErrorCode::MemberInvalid, "`verdict` is released or rejected.");
        return Err(refusal.with("member", "verdict").into());
    };
    match app.listings.review(&id, body.version, Some(verdict)).await? {
        Reviewed::Done(stored) => {
            app.listings_changed();
            tracing::info!(
                listing.id = %stored.id, agent = %stored.agent, version = stored.version, verdict = verdict.as_str(),
                "The operator decided about listing {}: {}", stored.id, verdict.as_str()
            );
            let quarantine = Quarantine::new(&app.settings.search.quarantine);
            Ok(web::Json(SuspectLine::of(*stored, &quarantine)))
        }
        Reviewed::Unknown => Err(ApiError::refused(
            ErrorCode::NotFound,
            "This hub has no such listing.",
        )),
        Reviewed::OtherVersion { version } => {
            let detail = format!("The listing has version {version} by now: look at it again.");
            let refusal = Refusal::new(ErrorCode::VersionConflict, detail);
            Err(refusal.with("version", version).into())
        }
    }
}

#[cfg(test)]
mod tests;
