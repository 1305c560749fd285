//! What agents are trusted.

use aip_protocol::name::Did;

/// The trust in an agent, 0 to 1. Asked for many agents in one search: it must answer at once.
pub trait TrustScores: Send + Sync + std::fmt::Debug {
    /// 0 where nothing is known. What is not in 0 to 1 counts as the nearer end, NaN as 0.
    fn score(&self, agent: &Did) -> f64;
}

/// Nobody is known: every score is 0, and the order is that of relevance alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrust;

impl TrustScores for NoTrust {
    fn score(&self, _agent: &Did) -> f64 {
        0.0
    }
}
