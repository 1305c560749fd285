//! One live session: carries out the effects of its agent's machine and hands out what goes to the agent.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;

use self::work::{Came, Works};
use super::{Inbox, Item, Join};
use crate::limits::BURIALS_MAX;
use crate::mailbox::{Epoch, Fetch, Select, StoredMessage};
use crate::presence::{Attached, Bell, CloseReason, Joining, StatusUpdate};
use crate::session::{Done, Effect, Event, Position, Said, SessionId, Wanted};

mod work;

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

/// A session of one agent, from [`Inbox::join`] until it is dropped.
///
/// Of each kind of work at most one piece is under way; a batch is read only when the one before it was handed out, so
/// a session that is not asked for more holds one batch at most.
pub struct Link {
    inbox: Inbox,
    attached: Attached,
    owner: Did,
    session: SessionId,
    share: bool,
    epoch: Epoch,
    bell: Arc<Bell>,
    out: VecDeque<Output>,
    /// The next read, which waits for `out` to empty.
    wanted: Option<Fetch>,
    /// Messages whose offer is being counted.
    in_hand: Vec<StoredMessage>,
    /// Messages that are being handed out.
    sending: Vec<u64>,
    burials: VecDeque<(u64, String)>,
    /// A frame that names messages up to this one, for which only the store can vouch.
    unchecked: Option<(u64, Said)>,
    works: Works,
}

impl Link {
    pub(super) fn new(
        inbox: Inbox,
        attached: Attached,
        owner: Did,
        join: Join,
        (position, generation): (Position, u64),
    ) -> Self {
        let epoch = position.epoch.clone();
        let Join {
            session,
            share,
            credit,
        } = join;
        let joining = Joining {
            session,
            share,
            credit,
            position,
            generation,
        };
        let (bell, effects) = attached.join(inbox.clock.now(), joining);
        let mut link = Self {
            inbox,
            attached,
            owner,
            session,
            share,
            epoch,
            bell,
            out: VecDeque::new(),
            wanted: None,
            in_hand: Vec::new(),
            sending: Vec::new(),
            burials: VecDeque::new(),
            unchecked: None,
            works: Works::default(),
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

    /// What is there for the agent already; [`Self::next`] waits for more.
    pub fn ready(&mut self) -> Option<Output> {
        self.take_output()
    }

    /// The next thing for the agent. To ask for it says that all before has been sent. Nothing is lost when the future
    /// is dropped. It minds the time itself: what is due meanwhile, such as another try after the store failed, begins.
    pub async fn next(&mut self) -> Output {
        loop {
            if let Some(output) = self.take_output() {
                return output;
            }
            self.begin();
            let due = self.attached.next_due(self.inbox.clock.now(), self.session);
            let came = tokio::select! {
                biased;
                came = self.works.next(&self.bell) => came,
                () = after(due) => Came::Woken,
            };
            self.finish(came);
        }
    }

    /// The session was woken, or its time has come.
    fn tick(&mut self) {
        self.handle(Event::Poll {
            session: self.session,
        });
    }

    /// Whether frames of the agent should wait until earlier ones have had their effect.
    pub fn is_backlogged(&self) -> bool {
        self.unchecked.is_some() || self.burials.len() >= BURIALS_MAX || self.attached.is_backlogged()
    }

    /// The frame `ack`.
    pub fn ack(&mut self, epoch: String, upto: u64, also: Vec<u64>) {
        let highest = also.iter().copied().fold(upto, u64::max);
        self.said(highest, Said::Ack { epoch, upto, also });
    }

    /// The frame `nak`.
    pub fn nak(&mut self, epoch: String, seq: u64, retry_after: Duration) {
        self.said(
            seq,
            Said::Nak {
                epoch,
                seq,
                retry_after,
            },
        );
    }

    /// The frame `reject`.
    pub fn reject(&mut self, epoch: String, seq: u64, code: String) {
        self.said(seq, Said::Reject { epoch, seq, code });
    }

    /// The frame `credit`.
    pub fn credit(&mut self, credit: u32) {
        self.said(0, Said::Credit(credit));
    }

    /// Carries out the acks and rejects that were taken in. To be called, with a limit, before the link is dropped.
    pub async fn settle(&mut self) {
        loop {
            // Nobody is there to be given more.
            self.wanted = None;
            self.out.clear();
            self.begin();
            if !self.works.is_settling() {
                return;
            }
            let came = self.works.next(&self.bell).await;
            self.finish(came);
        }
    }

    fn said(&mut self, highest: u64, frame: Said) {
        if self.attached.is_offer_unknown(highest) {
            self.works.check(&self.inbox, *self.attached.mailbox(), highest);
            self.unchecked = Some((highest, frame));
        } else {
            self.handle(Event::Said {
                session: self.session,
                frame,
            });
        }
    }

    fn done(&mut self, work: Done) {
        self.handle(Event::Done {
            session: self.session,
            work,
        });
    }

    fn handle(&mut self, event: Event) {
        let effects = self.attached.handle(self.inbox.clock.now(), event);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mailbox = *self.attached.mailbox();
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
                Effect::Deliver { seqs } => {
                    self.in_hand
                        .retain(|message| seqs.binary_search(&message.seq).is_ok());
                    let by = (self.session, self.share);
                    self.works.offer(&self.inbox, mailbox, seqs, by);
                }
                Effect::Ack { upto, also } => self.works.ack(&self.inbox, mailbox, upto, also),
                Effect::Bury { seq, code } => self.burials.push_back((seq, code)),
                Effect::Acked { floor } => self.out.push_back(Output::Acked(floor)),
                Effect::Refused { code, detail } => self.out.push_back(Output::Refused { code, detail }),
                // Carried out where all sessions of the agent are known.
                Effect::Wake(_) | Effect::Replaced(_) | Effect::Release { .. } => {}
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
}

/// So long from now, or never.
async fn after(due: Option<Duration>) {
    match due {
        Some(due) => tokio::time::sleep(due).await,
        None => pending().await,
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
