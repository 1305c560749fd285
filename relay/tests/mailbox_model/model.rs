//! A store of mail, too simple to be wrong.

use std::collections::{BTreeMap, HashMap};

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::suite::did;
use aip_relay::mailbox::{Append, AppendOutcome, Full, Quota, Route, Status};

pub(crate) const SENDERS: [&str; 2] = ["alice", "carol"];
pub(crate) const RECIPIENTS: [&str; 2] = ["bob", "dave"];
/// Small, so that histories meet them.
pub(crate) const QUOTA: Quota = Quota {
    mailbox_messages: 5,
    mailbox_bytes: 400,
    sender_messages: 3,
};
pub(crate) const LIFE_SECS: u64 = 2_000;

/// Who writes to whom under which id.
pub(crate) type Slot = (usize, usize, u64);

/// A message as the model keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) sent: Append,
    pub(crate) expires_at: Timestamp,
    pub(crate) attempts: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    pub(crate) given: u64,
    pub(crate) pending: BTreeMap<u64, Message>,
    pub(crate) dead: BTreeMap<u64, Message>,
}

impl Mailbox {
    pub(crate) fn bytes(&self) -> u64 {
        self.pending
            .values()
            .map(|message| message.sent.wire.len() as u64)
            .sum()
    }

    pub(crate) fn floor(&self) -> u64 {
        self.pending.keys().next().map_or(self.given, |lowest| lowest - 1)
    }

    pub(crate) fn full(&self, wire: usize) -> Option<Full> {
        if self.pending.len() as u64 >= u64::from(QUOTA.mailbox_messages) {
            Some(Full::MailboxMessages)
        } else if self.bytes() + wire as u64 > QUOTA.mailbox_bytes {
            Some(Full::MailboxBytes)
        } else {
            None
        }
    }

    pub(crate) fn put(&mut self, message: Message) -> u64 {
        self.given += 1;
        self.pending.insert(self.given, message);
        self.given
    }
}

/// What the window remembers.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) append: Append,
    pub(crate) seq: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) now: Timestamp,
    pub(crate) mailboxes: [Mailbox; 2],
    pub(crate) window: HashMap<Slot, Accepted>,
    /// An id may be used again after its window: on another day it has another record.
    pub(crate) status: BTreeMap<(Slot, i64), Status>,
    pub(crate) last: HashMap<Slot, Append>,
}

impl Model {
    pub(crate) fn slot_of(append: &Append) -> Slot {
        let place = |names: &[&str], of: &Did| names.iter().position(|name| did(name) == *of).unwrap();
        (
            place(&SENDERS, &append.sender),
            place(&RECIPIENTS, &append.recipient),
            append.id.as_u64_pair().1,
        )
    }

    pub(crate) fn day_of(append: &Append) -> (Slot, i64) {
        (
            Self::slot_of(append),
            append.accepted_at.unix_millis() / 86_400_000,
        )
    }

    pub(crate) fn append(&mut self, slot: Slot, append: &Append) -> AppendOutcome {
        if let Some(known) = self
            .window
            .get(&slot)
            .filter(|known| known.append.remember_until >= self.now)
        {
            return if known.append.digest == append.digest {
                AppendOutcome::Duplicate {
                    seq: known.seq,
                    route: known.append.route,
                }
            } else {
                AppendOutcome::Reused
            };
        }
        let seq = match append.route {
            Route::Direct => None,
            Route::Mailbox | Route::Peer => {
                let mailbox = &mut self.mailboxes[slot.1];
                if let Some(full) = mailbox.full(append.wire.len()) {
                    return AppendOutcome::Full(full);
                }
                let same = mailbox
                    .pending
                    .values()
                    .filter(|message| message.sent.sender == append.sender);
                if same.count() >= QUOTA.sender_messages as usize {
                    return AppendOutcome::Full(Full::Sender);
                }
                let message = Message {
                    sent: append.clone(),
                    expires_at: append.expires_at,
                    attempts: 0,
                };
                Some(mailbox.put(message))
            }
        };
        self.window.insert(
            slot,
            Accepted {
                append: append.clone(),
                seq,
            },
        );
        let status = if seq.is_some() {
            Status::Stored
        } else {
            Status::Delivered
        };
        self.status.insert(Self::day_of(append), status);
        AppendOutcome::Stored { seq }
    }

    pub(crate) fn settle(&mut self, to: usize, seq: u64, status: Status) -> Option<Message> {
        let message = self.mailboxes[to].pending.remove(&seq)?;
        self.status.insert(Self::day_of(&message.sent), status);
        Some(message)
    }
}
