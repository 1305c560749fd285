//! The operator's door: agents, quotas, invites, providers, backups. On the operator's listener only, and every path asks for
//! the operator's token; an agent's token opens none of them, and no agent's route changes what is decided here.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_registry::limits::LIST_PAGE_MAX;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, bearer, read_json};
use crate::routes::Endpoint;

pub mod accounts;
pub mod agents;
pub mod backup;
pub mod catalog;
pub mod create_invite;
pub mod create_provider;
pub mod invites;
pub mod market;
pub mod market_peers;
pub mod pause;
pub mod payouts;
pub mod peers;
pub mod providers;
pub mod quarantine;
pub mod quota;
pub mod resume;
pub mod revoke_invite;
pub mod revoke_provider;
pub mod standing;

/// Lists the agents.
pub const AGENTS_PATH: &str = "/admin/agents";
/// Sets whether an agent may take part.
pub const STANDING_PATH: &str = "/admin/agents/{name}/standing";
/// Sets an agent's quota.
pub const QUOTA_PATH: &str = "/admin/agents/{name}/quota";
/// Lists and makes invites.
pub const INVITES_PATH: &str = "/admin/invites";
/// Ends an invite.
pub const INVITE_PATH: &str = "/admin/invites/{id}";
/// Lists and makes providers.
pub const PROVIDERS_PATH: &str = "/admin/providers";
/// Ends a provider's key.
pub const PROVIDER_PATH: &str = "/admin/providers/{id}";
/// Lists peers.
pub const PEERS_PATH: &str = "/admin/peers";
/// Shows a peer.
pub const PEER_PATH: &str = "/admin/peers/{domain}";
/// Decides about a peer.
pub const PEER_STANCE_PATH: &str = "/admin/peers/{domain}/stance";
/// Sets what a peer may do.
pub const PEER_LIMITS_PATH: &str = "/admin/peers/{domain}/limits";
/// Takes a peer's new key.
pub const PEER_REPIN_PATH: &str = "/admin/peers/{domain}/repin";
/// Tries a peer at once.
pub const PEER_RETRY_PATH: &str = "/admin/peers/{domain}/retry";
/// Lists what was decided about peers.
pub const PEER_AUDIT_PATH: &str = "/admin/audit/peers";
/// Lists what peers signed and cannot take back.
pub const PEER_EVIDENCE_PATH: &str = "/admin/evidence";
/// Forgets a remote agent's history.
pub const HISTORY_PATH: &str = "/admin/histories/{did}";
/// How the catalog stands.
pub const CATALOG_PATH: &str = "/admin/catalog";
/// Lists suspect listings.
pub const SUSPECTS_PATH: &str = "/admin/catalog/quarantine";
/// Decides about one.
pub const SUSPECT_PATH: &str = "/admin/catalog/quarantine/{id}";
/// Takes a backup.
pub const BACKUPS_PATH: &str = "/admin/backups";
/// Lists and makes accounts.
pub const ACCOUNTS_PATH: &str = "/admin/accounts";
/// Shows an account.
pub const ACCOUNT_PATH: &str = "/admin/accounts/{id}";
/// Puts money into an account.
pub const ACCOUNT_CREDITS_PATH: &str = "/admin/accounts/{id}/credits";
/// Closes an account, or opens it.
pub const ACCOUNT_STANDING_PATH: &str = "/admin/accounts/{id}/standing";
/// Sets what an account may spend.
pub const ACCOUNT_BUDGET_PATH: &str = "/admin/accounts/{id}/budget";
/// Makes another key.
pub const ACCOUNT_KEYS_PATH: &str = "/admin/accounts/{id}/keys";
/// Shows what happened to an account's money.
pub const ACCOUNT_LEDGER_PATH: &str = "/admin/accounts/{id}/ledger";
/// Lists what providers earned, and notes what they were paid.
pub const PAYOUTS_PATH: &str = "/admin/payouts";
/// Shows the books.
pub const BOOKS_PATH: &str = "/admin/market";
/// Lists hubs that sell, and lets one sell.
pub const MARKET_PEERS_PATH: &str = "/admin/market/peers";
/// Lists what was decided about them.
pub const MARKET_PEER_LOG_PATH: &str = "/admin/market/peers/log";
/// Shows or forgets one.
pub const MARKET_PEER_PATH: &str = "/admin/market/peer";
/// Blocks one.
pub const MARKET_PEER_BLOCK_PATH: &str = "/admin/market/peer/block";
/// Pins another key for one.
pub const MARKET_PEER_REPIN_PATH: &str = "/admin/market/peer/repin";
/// Says under which rules one is called.
pub const MARKET_PEER_MODE_PATH: &str = "/admin/market/peer/mode";
/// Asks one at once.
pub const MARKET_PEER_CRAWL_PATH: &str = "/admin/market/peer/crawl";
/// Holds everything still, or goes on.
pub const PAUSE_PATH: &str = "/admin/pause";

