//! One live session: carries out the effects of its agent's machine and hands out what goes to the agent.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::{Inbox, Item, Join};
use crate::limits::{ACK_ALSO_MAX, BURIALS_MAX};
use crate::mailbox::{
    AckOutcome, Attempt, Epoch, Fetch, MailboxId, MailboxStore, Select, StoreError, StoredMessage,
};
use crate::presence::{Attached, Bell, CloseReason, StatusUpdate};
use crate::session::{Effect, Event, Found, Position, SessionId, Wanted};

/// What the agent learns first (spec §6, frame `ready`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Names the connection.
    pub session: SessionId,
    /// The life of the store.
    pub epoch: Epoch,
    /// Everything up to here is settled.
    pub floor: u64,
    /// Messages that wait.
    pub pending: u64,
}

/// What goes to the agent next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A message.
    Message(Item),
    /// Acks are durable; the mailbox's floor.
    Acked(u64),
    /// The agent's last frame changed nothing.
    Refused {
        /// Why.
        code: ErrorCode,
        /// What to do about it.
        detail: &'static str,
    },
    /// News of a message that the agent sent.
    Status(Arc<StatusUpdate>),
    /// The session is over.
    Close(CloseReason),
}

type Work<T> = Option<Pin<Box<dyn Future<Output = T> + Send>>>;

/// What has come back from the store.
enum Done {
    Woken,
    Read(Result<Vec<StoredMessage>, StoreError>),
    Offered(Result<Vec<Attempt>, StoreError>),
    Acked(Result<AckOutcome, StoreError>),
    Buried(Result<(), StoreError>),
    Checked(Result<bool, StoreError>),
}

/// A session of one agent, from [`Inbox::join`] until it is dropped.
///
/// Of each kind of work at most one piece is under way; a batch is read only when the one before it was handed out, so
/// a session that is not asked for more holds one batch at most.
pub struct Link {
    inbox: Inbox,
    attached: Attached,
    owner: Did,
    session: SessionId,
    epoch: Epoch,
    bell: Arc<Bell>,
    out: VecDeque<Output>,
    /// The next read, which waits for `out` to empty.
    wanted: Option<Fetch>,
    reading: Work<Result<Vec<StoredMessage>, StoreError>>,
    /// Messages whose offer is being counted.
    in_hand: Vec<StoredMessage>,
    offering: Work<Result<Vec<Attempt>, StoreError>>,
    /// Messages that are being handed out.
    sending: Vec<u64>,
    acking: Work<Result<AckOutcome, StoreError>>,
    burials: VecDeque<(u64, String)>,
    burying: Work<Result<(), StoreError>>,
    /// A frame that names messages which only the store can vouch for.
    unchecked: Option<(u64, Event)>,
    checking: Work<Result<bool, StoreError>>,
}

impl Link {
    pub(super) fn new(inbox: Inbox, attached: Attached, owner: Did, join: Join, position: Position) -> Self {
        let epoch = position.epoch.clone();
        let Join {
            session,
            share,
            credit,
        } = join;
        let (bell, effects) = attached.join(inbox.clock.now(), session, share, credit, position);
        let mut link = Self {
            inbox,
            attached,
            owner,
            session,
            epoch,
            bell,
            out: VecDeque::new(),
            wanted: None,
            reading: None,
            in_hand: Vec::new(),
            offering: None,
            sending: Vec::new(),
            acking: None,
            burials: VecDeque::new(),
            burying: None,
            unchecked: None,
            checking: None,
        };
        link.carry_out(effects);
        link
    }

    /// Whose session it is.
    pub fn owner(&self) -> &Did {
        &self.owner
    }

