//! The mailboxes that this process remembers: a bounded number, those used last.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_relay::mailbox::{MailboxId, StoreError};

use crate::limits;
use crate::mailbox::Mailbox;
use crate::room::Room;

/// Two generations: used ones are young; when those are too many, they become the old ones, and the old ones go.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<MailboxId, Arc<Mailbox>>,
    old: HashMap<MailboxId, Arc<Mailbox>>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) room: Arc<Room>,
    kept: Mutex<Generations>,
}

impl Cache {
    pub(crate) fn new(room: Arc<Room>) -> Self {
        Self {
            room,
            kept: Mutex::default(),
        }
    }

    /// The mailbox, remembered or new. There is one object of each at any time; a new one when its shard has moved.
    pub(crate) fn get(&self, id: &MailboxId) -> Arc<Mailbox> {
        let mut kept = self.kept();
        let here = |mailbox: &Arc<Mailbox>| self.room.layout.holds(&mailbox.place);
        if let Some(mailbox) = kept.young.get(id).filter(|mailbox| here(mailbox)) {
            return Arc::clone(mailbox);
        }
        let mailbox = kept
            .old
            .remove(id)
            .filter(here)
            .unwrap_or_else(|| Arc::new(Mailbox::new(*id, Arc::clone(&self.room))));
        if kept.young.len() >= limits::MAILBOXES_KEPT_MAX {
            kept.grow_old();
        }
        kept.young.insert(*id, Arc::clone(&mailbox));
        mailbox
    }

    /// Asks the mailbox; once more when it has moved, so that nothing was done.
    pub(crate) async fn ask<T, F>(
        &self,
        id: &MailboxId,
        call: impl Fn(Arc<Mailbox>) -> F + Send,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let mailbox = self.get(id);
        match call(Arc::clone(&mailbox)).await {
            Err(StoreError::Unavailable(_)) if !self.room.layout.holds(&mailbox.place) => {
                call(self.get(id)).await
            }
            outcome => outcome,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Generations> {
        // What is forgotten is read again.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    /// What is in use stays: two objects of one mailbox would only get in each other's way.
    fn grow_old(&mut self) {
        let old = mem::replace(&mut self.old, mem::take(&mut self.young));
        self.young.extend(
            old.into_iter()
                .filter(|(_, mailbox)| Arc::strong_count(mailbox) > 1),
        );
    }
}
