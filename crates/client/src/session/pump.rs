//! Keeps one session open for as long as its listener lives: reads, writes, pings, reconnects.
//!
//! The pump owns the socket. It never blocks on the application: a message that the listener has no room for stays in
//! hand, and while it does nothing further is read, so the hub's credit and the socket's own window hold back the rest.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::connection::{Auth, Connection, Received};
use super::frame::{AgentFrame, HubFrame, Offered};
use super::policy::{End, Next, Reconnect};
use crate::client::Client;
use crate::error::{Error, Problem, Result};
use crate::inbox::Inbox;
use crate::limits::{CLOSE_TIMEOUT, LINGER, PING_EVERY, SILENT_PINGS_MAX};
use crate::wire::{MessageStatus, Sent};

/// What the pump tells its listener.
#[derive(Debug)]
pub(crate) enum Event {
    Message(Offered),
    /// Nothing more will come.
    Ended(Error),
}

/// What the application wants of the session.
#[derive(Debug)]
pub(crate) enum Command {
    /// Recorded in the inbox: may be acknowledged.
    Ack {
        epoch: String,
        seq: u64,
    },
    Nak {
        epoch: String,
        seq: u64,
        retry_after_secs: u64,
    },
    Reject {
        epoch: String,
        seq: u64,
        code: String,
    },
    Send {
        envelope: Box<str>,
        answer: oneshot::Sender<Result<Sent>>,
    },
    /// Confirm what is under way, then close.
    Close,
}

/// Where the session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// Opening, or waiting to open again.
    Connecting,
    /// Open.
    Connected {
        /// The mailbox's epoch.
        epoch: String,
        /// Its floor when the session opened.
        floor: u64,
        /// Messages that waited then.
        pending: u64,
        /// Counts the sessions of this listener, from 1.
        session: u64,
    },
    /// Over.
    Closed,
}

#[derive(Debug)]
pub(crate) struct Pump {
    pub(crate) client: Client,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) credit: u32,
    pub(crate) share: bool,
    pub(crate) reconnect: Reconnect,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) statuses: broadcast::Sender<MessageStatus>,
    pub(crate) state: watch::Sender<SessionState>,
}

/// What one session knows beyond its connection.
#[derive(Debug, Default)]
struct Progress {
    /// The highest sequence number offered in this session, or the hub's floor.
    offered: u64,
    /// Ack frames that are not confirmed yet.
    unconfirmed: u32,
    /// Ping intervals without a sign of life.
    silent: u32,
    sends: HashMap<String, oneshot::Sender<Result<Sent>>>,
    sent: u64,
    closing: bool,
}

impl Pump {
    /// Runs until the listener is gone or closed, or until opening again makes no sense.
    pub(crate) async fn run(mut self) {
        let ended = self.keep_open().await;
        self.state.send_replace(SessionState::Closed);
        self.commands.close();
        if let Err(error) = ended {
            tracing::warn!(%error, "the session is over");
            // A listener that is gone needs no word.
            drop(self.events.send(Event::Ended(error)).await);
        }
    }

