//! Sending: sealed once, then the same bytes until the hub has said yes or no (spec §5).

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::time::sleep;

use super::Client;
use crate::error::{Error, Result};
use crate::identities::Freshness;
use crate::limits::{BATCH_BYTES_MAX, BATCH_MESSAGES_MAX};
use crate::message::{Draft, SealedEnvelope};
use crate::session::frame::sent_outcome;
use crate::transport::{AIP_JSON, Request};
use crate::wire::Sent;

const SENDING: &str = "sending a message";
const MESSAGES: &str = "/api/v1/messages";

impl Client {
    /// Seals a message for its recipient's newest key, signs it, and gives it to the hub. On a broken line, an overloaded
    /// hub or an unknown outcome the same bytes go out again, until the hub has answered or the window is over. When this
    /// returns `Ok`, the hub holds the message durably; a `duplicate` is as good as the first yes.
    ///
    /// # Errors
    /// [`Error::Refused`] when the hub said no, [`Error::OutcomeUnknown`] when the window ended without an answer,
    /// the error of the last attempt when none of them can have reached the hub, [`Error::Invalid`] for a draft that no
    /// hub would take.
    pub async fn send(&self, draft: &Draft) -> Result<Sent> {
        self.send_sealed(draft).await.map(|(_, sent)| sent)
    }

    /// The same, with the envelope that the hub took.
    pub(super) async fn send_sealed(&self, draft: &Draft) -> Result<(SealedEnvelope, Sent)> {
        // With the id fixed here, a message that has to be sealed again is still the same message.
        let draft = draft.clone().with_fixed_id(self.entropy());
        let sealed = self.seal_patiently(&draft).await?;
        let outcome = self.submit(&sealed).await;
        match outcome {
            Err(error) if is_stale_key(&error) => {
                self.refresh_own_keys().await?;
                let again = self.seal(&draft).await?;
                // The same key would be refused again; a refusal leaves no record, so the id may be used again.
                if again.envelope().kid == sealed.envelope().kid {
                    return Err(error);
                }
                let sent = self.submit(&again).await;
                let sent = sent.map_err(|error| after_sealing_again(&again, error))?;
                Ok((again, sent))
            }
            outcome => outcome.map(|sent| (sealed, sent)),
        }
    }

    /// Seals and signs, for where the recipient lives now, without sending: to be written down first, or sent over a socket.
    pub async fn seal(&self, draft: &Draft) -> Result<SealedEnvelope> {
        let keys = self.keys()?;
        let identity = self.look_up(&draft.recipient()?, Freshness::Remembered).await?;
        let identity = self.follow(identity).await;
        let to = identity.did().clone();
        let deactivated = || {
            Refusal::new(
                ErrorCode::RecipientDeactivated,
                format!("{} has ended", to.handle()),
            )
        };
        let key = identity
            .sealing_key()
            .filter(|_| !identity.is_deactivated())
            .ok_or_else(deactivated)?;
        let sealed = draft.seal(&keys, (&to, key), self.now(), self.entropy())?;
        if draft.asks_receipt() {
            // Before anything is sent: the receipt may be quicker than the hub's answer.
            self.expect_receipt(&sealed).await?;
        }
        Ok(sealed)
    }

    /// Gives a sealed message to the hub: the same bytes, as often as it takes.
    pub async fn submit(&self, sealed: &SealedEnvelope) -> Result<Sent> {
        let ends_at = sealed.envelope().created_at + self.0.send_window;
        let (mut failures, mut may_have_arrived) = (0, false);
        loop {
            let error = match self.submit_once(sealed).await {
                Ok(sent) => return Ok(sent),
                Err(error) => error,
            };
            if !error.is_transient() {
                return Err(after_refusal(sealed, error, may_have_arrived));
            }
            failures += 1;
            may_have_arrived |= error.leaves_doubt();
            if !self.pause(failures, &error, ends_at).await {
                return Err(if may_have_arrived {
                    unknown(sealed, error)
                } else {
                    error
                });
            }
        }
    }

    /// One attempt, without a retry.
    pub async fn submit_once(&self, sealed: &SealedEnvelope) -> Result<Sent> {
        let request = Request::post(SENDING, MESSAGES, sealed.wire().clone()).media_type(AIP_JSON);
        self.0.transport.call(request).await?.json()
    }

