//! What the operator can set about delivery.

use std::time::Duration;

use super::Backoff;
use crate::breaker::BreakerConfig;
use crate::egress::Limits;
use crate::limits;

/// How delivery behaves. The default is what spec §8 says.
#[derive(Debug, Clone)]
pub struct DeliveryConfig {
    /// This process among those of the hub: the holder of its leases. Unique per run.
    pub holder: String,
    /// Requests to peers at the same time, over all peers.
    pub requests_max: usize,
    /// Batches on their way to one peer at the same time; 1 to 4.
    pub batches_per_peer_max: usize,
    /// What one push may cost.
    pub push: Limits,
    /// Pauses after failures in a row.
    pub backoff: Backoff,
    /// When attempts stop for longer.
    pub breaker: BreakerConfig,
    /// How often an outbox that ran empty is looked at while its lease is kept, so that mail that another process queues
    /// goes out at once; `None` in a hub of one process.
    pub linger_poll: Option<Duration>,
    /// How often all outboxes are looked through.
    pub sweep_every: Duration,
    /// How long requests on their way are waited for when the process ends.
    pub stop_grace: Duration,
    /// Peers that were not heard of for so long, and about which nothing was decided, are forgotten.
    pub forget_after: Duration,
    /// Peers that mail never went through to or from, and about which nothing was decided, that are kept.
    pub strangers_max: u32,
}

impl DeliveryConfig {
    /// The default, for the process that is called `holder`.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            requests_max: limits::PUSHES_MAX,
            batches_per_peer_max: limits::PUSHES_PER_PEER_MAX,
            push: Limits {
                timeout: limits::PUSH_TIMEOUT,
                answer_bytes_max: limits::ANSWER_BYTES_MAX,
            },
            backoff: Backoff::default(),
            breaker: BreakerConfig::default(),
            linger_poll: Some(limits::LINGER_POLL),
            sweep_every: limits::SWEEP_EVERY,
            stop_grace: limits::STOP_GRACE,
            forget_after: limits::FORGET_AFTER,
            strangers_max: limits::STRANGERS_KEPT_MAX,
        }
    }
}
