//! What is wrong with the settings of payments on a chain.

use aip_market::facilitator::local;
use aip_protocol::market::evm::Address;
use aip_protocol::market::x402;
use url::Url;

use super::super::Settings;
use crate::market::facilitator::LOCAL;

impl Settings {
    pub(super) fn check_x402(&self, found: &mut Vec<String>) {
        let settings = &self.market_x402;
        if !settings.enabled {
            return;
        }
        let chain_id = x402::chain_id(&settings.network);
        if chain_id.is_none() {
            found.push(format!(
                "`market_x402.network` = {:?} is no chain: use `eip155:` and a number, such as eip155:8453",
                settings.network
            ));
        }
        if Address::parse(&settings.asset).is_err() {
            found.push(format!(
                "`market_x402.asset` = {:?} is no address: use 0x and 40 hex digits, in the case of its checksum or in lower case",
                settings.asset
            ));
        }
        if settings.asset_name.is_empty() || settings.asset_version.is_empty() {
            found.push(
                "`market_x402.asset_name` and `asset_version` are what the token calls itself: set both"
                    .to_owned(),
            );
        }
        let is_local = settings.facilitator == LOCAL;
        if is_local && !self.hub.development {
            found.push(
                "`market_x402.facilitator` is `local`, whose money is worth nothing: providers would work for it. Use the \
                 address of a facilitator, or a hub in development"
                    .to_owned(),
            );
        }
        if is_local != (chain_id == Some(local::CHAIN_ID)) {
            found.push(format!(
                "`market_x402.network` is eip155:{} with the facilitator `local`, and only then",
                local::CHAIN_ID
            ));
        }
        if !is_local && !is_plain(&settings.facilitator) {
            found.push(
                "`market_x402.facilitator` must be an http or https address without user, password, query and fragment, or \
                 `local`"
                    .to_owned(),
            );
        }
    }
}

fn is_plain(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    })
}
