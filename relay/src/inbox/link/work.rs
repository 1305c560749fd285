//! The pieces of work of one session that wait for the store, and what follows when one is done.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

use aip_protocol::time::Timestamp;

use super::{Link, Output};
use crate::inbox::{Inbox, Item};
use crate::limits::ACK_ALSO_MAX;
use crate::mailbox::{AckOutcome, Attempt, Fetch, MailboxId, MailboxStore, StoreError, StoredMessage};
use crate::neighbours::Taken;
use crate::presence::Bell;
use crate::session::{Done, Elsewhere, Event, Found, SessionId};

type Work<T> = Option<Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>>;

/// Work under way, one piece of each kind at most.
#[derive(Default)]
pub(super) struct Works {
    reading: Work<Vec<StoredMessage>>,
    offering: Work<Offering>,
    acking: Work<AckOutcome>,
    burying: Work<()>,
    checking: Work<bool>,
}

/// What became of messages that were to be offered.
pub(super) struct Offering {
    /// In the hands of other processes.
    taken: Vec<Taken>,
    /// Those of the others.
    attempts: Vec<Attempt>,
}

/// What has come back.
pub(super) enum Came {
    Woken,
    Read(Result<Vec<StoredMessage>, StoreError>),
    Offered(Result<Offering, StoreError>),
    Acked(Result<AckOutcome, StoreError>),
    Buried(Result<(), StoreError>),
    Checked(Result<bool, StoreError>),
}

impl Works {
    /// Waits for whatever is ready first. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self, bell: &Bell) -> Came {
        tokio::select! {
            biased;
            outcome = finished(&mut self.acking) => Came::Acked(outcome),
            outcome = finished(&mut self.checking) => Came::Checked(outcome),
            outcome = finished(&mut self.offering) => Came::Offered(outcome),
            outcome = finished(&mut self.reading) => Came::Read(outcome),
            outcome = finished(&mut self.burying) => Came::Buried(outcome),
            () = bell.rung() => Came::Woken,
        }
    }

    /// Whether something is under way that the agent has asked for.
    pub(super) fn is_settling(&self) -> bool {
        self.acking.is_some() || self.burying.is_some() || self.checking.is_some()
    }

    /// Counts the offers of messages; of those for a session that shares, after they were claimed.
    pub(super) fn offer(
        &mut self,
        inbox: &Inbox,
        mailbox: MailboxId,
        mut seqs: Vec<u64>,
        (session, share): (SessionId, bool),
    ) {
        let inbox = inbox.clone();
        self.offering = Some(Box::pin(async move {
            let mut taken = Vec::new();
            if share {
                taken = inbox.presence.claim(&mailbox, &seqs).await;
                seqs.retain(|seq| !is_among(&taken, *seq));
            }
            let attempts = if seqs.is_empty() {
                Vec::new()
            } else {
                inbox.store.offer(&mailbox, &seqs, session.as_u64()).await?
            };
            Ok(Offering { taken, attempts })
        }));
    }

    pub(super) fn ack(&mut self, inbox: &Inbox, mailbox: MailboxId, upto: u64, also: Vec<u64>) {
        let (inbox, now) = (inbox.clone(), inbox.clock.now());
        self.acking = Some(Box::pin(async move {
            let outcome = ack_all(&*inbox.store, &mailbox, upto, &also, now).await?;
            if let AckOutcome::Acked(acked) = &outcome {
                inbox.presence.session_settled(&mailbox, upto, also, acked.floor);
            }
            Ok(outcome)
        }));
    }

    /// Asks the store whether `seq` was ever offered.
    pub(super) fn check(&mut self, inbox: &Inbox, mailbox: MailboxId, seq: u64) {
        let inbox = inbox.clone();
        self.checking = Some(Box::pin(async move {
            let state = inbox.store.state(&mailbox).await?;
            inbox.was_offered(&mailbox, seq, &state).await
        }));
    }

    fn read(&mut self, inbox: &Inbox, mailbox: MailboxId, fetch: Fetch) {
        let store = Arc::clone(&inbox.store);
        self.reading = Some(Box::pin(async move { store.fetch(&mailbox, fetch).await }));
    }

    fn bury(&mut self, inbox: &Inbox, mailbox: MailboxId, seq: u64, code: String) {
        let inbox = inbox.clone();
        self.burying = Some(Box::pin(async move { inbox.bury(&mailbox, seq, &code).await }));
    }
}

impl Link {
    /// Starts the work that can start.
    pub(super) fn begin(&mut self) {
        let mailbox = *self.attached.mailbox();
        if self.out.is_empty() && !self.sending.is_empty() {
            // Asked for more: all before has been sent.
            let seqs = std::mem::take(&mut self.sending);
            self.done(Done::Sent(seqs));
        }
        let is_free = self.works.offering.is_none() && self.works.reading.is_none() && self.out.is_empty();
        if let Some(fetch) = self.wanted.take_if(|_| is_free) {
            self.works.read(&self.inbox, mailbox, fetch);
        }
        let burial = if self.works.burying.is_none() {
            self.burials.pop_front()
        } else {
            None
        };
        if let Some((seq, code)) = burial {
            self.works.bury(&self.inbox, mailbox, seq, code);
        }
    }

