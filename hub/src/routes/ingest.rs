//! Listings from providers: programs that hand in what an agent offers, with a key instead of a signature (§9).

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;
use aip_protocol::error::ErrorCode;
use aip_registry::listings::Provider;
use aip_registry::secret::SecretHash;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{bearer, header};
use crate::routes::Endpoint;
use crate::routes::listings::owner;

pub mod delete;
pub mod feeds;
pub mod register;
pub mod rows;

/// The header with a provider's key, where it is not in `Authorization`.
const PROVIDER_KEY: HeaderName = HeaderName::from_static("x-provider-key");

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/api/v1/ingest/listings")
            .post(rows::rows)
            .delete(rows::delete_rows),
        Endpoint::at("/api/v1/ingest/listings/{listing_id}").delete(delete::delete),
        Endpoint::at("/api/v1/ingest/products").post(feeds::products),
        Endpoint::at("/api/v1/ingest/capabilities").post(feeds::capabilities),
        Endpoint::at("/api/v1/ingest/register").post(register::register),
    ]
}

/// The provider that calls, by its key; its agent takes part.
async fn provider(app: &App, req: &HttpRequest) -> Result<Provider, ApiError> {
    let network = app.throttle.network(req);
    app.throttle.admit_proof(network)?;
    let known = match bearer(req).or_else(|| header(req, &PROVIDER_KEY)) {
        Some(key) => {
            app.listings
                .provider_by_secret_hash(&SecretHash::of(key), app.clock.now())
                .await?
        }
        None => None,
    };
    let Some(provider) = known else {
        app.throttle.count_proof(network, ErrorCode::TokenInvalid);
        let detail = "Send a provider's key as `X-Provider-Key` or `Authorization: Bearer …`; the operator makes one with \
                      `aip-hub providers add`, or a shop gets one by POST /api/v1/ingest/register.";
        return Err(ApiError::refused(ErrorCode::TokenInvalid, detail));
    };
    owner(app, &provider.agent).await.map_err(|error| {
        // The key is good; who it speaks for is not.
        if error.status() == StatusCode::UNAUTHORIZED {
            let detail = "The agent that this key speaks for is not registered here any more.";
            return ApiError::refused(ErrorCode::SenderBlocked, detail);
        }
        error
    })?;
    Ok(provider)
}

#[cfg(test)]
mod tests;
