//! What one durable step does, for every store: who may pay, what moves, what is written down.
//!
//! A step decides before it writes anything, so that one which refuses has changed nothing. Stores bring the rows
//! ([`super::rows`]) and see to it that steps run one after the other.

mod account;
mod channel;
mod invocation;
mod payer;
mod payment;
mod peers;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::PaidOut;
use super::rows::{EarnedRow, Issued, Purpose, Reference, Rows};
use crate::limits::PAGE_MAX;
use crate::money::Usd;

pub use account::{AddKey, CreateAccount, Credit, RevokeKey, SetBudget, Suspend};
pub use channel::{CloseChannel, ExpireChannels, OpenChannel, TopUp};
pub use invocation::{Abandon, BeginInvocation, FinishInvocation, ForgetAnswers};
pub use payment::{Settle, TakeUnsettled};
pub use peers::{ChangePeer, ForgetPeer, ForgetSilentPeers, TakeDuePeers};

/// One durable step.
pub trait Step: Send + Sync + 'static {
    /// What came of it.
    type Outcome: Send + 'static;

    /// Does it. It may be done again where the rows were given back as they were.
    fn run<R: Rows>(&self, rows: &mut R) -> impl Future<Output = Result<Self::Outcome, R::Error>> + Send;
}

/// See [`super::Earnings::pay_out`].
#[derive(Debug, Clone)]
pub struct PayOut {
    /// The provider.
    pub agent: Did,
    /// How much.
    pub amount: Usd,
    /// Used once.
    pub reference: String,
    /// Now.
    pub now: Timestamp,
}

impl Step for PayOut {
    type Outcome = PaidOut;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<PaidOut, R::Error> {
        let reference = self.reference();
        let found = rows.earned(&self.agent).await?;
        let mut row = found.unwrap_or_else(|| EarnedRow::nothing(&self.agent));
        if let Some(used) = rows.reference(&reference.text).await? {
            let is_same = reference.is_like(&used);
            return Ok(if is_same {
                PaidOut::Again(row.earned)
            } else {
                PaidOut::OtherUse
            });
        }
        let owed = row.earned.earned.saturating_sub(row.earned.paid_out);
        if self.amount > owed {
            return Ok(PaidOut::Exceeds(owed));
        }
        row.earned.paid_out = sum::<R>(row.earned.paid_out, self.amount)?;
        rows.add_reference(&reference).await?;
        rows.put_earned(&row).await?;
        Ok(PaidOut::Done(row.earned))
    }
}

impl PayOut {
    fn reference(&self) -> Reference {
        Reference {
            text: plain(&self.reference),
            purpose: Purpose::PayOut,
            subject: self.agent.to_string(),
            amount: self.amount,
            at: whole(self.now),
        }
    }
}

impl Reference {
    /// Whether it was used for the same before.
    fn is_like(&self, used: &Self) -> bool {
        (self.purpose, &self.subject, self.amount) == (used.purpose, &used.subject, used.amount)
    }
}

impl Issued {
    /// With so much more from outside, and from nowhere; `None` if there cannot be as much.
    fn with(self, credited: Usd, demo: Usd) -> Option<Self> {
        let more = Self {
            credited: self.credited.checked_add(credited)?,
            demo: self.demo.checked_add(demo)?,
        };
        more.credited.checked_add(more.demo)?;
        Some(more)
    }
}

/// No more than all the money there is, so that what is more is damage.
fn sum<R: Rows>(one: Usd, other: Usd) -> Result<Usd, R::Error> {
    let sum = one.checked_add(other);
    sum.ok_or_else(|| R::corrupt("a sum is more than all the money that was made"))
}

/// What is left; less than nothing is damage.
fn rest<R: Rows>(of: Usd, less: Usd) -> Result<Usd, R::Error> {
    let rest = of.checked_sub(less);
    rest.ok_or_else(|| R::corrupt("less than nothing is left of an amount"))
}

/// As many as a page may have.
fn page(limit: u32) -> u32 {
    limit.min(PAGE_MAX)
}

/// To the whole millisecond, as every store keeps times.
fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_unix_millis(at.unix_millis())
}

/// Without NUL, which not every engine keeps.
fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
