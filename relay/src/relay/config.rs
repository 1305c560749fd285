//! What the operator decides about sending.

use std::num::NonZeroU32;
use std::time::Duration;

use aip_federation::egress::Limits;
use aip_protocol::limits::ENVELOPE_BYTES_MAX;
use aip_protocol::name::Domain;

use crate::admission::Blocklist;
use crate::limits;
use crate::mailbox::Quota;
use crate::rate::Rate;

/// The settings of a [`super::Relay`].
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// The domain that this hub speaks for.
    pub domain: Domain,
    /// Largest envelope on the wire, in bytes.
    pub envelope_bytes_max: usize,
    /// Most envelopes in one request.
    pub batch_envelopes_max: usize,
    /// Largest request with several envelopes, in bytes.
    pub batch_bytes_max: usize,
    /// How much one sender may send.
    pub rate: Rate,
    /// What a mailbox may hold, unless the operator gave its owner another quota.
    pub quota: Quota,
    /// How long a mailbox keeps a message.
    pub retention: Duration,
    /// Who may not send.
    pub blocklist: Blocklist,
    /// What one call to a direct endpoint may cost.
    pub direct: Limits,
}

impl RelayConfig {
    /// The defaults of spec §4 to §6.
    pub fn new(domain: Domain) -> Self {
        let per_sec = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        Self {
            domain,
            envelope_bytes_max: ENVELOPE_BYTES_MAX,
            batch_envelopes_max: limits::SEND_ENVELOPES_MAX,
            batch_bytes_max: limits::SEND_BYTES_MAX,
            rate: Rate {
                messages_per_sec: per_sec(limits::SENDER_MESSAGES_PER_SEC),
                burst_messages: per_sec(limits::SENDER_BURST_MESSAGES),
            },
            quota: Quota::default(),
            retention: Duration::from_secs(limits::RETENTION_SECS),
            blocklist: Blocklist::default(),
            direct: Limits {
                timeout: limits::DIRECT_TIMEOUT,
                ..Limits::default()
            },
        }
    }
}
