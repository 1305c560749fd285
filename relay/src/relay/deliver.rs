//! From admitted to durable: the recipient's endpoint first where it has one, else its mailbox; the outbox for another hub.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::RouteMode;

use super::outcome::{SendError, Sent, Submission};
use super::{Admitted, Relay, Way};
use crate::admission::{LocalAgent, is_local, offered_until};
use crate::dedup::Seen;
use crate::direct::Attempt;
use crate::limits::FULL_RETRY_SECS;
use crate::mailbox::{Append, AppendOutcome, Full, Health, MailboxId, Quota, Route, Status, StoreError};
use crate::presence::StatusUpdate;

/// Whether there is an endpoint to call first. A suspended agent's mail only waits.
pub(super) fn way_to(recipient: &LocalAgent) -> Way {
    let head = recipient.identity.head();
    match (head.route_mode, &head.endpoint) {
        (RouteMode::Direct, Some(endpoint)) if !recipient.suspended => Way::Direct(endpoint.clone()),
        _ => Way::Mailbox,
    }
}

impl Relay {
    /// Delivers or stores one message, counts it and tells whom it concerns.
    pub(super) async fn deliver(&self, admitted: Admitted) -> Result<Submission, SendError> {
        let result = self.carry(&admitted).await;
        self.stats.count(&result);
        result
    }

    /// The same without the count.
    pub(super) async fn carry(&self, admitted: &Admitted) -> Result<Submission, SendError> {
        match &admitted.way {
            Way::Direct(endpoint) => self.deliver_direct(admitted, endpoint).await,
            Way::Mailbox => self.record(admitted, Route::Mailbox).await,
            Way::Peer(_) => self.record(admitted, Route::Peer).await,
        }
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
        let outcome = self.seams.store.append(append_of(admitted, route)).await?;
        match outcome {
            AppendOutcome::Stored { seq } => {
                self.announce(admitted, route, seq);
                let status = match route {
                    Route::Mailbox => Sent::Stored,
                    Route::Direct => Sent::Delivered,
                    Route::Peer => Sent::Queued,
                };
                Ok(submission(admitted, status, route, seq))
            }
            AppendOutcome::Duplicate { seq, route } => Ok(submission(admitted, Sent::Duplicate, route, seq)),
            AppendOutcome::Reused => Err(id_reused().into()),
            AppendOutcome::Full(full) => Err(full_refusal(full, route, admitted.quota).into()),
        }
    }

    /// Tells the recipient's sessions or who sends to its hub, and the sender's sessions, now that it is durable.
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
            (Route::Peer, _) => {
                if let (Way::Peer(peer), Some(peers)) = (&admitted.way, &self.seams.peers) {
                    peers.queued(peer);
                }
                Status::Queued
            }
        };
        if !is_local(&envelope.from, &self.config.domain) {
            // The sender of a peer's item is nobody's session here.
            return;
        }
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

fn append_of(admitted: &Admitted, route: Route) -> Append {
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
        expires_at: offered_until(envelope, candidate.now, admitted.retention),
        wire: candidate.wire.clone(),
        route,
        quota: admitted.quota,
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

fn full_refusal(full: Full, route: Route, quota: Quota) -> Refusal {
    let (place, relief) = match route {
        Route::Mailbox | Route::Direct => ("in the recipient's mailbox", "the recipient has fetched some"),
        Route::Peer => ("for the recipient's hub", "that hub has taken some"),
    };
    let (limit, what) = match full {
        Full::MailboxMessages => (u64::from(quota.mailbox_messages), "messages"),
        Full::MailboxBytes => (quota.mailbox_bytes, "bytes"),
        Full::Sender => (u64::from(quota.sender_messages), "messages of yours"),
    };
    let detail = format!("At most {limit} {what} {place} may wait; try again once {relief}.");
    Refusal::new(ErrorCode::MailboxFull, detail)
        .with("scope", full.scope())
        .with("limit", limit)
        .retry_after(FULL_RETRY_SECS)
}
