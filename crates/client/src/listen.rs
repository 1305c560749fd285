//! Listening: a stream of verified, opened messages over a WebSocket that is kept open (spec §6).

mod acker;
mod answering;

use std::fmt::Display;
use std::sync::{Arc, Mutex};

use aip_protocol::envelope::Envelope;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::{broadcast, mpsc, watch};

use crate::backoff::{Backoff, nak_secs};
use crate::client::{Client, Taken};
use crate::error::{Error, Result};
use crate::inbox::{Inbox, MessageKey};
use crate::limits::{
    CLOSE_TIMEOUT, COMMANDS_MAX, CREDIT_DEFAULT, CREDIT_MAX, RECEIPTS_TOLD, RECEIPTS_WAITING_MAX,
    STATUSES_KEPT,
};
use crate::message::{Incoming, KIND_RECEIPT, SealedEnvelope};
use crate::opening::{Judged, UNREADABLE, judge};
use crate::receipts::Receipt;
use crate::session::frame::Offered;
use crate::session::policy::Reconnect;
use crate::session::pump::{Command, Event, Pump};
use crate::wire::{MessageStatus, Sent};

pub use crate::session::policy::OnReplaced;
pub use crate::session::pump::SessionState;
pub use acker::Acker;
use answering::Answer;

/// How to listen.
#[derive(Debug, Clone, Copy)]
pub struct ListenOptions {
    /// Messages in flight at most, 1 to 1,024.
    pub credit: u32,
    /// Share the mailbox with other sessions of the same agent that ask for the same; each message goes to one of them.
    pub share: bool,
    /// What to do when another session takes over.
    pub on_replaced: OnReplaced,
    /// The pauses between attempts to open the session.
    pub backoff: Backoff,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            credit: CREDIT_DEFAULT,
            share: false,
            on_replaced: OnReplaced::Stop,
            backoff: Backoff::RECONNECT,
        }
    }
}

/// A session that is kept open, and what arrives in it.
///
/// Messages come in mailbox order on first delivery, each verified against its sender's identity and opened. Messages
/// that never will be good go to the dead letters by themselves. Every message is to be settled in one of three ways:
/// [`Listener::ack`] when it is processed, [`Listener::nak`] to have it again later, [`Listener::reject`] to be rid of
/// it. One that is not settled is not handed over again while this listener lives, and is offered anew to the next.
///
/// ```no_run
/// # async fn example(client: aip_client::Client) -> aip_client::Result<()> {
/// use std::sync::Arc;
/// use aip_client::{ListenOptions, inbox::FileInbox};
///
/// let inbox = Arc::new(FileInbox::open("alice.key.state/inbox")?);
/// let mut listener = client.listen(inbox, ListenOptions::default());
/// loop {
///     let message = listener.next().await?;
///     println!("{}: {:?}", message.from, message.content.as_text());
///     listener.ack(&message).await?;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Listener {
    client: Client,
    acker: Acker,
    events: mpsc::Receiver<Event>,
    /// Being judged: kept here so that nothing is lost when [`Listener::next`] is abandoned half way.
    current: Option<Offered>,
    statuses: broadcast::Sender<MessageStatus>,
    receipts: broadcast::Sender<Receipt>,
    state: watch::Receiver<SessionState>,
    pump: tokio::task::JoinHandle<()>,
    answering: tokio::task::JoinHandle<()>,
}

