//! From admitted to durable: the recipient's endpoint first where it has one, else its mailbox.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::RouteMode;

use super::outcome::{SendError, Sent, Submission};
use super::{Admitted, Relay};
use crate::admission::{LocalAgent, offered_until};
use crate::dedup::Seen;
use crate::direct::Attempt;
use crate::limits::FULL_RETRY_SECS;
use crate::mailbox::{Append, AppendOutcome, Full, Health, MailboxId, Quota, Route, Status, StoreError};
use crate::presence::StatusUpdate;

/// The endpoint to call first. A suspended agent's mail only waits.
pub(super) fn endpoint_of(recipient: &LocalAgent) -> Option<String> {
    let head = recipient.identity.head();
    match head.route_mode {
        RouteMode::Direct if !recipient.suspended => head.endpoint.clone(),
        _ => None,
    }
}

impl Relay {
    /// Delivers or stores one message, counts it and tells whom it concerns.
    pub(super) async fn deliver(&self, admitted: Admitted) -> Result<Submission, SendError> {
        let result = match &admitted.endpoint {
            Some(endpoint) => self.deliver_direct(&admitted, endpoint).await,
            None => self.record(&admitted, Route::Mailbox).await,
        };
        self.stats.count(&result);
        result
    }

    /// Calls the endpoint unless the message is known already. Recorded as delivered only after a 2xx; everything
    /// else goes to the mailbox at once.
    async fn deliver_direct(&self, admitted: &Admitted, endpoint: &str) -> Result<Submission, SendError> {
        let candidate = &admitted.candidate;
        let (key, digest) = (candidate.envelope.dedup_key(), candidate.envelope.digest());
        let _turn = self.direct.enter(key).await;
        match self.seams.store.seen(key, digest, self.seams.clock.now()).await? {
            Some(Seen::Duplicate { seq, route }) => {
                return Ok(submission(admitted, Sent::Duplicate, route, seq));
            }
            Some(Seen::Reused) => return Err(id_reused().into()),
            None => {}
        }
        if self.seams.store.health() != Health::Ready {
            // Called now, the endpoint would be called again by every retry.
            return Err(StoreError::Unavailable(
                "it takes nothing now, so the endpoint was not called".into(),
            )
            .into());
        }
        let route = match self.direct.attempt(endpoint, candidate.wire.clone()).await {
            Attempt::Delivered => Route::Direct,
            Attempt::Failed => {
                self.stats.count_direct_failed();
                Route::Mailbox
            }
            Attempt::Skipped => {
                self.stats.count_direct_skipped();
                Route::Mailbox
            }
        };
        self.record(admitted, route).await
    }

    /// Appends to the store and turns its outcome into an answer.
    async fn record(&self, admitted: &Admitted, route: Route) -> Result<Submission, SendError> {
        let outcome = self.seams.store.append(self.append(admitted, route)).await?;
        match outcome {
            AppendOutcome::Stored { seq } => {
                self.announce(admitted, route, seq);
                let status = match route {
                    Route::Mailbox => Sent::Stored,
                    Route::Direct => Sent::Delivered,
                };
                Ok(submission(admitted, status, route, seq))
            }
            AppendOutcome::Duplicate { seq, route } => Ok(submission(admitted, Sent::Duplicate, route, seq)),
            AppendOutcome::Reused => Err(id_reused().into()),
            AppendOutcome::Full(full) => Err(mailbox_full(full, admitted.quota).into()),
        }
    }

    fn append(&self, admitted: &Admitted, route: Route) -> Append {
        let candidate = &admitted.candidate;
        let envelope = &candidate.envelope;
        Append {
            recipient: envelope.to.clone(),
            sender: envelope.from.clone(),
            id: envelope.id,
            dedup_key: envelope.dedup_key(),
            digest: envelope.digest(),
            remember_until: candidate.remember_until,
            accepted_at: candidate.now,
            expires_at: offered_until(envelope, candidate.now, self.config.retention),
            wire: candidate.wire.clone(),
            route,
            quota: admitted.quota,
        }
    }

    /// Tells the recipient's sessions and the sender's, now that it is durable.
    fn announce(&self, admitted: &Admitted, route: Route, seq: Option<u64>) {
        let envelope = &admitted.candidate.envelope;
        let presence = &self.seams.presence;
        let at = self.seams.clock.now();
        let status = match (route, seq) {
            (Route::Mailbox, Some(seq)) => {
                presence.wake(&MailboxId::of(&envelope.to), seq, at);
                Status::Stored
            }
            (Route::Mailbox, None) => Status::Stored,
            (Route::Direct, _) => Status::Delivered,
        };
        let update = StatusUpdate {
            id: envelope.id,
            to: envelope.to.clone(),
            status,
            code: None,
            at,
        };
        presence.status(&MailboxId::of(&envelope.from), update);
    }
}

fn submission(admitted: &Admitted, status: Sent, route: Route, seq: Option<u64>) -> Submission {
    Submission {
        id: admitted.candidate.envelope.id,
        status,
        route,
        seq,
    }
}

fn id_reused() -> Refusal {
    let detail = "Another envelope was sent under this id; give a changed message a new id.";
    Refusal::new(ErrorCode::IdReused, detail)
}

fn mailbox_full(full: Full, quota: Quota) -> Refusal {
    let (limit, what) = match full {
        Full::MailboxMessages => (
            u64::from(quota.mailbox_messages),
            "messages in the recipient's mailbox",
        ),
        Full::MailboxBytes => (quota.mailbox_bytes, "bytes in the recipient's mailbox"),
        Full::Sender => (
            u64::from(quota.sender_messages),
            "messages of yours in the recipient's mailbox",
        ),
    };
    let detail = format!("At most {limit} {what} may wait; try again once the recipient has fetched some.");
    Refusal::new(ErrorCode::MailboxFull, detail)
        .with("scope", full.scope())
        .with("limit", limit)
        .retry_after(FULL_RETRY_SECS)
}
