//! Payments on a chain, over x402: what they cost there, and who makes them.
//!
//! This hub has no keys on any chain and sends nothing to one. A buyer shows an order to pay that its wallet signed, and a
//! [`Facilitator`] has it carried out: from the buyer to the provider, past this hub. Two exist: over HTTP (x402 §7), and
//! [`local`], which is a chain of its own for trying out and for tests.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::market::evm::Address;
use aip_protocol::market::x402::{Payment, Requirements, network};
use async_trait::async_trait;

use crate::limits::{BUYER_TIME, FACILITATOR_ASKED_MAX, SETTLE_PAUSES, STORE_PAUSES};
use crate::money::Usd;
use crate::offer::Offer;

mod counts;
pub mod local;

pub use counts::PaymentCounts;

/// What a facilitator says of a payment before the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// It could be made now.
    Valid,
    /// It could not, and why, in the words of x402 §9.
    Invalid(String),
}

/// What a facilitator says after it was told to make a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It was made, by this transaction; the same for every attempt at it.
    Done(String),
    /// Not by this attempt, which sent nothing to the chain; why, in the words of x402 §9. That its nonce is used may be the
    /// doing of an attempt before.
    Refused(String),
    /// It may have been made: something may have been sent to the chain.
    Unclear(String),
}

/// Why a facilitator says nothing. What it was told may be done all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FacilitatorError {
    /// It cannot be reached.
    #[error("the facilitator cannot be reached: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("the facilitator did not answer in time")]
    TimedOut,
    /// It answered with something else.
    #[error("the facilitator's answer is none: {0}")]
    Invalid(String),
}

/// Looks at payments and has them made.
#[async_trait]
pub trait Facilitator: Send + Sync + Debug {
    /// Whether this payment could be made now. Nothing is made.
    async fn verify(&self, payment: &Payment, asked: &Requirements) -> Result<Verified, FacilitatorError>;

    /// Has it made, and waits until it is. Told again, it makes nothing a second time.
    async fn settle(&self, payment: &Payment, asked: &Requirements) -> Result<Settled, FacilitatorError>;

    /// Whether payments of this network and scheme are made here.
    async fn supports(&self, network: &str) -> Result<bool, FacilitatorError>;
}

/// Where and in what payments are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The chain.
    pub chain_id: u64,
    /// The token, which is worth one dollar.
    pub asset: Address,
    /// What it calls itself in what is signed (EIP-712).
    pub asset_name: String,
    /// Its version there.
    pub asset_version: String,
    /// Digits after the point of one of it; 6 at least, so that a millionth is a whole number.
    pub decimals: u8,
    /// How long the facilitator may take for one answer.
    pub timeout: Duration,
    /// Whether nothing of it is worth anything.
    pub is_test: bool,
}

impl Terms {
    /// The chain's name.
    pub fn network(&self) -> String {
        network(self.chain_id)
    }
}

/// How this hub has payments made.
#[derive(Debug, Clone)]
pub struct X402 {
    /// Where and in what.
    pub terms: Terms,
    /// By whom.
    pub facilitator: Arc<dyn Facilitator>,
}

impl X402 {
    /// What a call takes for its payment, beside its provider: it is looked at once, and made in a few attempts.
    pub(crate) fn spare(&self) -> Duration {
        let pauses = SETTLE_PAUSES.iter().chain(&STORE_PAUSES).sum::<Duration>();
        self.terms.timeout * FACILITATOR_ASKED_MAX + pauses
    }

    /// What has to be paid for an offer; `None`: it says no address, or costs nothing.
    pub fn asked(&self, offer: &Offer, provider_timeout: Duration) -> Option<Requirements> {
        let Terms {
            chain_id,
            asset,
            asset_name,
            asset_version,
            ..
        } = &self.terms;
        if offer.price == Usd::ZERO || !offer.is_invocable() {
            return None;
        }
        let takes = offer.timeout.unwrap_or(provider_timeout) + self.spare() + BUYER_TIME;
        Some(Requirements {
            chain_id: *chain_id,
            amount: self.units(offer.price),
            asset: *asset,
            asset_name: asset_name.clone(),
            asset_version: asset_version.clone(),
            pay_to: offer.payout?,
            timeout_secs: takes.as_secs(),
        })
    }

    /// So many dollars in the token's smallest units.
    fn units(&self, price: Usd) -> u128 {
        let finer = u32::from(self.terms.decimals.saturating_sub(6));
        // 2^53 times 10^12 at most: the settings take 18 digits.
        u128::from(price.micros()).saturating_mul(10_u128.saturating_pow(finer))
    }
}