impl Client {
    /// Opens a session and keeps it open until the listener is dropped or closed. Returns at once; [`Listener::ready`]
    /// waits for the first session. Must be called within a tokio runtime.
    pub fn listen(&self, inbox: Arc<dyn Inbox>, options: ListenOptions) -> Listener {
        let credit = options.credit.clamp(1, CREDIT_MAX);
        let (event_sender, events) = mpsc::channel(usize::try_from(credit).unwrap_or(1));
        let (command_sender, commands) = mpsc::channel(COMMANDS_MAX);
        let statuses = broadcast::Sender::new(STATUSES_KEPT);
        let (state_sender, state) = watch::channel(SessionState::Connecting);
        let pump = Pump {
            client: self.clone(),
            inbox: Arc::clone(&inbox),
            credit,
            share: options.share,
            reconnect: Reconnect::new(options.backoff, options.on_replaced),
            events: event_sender,
            commands,
            statuses: statuses.clone(),
            state: state_sender,
        };
        let pump = tokio::spawn(pump.run());
        let (answer_sender, answers) = mpsc::channel(RECEIPTS_WAITING_MAX);
        let answering = tokio::spawn(answering::answer(self.clone(), answers));
        let acker = Acker {
            client: self.clone(),
            inbox,
            commands: command_sender,
            answers: answer_sender,
            open: Arc::new(Mutex::default()),
        };
        Listener {
            client: self.clone(),
            acker,
            events,
            current: None,
            statuses,
            receipts: broadcast::Sender::new(RECEIPTS_TOLD),
            state,
            pump,
            answering,
        }
    }
}

impl Listener {
    /// The next message that was not processed before. Safe to abandon while waiting, as in `tokio::select!`.
    ///
    /// # Errors
    /// Final: [`Error::Replaced`], a refused authentication, a broken inbox, or [`Error::Closed`]. What waiting can mend is
    /// waited for.
    pub async fn next(&mut self) -> Result<Incoming> {
        loop {
            let offered = match &self.current {
                Some(offered) => offered.clone(),
                None => match self.events.recv().await {
                    Some(Event::Message(offered)) => self.current.insert(offered).clone(),
                    Some(Event::Ended(error)) => return Err(error),
                    None => return Err(Error::Closed),
                },
            };
            let taken = self.take_up(&offered).await;
            self.current = None;
            if let Some(message) = taken? {
                return Ok(message);
            }
        }
    }

    /// `None`: this one is settled already.
    async fn take_up(&self, offered: &Offered) -> Result<Option<Incoming>> {
        let Ok(envelope) = Envelope::parse(offered.envelope.get().as_bytes()) else {
            self.acker.reject_place(offered, UNREADABLE).await?;
            return Ok(None);
        };
        let key = MessageKey::new(offered.epoch.as_str(), offered.seq, &envelope);
        if self.acker.inbox.seen(&key).await? {
            self.acker.close(&key.id);
            self.acker.ack_place(&key).await?;
            return Ok(None);
        }
        // Offered again while the application works on it, perhaps at another place: it is settled when that is done.
        if self.acker.still_open(&key) {
            return Ok(None);
        }
        match judge(&self.client, offered, envelope).await? {
            Judged::Good(message) if message.kind == KIND_RECEIPT => {
                self.take_receipt(&key, offered, &message).await?;
            }
            Judged::Good(message) => {
                self.acker.open(&key);
                return Ok(Some(*message));
            }
            Judged::Bad(code) => {
                tracing::warn!(seq = offered.seq, code, "a message is not good");
                self.acker.reject_place(offered, code).await?;
            }
            Judged::Later(why) => {
                tracing::warn!(seq = offered.seq, why, "a message cannot be checked just now");
                self.acker.nak_place(&key, nak_secs(offered.attempt)).await?;
            }
        }
        Ok(None)
    }

    /// A receipt is for this library, not for the application: kept where it is good, and settled.
    async fn take_receipt(&self, key: &MessageKey, offered: &Offered, message: &Incoming) -> Result<()> {
        match self.client.take_receipt(message).await {
            Ok(Taken::Bad(code)) => {
                tracing::warn!(seq = offered.seq, code, from = %message.from, "a receipt is not good");
                return self.acker.reject_place(offered, code).await;
            }
            Ok(Taken::Kept(receipt)) => drop(self.receipts.send(*receipt)),
            Ok(Taken::Done) => {}
            Err(error) => {
                tracing::warn!(error = error.sentence(), "a receipt cannot be kept just now");
                return self.acker.nak_place(key, nak_secs(offered.attempt)).await;
            }
        }
        self.acker
            .inbox
            .record(std::slice::from_ref(key), self.client.now())
            .await?;
        self.acker.ack_place(key).await
    }

