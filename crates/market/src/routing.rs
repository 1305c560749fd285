//! A call of another hub's capability, as the market makes it.

use std::fmt::{self, Debug};
use std::time::Duration;

use aip_protocol::market::Value as Exact;
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use crate::money::Usd;
use crate::offer::Offer;
use crate::peers::MarketPeer;
use crate::provider::ProviderError;

/// One call of a peer.
#[derive(Debug, Clone)]
pub struct PeerCall<'a> {
    /// Who is called.
    pub peer: &'a MarketPeer,
    /// What is called there.
    pub offer: &'a Offer,
    /// The same for every attempt at this invocation (`Idempotency-Key`).
    pub id: Uuid,
    /// What is given to it.
    pub input: &'a Value,
    /// How long it may take.
    pub timeout: Duration,
    /// What the peer is shown.
    pub shown: &'a Shown,
}

/// What a peer is shown: who pays it, if anybody does. The buyer's account key, channel and secret never are.
#[derive(Clone, PartialEq, Eq)]
pub enum Shown {
    /// What the buyer pays the peer with itself.
    Buyer {
        /// A name for the visitor who tries: another one at every peer, and nobody else can make it.
        visitor: Option<String>,
        /// Headers of a payment over x402, as they came.
        payment: Vec<(&'static str, String)>,
        /// What the buyer pays the peer at most.
        most: Option<Usd>,
    },
    /// This hub's signed word that it admitted the call: it is the seller.
    Admission,
    /// The key of this hub's account there, which pays this much at most.
    Key(Usd),
}

/// Says nothing of payments: one could be made by who reads them.
impl Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buyer { payment, most, .. } => f
                .debug_struct("Buyer")
                .field("payment", &!payment.is_empty())
                .field("most", most)
                .finish_non_exhaustive(),
            Self::Admission => f.write_str("Admission"),
            Self::Key(most) => f.debug_tuple("Key").field(most).finish(),
        }
    }
}

/// What a peer made of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerAnswer {
    /// The result.
    pub result: Value,
    /// Its receipt, as it came. Nothing of it is checked yet.
    pub receipt: Option<Exact>,
    /// What it says that the call cost there; more than there is money for is [`Usd::MAX`].
    pub price: Option<Usd>,
    /// Whether it says that the call was a free trial.
    pub is_trial: bool,
    /// Its headers about payment.
    pub headers: Vec<(&'static str, String)>,
}

/// The 402 of a peer, for the buyer, word for word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Its body: JSON, or nothing.
    pub body: Bytes,
    /// Its headers about payment.
    pub headers: Vec<(&'static str, String)>,
}

/// Why a peer has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerFailure {
    /// As with any provider.
    Provider(ProviderError),
    /// It wants to be paid by the buyer.
    Unpaid(Terms),
    /// It wants to be paid by this hub, which has no key there, or one that does not pay.
    HubUnpaid(String),
}

impl From<ProviderError> for PeerFailure {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

/// Calls other hubs.
#[async_trait]
pub trait PeerHubs: Send + Sync + Debug {
    /// Calls a capability of a peer, once. May be dropped at any moment.
    ///
    /// # Errors
    /// There is no result.
    async fn call(&self, call: PeerCall<'_>) -> Result<PeerAnswer, PeerFailure>;
}
