//! `GET /admin/providers`: who may hand in listings, revoked ones too. Their keys are not kept and cannot be shown.

use actix_web::{HttpRequest, web};
use aip_protocol::time::Timestamp;
use aip_registry::listings::Provider;
use serde::Serialize;
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;

/// A page of providers.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderPage {
    /// The providers.
    pub items: Vec<ProviderLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<String>,
}

/// A provider as its operator sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderLine {
    /// What it is listed and revoked by; it opens nothing.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The DID of the agent that it speaks for.
    pub agent: String,
    /// `good` or `revoked`.
    #[schema(example = "good")]
    pub state: &'static str,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When its key was used last, within a minute or so.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub last_used_at: Option<Timestamp>,
}

impl ProviderLine {
    fn of(provider: Provider) -> Self {
        Self {
            id: provider.id,
            name: provider.name,
            agent: provider.agent.to_string(),
            state: if provider.revoked_at.is_some() {
                "revoked"
            } else {
                "good"
            },
            created_at: provider.created_at,
            last_used_at: provider.last_used_at,
        }
    }
}

/// Lists providers.
#[utoipa::path(
    get,
    path = "/admin/providers",
    tag = "administration",
    summary = "List all providers",
    params(
        ("after" = Option<String>, Query, description = "The id after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Providers in the page, 1 to 1,000; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = ProviderPage),
              (status = 401, description = "The operator's token is missing or wrong"))
)]
pub async fn providers(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<ProviderPage>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.text("after")?;
    let limit = super::page_items(&query)?;
    let found = app.listings.list_providers(after.as_deref(), limit).await?;
    let full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let items: Vec<ProviderLine> = found.into_iter().map(ProviderLine::of).collect();
    let next_cursor = items.last().filter(|_| full).map(|last| last.id.clone());
    Ok(web::Json(ProviderPage { items, next_cursor }))
}
