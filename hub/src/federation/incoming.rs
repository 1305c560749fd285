//! What reception asks of this hub: its records of messages; and whom it tells of peers that are alive.

use std::sync::{Arc, Weak};

use aip_federation::delivery::Delivery;
use aip_federation::inbound::{Heard, MailStatus, Statuses};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use aip_relay::mailbox::MailboxStore;
use async_trait::async_trait;
use uuid::Uuid;

/// What became of messages that came from peers.
#[derive(Debug)]
pub(super) struct KeptStatuses(pub(super) Arc<dyn MailboxStore>);

#[async_trait]
impl Statuses for KeptStatuses {
    async fn status(&self, from: &Did, to: &Did, id: Uuid) -> Result<Option<MailStatus>, Refusal> {
        let records = self.0.status(from, id, Some(to)).await.map_err(|error| {
            tracing::warn!(%error, "The status of a message cannot be read");
            Refusal::new(error.code(), "The records cannot be read; try again.")
        })?;
        Ok(records.into_iter().next().map(|record| MailStatus {
            status: record.status.as_str().to_owned(),
            code: record.code,
            accepted_at: record.accepted_at,
            at: record.at,
        }))
    }
}

/// The sending side hears of peers that are alive.
#[derive(Debug)]
pub(super) struct Alive(pub(super) Weak<Delivery>);

impl Heard for Alive {
    fn heard(&self, peer: &Domain) {
        if let Some(delivery) = self.0.upgrade() {
            delivery.probe(peer);
        }
    }
}

/// What is refused where the hub does not federate.
pub(crate) fn switched_off() -> Refusal {
    Refusal::new(ErrorCode::NotFound, "This hub does not federate.")
}
