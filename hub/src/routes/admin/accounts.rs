//! Accounts of the market, as the operator sees them. Amounts are US dollars in decimal digits.

use actix_web::HttpRequest;
use aip_market::money::Usd;
use aip_market::store::{Account, AccountId, ApiKey};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Handle};
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::market::MarketRoom;
use crate::market::limits::{LABEL_BYTES_MAX, REFERENCE_BYTES_MAX};

pub mod add_key;
pub mod budget;
pub mod create;
pub mod credit;
pub mod ledger;
pub mod list;
pub mod show;
pub mod standing;

/// References that the hub makes itself.
const OWN_REFERENCES: [&str; 2] = ["grant:", "topup:"];

/// The longest id that is looked up.
const ID_BYTES_MAX: usize = 64;

/// An account in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountLine {
    /// `acct_` and 32 hex digits.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// The DID of the agent that it belongs to.
    pub owner: Option<String>,
    /// What can be spent.
    #[schema(example = "12.5")]
    pub balance: String,
    /// What is set aside for calls that are under way.
    pub held: String,
    /// What was spent, is set aside, or is in channels.
    pub spent: String,
    /// What may ever be spent; `null`: no ceiling.
    pub budget: Option<String>,
    /// `active` or `suspended`.
    #[schema(example = "active")]
    pub standing: &'static str,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
}

impl From<Account> for AccountLine {
    fn from(account: Account) -> Self {
        Self {
            id: account.id.0,
            label: account.label,
            owner: account.owner.map(|owner| owner.to_string()),
            balance: account.balance.to_string(),
            held: account.held.to_string(),
            spent: account.spent.to_string(),
            budget: account.budget.map(|budget| budget.to_string()),
            standing: if account.suspended { "suspended" } else { "active" },
            created_at: account.created_at,
        }
    }
}

/// A key of an account, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountKeyLine {
    /// What it is named by; it opens nothing.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// What it may ever spend; `null`: no ceiling.
    pub budget: Option<String>,
    /// What it has spent.
    pub spent: String,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
}

impl From<ApiKey> for AccountKeyLine {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id.0,
            label: key.label,
            budget: key.budget.map(|budget| budget.to_string()),
            spent: key.spent.to_string(),
            created_at: key.created_at,
        }
    }
}

/// The market of this hub.
pub(super) fn room(app: &App) -> Result<&MarketRoom, ApiError> {
    let detail = "This hub has no market: `market.enabled` is off.";
    app.market
        .as_deref()
        .ok_or_else(|| ApiError::refused(ErrorCode::NotFound, detail))
}

/// The account in the path.
fn path_account(req: &HttpRequest) -> Result<AccountId, ApiError> {
    let id = req.match_info().get("id").unwrap_or_default();
    if id.len() > ID_BYTES_MAX {
        return Err(unknown());
    }
    Ok(AccountId(id.to_owned()))
}

fn unknown() -> ApiError {
    ApiError::refused(
        ErrorCode::NotFound,
        "There is no such account; `aip-hub accounts list` shows them.",
    )
}

fn invalid(member: &'static str, should: &str) -> ApiError {
    let detail = format!("The member `{member}` {should}.");
    Refusal::new(ErrorCode::MemberInvalid, detail)
        .with("member", member)
        .into()
}

/// An amount that is more than nothing.
pub(super) fn amount(text: &str) -> Result<Usd, ApiError> {
    let amount = Usd::parse_exact(text).ok().filter(|amount| *amount > Usd::ZERO);
    amount.ok_or_else(|| {
        invalid(
            "amount",
            "is US dollars in decimal digits, more than 0, at most six of them after the point, such as 12.50",
        )
    })
}

/// A budget; none is no ceiling.
fn budget(text: Option<&str>) -> Result<Option<Usd>, ApiError> {
    let should =
        "is US dollars in decimal digits, at most six of them after the point, or null for no ceiling";
    let budget = text.map(Usd::parse_exact).transpose();
    budget.map_err(|_refusal| invalid("budget", should))
}

fn label(text: String) -> Result<String, ApiError> {
    let fits = text.len() <= LABEL_BYTES_MAX && !text.chars().any(char::is_control);
    let should = "is text of at most 200 bytes without control characters";
    if fits {
        Ok(text)
    } else {
        Err(invalid("label", should))
    }
}

/// What makes a repetition the same.
pub(super) fn reference(text: &str) -> Result<&str, ApiError> {
    let is_plain = (1..=REFERENCE_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    if is_plain && !OWN_REFERENCES.iter().any(|own| text.starts_with(own)) {
        return Ok(text);
    }
    let should = "is 1 to 200 bytes without control characters, and does not begin with `grant:` or `topup:`";
    Err(invalid("reference", should))
}

/// It was used before, for something else.
pub(super) fn other_use() -> ApiError {
    let detail = "The reference was used before for something else: each payment has its own.";
    Refusal::new(ErrorCode::IdReused, detail)
        .with("member", "reference")
        .into()
}

/// An agent of this hub, by its DID or its handle.
pub(super) async fn agent(app: &App, text: &str) -> Result<Did, ApiError> {
    let handle = if text.starts_with("did:") {
        Did::parse(text)?.handle()
    } else {
        Handle::parse(text)?
    };
    let agent = crate::routes::resolve::agent(app, &handle).await?;
    Ok(agent.identity.did().clone())
}
