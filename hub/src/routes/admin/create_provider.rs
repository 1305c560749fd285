//! `POST /admin/providers`: a key for a program that hands in listings. The key is in this answer and nowhere else: the hub
//! keeps only its hash.

use std::fmt;

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Handle};
use aip_registry::listings::NewProvider;
use aip_registry::secret::SecretHash;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::error::ApiError;
use crate::limits::PROVIDER_NAME_BYTES_MAX;
use crate::routes::resolve::agent;

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderBody {
    /// What the provider is called, such as the name of a feed.
    pub name: String,
    /// The agent whose listings it hands in: a handle or a DID of this hub.
    #[schema(example = "shop#aigentix.org")]
    pub agent: String,
}

/// A new provider.
#[derive(Serialize, ToSchema)]
pub struct CreatedProvider {
    /// What the program sends as `Authorization: Bearer`.
    pub key: String,
    /// What it is listed and revoked by.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The DID of the agent that it speaks for.
    pub agent: String,
}

impl fmt::Debug for CreatedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedProvider")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// Makes a provider's key.
#[utoipa::path(
    post,
    path = "/admin/providers",
    tag = "administration",
    summary = "Make a provider's key",
    security(("operator" = [])),
    request_body = ProviderBody,
    responses((status = 201, description = "The key; it is shown only here", body = CreatedProvider),
              (status = 400, description = "The name or the agent cannot be read"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such agent of this hub"))
)]
pub async fn create_provider(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let body: ProviderBody = super::read(&app, &req, payload).await?;
    let is_name =
        (1..=PROVIDER_NAME_BYTES_MAX).contains(&body.name.len()) && !body.name.chars().any(char::is_control);
    if !is_name {
        let detail =
            format!("A provider's name is 1 to {PROVIDER_NAME_BYTES_MAX} bytes without control characters.");
        return Err(Refusal::new(ErrorCode::MemberInvalid, detail)
            .with("member", "name")
            .into());
    }
    let handle = if body.agent.starts_with("did:") {
        Did::parse(&body.agent)?.handle()
    } else {
        Handle::parse(&body.agent)?
    };
    let owner = agent(&app, &handle).await?.identity.did().clone();
    let key = app.provider_keys.make();
    let new = NewProvider {
        name: body.name,
        agent: owner,
        hash: SecretHash::of(&key),
    };
    let provider = app.listings.add_provider(&new, app.clock.now()).await?;
    tracing::info!(
        provider.id = %provider.id,
        agent = %provider.agent,
        "The operator made the key {} for {}", provider.id, provider.agent
    );
    Ok(HttpResponse::Created().json(CreatedProvider {
        key,
        id: provider.id,
        name: provider.name,
        agent: provider.agent.to_string(),
    }))
}
