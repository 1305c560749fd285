//! Payments that move outside this hub: each pays one call, and what became of it is kept.
//!
//! A payment is claimed in the step that begins its call, settled after the work, and its end is the end of the call. Between
//! the two its money may move while nobody here can see it, so that what the call ends with is kept before
//! ([`super::Invocations::settle`]): after a crash it is settled again, never a second time on the chain, and then the call
//! ends as it would have.

use aip_protocol::time::Timestamp;
use bytes::Bytes;
use uuid::Uuid;

use super::{Answer, KeptReceipt};
use crate::money::Usd;

/// A payment that a call is paid with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentClaim {
    /// What tells it from all others: a digest of network, asset, payer and the payer's nonce.
    pub key: [u8; 32],
    /// What the call costs.
    pub amount: Usd,
    /// What was shown and what it was shown for, as JSON: enough to settle it in another process. It is an order to pay one
    /// recipient an amount, and no secret that spends anything else.
    pub payment: Bytes,
}

/// What became of a payment. One that was given back is forgotten: it may pay another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentStatus {
    /// Its call is under way.
    Claimed,
    /// The work is done, and the payment is being made.
    Settling,
    /// It was made.
    Settled,
    /// Nobody could say whether it was made: the call has its result, and no other call is paid with it.
    Unclear,
}

/// What a call ends with once its payment is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The answer, which does not name the transaction yet.
    pub answer: Answer,
    /// The receipt, which nobody has seen yet.
    pub receipt: KeptReceipt,
}

/// A call whose payment was being made when its process was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// Which call.
    pub id: Uuid,
    /// See [`PaymentClaim::amount`].
    pub amount: Usd,
    /// See [`PaymentClaim::payment`].
    pub payment: Bytes,
    /// What it ends with.
    pub planned: Planned,
    /// When its payment was claimed.
    pub since: Timestamp,
}