    /// Sends many messages in as few requests as the limits allow; each has its own result, in order.
    ///
    /// # Errors
    /// Those of a single message stand in its place. The call itself fails only where a recipient's identity cannot be
    /// looked up at all or the client has no keys.
    pub async fn send_batch(&self, drafts: &[Draft]) -> Result<Vec<Result<Sent>>> {
        self.keys()?;
        let mut sealed = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let draft = draft.clone().with_fixed_id(self.entropy());
            sealed.push(self.seal_patiently(&draft).await);
        }
        let mut results = Vec::with_capacity(drafts.len());
        let mut batch = Vec::new();
        for outcome in sealed {
            match outcome {
                Ok(envelope) => batch.push(envelope),
                Err(error) => {
                    results.extend(self.submit_batch(&std::mem::take(&mut batch)).await);
                    results.push(Err(error));
                }
            }
        }
        results.extend(self.submit_batch(&batch).await);
        Ok(results)
    }

    /// Gives sealed messages to the hub, up to 100 and 4 MiB at a time. What the hub could not take just now goes out
    /// again by itself.
    pub async fn submit_batch(&self, sealed: &[SealedEnvelope]) -> Vec<Result<Sent>> {
        let mut results = Vec::with_capacity(sealed.len());
        let mut rest = sealed;
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch_length(rest));
            rest = later;
            match self.submit_array(batch).await {
                Ok(answers) => {
                    for (envelope, answer) in batch.iter().zip(answers) {
                        results.push(self.settle_one(envelope, answer).await);
                    }
                }
                // The batch as a whole failed: each message speaks for itself.
                Err(_) => {
                    for envelope in batch {
                        results.push(self.submit(envelope).await);
                    }
                }
            }
        }
        results
    }

    async fn settle_one(&self, envelope: &SealedEnvelope, answer: Result<Sent>) -> Result<Sent> {
        match answer {
            Err(error) if error.is_transient() => self.submit(envelope).await,
            answer => answer,
        }
    }

    async fn submit_array(&self, batch: &[SealedEnvelope]) -> Result<Vec<Result<Sent>>> {
        const DOING: &str = "sending a batch";
        let request = Request::post(DOING, MESSAGES, array_of(batch)).media_type(AIP_JSON);
        let answers: Vec<Map<String, Value>> = self.0.transport.call(request).await?.json()?;
        if answers.len() != batch.len() {
            return Err(Error::answer(
                DOING,
                format_args!("{} results for {}", answers.len(), batch.len()),
            ));
        }
        let outcome = |members| match sent_outcome(members) {
            Ok(outcome) => outcome.map_err(|problem| Error::Refused(Box::new(problem))),
            Err(error) => Err(Error::answer(DOING, error)),
        };
        Ok(answers.into_iter().map(outcome).collect())
    }

    /// Sealing needs the recipient's identity, which a hub that is just starting cannot give yet.
    async fn seal_patiently(&self, draft: &Draft) -> Result<SealedEnvelope> {
        let ends_at = self.now() + self.0.send_window;
        let mut failures = 0;
        loop {
            let error = match self.seal(draft).await {
                Ok(sealed) => return Ok(sealed),
                Err(error) if error.is_transient() => error,
                Err(error) => return Err(error),
            };
            failures += 1;
            if !self.pause(failures, &error, ends_at).await {
                return Err(error);
            }
        }
    }

    /// Waits before the next attempt. False when the window would be over by then.
    pub(super) async fn pause(&self, failures: u32, error: &Error, ends_at: Timestamp) -> bool {
        let delay = self
            .0
            .backoff
            .delay(failures, error.retry_after(), self.entropy());
        if self.now() + delay > ends_at {
            return false;
        }
        if failures == 1 {
            tracing::warn!(error = error.sentence(), until = %ends_at, "it is not done yet; trying again");
        } else {
            tracing::debug!(failures, error = error.sentence(), "trying again");
        }
        sleep(delay).await;
        true
    }

    /// The hub does not know our key: another process may have rotated it, or a change of ours is half done.
    pub(super) async fn refresh_own_keys(&self) -> Result<()> {
        self.finish_change().await.map(drop)
    }
}

/// A hub that says "too old" after an attempt whose outcome nobody knows has not said that it lacks the message.
fn after_refusal(sealed: &SealedEnvelope, error: Error, may_have_arrived: bool) -> Error {
    let is_too_late = error.is_code(ErrorCode::CreatedAtOutOfWindow) || error.is_code(ErrorCode::Expired);
    if may_have_arrived && is_too_late {
        return unknown(sealed, error);
    }
    error
}

/// Other bytes under our id: an earlier attempt with the old key has arrived after all, or the caller's own id is spent.
fn after_sealing_again(sealed: &SealedEnvelope, error: Error) -> Error {
    if error.is_code(ErrorCode::IdReused) {
        return unknown(sealed, error);
    }
    error
}

fn unknown(sealed: &SealedEnvelope, last: Error) -> Error {
    Error::OutcomeUnknown {
        id: sealed.id(),
        last: Box::new(last),
    }
}

pub(super) fn is_stale_key(error: &Error) -> bool {
    error.is_code(ErrorCode::KeyUnknown) || error.is_code(ErrorCode::SignatureInvalid)
}

/// How many of these fit into one request; at least one.
fn batch_length(sealed: &[SealedEnvelope]) -> usize {
    let mut bytes = 0;
    let fits = sealed.iter().take(BATCH_MESSAGES_MAX).take_while(|envelope| {
        bytes += envelope.wire().len() + 1;
        bytes <= BATCH_BYTES_MAX
    });
    fits.count().max(1)
}

/// A JSON array of the very bytes of each.
fn array_of(batch: &[SealedEnvelope]) -> Bytes {
    let mut array = Vec::with_capacity(
        batch
            .iter()
            .map(|envelope| envelope.wire().len() + 1)
            .sum::<usize>()
            + 1,
    );
    for (index, envelope) in batch.iter().enumerate() {
        array.push(if index == 0 { b'[' } else { b',' });
        array.extend_from_slice(envelope.wire());
    }
    array.push(b']');
    array.into()
}
