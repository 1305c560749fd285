//! What other processes of the hub do: whose session counts, and what is heard of them.

use std::time::Duration;

use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream;

use super::slot::Slot;
use super::{Desk, Inside, Presence, lock};
use crate::limits::{CLAIM_SECS, REUNITE_AT_ONCE_MAX};
use crate::mailbox::MailboxId;
use crate::neighbours::{Claim, Ears, Entry, Signal, Taken};
use crate::session::{Elsewhere, Event};

impl Inside {
    /// Whether a session that is about to begin is older than the newest one, and so is replaced already. Remembers it
    /// if not.
    pub(super) fn is_outdone(&mut self, generation: u64, share: bool) -> bool {
        let (newest, newest_shares) = self.newest;
        if generation == 0 {
            return false;
        }
        if generation >= newest {
            self.newest = (generation, share);
            return false;
        }
        !(share && newest_shares)
    }

    /// A session of another process has begun: it replaces what is older here. What is newer makes itself known.
    fn joined_there(
        &mut self,
        desk: &Desk,
        mailbox: &MailboxId,
        now: Timestamp,
        generation: u64,
        share: bool,
    ) {
        if generation >= self.newest.0 {
            self.newest = (generation, share);
        }
        let rivals = || {
            self.lines
                .iter()
                .filter(|line| line.is_open() && !(share && line.share))
        };
        let newer = rivals().find(|line| line.generation > generation);
        if let Some(line) = newer {
            let (generation, share) = (line.generation, line.share);
            desk.neighbours
                .tell(mailbox, Signal::Joined { generation, share });
        }
        let older = rivals().filter(|line| line.generation < generation);
        let older: Vec<_> = older.map(|line| line.session).collect();
        if !older.is_empty() {
            let event = Event::Elsewhere(Elsewhere::TakenOver(older));
            self.handle(desk, mailbox, now, event);
        }
    }

    /// The newest session: its generation, and whether it shares.
    fn standing(&self) -> Option<(u64, bool)> {
        let open = self.lines.iter().filter(|line| line.is_open());
        open.map(|line| (line.generation, line.share)).max()
    }

    /// Sessions that nobody could be asked about have a generation now.
    fn number(&mut self, generation: u64) {
        for line in self.lines.iter_mut().filter(|line| line.generation == 0) {
            line.generation = generation;
        }
        if generation > self.newest.0 {
            self.newest = (generation, self.standing().is_some_and(|(_, share)| share));
        }
    }
}

impl Slot {
    fn hear(&self, desk: &Desk, mailbox: &MailboxId, signal: Signal, now: Timestamp) {
        let what = match signal {
            Signal::Offered { seq } => Elsewhere::Offered(seq),
            Signal::Settled { upto, also, floor } => Elsewhere::Settled { upto, also, floor },
            Signal::Buried { seq } => Elsewhere::Buried(seq),
            Signal::Released { seqs } => Elsewhere::Released(seqs),
            Signal::Status(update) => {
                self.queue_status(&desk.counters, &update.into());
                return;
            }
            Signal::Close(reason) => return self.close(reason),
            Signal::Joined { generation, share } => {
                return lock(&self.inside).joined_there(desk, mailbox, now, generation, share);
            }
        };
        self.tell(desk, mailbox, now, what);
    }
}

impl Presence {
    /// Which of these messages a session of another process has in hand; the others are this process's.
    pub(crate) async fn claim(&self, mailbox: &MailboxId, seqs: &[u64]) -> Vec<Taken> {
        let hold = Duration::from_secs(CLAIM_SECS);
        let claims: Vec<_> = seqs.iter().map(|seq| Claim { seq: *seq, hold }).collect();
        self.desk.neighbours.claim(mailbox, &claims).await
    }

    /// Tells of an agent's sessions again.
    async fn rejoin(&self, mailbox: &MailboxId) {
        let standing = self.slots.get(mailbox);
        let standing = standing.and_then(|slot| lock(&slot.inside).standing());
        let Some((generation, share)) = standing else {
            return;
        };
        let mut entry = self.desk.neighbours.join(mailbox, share, generation).await;
        if let Entry::Wait(pause) = entry {
            tokio::time::sleep(pause).await;
            entry = self.desk.neighbours.join(mailbox, share, generation).await;
        }
        if let (Entry::In { generation }, Some(slot)) = (entry, self.slots.get(mailbox)) {
            lock(&slot.inside).number(generation);
        }
    }
}

#[async_trait]
impl Ears for Presence {
    fn hear(&self, mailbox: &MailboxId, signal: Signal, now: Timestamp) {
        if let Some(slot) = self.slots.get(mailbox) {
            slot.hear(&self.desk, mailbox, signal, now);
        }
    }

    async fn reunite(&self, now: Timestamp) {
        self.look_again_all(now);
        let mailboxes: Vec<_> = self.slots.iter().map(|slot| *slot.key()).collect();
        stream::iter(&mailboxes)
            .for_each_concurrent(REUNITE_AT_ONCE_MAX, |mailbox| self.rejoin(mailbox))
            .await;
    }
}