    pub(super) fn finish(&mut self, came: Came) {
        match came {
            Came::Woken => self.tick(),
            Came::Read(Ok(messages)) => {
                let found = messages.iter().map(found).collect();
                self.in_hand = messages;
                self.done(Done::Fetched(found));
                if self.works.offering.is_none() {
                    self.in_hand = Vec::new();
                }
            }
            Came::Read(Err(error)) => {
                self.failed("read", &error);
                self.done(Done::FetchFailed);
            }
            Came::Offered(Ok(offering)) => self.offered(&offering),
            Came::Offered(Err(error)) => {
                self.failed("offer", &error);
                let messages = std::mem::take(&mut self.in_hand);
                self.done(Done::OfferFailed(
                    messages.iter().map(|message| message.seq).collect(),
                ));
            }
            Came::Acked(Ok(AckOutcome::Acked(acked))) => {
                let floor = self.inbox.told(acked);
                self.done(Done::Acked(floor));
            }
            // The machine acks nothing beyond what was offered: the store knows less than it did.
            Came::Acked(Ok(AckOutcome::BeyondEnd | AckOutcome::TooMany)) => self.done(Done::AckFailed),
            Came::Acked(Err(error)) => {
                self.failed("ack", &error);
                self.done(Done::AckFailed);
            }
            // The machine has been told where the burial was made.
            Came::Buried(Ok(())) => {}
            Came::Buried(Err(error)) => self.failed("bury", &error),
            Came::Checked(outcome) => self.checked(outcome),
        }
    }

    fn offered(&mut self, offering: &Offering) {
        let Offering { taken, attempts } = offering;
        let mut messages = std::mem::take(&mut self.in_hand);
        messages.retain(|message| !is_among(taken, message.seq));
        self.sending = messages.iter().map(|message| message.seq).collect();
        let items = messages.into_iter().zip(attempts).map(|(message, attempt)| Item {
            seq: message.seq,
            attempt: attempt.attempt,
            accepted_at: message.accepted_at,
            wire: message.wire,
        });
        self.out.extend(items.map(Output::Message));
        if !taken.is_empty() {
            let taken = taken.iter().map(|taken| (taken.seq, taken.hold));
            self.done(Done::Taken(taken.collect()));
        }
    }

    fn checked(&mut self, outcome: Result<bool, StoreError>) {
        let Some((highest, frame)) = self.unchecked.take() else {
            return;
        };
        match outcome {
            Ok(true) => self.handle(Event::Elsewhere(Elsewhere::Offered(highest))),
            Ok(false) => {}
            // The machine refuses what it cannot vouch for; the message is offered again and can be acked then.
            Err(error) => self.failed("check", &error),
        }
        self.handle(Event::Said {
            session: self.session,
            frame,
        });
    }

    fn failed(&self, what: &'static str, error: &StoreError) {
        tracing::warn!(agent.did = %self.owner, what, %error, "The store failed a session; it is tried again");
    }
}

fn is_among(taken: &[Taken], seq: u64) -> bool {
    taken.iter().any(|taken| taken.seq == seq)
}

fn found(message: &StoredMessage) -> Found {
    Found {
        seq: message.seq,
        attempts: message.attempts,
        sessions: message.sessions,
        bytes: u64::try_from(message.wire.len()).unwrap_or(u64::MAX),
    }
}

/// One ack, in as many pieces as the store takes. Each piece is durable by itself and may be repeated.
async fn ack_all(
    store: &dyn MailboxStore,
    mailbox: &MailboxId,
    upto: u64,
    also: &[u64],
    now: Timestamp,
) -> Result<AckOutcome, StoreError> {
    let (first, rest) = also.split_at(also.len().min(ACK_ALSO_MAX));
    let mut all = match store.ack(mailbox, upto, first, now).await? {
        AckOutcome::Acked(acked) => acked,
        refused => return Ok(refused),
    };
    for piece in rest.chunks(ACK_ALSO_MAX) {
        match store.ack(mailbox, upto, piece, now).await? {
            AckOutcome::Acked(acked) => {
                all.floor = acked.floor;
                all.messages.extend(acked.messages);
            }
            refused => return Ok(refused),
        }
    }
    Ok(AckOutcome::Acked(all))
}

/// The outcome of a piece of work, or never.
async fn finished<T>(work: &mut Work<T>) -> Result<T, StoreError> {
    match work {
        Some(future) => {
            let outcome = future.as_mut().await;
            *work = None;
            outcome
        }
        None => pending().await,
    }
}
