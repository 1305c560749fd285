//! One mailbox of the target becomes like the source's.

use std::collections::BTreeMap;

use aip_protocol::envelope::Envelope;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::limits::ACK_ALSO_MAX;
use aip_relay::mailbox::{
    Append, AppendOutcome, DeadLetter, DeadLetters, Fetch, MailboxId, Mailboxes, Quota, Redrive,
    RedriveOutcome, Route, Select, StoredMessage,
};
use bytes::Bytes;
use uuid::Uuid;

use super::{MESSAGES, MESSAGES_BYTES, Move, MoveError};

/// What names a message within its mailbox: who it is from, its id, and who it is for, since in an outbox one id may go to
/// several.
type Name = (Did, Uuid, Did);

/// What moved fits into no quota; the backstop of the stream stays.
pub(super) const NO_QUOTA: Quota = Quota {
    mailbox_messages: u32::MAX,
    mailbox_bytes: u64::MAX,
    sender_messages: u32::MAX,
};

/// How much was moved, or found the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Mailboxes that were looked at.
    pub mailboxes: u64,
    /// Messages that wait in them.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Dead letters.
    pub dead: u64,
}

impl Moved {
    pub(super) fn add(&mut self, other: Self) {
        self.mailboxes += other.mailboxes;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.dead += other.dead;
    }
}

/// What a mailbox of the target holds: messages and dead letters with their places.
#[derive(Debug, Default)]
struct Held {
    pending: BTreeMap<Name, u64>,
    dead: BTreeMap<Name, u64>,
}

impl Move {
    pub(super) async fn mailbox(&self, id: MailboxId, last: bool) -> Result<Moved, MoveError> {
        let mut held = self.held(id).await?;
        let mut moved = Moved {
            mailboxes: 1,
            ..Moved::default()
        };
        if last {
            moved.dead = self.dead_letters(id, &mut held).await?;
        }
        let mut after = 0;
        loop {
            let page = source_page(self, id, after).await?;
            let Some(newest) = page.last() else { break };
            after = newest.seq;
            for message in page {
                moved.messages += 1;
                moved.bytes += message.wire.len() as u64;
                let name = name_of(&message);
                if held.pending.remove(&name).is_some() {
                    continue;
                }
                match held.dead.remove(&name) {
                    // Brought back in the source since an earlier pass.
                    Some(seq) => drop(self.redrive(id, seq, message.expires_at).await?),
                    None => drop(
                        self.append(id, &message.wire, message.accepted_at, message.expires_at)
                            .await?,
                    ),
                }
            }
        }
        if last {
            self.settle(id, held).await?;
        }
        Ok(moved)
    }

    async fn held(&self, id: MailboxId) -> Result<Held, MoveError> {
        let mut held = Held::default();
        let mut after = 0;
        loop {
            let page = target_page(self, id, after).await?;
            let Some(newest) = page.last() else { break };
            after = newest.seq;
            held.pending
                .extend(page.iter().map(|message| (name_of(message), message.seq)));
        }
        let mut after = 0;
        loop {
            let page = self
                .target
                .dead(&id, after, MESSAGES)
                .await
                .map_err(MoveError::Target)?;
            let Some(newest) = page.last() else { break };
            after = newest.seq;
            for letter in &page {
                held.dead.insert(name_of_letter(letter)?, letter.seq);
            }
        }
        Ok(held)
    }

    /// Buries what is dead in the source; returns how much that is.
    async fn dead_letters(&self, id: MailboxId, held: &mut Held) -> Result<u64, MoveError> {
        let (mut count, mut after) = (0, 0);
        loop {
            let page = self
                .source
                .dead(&id, after, MESSAGES)
                .await
                .map_err(MoveError::Source)?;
            let Some(newest) = page.last() else {
                return Ok(count);
            };
            after = newest.seq;
            for letter in page {
                count += 1;
                let name = name_of_letter(&letter)?;
                if held.dead.remove(&name).is_none() {
                    let waiting = held.pending.remove(&name);
                    self.bury(id, waiting, &letter).await?;
                }
            }
        }
    }

    async fn bury(&self, id: MailboxId, waiting: Option<u64>, letter: &DeadLetter) -> Result<(), MoveError> {
        let seq = match waiting {
            Some(seq) => seq,
            // It was accepted at some time before; nobody asks when.
            None => self.append(id, &letter.wire, letter.at, letter.at).await?,
        };
        let buried = self.target.bury(&id, seq, &letter.code, letter.at).await;
        buried.map(drop).map_err(MoveError::Target)
    }

