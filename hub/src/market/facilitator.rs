//! Who makes payments on a chain for this hub: a facilitator over HTTP, or the local one in development.

use std::sync::Arc;
use std::time::Duration;

use aip_federation::egress::Exchange;
use aip_market::facilitator::local::LocalFacilitator;
use aip_market::facilitator::{Facilitator, Terms, X402};
use aip_protocol::clock::Clock;
use aip_protocol::market::evm::Address;
use aip_protocol::market::x402;

use super::limits::LOCAL_GRANT_USD;
use crate::config::X402Settings;

mod http;

pub use self::http::HttpFacilitator;

/// What the settings call the chain in memory.
pub const LOCAL: &str = "local";

/// How payments are made, as the settings say; `None`: none are taken. Of settings that were checked.
pub fn open(
    settings: &X402Settings,
    exchange: Arc<dyn Exchange>,
    clock: Arc<dyn Clock>,
) -> Option<Arc<X402>> {
    let terms = terms(settings)?;
    let facilitator: Arc<dyn Facilitator> = if settings.facilitator == LOCAL {
        tracing::warn!(
            "payments over x402 are made by the local facilitator: their money is worth NOTHING, and is forgotten when the \
             hub ends"
        );
        let grant = u128::from(LOCAL_GRANT_USD) * 10_u128.pow(u32::from(terms.decimals));
        Arc::new(LocalFacilitator::new(terms.chain_id, grant, clock))
    } else {
        let (base, token) = (&settings.facilitator, &settings.facilitator_token);
        Arc::new(HttpFacilitator::new(exchange, base, token.clone(), terms.timeout))
    };
    Some(Arc::new(X402 { terms, facilitator }))
}

/// Where and in what payments are made; `None`: none are taken.
pub fn terms(settings: &X402Settings) -> Option<Terms> {
    if !settings.enabled {
        return None;
    }
    Some(Terms {
        chain_id: x402::chain_id(&settings.network)?,
        asset: Address::parse(&settings.asset).ok()?,
        asset_name: settings.asset_name.clone(),
        asset_version: settings.asset_version.clone(),
        decimals: settings.asset_decimals,
        timeout: Duration::from_secs(settings.facilitator_timeout_secs),
        is_test: settings.facilitator == LOCAL,
    })
}
