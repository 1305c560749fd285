//! Accounts: money that an agent's owner put in, and the keys that spend it.

use actix_web::HttpRequest;
use aip_market::refusal::{MarketCode, MarketError as Refused};
use aip_market::store::{Account, ApiKey};
use aip_protocol::error::ErrorCode;
use aip_protocol::market::time_text;
use serde::Serialize;
use utoipa::ToSchema;

use super::{API_KEY, agent, header};
use crate::app::App;
use crate::error::MarketError;
use crate::market::MarketRoom;
use crate::routes::Endpoint;

pub mod add_key;
pub mod create;
pub mod ledger;
pub mod revoke_key;
pub mod rotate_key;
pub mod show;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/ai-market/v2/accounts").post(create::create),
        Endpoint::at("/ai-market/v2/account").get(show::show),
        Endpoint::at("/ai-market/v2/account/ledger").get(ledger::ledger),
        Endpoint::at("/ai-market/v2/account/rotate-key").post(rotate_key::rotate_key),
        Endpoint::at("/ai-market/v2/account/keys").post(add_key::add_key),
        Endpoint::at("/ai-market/v2/account/keys/{key_id}").delete(revoke_key::revoke_key),
    ]
}

/// A key of an account, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyLine {
    /// What it is revoked by; it opens nothing.
    pub key_id: String,
    /// What it is called.
    pub label: String,
    /// What it may ever spend; `null`: no ceiling.
    pub budget_usd: Option<f64>,
    /// What it has spent.
    pub spent_usd: f64,
    /// When it was made.
    #[schema(format = "date-time")]
    pub created_at: String,
}

impl From<&ApiKey> for KeyLine {
    fn from(key: &ApiKey) -> Self {
        Self {
            key_id: key.id.0.clone(),
            label: key.label.clone(),
            budget_usd: key.budget.map(aip_market::money::Usd::to_f64),
            spent_usd: key.spent.to_f64(),
            created_at: time_text(key.created_at),
        }
    }
}

/// Who asks for an account.
struct Holder {
    account: Account,
    /// The key that was shown; `None`: the agent that owns the account.
    key: Option<ApiKey>,
}

impl Holder {
    /// Makes sure that keys can be made and ended: one with a budget could give itself another.
    fn may_make_keys(&self) -> Result<(), MarketError> {
        if self.key.as_ref().is_none_or(|key| key.budget.is_none()) {
            return Ok(());
        }
        let detail = "A key with a budget makes and ends no keys: use one without, or the owner's token.";
        Err(MarketError::refused(MarketCode::KeyLimited, detail))
    }
}

/// The account of the key that is shown, or of the agent whose token is.
async fn holder(app: &App, room: &MarketRoom, req: &HttpRequest) -> Result<Holder, MarketError> {
    if let Some(shown) = header(req, &API_KEY)? {
        let (key, account) = of_key(app, room, req, &shown).await?;
        return Ok(Holder {
            account,
            key: Some(key),
        });
    }
    let Some(agent) = agent(req).await? else {
        let detail =
            "Send a key of the account as X-API-Key, or its owner's token as `Authorization: Bearer …`.";
        return Err(MarketError::refused(MarketCode::KeyInvalid, detail));
    };
    let account = room.store().account_of(&agent).await?.ok_or_else(|| {
        let detail = "The agent has no account here; POST /ai-market/v2/accounts makes one.";
        MarketError::refused(MarketCode::AccountUnknown, detail)
    })?;
    Ok(Holder { account, key: None })
}

/// The account that this key spends from. Wrong ones count against the network address.
pub(super) async fn of_key(
    app: &App,
    room: &MarketRoom,
    req: &HttpRequest,
    shown: &str,
) -> Result<(ApiKey, Account), MarketError> {
    let network = app.throttle.network(req);
    app.throttle.admit_proof(network)?;
    let found = room.engine.account_of_key(shown).await;
    if let Err(Refused::Refused(refusal)) = &found
        && refusal.code == MarketCode::KeyInvalid
    {
        app.throttle.count_proof(network, ErrorCode::TokenInvalid);
    }
    Ok(found?)
}