/// Items in one page of a list, unless the caller asks for another number.
const PAGE_ITEMS: u64 = 100;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at(AGENTS_PATH).get(agents::agents),
        Endpoint::at(STANDING_PATH).put(standing::standing),
        Endpoint::at(QUOTA_PATH).put(quota::quota),
        Endpoint::at(INVITES_PATH)
            .get(invites::invites)
            .post(create_invite::create_invite),
        Endpoint::at(INVITE_PATH).delete(revoke_invite::revoke_invite),
        Endpoint::at(PROVIDERS_PATH)
            .get(providers::providers)
            .post(create_provider::create_provider),
        Endpoint::at(PROVIDER_PATH).delete(revoke_provider::revoke_provider),
        Endpoint::at(PEERS_PATH).get(peers::list::peers),
        Endpoint::at(PEER_PATH).get(peers::show::peer),
        Endpoint::at(PEER_STANCE_PATH).put(peers::stance::stance),
        Endpoint::at(PEER_LIMITS_PATH).put(peers::limits::limits),
        Endpoint::at(PEER_REPIN_PATH).post(peers::repin::repin),
        Endpoint::at(PEER_RETRY_PATH).post(peers::retry::retry),
        Endpoint::at(PEER_AUDIT_PATH).get(peers::audit::audit),
        Endpoint::at(PEER_EVIDENCE_PATH).get(peers::evidence::evidence),
        Endpoint::at(HISTORY_PATH).delete(peers::forget_history::forget_history),
        Endpoint::at(ACCOUNTS_PATH)
            .get(accounts::list::accounts)
            .post(accounts::create::create_account),
        Endpoint::at(ACCOUNT_PATH).get(accounts::show::account),
        Endpoint::at(ACCOUNT_CREDITS_PATH).post(accounts::credit::credit),
        Endpoint::at(ACCOUNT_STANDING_PATH).put(accounts::standing::standing),
        Endpoint::at(ACCOUNT_BUDGET_PATH).put(accounts::budget::budget),
        Endpoint::at(ACCOUNT_KEYS_PATH).post(accounts::add_key::add_account_key),
        Endpoint::at(ACCOUNT_LEDGER_PATH).get(accounts::ledger::ledger),
        Endpoint::at(PAYOUTS_PATH)
            .get(payouts::list::payouts)
            .post(payouts::add::add_payout),
        Endpoint::at(BOOKS_PATH).get(market::books),
        Endpoint::at(MARKET_PEERS_PATH)
            .get(market_peers::list::list)
            .post(market_peers::approve::approve),
        Endpoint::at(MARKET_PEER_LOG_PATH).get(market_peers::log::log),
        Endpoint::at(MARKET_PEER_PATH)
            .get(market_peers::show::show)
            .delete(market_peers::remove::remove),
        Endpoint::at(MARKET_PEER_BLOCK_PATH).post(market_peers::block::block),
        Endpoint::at(MARKET_PEER_REPIN_PATH).post(market_peers::repin::repin),
        Endpoint::at(MARKET_PEER_MODE_PATH).put(market_peers::mode::set),
        Endpoint::at(MARKET_PEER_CRAWL_PATH).post(market_peers::crawl::crawl),
        Endpoint::at(CATALOG_PATH).get(catalog::catalog),
        Endpoint::at(SUSPECTS_PATH).get(quarantine::suspects),
        Endpoint::at(SUSPECT_PATH).put(quarantine::judge),
        Endpoint::at(BACKUPS_PATH).post(backup::backup),
        Endpoint::at(PAUSE_PATH).put(pause::pause).delete(resume::resume),
    ]
}

/// Whoever shows the operator's token. A handler that takes one is closed to everybody else.
#[derive(Clone, Copy, Debug)]
pub struct Operator(());

impl FromRequest for Operator {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(req: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let shown = bearer(req).unwrap_or("").as_bytes();
        let opens = req.app_data::<web::Data<App>>().is_some_and(|app| {
            let token = app.operator_token.reveal().as_bytes();
            !token.is_empty() && bool::from(shown.ct_eq(token))
        });
        let detail = "Send the operator's token as `Authorization: Bearer …`; it lies in operator.token in the data folder.";
        ready(if opens {
            Ok(Self(()))
        } else {
            Err(ApiError::refused(ErrorCode::TokenInvalid, detail))
        })
    }
}

/// How many items the page that `limit` asks for has at most.
fn page_items(query: &Query<'_>) -> Result<u32, ApiError> {
    let limit = query.number("limit", 1..=u64::from(LIST_PAGE_MAX), PAGE_ITEMS)?;
    Ok(u32::try_from(limit).unwrap_or(LIST_PAGE_MAX))
}

/// Reads a body of exactly the members of `T`.
async fn read<T: DeserializeOwned>(
    app: &App,
    req: &HttpRequest,
    payload: web::Payload,
) -> Result<T, ApiError> {
    let body = serde_json::Value::from(read_json(app, req, payload).await?);
    if !body.is_object() {
        // Serde would take an array for the members in their order.
        return Err(ApiError::refused(ErrorCode::MemberInvalid, "Send a JSON object."));
    }
    serde_json::from_value(body)
        .map_err(|error| Refusal::new(ErrorCode::MemberInvalid, error.to_string()).into())
}

#[cfg(test)]
mod tests;
