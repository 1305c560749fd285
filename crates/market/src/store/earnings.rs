//! What providers earned, and the sum of everything.

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use super::StoreError;
use crate::money::Usd;

/// What a provider earned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earned {
    /// The provider.
    pub agent: Did,
    /// All that was captured for it, without the hub's fees.
    pub earned: Usd,
    /// What of it was paid out by the operator.
    pub paid_out: Usd,
    /// How many calls it was for: those that cost something, also those that were paid directly.
    pub calls: u64,
    /// What buyers paid it outside this hub (x402): it is not in `earned`, owed by nobody, and without a fee.
    pub paid_directly: Usd,
}

/// What came of noting a payment to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaidOut {
    /// Noted.
    Done(Earned),
    /// This reference was used before, for this amount and provider.
    Again(Earned),
    /// This reference was used before for something else.
    OtherUse,
    /// It is owed less: so much.
    Exceeds(Usd),
}

/// Everything there is. `credited + demo = balances + held + channels + earned + fees + demo_returned` holds at every moment, where
/// `earned` includes what was paid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Ever put into accounts.
    pub credited: Usd,
    /// Ever put into channels from nowhere.
    pub demo: Usd,
    /// In accounts, held money left out.
    pub balances: Usd,
    /// Held, of accounts and of channels.
    pub held: Usd,
    /// In open channels, held money left out.
    pub channels: Usd,
    /// Ever earned by providers.
    pub earned: Usd,
    /// Of it, paid out.
    pub paid_out: Usd,
    /// Ever taken by the hub.
    pub fees: Usd,
    /// What was left of demo channels when they ended.
    pub demo_returned: Usd,
    /// What buyers paid providers outside this hub: it is in none of the others.
    pub paid_directly: Usd,
}

impl Totals {
    /// Whether nothing was made or lost.
    pub fn balance(&self) -> bool {
        let sources = self.credited.micros() + self.demo.micros();
        let kept = [
            self.balances,
            self.held,
            self.channels,
            self.earned,
            self.fees,
            self.demo_returned,
        ];
        sources == kept.iter().map(|amount| amount.micros()).sum::<u64>() && self.paid_out <= self.earned
    }
}

/// What providers earned.
#[async_trait]
pub trait Earnings {
    /// Of one provider; nothing at all where it never sold anything.
    async fn earned(&self, agent: &Did) -> Result<Earned, StoreError>;

    /// Of all, in the order of their DIDs, after `after`; at most `limit` and a page.
    async fn all_earned(&self, after: Option<&Did>, limit: u32) -> Result<Vec<Earned>, StoreError>;

    /// Notes that the operator paid a provider. A reference is used once in the whole store.
    async fn pay_out(
        &self,
        agent: &Did,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<PaidOut, StoreError>;

    /// The sum of everything, as of one moment.
    async fn totals(&self) -> Result<Totals, StoreError>;
}
