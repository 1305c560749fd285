//! What the market keeps, and what one durable step is.
//!
//! Money is created by [`Accounts::credit`] and by [`Funding::Demo`], moves, and is destroyed by [`Earnings::pay_out`] and by
//! demo money that goes back; [`Earnings::totals`] says so of everything at once. Each method is one transaction: it
//! happened whole, or it did not happen.
//!
//! What a step does is written once, in [`steps`], for every store; a store keeps [`rows`]. [`MemoryMarket`] keeps them in
//! memory, and the registry's `SqlStore` in a database.

mod account;
mod channel;
mod earnings;
mod invocation;
mod memory;
mod payment;
mod peers;
pub mod rows;
pub mod steps;

use std::fmt::Debug;

pub use account::{
    Account, AccountId, Accounts, ApiKey, Created, Credited, Entry, EntryKind, KeyId, NewAccount, NewKey,
};
pub use channel::{
    Channel, ChannelId, ChannelStatus, Channels, Closed, Funding, NewChannel, Opened, ToppedUp,
};
pub use earnings::{Earned, Earnings, PaidOut, Totals};
pub use invocation::{
    Answer, Begin, Begun, Charge, Finish, Finished, Idempotency, Invocation, InvocationStatus, Invocations,
    KeptReceipt, Outcome, Purse, TakeOver, Trial, Unpayable,
};
pub use memory::MemoryMarket;
pub use payment::{PaymentClaim, PaymentStatus, Planned, Unsettled};
pub use peers::{Crawled, MarketPeers, PeerChange, PeerChanged, PeerLine, PeerNote, PreviewRow};

/// Why a store could not do what it was asked; it did nothing, unless the answer was lost.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or did not answer in time.
    #[error("the market's store is unavailable: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What it holds cannot be read.
    #[error("the market's store holds what cannot be read: {0}")]
    Corrupt(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Everything the market keeps.
pub trait MarketStore:
    Accounts + Channels + Invocations + Earnings + MarketPeers + Debug + Send + Sync
{
}

impl<T> MarketStore for T where
    T: Accounts + Channels + Invocations + Earnings + MarketPeers + Debug + Send + Sync
{
}
