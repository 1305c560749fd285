//! Buying and selling capabilities (AIMarket v2): what is asked of a hub's market, and what it answers.
//!
//! Amounts are exact ([`Amount`]) and secrets are wiped and never shown ([`ApiKey`], [`ChannelKey`]). A receipt is checked
//! with [`crate::Client::check_receipt`], in the three states of [`crate::protocol::market::Check`].

mod amount;
mod answers;
mod call;
mod job;
mod kept;
mod payment;
mod secret;

pub use amount::{Amount, NoAmount};
pub use answers::{
    Account, AccountMade, ChannelOpened, ChannelState, Earnings, Invoked, KeyMade, LedgerPage, Settlement,
};
pub(crate) use answers::{ChannelAnswer, KeyAnswer, LedgerAnswer, ReceiptAnswer, SettlementAnswer};
pub use call::{Call, Purse};
pub use job::{CallEvent, JobKey, JobState, JobWord, Started};
pub use kept::Purses;
pub use payment::SignedPayment;
pub use secret::{ApiKey, ChannelKey};
