//! Why a peer could not be crawled, in words for the operator.

use aip_federation::egress::EgressError;
use aip_protocol::multikey::VerifyingKey;

/// The documents of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Discovery,
    Manifest,
}

impl std::fmt::Display for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Discovery => "discovery document",
            Self::Manifest => "manifest",
        })
    }
}

/// Why.
#[derive(Debug, thiserror::Error)]
pub(super) enum CrawlError {
    /// There was no answer, or the guard of the way out does not let it be asked.
    #[error("its {0} cannot be had: {1}")]
    Unreachable(Page, #[source] EgressError),
    /// It has none, or does not give it.
    #[error("its {0} is answered with status {1}")]
    Status(Page, u16),
    /// What came is no JSON, or JSON that two readers could read as two things.
    #[error("its {0} is no JSON that can be read")]
    NotJson(Page),
    /// What came is something else.
    #[error("its {0} {1}")]
    Wrong(Page, String),
    /// It is signed, and this is not the key.
    #[error("it shows another key than the pinned one")]
    OtherKey(Box<VerifyingKey>),
    /// This hub, by another name.
    #[error("it is this hub")]
    Itself,
    /// The stores of this hub.
    #[error("this hub could not keep what it read")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl CrawlError {
    pub(super) fn wrong(page: Page, what: impl Into<String>) -> Self {
        Self::Wrong(page, what.into())
    }

    /// A word for counters.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(_, error) if error.is_refusal() => "refused",
            Self::Unreachable(..) => "unreachable",
            Self::Status(..) => "status",
            Self::NotJson(_) | Self::Wrong(..) => "invalid",
            Self::OtherKey(_) => "key_mismatch",
            Self::Itself => "itself",
            Self::Store(_) => "store",
        }
    }
}

impl From<aip_market::store::StoreError> for CrawlError {
    fn from(error: aip_market::store::StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

impl From<aip_registry::StoreError> for CrawlError {
    fn from(error: aip_registry::StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

/// A bug: what this hub makes itself has not the form that it should.
impl From<aip_protocol::error::Refusal> for CrawlError {
    fn from(refusal: aip_protocol::error::Refusal) -> Self {
        Self::Store(Box::new(refusal))
    }
}
