//! The settings: what an operator can choose, where the values come from, and what is wrong with them.
//!
//! One definition per key (`config/sections.rs`) gives the type, the default and the words; `config/default.toml`
//! is written from it. Later sources win: defaults, the file, the environment (`AIP_HUB__SECTION__KEY`), the
//! command line.

mod check;
mod engines;
mod federation;
mod load;
mod market;
mod market_peers;
mod market_x402;
mod render;
mod search;
mod section;
mod sections;
mod value;

use serde::{Deserialize, Serialize};

pub use check::Problems;
pub use engines::{EngineSettings, NatsSettings, PostgresSettings, RedisSettings};
pub use federation::{FederationSettings, PeerPolicy, static_peer};
pub use load::{Overrides, load};
pub use market::MarketSettings;
pub use market_peers::MarketPeerSettings;
pub use market_x402::X402Settings;
pub use render::{commented_toml, default_toml, to_toml};
pub use search::{MODELS, SearchSettings};
pub use section::{Key, Section};
pub use sections::{
    EgressSettings, HttpSettings, HubSettings, LogSettings, ReceiveSettings, RegistrySettings, RelaySettings,
};
pub use value::{LogFormat, Registration, Secret};

/// All settings of a hub. `Debug` and `Serialize` show no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Who this hub is.
    pub hub: HubSettings,
    /// The listeners.
    pub http: HttpSettings,
    /// Accepting and keeping envelopes.
    pub relay: RelaySettings,
    /// Receiving.
    pub receive: ReceiveSettings,
    /// Names and identities.
    pub registry: RegistrySettings,
    /// What agents offer.
    pub search: SearchSettings,
    /// Hubs of other domains.
    pub federation: FederationSettings,
    /// Selling and buying capabilities.
    pub market: MarketSettings,
    /// Other hubs that sell.
    pub market_peers: MarketPeerSettings,
    /// Payments on a chain.
    pub market_x402: X402Settings,
    /// Requests that leave the hub.
    pub egress: EgressSettings,
    /// The engines that several processes share.
    pub engines: EngineSettings,
    /// The connections to PostgreSQL.
    pub postgres: PostgresSettings,
    /// Mailboxes on NATS `JetStream`.
    pub nats: NatsSettings,
    /// What is shared on Redis.
    pub redis: RedisSettings,
    /// The log.
    pub log: LogSettings,
}

impl Settings {
    /// What `--dev` means: everything open, on this machine, for trying out. A file, the environment and the
    /// command line still win over it.
    pub fn development() -> Self {
        let mut settings = Self::default();
        settings.hub.development = true;
        settings.hub.data_dir = "data".into();
        // Any free port, so that several can be tried side by side.
        settings.http.operator_listen.set_port(0);
        settings.hub.registration = Registration::Open;
        // A workstation's disk is often nearly full, and has room for a try: the bytes that must be free are asked all the same.
        settings.relay.disk_used_percent_max = 0;
        settings.market.demo_credit = true;
        settings.egress.allow_http = true;
        settings.egress.allowed_private_ranges = load::loopback_ranges();
        settings
    }

    /// The same without what a file should not hold: the environment gives it.
    #[must_use]
    pub fn without_secrets(mut self) -> Self {
        for secret in [
            &mut self.http.operator_token,
            &mut self.engines.registry_url,
            &mut self.engines.mailboxes_url,
            &mut self.engines.shared_url,
            &mut self.nats.password,
            &mut self.nats.token,
            &mut self.search.embedder_key,
            &mut self.market_x402.facilitator_token,
        ] {
            *secret = Secret::default();
        }
        self
    }

    /// Where the hub is reached from outside, without a slash at its end: `hub.public_url`, or the domain with
    /// the scheme that fits.
    pub fn public_url(&self) -> String {
        if !self.hub.public_url.is_empty() {
            return self.hub.public_url.trim_end_matches('/').to_owned();
        }
        let scheme = if self.hub.development { "http" } else { "https" };
        format!("{scheme}://{}", self.hub.domain)
    }
}
