//! What is wrong with the settings about other hubs that sell.

use aip_market::peers::peer_url;

use super::super::Settings;

impl Settings {
    pub(super) fn check_market_peers(&self, found: &mut Vec<String>) {
        for seed in &self.market_peers.seeds {
            let is_plain = peer_url(seed).is_some_and(|url| url == seed.trim_end_matches('/'));
            let is_open = seed.starts_with("https://") || self.egress.allow_http;
            if !is_plain || !is_open || seed.trim_end_matches('/') == self.public_url() {
                found.push(format!(
                    "`market_peers.seeds` holds {seed:?}: write the address of another hub in its plain form, \
                     https://hub.example.org (http only with `egress.allow_http`)"
                ));
            }
        }
    }
}
