//! What delivery needs of its neighbours.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use url::Url;
use uuid::Uuid;

use crate::directory::{Directory, Freshness, PeerError};
use crate::egress::Exchange;
use crate::outbox::{Fate, Outbox};
use crate::peers::PeerStore;
use crate::signing::Signer;

/// Everything that delivery is plugged into.
#[derive(Debug, Clone)]
pub struct Seams {
    /// Where mail waits.
    pub outbox: Arc<dyn Outbox>,
    /// Where peers are.
    pub directory: Arc<dyn PeerDirectory>,
    /// The way to them.
    pub exchange: Arc<dyn Exchange>,
    /// Who of several processes sends; which peers there are.
    pub store: Arc<dyn PeerStore>,
    /// Who signs the requests.
    pub signer: Arc<Signer>,
    /// Who tells senders of mail that comes back.
    pub bounces: Arc<dyn Bounces>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// What is needed of a peer to send to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFacts {
    /// Where it is.
    pub hub: Url,
    /// The `hub` of its discovery document, which requests are signed for.
    pub names_itself: Url,
    /// What it offers.
    pub features: Vec<String>,
}

/// Why there is nowhere to send to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookUpError {
    /// The operator, or the policy, wants no mail to go there.
    #[error("the peer is blocked")]
    Blocked,
    /// The peer showed a key that no pinned key vouches for, or the like; the operator decides.
    #[error("the peer is frozen: {code}")]
    Frozen {
        /// Why.
        code: String,
    },
    /// The peer did not answer, or not with a good document.
    #[error("the peer cannot be looked up: {detail}")]
    Failed {
        /// What happened, for people.
        detail: String,
        /// When it wants to be asked again, if it said so.
        retry_after: Option<Duration>,
    },
    /// What this hub keeps of peers cannot be read, for now.
    #[error("what is known of peers cannot be read")]
    Unavailable,
}

/// Where peers are: their discovery documents, pinned.
#[async_trait]
pub trait PeerDirectory: Debug + Send + Sync {
    /// The facts of a peer; with `fresh` by a look-up that passes every cache, once.
    async fn facts(&self, domain: &Domain, fresh: bool) -> Result<PeerFacts, LookUpError>;
}

#[async_trait]
impl PeerDirectory for Arc<Directory> {
    async fn facts(&self, domain: &Domain, fresh: bool) -> Result<PeerFacts, LookUpError> {
        let freshness = if fresh {
            Freshness::Fresh
        } else {
            Freshness::Cached
        };
        match self.peer(domain, freshness).await {
            Ok(peer) => Ok(PeerFacts {
                hub: peer.hub.clone(),
                names_itself: peer.names_itself.clone(),
                features: peer.features.clone(),
            }),
            Err(error) => Err(error.into()),
        }
    }
}

impl From<PeerError> for LookUpError {
    fn from(error: PeerError) -> Self {
        let code = error.code().as_str().to_owned();
        match error {
            PeerError::Blocked => Self::Blocked,
            PeerError::Frozen { .. } => Self::Frozen { code },
            PeerError::Unreachable { cause, retry_after } => Self::Failed {
                detail: cause.into_owned(),
                retry_after,
            },
            PeerError::Unfit(cause) => Self::Failed {
                detail: cause.into_owned(),
                retry_after: None,
            },
            PeerError::TooSoon { .. } | PeerError::Busy | PeerError::Store(_) => Self::Unavailable,
        }
    }
}

/// Mail that comes back to its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounce {
    /// Who sent it, and is told.
    pub sender: Did,
    /// For whom it was.
    pub recipient: Did,
    /// The envelope's id.
    pub id: Uuid,
    /// When this hub accepted it.
    pub accepted_at: Timestamp,
    /// [`Fate::Refused`] or [`Fate::Dead`], with the code.
    pub fate: Fate,
}

/// Senders could not be told, for now.
#[derive(Debug, thiserror::Error)]
#[error("the sender cannot be told")]
pub struct BounceError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Who tells senders of mail that comes back.
#[async_trait]
pub trait Bounces: Debug + Send + Sync {
    /// Tells the sender. It may be called again for the same message, since it comes before the message leaves the outbox: a
    /// bounce has an id that follows from the message. An error keeps the message in the outbox for another attempt, so what
    /// will never work (a mailbox that is full, a sender who is gone) is no error.
    async fn bounce(&self, bounce: Bounce) -> Result<(), BounceError>;
}

/// Tells nobody: the message's status has to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBounces;

#[async_trait]
impl Bounces for NoBounces {
    async fn bounce(&self, _bounce: Bounce) -> Result<(), BounceError> {
        Ok(())
    }
}