    /// What an earlier pass brought here and has left the source since.
    async fn settle(&self, id: MailboxId, held: Held) -> Result<(), MoveError> {
        let mut gone: Vec<u64> = held.pending.into_values().collect();
        for seq in held.dead.into_values() {
            gone.extend(self.redrive(id, seq, self.now).await?);
        }
        for some in gone.chunks(ACK_ALSO_MAX) {
            // At no time: what the source tells of them is the newer status.
            let acked = self.target.ack(&id, 0, some, Timestamp::UNIX_EPOCH).await;
            acked.map_err(MoveError::Target)?;
        }
        Ok(())
    }

    /// Brings a dead letter of the target back; its place.
    async fn redrive(
        &self,
        id: MailboxId,
        seq: u64,
        expires_at: Timestamp,
    ) -> Result<Option<u64>, MoveError> {
        let redrive = Redrive {
            seq,
            expires_at,
            now: self.now,
            quota: NO_QUOTA,
        };
        match self
            .target
            .redrive(&id, redrive)
            .await
            .map_err(MoveError::Target)?
        {
            RedriveOutcome::Redriven { seq } => Ok(Some(seq)),
            RedriveOutcome::NotFound => Ok(None),
            RedriveOutcome::Full(_) => Err(MoveError::TooLarge(id)),
        }
    }

    /// Adds a message that the target does not hold; its place there.
    async fn append(
        &self,
        id: MailboxId,
        wire: &Bytes,
        accepted_at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<u64, MoveError> {
        let envelope = parsed(wire)?;
        let key = envelope.dedup_key();
        let remembered = self
            .source
            .accepted(key, self.now)
            .await
            .map_err(MoveError::Source)?;
        // What lies elsewhere than in its recipient's mailbox waits for another hub.
        let route = if MailboxId::of(&envelope.to) == id {
            Route::Mailbox
        } else {
            Route::Peer
        };
        let append = Append {
            digest: envelope.digest(),
            dedup_key: key,
            id: envelope.id,
            recipient: envelope.to,
            sender: envelope.from,
            // What the source has forgotten is not remembered here either.
            remember_until: remembered.map_or(accepted_at, |accepted| accepted.until),
            accepted_at,
            expires_at,
            wire: wire.clone(),
            route,
            quota: NO_QUOTA,
        };
        match self.target.append(append).await.map_err(MoveError::Target)? {
            AppendOutcome::Stored { seq: Some(seq) } => Ok(seq),
            AppendOutcome::Full(_) => Err(MoveError::TooLarge(id)),
            // An earlier pass brought it, and the server that was asked lags behind.
            AppendOutcome::Duplicate { seq: Some(seq), .. } if self.waits(id, seq).await? => Ok(seq),
            AppendOutcome::Stored { seq: None } | AppendOutcome::Duplicate { .. } | AppendOutcome::Reused => {
                Err(MoveError::NotOurs(id))
            }
        }
    }
}

impl Move {
    async fn waits(&self, id: MailboxId, seq: u64) -> Result<bool, MoveError> {
        let fetch = Fetch {
            select: Select::Seqs(vec![seq]),
            ..fetch(0, Timestamp::UNIX_EPOCH)
        };
        let found = self.target.fetch(&id, fetch).await.map_err(MoveError::Target)?;
        Ok(!found.is_empty())
    }
}

fn name_of(message: &StoredMessage) -> Name {
    let StoredMessage {
        sender,
        id,
        recipient,
        ..
    } = message;
    (sender.clone(), *id, recipient.clone())
}

fn name_of_letter(letter: &DeadLetter) -> Result<Name, MoveError> {
    let recipient = parsed(&letter.wire)?.to;
    Ok((letter.sender.clone(), letter.id, recipient))
}

fn parsed(wire: &Bytes) -> Result<Envelope, MoveError> {
    Envelope::parse(wire).map_err(|refusal| MoveError::Unreadable(refusal.to_string()))
}

pub(super) async fn source_page(
    of: &Move,
    id: MailboxId,
    after: u64,
) -> Result<Vec<StoredMessage>, MoveError> {
    of.source
        .fetch(&id, fetch(after, of.now))
        .await
        .map_err(MoveError::Source)
}

pub(super) async fn target_page(
    of: &Move,
    id: MailboxId,
    after: u64,
) -> Result<Vec<StoredMessage>, MoveError> {
    of.target
        .fetch(&id, fetch(after, of.now))
        .await
        .map_err(MoveError::Target)
}

fn fetch(after: u64, now: Timestamp) -> Fetch {
    Fetch {
        select: Select::After(after),
        max_messages: MESSAGES,
        max_bytes: MESSAGES_BYTES,
        now,
    }
}
