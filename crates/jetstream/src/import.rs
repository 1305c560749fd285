//! Takes in what another store has kept: for moving a hub here.
//!
//! Messages and dead letters come in by the traits, as they came into the other store. What became of messages that
//! are gone is only told; here it is written.

use aip_relay::mailbox::{MailboxId, StatusRecord, StoreError};
use async_nats::HeaderMap;
use futures_util::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use crate::limits;
use crate::nats::named;
use crate::store::JetStreamMailboxes;

impl JetStreamMailboxes {
    /// Writes statuses as they are; durable when it returns. `sender` is [`MailboxId::of`] the sender's DID. One that is
    /// written again changes nothing, and a newer one of the same message wins whatever the order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::OutcomeUnknown`]: some may be written; write them all again.
    pub async fn import_statuses(
        &self,
        statuses: Vec<(MailboxId, Uuid, StatusRecord)>,
    ) -> Result<(), StoreError> {
        let room = self.room();
        let records = statuses
            .into_iter()
            .map(|(sender, id, record)| room.statuses.packed(sender, id, record));
        stream::iter(records)
            .map(|record| async move {
                let headers = named(HeaderMap::new(), &record.id);
                room.nats.publish(&record.subject, headers, record.payload).await
            })
            .buffer_unordered(limits::BACKGROUND_AT_ONCE)
            .try_for_each(|_stored| async { Ok(()) })
            .await
    }
}
