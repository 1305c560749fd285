//! Keeps one session open for as long as its listener lives: reads, writes, pings, reconnects.
//!
//! The pump owns the socket. It never blocks on the application: a message that the listener has no room for stays in
//! hand, and while it does nothing further is read, so the hub's credit and the socket's own window hold back the rest.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::connection::{Auth, Connection, Received};
use super::frame::{AgentFrame, HubFrame, Offered};
use super::policy::{End, Next, Reconnect};
use super::progress::Progress;
use crate::client::Client;
use crate::error::{Error, Result};
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

impl Pump {
    /// Runs until the listener is gone or closed, or until opening again makes no sense.
    pub(crate) async fn run(mut self) {
        let ended = self.keep_open().await;
        self.state.send_replace(SessionState::Closed);
        self.commands.close();
        if let Err(error) = ended {
            tracing::debug!(%error, "the session is over");
            // A listener that is gone needs no word.
            drop(self.events.send(Event::Ended(error)).await);
        }
    }

    async fn keep_open(&mut self) -> Result<()> {
        let (mut session, mut is_away) = (0, false);
        loop {
            let opened_at = self.client.now();
            let end = match self.open().await {
                Ok(Some(connection)) => {
                    session += 1;
                    self.announce(&connection, session, std::mem::take(&mut is_away));
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
            let ended = end.to_string();
            let lived = self.client.now().millis_since(opened_at);
            let lived = Duration::from_millis(u64::try_from(lived).unwrap_or_default());
            match self.reconnect.after(end, lived, self.client.entropy()) {
                Next::Stop(error) => return Err(error),
                Next::Wait { delay, reload_keys } => {
                    // Said once for each time that the hub is away, however often it is tried.
                    if std::mem::replace(&mut is_away, true) {
                        tracing::debug!(why = ended, ?delay, "trying again");
                    } else {
                        tracing::warn!(why = ended, "the session is not open; trying again until it is");
                    }
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

    fn announce(&self, connection: &Connection, session: u64, was_away: bool) {
        let pending = connection.pending;
        if was_away {
            tracing::info!(session, pending, "the session is open again");
        } else {
            tracing::debug!(session, pending, "the session is open");
        }
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
        let mut progress = Progress::new(&connection.epoch, connection.floor);
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
                Some(Command::Ack { epoch, seq }) if epoch == progress.epoch => acked.push(seq),
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
        acked: Vec<u64>,
        connection: &mut Connection,
        progress: &mut Progress,
    ) -> Result<()> {
        let cursor = self.inbox.cursor().await?;
        let floor = cursor
            .filter(|cursor| cursor.epoch == progress.epoch)
            .map_or(0, |cursor| cursor.seq);
        connection.say(&progress.acknowledgement(floor, acked)).await
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
            // One session has one epoch: where the mailbox has another one, `ready` of the next session says where it stands.
            Received::Frame(HubFrame::Message(Offered { epoch, .. }) | HubFrame::Acked { epoch, .. })
                if epoch != progress.epoch =>
            {
                return Ok(Some(End::Moved));
            }
            Received::Frame(HubFrame::Error(problem)) if problem.code == "epoch_changed" => {
                return Ok(Some(End::Moved));
            }
            Received::Frame(HubFrame::Message(offered)) => {
                progress.offered(offered.seq);
                *held = Some(Event::Message(offered));
            }
            Received::Frame(HubFrame::Acked { epoch, floor }) => {
                progress.confirmed(floor);
                self.inbox.enter(&epoch, floor).await?;
            }
            Received::Frame(HubFrame::Sent { reference, outcome }) => progress.answered(&reference, outcome),
            Received::Frame(HubFrame::Status(status)) => drop(self.statuses.send(status)),
            Received::Frame(HubFrame::Error(problem)) => progress.refused(&problem),
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
            while !progress.is_confirmed() {
                match connection.receive().await {
                    Received::Frame(HubFrame::Acked { floor, .. }) => progress.confirmed(floor),
                    Received::Frame(HubFrame::Error(problem)) => progress.refused(&problem),
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
        } if progress.may_name(&epoch, seq) => AgentFrame::Nak {
            epoch,
            seq,
            retry_after_secs,
        },
        Command::Reject { epoch, seq, code } if progress.may_name(&epoch, seq) => {
            AgentFrame::Reject { epoch, seq, code }
        }
        Command::Send { envelope, answer } => progress.send(envelope, answer),
        // A place that means nothing in this session, or not yet.
        Command::Nak { .. } | Command::Reject { .. } | Command::Ack { .. } | Command::Close => return Ok(()),
    };
    connection.say(&frame).await
}

async fn tick(connection: &mut Connection, progress: &mut Progress) -> Result<Option<End>> {
    progress.silent += 1;
    if progress.silent > SILENT_PINGS_MAX {
        return Ok(Some(End::Broken("the hub is silent".to_owned())));
    }
    connection.ping().await.map(|()| None)
}
