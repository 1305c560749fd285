//! What an operator decides about registration and sign-in.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Who may register (spec §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Anybody.
    #[default]
    Open,
    /// Who shows an invite (`X-AIP-Invite`).
    Invite,
    /// Nobody.
    Closed,
}

/// The registry's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegistryConfig {
    /// Who may register.
    pub policy: Policy,
    /// Names that nobody can register, beside those of spec §1. Compared in lower case.
    pub reserved_names: BTreeSet<String>,
    /// Whether a direct endpoint may be `http`.
    pub allow_http_endpoints: bool,
    /// Agents kept in memory for resolution. One with a long history counts as several.
    pub cache_agents_max: u64,
    /// Life of a token, in seconds.
    pub token_lifetime_secs: u64,
    /// Life of a challenge, in seconds.
    pub challenge_lifetime_secs: u64,
}

impl Default for RegistryConfig {
    fn default() -> Self {
        Self {
            policy: Policy::Open,
            reserved_names: BTreeSet::new(),
            allow_http_endpoints: false,
            cache_agents_max: 10_000,
            token_lifetime_secs: 3_600,
            challenge_lifetime_secs: 60,
        }
    }
}
