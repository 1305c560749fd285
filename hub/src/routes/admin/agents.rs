//! `GET /admin/agents`: the agents of this hub, in the order of their names.

use actix_web::{HttpRequest, web};
use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;
use aip_registry::{AgentSummary, QuotaOverride, Standing};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;

/// A page of agents.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentPage {
    /// The agents.
    pub items: Vec<AgentLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<String>,
}

/// An agent as its operator sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentLine {
    /// Its name.
    #[schema(example = "alice")]
    pub name: String,
    /// Whether it may take part.
    pub standing: StandingWord,
    /// Number of its newest identity operation.
    pub seq: u64,
    /// Multihash of that operation.
    pub head: String,
    /// Its mailbox quota, where it differs from the hub's.
    pub quota: QuotaMembers,
    /// When it registered.
    #[schema(value_type = String, format = "date-time")]
    pub registered_at: Timestamp,
    /// When it ended its history, if it did.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub deactivated_at: Option<Timestamp>,
    /// The id of the invite that let it in, if one did.
    pub invite: Option<String>,
}

/// Whether an agent may take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StandingWord {
    /// It may send, receive and sign in.
    Active,
    /// It may not.
    Suspended,
}

/// A mailbox quota; a member that is absent or `null` is the hub's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaMembers {
    /// Unacked messages in the mailbox.
    pub mailbox_messages: Option<u64>,
    /// Their bytes.
    pub mailbox_bytes: Option<u64>,
    /// Unacked messages of one sender in it.
    pub sender_messages: Option<u64>,
}

impl From<Standing> for StandingWord {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Active => Self::Active,
            Standing::Suspended => Self::Suspended,
        }
    }
}

impl From<StandingWord> for Standing {
    fn from(word: StandingWord) -> Self {
        match word {
            StandingWord::Active => Self::Active,
            StandingWord::Suspended => Self::Suspended,
        }
    }
}

impl From<QuotaOverride> for QuotaMembers {
    fn from(quota: QuotaOverride) -> Self {
        let QuotaOverride {
            mailbox_messages,
            mailbox_bytes,
            sender_messages,
        } = quota;
        Self {
            mailbox_messages,
            mailbox_bytes,
            sender_messages,
        }
    }
}

impl From<QuotaMembers> for QuotaOverride {
    fn from(quota: QuotaMembers) -> Self {
        let QuotaMembers {
            mailbox_messages,
            mailbox_bytes,
            sender_messages,
        } = quota;
        Self {
            mailbox_messages,
            mailbox_bytes,
            sender_messages,
        }
    }
}

impl From<AgentSummary> for AgentLine {
    fn from(agent: AgentSummary) -> Self {
        Self {
            name: agent.name.to_string(),
            standing: agent.standing.into(),
            seq: agent.seq,
            head: agent.head,
            quota: agent.quota.into(),
            registered_at: agent.registered_at,
            deactivated_at: agent.deactivated_at,
            invite: agent.invite.map(|id| id.to_string()),
        }
    }
}

/// Lists agents.
#[utoipa::path(
    get,
    path = "/admin/agents",
    tag = "administration",
    summary = "List the agents of this hub",
    params(
        ("after" = Option<String>, Query, description = "The name after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Agents in the page, 1 to 1,000; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = AgentPage),
              (status = 401, description = "The operator's token is missing or wrong"))
)]
pub async fn agents(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<AgentPage>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.text("after")?.map(|name| Name::parse(&name)).transpose()?;
    let limit = super::page_items(&query)?;
    let found = app.registry.list_agents(after.as_ref(), limit).await?;
    let full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let items: Vec<AgentLine> = found.into_iter().map(AgentLine::from).collect();
    let next_cursor = items.last().filter(|_| full).map(|last| last.name.clone());
    Ok(web::Json(AgentPage { items, next_cursor }))
}