    /// Names the session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The epoch of all messages of this session.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The next thing for the agent. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Output {
        loop {
            if let Some(output) = self.take_output() {
                return output;
            }
            self.begin();
            let done = self.work().await;
            self.finish(done);
        }
    }

    /// How long until [`Self::tick`] should be called.
    pub fn next_due(&self) -> Option<Duration> {
        self.attached.next_due(self.inbox.clock.now(), self.session)
    }

    /// Time has passed.
    pub fn tick(&mut self) {
        self.handle(Event::Poll {
            session: self.session,
        });
    }

    /// Whether frames of the agent should wait until earlier ones have had their effect.
    pub fn is_backlogged(&self) -> bool {
        self.checking.is_some() || self.burials.len() >= BURIALS_MAX || self.attached.is_backlogged()
    }

    /// The frame `ack`.
    pub fn ack(&mut self, epoch: String, upto: u64, also: Vec<u64>) {
        let highest = also.iter().copied().fold(upto, u64::max);
        self.answer(
            highest,
            Event::Ack {
                session: self.session,
                epoch,
                upto,
                also,
            },
        );
    }

    /// The frame `nak`.
    pub fn nak(&mut self, epoch: String, seq: u64, retry_after: Duration) {
        self.answer(
            seq,
            Event::Nak {
                session: self.session,
                epoch,
                seq,
                retry_after,
            },
        );
    }

    /// The frame `reject`.
    pub fn reject(&mut self, epoch: String, seq: u64, code: String) {
        self.answer(
            seq,
            Event::Reject {
                session: self.session,
                epoch,
                seq,
                code,
            },
        );
    }

    /// The frame `credit`.
    pub fn credit(&mut self, credit: u32) {
        self.handle(Event::Credit {
            session: self.session,
            credit,
        });
    }

    /// Carries out the acks and rejects that were taken in. To be called, with a limit, before the link is dropped.
    pub async fn settle(&mut self) {
        self.wanted = None;
        self.out.clear();
        loop {
            self.begin();
            if self.acking.is_none() && self.burying.is_none() && self.checking.is_none() {
                return;
            }
            let done = self.work().await;
            self.finish(done);
            self.out.clear();
            self.wanted = None;
        }
    }

    fn answer(&mut self, highest: u64, event: Event) {
        if !self.attached.is_offer_unknown(highest) {
            return self.handle(event);
        }
        let (inbox, mailbox) = (self.inbox.clone(), *self.attached.mailbox());
        self.unchecked = Some((highest, event));
        self.checking = Some(Box::pin(async move {
            let state = inbox.store.state(&mailbox).await?;
            inbox.was_offered(&mailbox, highest, &state).await
        }));
    }

    fn handle(&mut self, event: Event) {
        let effects = self.attached.handle(self.inbox.clock.now(), event);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Fetch {
                    wanted,
                    max_messages,
                    max_bytes,
                } => {
                    let select = match wanted {
                        Wanted::After(seq) => Select::After(seq),
                        Wanted::Seqs(seqs) => Select::Seqs(seqs),
                    };
                    let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
                    let now = self.inbox.clock.now();
                    self.wanted = Some(Fetch {
                        select,
                        max_messages,
                        max_bytes,
                        now,
                    });
                }
                Effect::Deliver { seqs } => self.offer(seqs),
                Effect::Ack { upto, also } => self.make_durable(upto, also),
                Effect::Bury { seq, code } => self.burials.push_back((seq, code)),
                Effect::Acked { floor } => self.out.push_back(Output::Acked(floor)),
                Effect::Refused { code, detail } => self.out.push_back(Output::Refused { code, detail }),
                // Carried out where all sessions of the agent are known.
                Effect::Wake(_) | Effect::Replaced(_) => {}
            }
        }
    }

    fn take_output(&mut self) -> Option<Output> {
        if self.bell.is_closing() {
            let reason = self
                .attached
                .close_reason(self.session)
                .unwrap_or(CloseReason::Replaced);
            return Some(Output::Close(reason));
        }
        self.out
            .pop_front()
            .or_else(|| self.attached.next_status(self.session).map(Output::Status))
    }

    /// Starts the work that can start.
    fn begin(&mut self) {
        if self.out.is_empty() && !self.sending.is_empty() {
            // Asked for more: all before has been sent.
            let seqs = std::mem::take(&mut self.sending);
            self.handle(Event::Sent { session: self.session, seqs });
        }
        if self.offering.is_none() && self.reading.is_none() && self.out.is_empty() {
            if let Some(fetch) = self.wanted.take() {
                let (store, mailbox) = (Arc::clone(&self.inbox.store), *self.attached.mailbox());
                self.reading = Some(Box::pin(async move { store.fetch(&mailbox, fetch).await }));
            }
        }
        if self.burying.is_none() {
            if let Some((seq, code)) = self.burials.pop_front() {
                let (inbox, mailbox) = (self.inbox.clone(), *self.attached.mailbox());
                self.burying = Some(Box::pin(async move { inbox.bury(&mailbox, seq, &code).await }));
            }
        }
    }

    fn offer(&mut self, seqs: Vec<u64>) {
        self.in_hand
            .retain(|message| seqs.binary_search(&message.seq).is_ok());
        let (store, mailbox) = (Arc::clone(&self.inbox.store), *self.attached.mailbox());
        let session = self.session.as_u64();
        self.offering = Some(Box::pin(
            async move { store.offer(&mailbox, &seqs, session).await },
        ));
    }

    fn make_durable(&mut self, upto: u64, also: Vec<u64>) {
        let (store, mailbox) = (Arc::clone(&self.inbox.store), *self.attached.mailbox());
        let now = self.inbox.clock.now();
        self.acking = Some(Box::pin(async move {
            ack_all(&*store, &mailbox, upto, &also, now).await
        }));
    }

    /// Waits for whatever is ready first.
    async fn work(&mut self) -> Done {
        tokio::select! {
            biased;
            outcome = finished(&mut self.acking) => Done::Acked(outcome),
            outcome = finished(&mut self.checking) => Done::Checked(outcome),
            outcome = finished(&mut self.offering) => Done::Offered(outcome),
            outcome = finished(&mut self.reading) => Done::Read(outcome),
            outcome = finished(&mut self.burying) => Done::Buried(outcome),
            () = self.bell.rung() => Done::Woken,
        }
    }

    fn finish(&mut self, done: Done) {
        let session = self.session;
        match done {
            Done::Woken => self.handle(Event::Poll { session }),
            Done::Read(Ok(messages)) => {
                let found = messages.iter().map(found).collect();
                self.in_hand = messages;
                self.handle(Event::Fetched { session, found });
                if self.offering.is_none() {
                    self.in_hand = Vec::new();
                }
            }
            Done::Read(Err(error)) => {
                self.failed("read", &error);
                self.handle(Event::FetchFailed { session });
            }
            Done::Offered(outcome) => self.offered(outcome),
            Done::Acked(Ok(AckOutcome::Acked(acked))) => {
                let floor = self.inbox.told(acked);
                self.handle(Event::AckDone { session, floor });
            }
            // The machine acks nothing beyond what was offered: the store knows less than it did.
            Done::Acked(Ok(AckOutcome::BeyondEnd | AckOutcome::TooMany)) => {
                self.handle(Event::AckFailed { session });
            }
            Done::Acked(Err(error)) => {
                self.failed("ack", &error);
                self.handle(Event::AckFailed { session });
            }
            // The machine has been told where the burial was made.
            Done::Buried(Ok(())) => {}
            Done::Buried(Err(error)) => self.failed("bury", &error),
            Done::Checked(outcome) => self.checked(outcome),
        }
    }

    fn offered(&mut self, outcome: Result<Vec<Attempt>, StoreError>) {
        let messages = std::mem::take(&mut self.in_hand);
        match outcome {
            Ok(attempts) => {
                self.sending = messages.iter().map(|message| message.seq).collect();
                let items = messages.into_iter().zip(attempts).map(|(message, attempt)| Item {
                    seq: message.seq,
                    attempt: attempt.attempt,
                    accepted_at: message.accepted_at,
                    wire: message.wire,
                });
                self.out.extend(items.map(Output::Message));
            }
            Err(error) => {
                self.failed("offer", &error);
                let seqs = messages.iter().map(|message| message.seq).collect();
                self.handle(Event::OfferFailed {
                    session: self.session,
                    seqs,
                });
            }
        }
    }

    fn checked(&mut self, outcome: Result<bool, StoreError>) {
        let Some((highest, event)) = self.unchecked.take() else {
            return;
        };
        match outcome {
            Ok(true) => self.handle(Event::Offered { upto: highest }),
            Ok(false) => {}
            // The machine refuses what it cannot vouch for; the message is offered again and can be acked then.
            Err(error) => self.failed("check", &error),
        }
        self.handle(event);
    }

    fn failed(&self, what: &'static str, error: &StoreError) {
        tracing::warn!(agent.did = %self.owner, what, error = %error, "the mailbox of a session failed");
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.attached.leave(self.inbox.clock.now(), self.session);
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("owner", &self.owner)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
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
async fn finished<T>(work: &mut Work<T>) -> T {
    match work {
        Some(future) => {
            let outcome = future.as_mut().await;
            *work = None;
            outcome
        }
        None => pending().await,
    }
}
