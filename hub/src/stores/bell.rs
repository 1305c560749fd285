//! Passes news of mail that any process stored on to whoever is connected here. The store that brings the news is
//! opened first, so that whom to tell is said later.

use std::sync::{Arc, OnceLock, Weak};

use aip_protocol::clock::Clock;
use aip_relay::mailbox::MailboxId;
use aip_relay::presence::Presence;

/// Rings once it hangs somewhere.
#[derive(Debug, Default)]
pub struct Bell(OnceLock<(Weak<Presence>, Arc<dyn Clock>)>);

impl Bell {
    /// From now on `presence` is told. Only the first one is.
    pub fn hang(&self, presence: &Arc<Presence>, clock: Arc<dyn Clock>) {
        // A second one would be another hub over the same stores, which is not built.
        drop(self.0.set((Arc::downgrade(presence), clock)));
    }

    /// A mailbox may have new messages; `seq` is the place of the newest, if it is known. Never blocks.
    pub(super) fn ring(&self, mailbox: &MailboxId, seq: Option<u64>) {
        let hung = self.0.get();
        let Some((presence, clock)) = hung.and_then(|(presence, clock)| Some((presence.upgrade()?, clock)))
        else {
            return;
        };
        match seq {
            Some(seq) => presence.wake(mailbox, seq, clock.now()),
            None => presence.look_again(mailbox, clock.now()),
        }
    }
}
