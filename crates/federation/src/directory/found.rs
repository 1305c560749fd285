//! A hub that was found.

use aip_protocol::discovery::{HubDocument, HubKey, hub_kid};
use aip_protocol::json::Object;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use url::Url;

use super::StaticPeer;

/// The hub that speaks for a domain, verified.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Peer {
    /// The domain.
    pub domain: Domain,
    /// Where the hub is.
    pub hub: Url,
    /// What its document says about that, which requests are signed for: another address than [`Peer::hub`] where the operator
    /// configured one.
    pub names_itself: Url,
    /// Its keys; see [`Peer::key`].
    pub keys: Vec<HubKey>,
    /// What it offers.
    pub features: Vec<String>,
    /// Its limits, as it tells them.
    pub limits: Object,
    /// The epoch of its outboxes; `None` where it was configured and never asked.
    pub epoch: Option<String>,
    /// Until when this is good without asking again.
    pub fresh_until: Timestamp,
}

impl Peer {
    /// Of a verified document. Keys that are not pinned are left out.
    pub(super) fn documented(
        document: &HubDocument,
        pinned: &[VerifyingKey],
        hub: Option<&Url>,
        fresh_until: Timestamp,
    ) -> Self {
        let keys = document.keys.iter().filter(|key| pinned.contains(&key.key));
        Self {
            domain: document.domain.clone(),
            hub: hub.unwrap_or(&document.hub).clone(),
            names_itself: document.hub.clone(),
            keys: keys.cloned().collect(),
            features: document.features.clone(),
            limits: document.limits.clone(),
            epoch: document.epoch.clone(),
            fresh_until,
        }
    }

    /// As the operator configured it, keys included.
    pub(super) fn configured(domain: &Domain, configured: &StaticPeer) -> Self {
        let open_end = |key: &VerifyingKey| HubKey {
            key: key.clone(),
            not_after: None,
        };
        Self {
            domain: domain.clone(),
            hub: configured.hub.clone(),
            names_itself: configured.hub.clone(),
            keys: configured.keys.iter().map(open_end).collect(),
            features: Vec::new(),
            limits: Object::new(),
            epoch: None,
            fresh_until: Timestamp::MAX,
        }
    }

    /// The keys that are good at this moment.
    pub fn keys_at(&self, at: Timestamp) -> impl Iterator<Item = &VerifyingKey> {
        self.keys
            .iter()
            .filter(move |key| key.is_current(at))
            .map(|key| &key.key)
    }

    /// The key that a `keyid` (domain, `#`, Multikey) names, if it is good at this moment.
    pub fn key(&self, keyid: &str, at: Timestamp) -> Option<&VerifyingKey> {
        self.keys_at(at).find(|key| keyid == hub_kid(&self.domain, key))
    }

    /// Whether it offers a feature.
    pub fn offers(&self, feature: &str) -> bool {
        self.features.iter().any(|offered| offered == feature)
    }

    /// The URL of a path (with its leading `/`) at this hub.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.hub.as_str().trim_end_matches('/'))
    }
}
