//! The recipient's side of the relay: sessions, long polls and event streams, acks, dead letters.
//!
//! Everything here acts for one agent, whom the caller has authenticated: a mailbox is only reached through its owner's
//! DID, so nobody can ack or read for somebody else.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use tokio::time::sleep;

pub use self::dead::DeadPage;
pub use self::link::{Link, Output, Ready};
pub use self::reader::{Item, Page, Reader};
use crate::limits::{ACK_ALSO_MAX, ENTRY_WAITS_MAX, OUTBOX_RETENTION_SECS};
use crate::mailbox::{
    AckOutcome, Acked, Cursor, Epoch, Fetch, MailboxId, MailboxState, MailboxStore, Quota, Select, Status,
    StoreError,
};
use crate::neighbours::Entry;
use crate::presence::{Attached, Presence};
use crate::session::{Position, SessionId};

mod dead;
mod link;
mod reader;

/// What an agent asks for when it connects (spec §6, frame `auth`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join {
    /// Names the connection.
    pub session: SessionId,
    /// Whether the mailbox may be shared with other sessions that ask for it too.
    pub share: bool,
    /// Messages in flight.
    pub credit: u32,
}

/// What a mailbox may hold, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How much.
    pub quota: Quota,
    /// How long an unacked message is kept.
    pub retention: Duration,
}

impl Terms {
    /// Of an outbox with this quota: what waits is kept for [`OUTBOX_RETENTION_SECS`].
    pub fn of_outbox(quota: Quota) -> Self {
        Self {
            quota,
            retention: Duration::from_secs(OUTBOX_RETENTION_SECS),
        }
    }
}

/// Where agents fetch their messages.
#[derive(Debug, Clone)]
pub struct Inbox {
    store: Arc<dyn MailboxStore>,
    presence: Arc<Presence>,
    clock: Arc<dyn Clock>,
}

