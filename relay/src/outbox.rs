//! The outboxes of all peers, as federation sees them: mailboxes of the store, and the news for senders.

use std::sync::Arc;

use aip_federation::outbox::{Fate, Outbox, OutboxError, OutboxItem, OutboxState};
use aip_protocol::clock::Clock;
use aip_protocol::name::Domain;
use async_trait::async_trait;

use crate::limits::FETCH_MESSAGES_MAX;
use crate::mailbox::{Fetch, MailboxId, MailboxStore, Select, Settled, Status, StoreError, StoredMessage};
use crate::presence::{Presence, StatusUpdate};

/// See the module.
#[derive(Debug)]
pub struct StoredOutboxes {
    store: Arc<dyn MailboxStore>,
    presence: Arc<Presence>,
    clock: Arc<dyn Clock>,
}

impl StoredOutboxes {
    /// Over the store that [`crate::relay::Relay`] queues into.
    pub fn new(store: Arc<dyn MailboxStore>, presence: Arc<Presence>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            presence,
            clock,
        }
    }

    async fn fetch(
        &self,
        peer: &Domain,
        select: Select,
        max_messages: usize,
        max_bytes: usize,
    ) -> Result<Vec<OutboxItem>, OutboxError> {
        let fetch = Fetch {
            select,
            max_messages,
            max_bytes,
            now: self.clock.now(),
        };
        let found = self.store.fetch(&MailboxId::of_peer(peer), fetch).await;
        Ok(found.map_err(failed)?.into_iter().map(item).collect())
    }

    /// Tells the senders of what has left.
    fn tell(&self, settled: Vec<Settled>, fates: &[(u64, Fate)]) {
        let at = self.clock.now();
        for message in settled {
            let Some((_, fate)) = fates.iter().find(|(seq, _)| *seq == message.seq) else {
                continue;
            };
            let (status, code) = Status::of_fate(fate);
            let update = StatusUpdate {
                id: message.id,
                to: message.recipient,
                status,
                code: code.map(ToOwned::to_owned),
                at,
            };
            self.presence.status(&MailboxId::of(&message.sender), update);
        }
    }
}

#[async_trait]
impl Outbox for StoredOutboxes {
    fn epoch(&self) -> String {
        self.store.epoch().as_str().to_owned()
    }

    async fn state(&self, peer: &Domain) -> Result<OutboxState, OutboxError> {
        let state = self
            .store
            .state(&MailboxId::of_peer(peer))
            .await
            .map_err(failed)?;
        Ok(OutboxState {
            floor: state.floor,
            head: state.next_seq.saturating_sub(1),
            pending: state.pending,
            bytes: state.bytes,
        })
    }

    async fn after(
        &self,
        peer: &Domain,
        after: u64,
        items_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<OutboxItem>, OutboxError> {
        self.fetch(peer, Select::After(after), items_max, bytes_max).await
    }

    async fn items(&self, peer: &Domain, seqs: &[u64]) -> Result<Vec<OutboxItem>, OutboxError> {
        let mut seqs = seqs.to_vec();
        seqs.sort_unstable();
        let mut items = Vec::new();
        for some in seqs.chunks(FETCH_MESSAGES_MAX) {
            let select = Select::Seqs(some.to_vec());
            items.extend(self.fetch(peer, select, some.len(), usize::MAX).await?);
        }
        Ok(items)
    }

    async fn settle(&self, peer: &Domain, fates: &[(u64, Fate)]) -> Result<(), OutboxError> {
        let outbox = MailboxId::of_peer(peer);
        let settled = self.store.settle_outbox(&outbox, fates, self.clock.now()).await;
        self.tell(settled.map_err(failed)?, fates);
        Ok(())
    }
}

fn item(message: StoredMessage) -> OutboxItem {
    OutboxItem {
        peer_seq: message.seq,
        accepted_at: message.accepted_at,
        sender: message.sender,
        recipient: message.recipient,
        id: message.id,
        wire: message.wire,
    }
}

fn failed(error: StoreError) -> OutboxError {
    OutboxError(Box::new(error))
}