    /// The messages as a stream, which ends with the first error. Settle them through [`Listener::acker`], taken before.
    pub fn into_stream(self) -> impl Stream<Item = Result<Incoming>> + Send {
        unfold(Some(self), |listener| async move {
            let mut listener = listener?;
            match listener.next().await {
                Ok(message) => Some((Ok(message), Some(listener))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Hands each message to `handler`, one after the other: success is acknowledged, an error puts the message back for
    /// a while that grows with each attempt. Returns when the listener ends.
    pub async fn run<F, E>(&mut self, mut handler: impl FnMut(Incoming) -> F) -> Result<()>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        loop {
            let message = match self.next().await {
                Err(Error::Closed) => return Ok(()),
                message => message?,
            };
            match handler(message.clone()).await {
                Ok(()) => self.ack(&message).await?,
                Err(error) => {
                    tracing::warn!(seq = message.seq, attempt = message.attempt, %error, "a handler failed");
                    self.nak(&message).await?;
                }
            }
        }
    }

    /// See [`Acker::ack`].
    pub async fn ack(&self, message: &Incoming) -> Result<()> {
        self.acker.ack(message).await
    }

    /// See [`Acker::ack_all`].
    pub async fn ack_all(&self, messages: &[Incoming]) -> Result<()> {
        self.acker.ack_all(messages).await
    }

    /// See [`Acker::nak`].
    pub async fn nak(&self, message: &Incoming) -> Result<()> {
        self.acker.nak(message).await
    }

    /// See [`Acker::reject`].
    pub async fn reject(&self, message: &Incoming, code: &str) -> Result<()> {
        self.acker.reject(message, code).await
    }

    /// Settles messages from elsewhere, such as tasks that work on several at once.
    pub fn acker(&self) -> Acker {
        self.acker.clone()
    }

    /// What becomes of the messages that this agent sent, as the hub learns it. Kept for a slow reader up to a bound; what
    /// is lost here can be asked for with [`Client::status`].
    pub fn statuses(&self) -> broadcast::Receiver<MessageStatus> {
        self.statuses.subscribe()
    }

    /// Receipts for messages of this agent, as they come; each was checked and is kept ([`Client::receipts`]). A slow reader
    /// loses the oldest here.
    pub fn receipts(&self) -> broadcast::Receiver<Receipt> {
        self.receipts.subscribe()
    }

    /// Where the session stands, and each change of it.
    pub fn state(&self) -> watch::Receiver<SessionState> {
        self.state.clone()
    }

    /// Waits until a session is open.
    ///
    /// # Errors
    /// [`Error::Closed`] when the listener ended before; [`Listener::next`] tells why.
    pub async fn ready(&self) -> Result<SessionState> {
        let mut state = self.state.clone();
        let settled = state
            .wait_for(|state| !matches!(state, SessionState::Connecting))
            .await;
        match settled.map(|state| state.clone()) {
            Ok(connected @ SessionState::Connected { .. }) => Ok(connected),
            _ => Err(Error::Closed),
        }
    }

    /// Sends over the session: one attempt. When it fails, the same envelope may go to [`Client::submit`].
    pub async fn submit(&self, sealed: &SealedEnvelope) -> Result<Sent> {
        self.acker.submit(sealed).await
    }

    /// Lets the acknowledgements under way be confirmed and the receipts for them be sent, then closes.
    pub async fn close(self) {
        let Self {
            acker,
            events,
            pump,
            answering,
            ..
        } = self;
        // Where a hub takes no receipts just now, it is not waited for beyond a bound.
        let answered = async {
            drop(acker.answers.send(Answer::Close).await);
            drop(answering.await);
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, answered).await.is_err() {
            tracing::warn!("closed before all receipts were sent");
        }
        // A pump that has ended already needs no word; one that has not ends at this one.
        drop(acker.commands.send(Command::Close).await);
        drop(acker);
        drop(pump.await);
        drop(events);
    }
}