impl Inbox {
    /// An inbox for the mailboxes of `store`. `presence` is told by whoever appends to the same store.
    pub fn new(store: Arc<dyn MailboxStore>, presence: Arc<Presence>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            presence,
            clock,
        }
    }

    /// Who is connected.
    pub fn presence(&self) -> &Arc<Presence> {
        &self.presence
    }

    /// Begins a session of `owner`. Waits a moment when the agent's mailbox changed hands just before.
    pub async fn join(&self, owner: Did, join: Join) -> Result<(Link, Ready), StoreError> {
        let attached = self.presence.attach(MailboxId::of(&owner)).await;
        let (state, generation) = self.enter(&attached, join.share).await?;
        let ready = Ready {
            session: join.session,
            epoch: state.epoch.clone(),
            floor: state.floor,
            pending: state.pending,
        };
        Ok((
            Link::new(
                self.clone(),
                attached,
                owner,
                join,
                (position(&state), generation),
            ),
            ready,
        ))
    }

    /// Waits until a session may begin; returns the mailbox's state and the session's generation.
    async fn enter(&self, attached: &Attached, share: bool) -> Result<(MailboxState, u64), StoreError> {
        let mut waits = 0;
        loop {
            while let Some(pause) = attached.takeover_pause(self.clock.now()) {
                // Rounded up, so that a whole-millisecond timer does not come too early.
                sleep(pause + Duration::from_millis(1)).await;
            }
            // After attaching: a message stored from here on is either in the state or wakes the machine. And before
            // others make way: a newcomer that cannot begin must not end their sessions.
            let state = self.store.state(attached.mailbox()).await?;
            match attached.enter(share).await {
                Entry::In { generation } => return Ok((state, generation)),
                Entry::Wait(_) if waits == ENTRY_WAITS_MAX => {
                    return Err(StoreError::Unavailable(
                        "the mailbox changes hands again and again".into(),
                    ));
                }
                Entry::Wait(pause) => sleep(pause).await,
            }
            waits += 1;
        }
    }

    /// Begins a long poll or an event stream of `owner` after `after`, or at the floor. `session` is what its offers
    /// count as: requests with one token are one session.
    pub async fn reader(
        &self,
        owner: Did,
        after: Option<&Cursor>,
        session: SessionId,
    ) -> Result<Result<Reader, Refusal>, StoreError> {
        let Some(reading) = self.presence.attach(MailboxId::of(&owner)).await.read() else {
            let detail = "Too many requests of this agent wait for messages at the same time. End one first.";
            return Ok(Err(Refusal::new(ErrorCode::RateLimited, detail).retry_after(1)));
        };
        let state = self.store.state(reading.attached().mailbox()).await?;
        let after = match after {
            None => state.floor,
            Some(cursor) if cursor.epoch != state.epoch => return Ok(Err(epoch_changed(&state.epoch))),
            Some(cursor) if cursor.seq >= state.next_seq => {
                let detail = "The cursor lies beyond the newest message. Start again without a cursor.";
                return Ok(Err(Refusal::new(ErrorCode::CursorInvalid, detail)));
            }
            Some(cursor) => cursor.seq,
        };
        Ok(Ok(Reader::new(self.clone(), reading, owner, session, after)))
    }

    /// Settles messages of `owner`, durably; returns the cursor of the floor. Again is harmless.
    pub async fn ack(
        &self,
        owner: &Did,
        epoch: &str,
        upto: u64,
        also: &[u64],
    ) -> Result<Result<Cursor, Refusal>, StoreError> {
        let mailbox = MailboxId::of(owner);
        let state = self.store.state(&mailbox).await?;
        if epoch != state.epoch.as_str() {
            return Ok(Err(epoch_changed(&state.epoch)));
        }
        if also.len() > ACK_ALSO_MAX {
            let detail = "`also` names more than 1,024 messages. Send several acks.";
            return Ok(Err(
                Refusal::new(ErrorCode::MemberInvalid, detail).with("member", "also")
            ));
        }
        let highest = also.iter().copied().fold(upto, u64::max);
        if highest > state.floor && !self.was_offered(&mailbox, highest, &state).await? {
            return Ok(Err(beyond_offered()));
        }
        let now = self.clock.now();
        match self.store.ack(&mailbox, upto, also, now).await? {
            AckOutcome::Acked(acked) => {
                self.presence.settled(&mailbox, upto, also, acked.floor, now);
                let floor = self.told(acked);
                Ok(Ok(Cursor {
                    epoch: state.epoch,
                    seq: floor,
                }))
            }
            AckOutcome::BeyondEnd | AckOutcome::TooMany => Ok(Err(beyond_offered())),
        }
    }

    /// Tells the senders of acked messages; returns the floor.
    fn told(&self, acked: Acked) -> u64 {
        self.presence
            .statuses(acked.messages, Status::Acked, None, self.clock.now());
        acked.floor
    }

    /// Whether `seq` was offered over any door, in this run of the hub or before. First offers go in mailbox order, so
    /// the highest message of an ack decides; one that is settled has been offered, or was dropped and harms nobody.
    async fn was_offered(
        &self,
        mailbox: &MailboxId,
        seq: u64,
        state: &MailboxState,
    ) -> Result<bool, StoreError> {
        if seq >= state.next_seq {
            return Ok(false);
        }
        let fetch = Fetch {
            select: Select::Seqs(vec![seq]),
            max_messages: 1,
            max_bytes: 1,
            now: self.clock.now(),
        };
        let found = self.store.fetch(mailbox, fetch).await?;
        Ok(found.first().is_none_or(|message| message.attempts > 0))
    }
}

fn position(state: &MailboxState) -> Position {
    Position {
        epoch: state.epoch.clone(),
        floor: state.floor,
        next_seq: state.next_seq,
    }
}

fn epoch_changed(epoch: &Epoch) -> Refusal {
    let detail = "The epoch is another one: the store was created anew or restored. Start without a cursor and \
                  dedup by message id.";
    Refusal::new(ErrorCode::EpochChanged, detail).with("epoch", epoch.as_str())
}

fn beyond_offered() -> Refusal {
    let detail = "The ack names a message beyond what was offered. Name only what you have received.";
    Refusal::new(ErrorCode::CursorInvalid, detail)
}
