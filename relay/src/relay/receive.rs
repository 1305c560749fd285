//! What comes in from hubs of other domains (spec §8), once the sender's signature was verified: from then on like mail
//! of our own agents, but for its age, which the first hub has judged.

use std::sync::Arc;
use std::time::Duration;

use aip_federation::inbound::{Local, Reception};
use aip_protocol::envelope::check_expiry;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use aip_protocol::peer::AdmittedItem;
use async_trait::async_trait;
use bytes::Bytes;

use super::deliver;
use super::outcome::{SendError, Sent};
use super::outlive::Outlive;
use super::{Admitted, Relay};
use crate::admission::{self, Candidate};
use crate::limits::{DEDUP_LIFE_SECS, FULL_RETRY_SECS, UNAVAILABLE_RETRY_SECS};

impl Relay {
    /// Takes in one item of a peer: its envelope is whole, its domains are right and its sender's signature was verified.
    /// `wire` is the envelope as it came in, which its recipient gets.
    ///
    /// The recipient must be known and not ended, the sender not blocked, the mailbox not full. The envelope is remembered
    /// for as long as the longest dedup record lives, from now on.
    pub async fn receive(self: &Arc<Self>, item: AdmittedItem, wire: Bytes) -> Reception {
        let received = match self.admit_received(item, wire).await {
            Ok(admitted) => {
                let relay = Arc::clone(self);
                Outlive::new(&self.tasks, async move { relay.carry(&admitted).await }).await
            }
            Err(error) => Err(error),
        };
        match received {
            Ok(submission) if submission.status == Sent::Duplicate => Reception::Duplicate,
            Ok(_) => Reception::Stored,
            Err(error) => reception_of(&error),
        }
    }

    async fn admit_received(&self, item: AdmittedItem, wire: Bytes) -> Result<Admitted, SendError> {
        let (config, now, envelope) = (&self.config, self.seams.clock.now(), item.envelope);
        admission::check_size(&wire, config.envelope_bytes_max)?;
        check_expiry(envelope.expires_at, now)?;
        let recipient = self.seams.identities.agent(&envelope.to).await?;
        let recipient = admission::check_recipient(recipient.as_ref())?;
        config.blocklist.check(&envelope.from)?;
        Ok(Admitted {
            quota: recipient.quota.unwrap_or(config.quota),
            way: deliver::way_to(recipient),
            retention: config.retention,
            candidate: Candidate {
                envelope,
                wire,
                remember_until: now + Duration::from_secs(DEDUP_LIFE_SECS),
                now,
            },
        })
    }
}

/// What the peer is told instead of what a sender of our own would be.
fn reception_of(error: &SendError) -> Reception {
    match error {
        SendError::Refused(Refusal {
            code: ErrorCode::MailboxFull,
            ..
        }) => Reception::Retry {
            code: ErrorCode::MailboxFull,
            after_secs: FULL_RETRY_SECS,
        },
        SendError::Refused(refusal) => Reception::Refused(refusal.code),
        SendError::Identities(_) | SendError::Store(_) | SendError::Interrupted => {
            tracing::warn!(error = %error, "A message of a peer was not taken");
            Reception::Retry {
                code: ErrorCode::Unavailable,
                after_secs: UNAVAILABLE_RETRY_SECS,
            }
        }
    }
}

/// The agents of this hub, as federation sees them.
#[derive(Debug)]
pub struct OwnAgents(Arc<Relay>);

impl OwnAgents {
    /// Those that this relay delivers to.
    pub fn new(relay: Arc<Relay>) -> Self {
        Self(relay)
    }
}

#[async_trait]
impl Local for OwnAgents {
    async fn deliver(&self, item: AdmittedItem, wire: Bytes) -> Reception {
        self.0.receive(item, wire).await
    }

    /// Who cannot be looked up now may well exist.
    async fn knows(&self, did: &Did) -> bool {
        let Relay { config, seams, .. } = &*self.0;
        admission::is_local(did, &config.domain) && !matches!(seams.identities.agent(did).await, Ok(None))
    }
}
