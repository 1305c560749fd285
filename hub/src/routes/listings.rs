//! Listings: what agents offer, signed by them (§9).

use actix_web::{HttpRequest, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::listing::{Listing, Offer};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_registry::listings::{NewListing, Origin, StoredListing};
use aip_registry::{Agent, Standing};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::catalog::limits::LISTING_BYTES_MAX;
use crate::catalog::{Held, Quarantine, check, flags};
use crate::error::ApiError;
use crate::extract::{BodyLimit, read_typed};
use crate::limits::{LISTING_AGE_DAYS, LISTING_AHEAD_SECS};
use crate::routes::Endpoint;

pub mod delete;
pub mod of_agent;
pub mod publish;
pub mod show;
pub mod status;

/// The media types of a listing.
const LISTING: &[&str] = &["application/json", "application/aip+json"];

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/api/v1/listings").post(publish::publish),
        Endpoint::at("/api/v1/listings/{id}")
            .get(show::show)
            .delete(delete::delete),
        Endpoint::at("/api/v1/listings/{id}/status").get(status::status),
        Endpoint::at("/api/v1/agents/{name}/listings").get(of_agent::of_agent),
    ]
}

/// What became of a listing.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListingAnswer {
    /// The hub's id of the listing, as in results.
    #[schema(example = "lst_mfrggzdfmztwq2lknnwg23tpoa")]
    pub id: String,
    /// The version that the hub holds now.
    pub version: u64,
    /// `stored`, `unchanged` or `deleted`.
    #[schema(example = "stored")]
    pub status: &'static str,
    /// What is unusual about it, such as `invisible_characters`; it is taken all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Whether nobody finds it: `quarantined` until the operator has looked at it, or `rejected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "quarantined")]
    pub held: Option<&'static str>,
}

impl ListingAnswer {
    fn of(app: &App, stored: StoredListing, status: &'static str) -> Self {
        Self {
            held: held(app, &stored).as_str(),
            id: stored.id,
            version: stored.version,
            status,
            flags: stored.flags,
        }
    }
}

/// Whether a listing is kept from those who search and buy.
fn held(app: &App, stored: &StoredListing) -> Held {
    Quarantine::new(&app.settings.search.quarantine).of(stored)
}

/// Reads a signed listing that is in its form and within the bounds of this hub.
async fn read(app: &App, req: &HttpRequest, payload: web::Payload) -> Result<(Listing, Offer), ApiError> {
    let limit = BodyLimit::new(LISTING_BYTES_MAX);
    let body = read_typed(app, req, payload, limit, LISTING).await?;
    let listing = Listing::parse(&body)?;
    let offer = listing.offer()?;
    check(&offer)?;
    Ok((listing, offer))
}

/// Makes sure that the listing is one that its agent, an agent of this hub, signed.
async fn verify(app: &App, req: &HttpRequest, listing: &Listing) -> Result<(), ApiError> {
    check_age(listing.created_at, app.clock.now())?;
    let agent = owner(app, &listing.agent).await?;
    let network = app.throttle.network(req);
    app.throttle.admit_proof(network)?;
    // A key is good at once, also if its operation is dated a little ahead of this clock.
    let at = app.clock.now().max(agent.identity.head().created_at);
    listing.verify(&agent.identity, at).map_err(|refusal| {
        app.throttle.count_proof(network, refusal.code);
        refusal.into()
    })
}

/// Refuses what was signed long ago: the hub may have forgotten that it was deleted since.
fn check_age(created_at: Timestamp, now: Timestamp) -> Result<(), Refusal> {
    let age_millis = now.millis_since(created_at);
    let (oldest, ahead) = (
        i64::from(LISTING_AGE_DAYS) * 86_400_000,
        i64::from(LISTING_AHEAD_SECS) * 1_000,
    );
    if (-ahead..oldest).contains(&age_millis) {
        return Ok(());
    }
    let detail = format!(
        "`created_at` must lie at most {LISTING_AGE_DAYS} days behind and {LISTING_AHEAD_SECS} s ahead of the hub's \
         clock: sign the listing anew."
    );
    Err(Refusal::new(ErrorCode::CreatedAtOutOfWindow, detail)
        .with("created_at", created_at.to_string())
        .with("server_time", now.to_string()))
}

/// The agent of a listing, if it may offer anything here.
///
/// # Errors
/// 401 `sender_unknown` and `sender_deactivated`, 403 `sender_not_local` and `sender_blocked`.
pub(crate) async fn owner(app: &App, did: &Did) -> Result<std::sync::Arc<Agent>, ApiError> {
    if did.domain() != app.domain {
        let detail = format!("This hub takes listings of the agents of {} only.", app.domain);
        return Err(Refusal::new(ErrorCode::SenderNotLocal, detail).into());
    }
    let agent = app.registry.resolve(did).await?.ok_or_else(|| {
        ApiError::refused(
            ErrorCode::SenderUnknown,
            "No agent of this hub has this DID: register it first.",
        )
    })?;
    if agent.identity.is_deactivated() {
        let detail = "The agent has ended its history, and offers nothing any more.";
        return Err(ApiError::refused(ErrorCode::SenderDeactivated, detail));
    }
    if agent.standing == Standing::Suspended {
        return Err(ApiError::refused(
            ErrorCode::SenderBlocked,
            "The operator of this hub has suspended the agent.",
        ));
    }
    Ok(agent)
}

/// The listing as the store takes it.
fn to_store(listing: &Listing, offer: &Offer) -> NewListing {
    NewListing {
        agent: listing.agent.clone(),
        listing_id: listing.listing_id.clone(),
        version: listing.version,
        deleted: listing.deleted,
        json: listing.json.to_jcs(),
        digest: listing.digest(),
        origin: Origin::Signed,
        flags: flags(offer),
        expires_at: listing.expires_at,
    }
}

/// The listing with the id in the path; 404 also for one that was deleted.
async fn find(app: &App, req: &HttpRequest) -> Result<StoredListing, ApiError> {
    let id = req.match_info().get("id").unwrap_or("");
    let found = app.listings.get(id).await?;
    match found {
        Some(stored) if !stored.deleted => Ok(stored),
        Some(_) => Err(ApiError::refused(ErrorCode::NotFound, "The listing was deleted.")),
        None => Err(ApiError::refused(
            ErrorCode::NotFound,
            "This hub has no such listing.",
        )),
    }
}

#[cfg(test)]
mod tests;