    async fn keep_open(&mut self) -> Result<()> {
        let mut session = 0;
        loop {
            let opened_at = self.client.now();
            let end = match self.open().await {
                Ok(Some(connection)) => {
                    session += 1;
                    self.announce(&connection, session);
                    let end = self.serve(connection).await?;
                    self.state.send_replace(SessionState::Connecting);
                    end
                }
                Ok(None) => return Ok(()),
                Err(error) => End::NotOpened(error),
            };
            if matches!(end, End::Done) {
                return Ok(());
            }
            tracing::info!(%end, "the session is not open");
            let lived = self.client.now().millis_since(opened_at);
            let lived = Duration::from_millis(u64::try_from(lived).unwrap_or_default());
            match self.reconnect.after(end, lived, self.client.entropy()) {
                Next::Stop(error) => return Err(error),
                Next::Wait { delay, reload_keys } => {
                    if reload_keys {
                        self.client.reload_keys().await?;
                    }
                    if !self.pause(delay).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn announce(&self, connection: &Connection, session: u64) {
        tracing::debug!(session, pending = connection.pending, "the session is open");
        self.state.send_replace(SessionState::Connected {
            epoch: connection.epoch.clone(),
            floor: connection.floor,
            pending: connection.pending,
            session,
        });
    }

    /// Opens the session, while the application's commands are heard. `None`: the listener is gone.
    async fn open(&mut self) -> Result<Option<Connection>> {
        let client = self.client.clone();
        let inbox = Arc::clone(&self.inbox);
        let (credit, share) = (self.credit, self.share);
        let opening = async move {
            let keys = client.keys()?;
            let auth = Auth {
                keys: &keys,
                credit,
                share,
                cursor: inbox.cursor().await?,
            };
            let connection = Connection::open(client.transport(), auth).await?;
            inbox.enter(&connection.epoch, connection.floor).await?;
            Ok(connection)
        };
        tokio::pin!(opening);
        loop {
            tokio::select! {
                opened = &mut opening => return opened.map(Some),
                () = self.events.closed() => return Ok(None),
                command = self.commands.recv() => {
                    if !Self::without_session(command) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits, while the application's commands are heard. False: the listener is gone.
    async fn pause(&mut self, delay: Duration) -> bool {
        let waiting = sleep(delay);
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                () = &mut waiting => return true,
                () = self.events.closed() => return false,
                command = self.commands.recv() => {
                    if !Self::without_session(command) {
                        return false;
                    }
                }
            }
        }
    }

    /// A command while no session is open. What was settled is offered again by the next session and settled then.
    /// False: no further session is wanted.
    fn without_session(command: Option<Command>) -> bool {
        match command {
            None | Some(Command::Close) => return false,
            Some(Command::Send { answer, .. }) => drop(answer.send(Err(Error::Closed))),
            Some(Command::Ack { .. } | Command::Nak { .. } | Command::Reject { .. }) => {}
        }
        true
    }

    /// One session, from `ready` to its end.
    async fn serve(&mut self, mut connection: Connection) -> Result<End> {
        let mut progress = Progress {
            offered: connection.floor,
            ..Progress::default()
        };
        let mut held: Option<Event> = None;
        let mut ticks = interval(PING_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.reset();
        let events = self.events.clone();
        loop {
            let step = tokio::select! {
                () = events.closed() => Ok(Some(End::Done)),
                room = events.reserve(), if held.is_some() => {
                    if let (Ok(room), Some(event)) = (room, held.take()) {
                        room.send(event);
                    }
                    Ok(None)
                }
                command = self.commands.recv() => self.command(command, &mut connection, &mut progress).await,
                received = connection.receive(), if held.is_none() => {
                    progress.silent = 0;
                    self.received(received, &mut progress, &mut held).await
                }
                _ = ticks.tick() => tick(&mut connection, &mut progress).await,
            };
            let end = match step {
                Ok(None) if progress.closing => Some(End::Done),
                Ok(end) => end,
                Err(error @ Error::Inbox(_)) => return Err(error),
                Err(error) => Some(End::Broken(error.to_string())),
            };
            let Some(end) = end else { continue };
            if matches!(end, End::Done) {
                Self::farewell(connection, progress).await;
            }
            return Ok(end);
        }
    }

    async fn command(
        &mut self,
        command: Option<Command>,
        connection: &mut Connection,
        progress: &mut Progress,
    ) -> Result<Option<End>> {
        let mut acked = Vec::new();
        let mut next = command;
        // What waits already goes out together: one ack frame for many messages.
        loop {
            match next {
                None => return Ok(Some(End::Done)),
                Some(Command::Ack { epoch, seq }) if epoch == connection.epoch => acked.push(seq),
                // An older epoch has nothing to be acknowledged any more.
                Some(Command::Ack { .. }) => {}
                Some(Command::Close) => progress.closing = true,
                Some(other) => say(other, connection, progress).await?,
            }
            match self.commands.try_recv() {
                Ok(command) => next = Some(command),
                Err(_) => break,
            }
        }
        if !acked.is_empty() {
            self.acknowledge(acked, connection, progress).await?;
        }
        Ok(None)
    }

    async fn acknowledge(
        &self,
        mut acked: Vec<u64>,
        connection: &mut Connection,
        progress: &mut Progress,
    ) -> Result<()> {
        let cursor = self.inbox.cursor().await?;
        let floor = cursor
            .filter(|cursor| cursor.epoch == connection.epoch)
            .map_or(0, |cursor| cursor.seq);
        // A hub refuses an ack beyond what it offered, and our floor may be ahead of a session that has just begun.
        let upto = floor.min(progress.offered);
        acked.retain(|seq| *seq > upto);
        acked.sort_unstable();
        acked.dedup();
        progress.unconfirmed += 1;
        connection
            .say(&AgentFrame::Ack {
                epoch: connection.epoch.clone(),
                upto,
                also: acked,
            })
            .await
    }

    async fn received(
        &mut self,
        received: Received,
        progress: &mut Progress,
        held: &mut Option<Event>,
    ) -> Result<Option<End>> {
        match received {
            Received::Alive | Received::Frame(HubFrame::Unknown) => {}
            Received::Closed(code) => return Ok(Some(End::Closed(code))),
            Received::Broken(why) => return Ok(Some(End::Broken(why))),
            Received::Frame(HubFrame::Message(offered)) => {
                progress.offered = progress.offered.max(offered.seq);
                *held = Some(Event::Message(offered));
            }
            Received::Frame(HubFrame::Acked { epoch, floor }) => {
                progress.unconfirmed = progress.unconfirmed.saturating_sub(1);
                self.inbox.enter(&epoch, floor).await?;
            }
            Received::Frame(HubFrame::Sent { reference, outcome }) => {
                if let Some(answer) = progress.sends.remove(&reference) {
                    drop(answer.send(outcome.map_err(|problem| Error::Refused(Box::new(problem)))));
                }
            }
            Received::Frame(HubFrame::Status(status)) => drop(self.statuses.send(status)),
            Received::Frame(HubFrame::Error(problem)) => complained(&problem, progress),
            Received::Frame(HubFrame::Challenge { .. } | HubFrame::Ready { .. }) => {
                return Ok(Some(End::Broken(
                    "a frame of the handshake came out of turn".to_owned(),
                )));
            }
        }
        Ok(None)
    }

    /// Where the application closes, waits for the acks under way to be confirmed; where it just let go, it does not.
    async fn farewell(mut connection: Connection, mut progress: Progress) {
        if !progress.closing {
            connection.close(LINGER).await;
            return;
        }
        let confirmed = async {
            while progress.unconfirmed > 0 {
                match connection.receive().await {
                    Received::Frame(HubFrame::Acked { .. }) => progress.unconfirmed -= 1,
                    Received::Closed(_) | Received::Broken(_) => break,
                    Received::Frame(_) | Received::Alive => {}
                }
            }
        };
        drop(tokio::time::timeout(CLOSE_TIMEOUT, confirmed).await);
        connection.close(CLOSE_TIMEOUT).await;
    }
}

async fn say(command: Command, connection: &mut Connection, progress: &mut Progress) -> Result<()> {
    let frame = match command {
        Command::Nak {
            epoch,
            seq,
            retry_after_secs,
        } => AgentFrame::Nak {
            epoch,
            seq,
            retry_after_secs,
        },
        Command::Reject { epoch, seq, code } => AgentFrame::Reject { epoch, seq, code },
        Command::Send { envelope, answer } => {
            progress.sends.retain(|_, waiting| !waiting.is_closed());
            progress.sent += 1;
            let reference = progress.sent.to_string();
            progress.sends.insert(reference.clone(), answer);
            AgentFrame::Send { reference, envelope }
        }
        Command::Ack { .. } | Command::Close => return Ok(()),
    };
    if let AgentFrame::Nak { epoch, .. } | AgentFrame::Reject { epoch, .. } = &frame
        && *epoch != connection.epoch
    {
        return Ok(());
    }
    connection.say(&frame).await
}

/// The hub refused a frame, and changed nothing. An ack that it refused is not confirmed later.
fn complained(problem: &Problem, progress: &mut Progress) {
    tracing::warn!(code = %problem.code, "the hub refused a frame");
    if problem.code == "cursor_invalid" {
        progress.unconfirmed = progress.unconfirmed.saturating_sub(1);
    }
}

async fn tick(connection: &mut Connection, progress: &mut Progress) -> Result<Option<End>> {
    progress.silent += 1;
    if progress.silent > SILENT_PINGS_MAX {
        return Ok(Some(End::Broken("the hub is silent".to_owned())));
    }
    connection.ping().await.map(|()| None)
}
