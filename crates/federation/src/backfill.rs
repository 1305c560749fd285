//! Backfill: a peer that missed something asks for the mail that waits for it here (spec §8).
//!
//! Only the caller's own outbox is read, so nobody sees mail for another domain. Nothing leaves the outbox by being given
//! here: it leaves when the peer takes it from a push. What is given uses up the peer's budget of bytes.

use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::http_signature::Target;
use aip_protocol::limits::BATCH_BYTES_MAX;
use aip_protocol::name::Domain;
use bytes::Bytes;

use crate::delivery::batch::body;
use crate::inbound::{Call, Inbound, Ticket, query, unavailable};
use crate::limits::BACKFILL_ITEMS_MAX;
use crate::outbox::{OutboxItem, OutboxState};

/// A part of what waits for a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillPage {
    /// This hub's domain.
    pub domain: Domain,
    /// The epoch of its outboxes.
    pub epoch: String,
    /// Everything up to here has left its outbox.
    pub floor: u64,
    /// What waits, in order.
    pub items: Vec<OutboxItem>,
    /// What to ask for after this; `None`: nothing more waits.
    pub next: Option<u64>,
}

impl BackfillPage {
    /// The body of the answer: that of a push, and `next`. The envelopes are the bytes that their senders signed.
    pub fn to_body(&self) -> Bytes {
        let push = body(&self.domain, &self.epoch, self.floor, &self.items);
        let open = push.strip_suffix(b"}").unwrap_or(&push);
        let next = self
            .next
            .map_or_else(|| "null".to_owned(), |next| next.to_string());
        Bytes::from([open, format!(",\"next\":{next}}}").as_bytes()].concat())
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    epoch: String,
    after: u64,
    limit: usize,
}

impl Wanted {
    fn read(target: &Target) -> Result<Self, Refusal> {
        let [epoch, after, limit] = query::read(target, ["epoch", "after", "limit"])?;
        let after = query::given(after, "after")?.parse();
        let limit = limit.map_or(Ok(BACKFILL_ITEMS_MAX), |limit| limit.parse());
        let limit = limit
            .ok()
            .filter(|limit| (1..=BACKFILL_ITEMS_MAX).contains(limit));
        Ok(Self {
            epoch: query::given(epoch, "epoch")?,
            after: after.map_err(|_number| query::invalid("after", "is an integer from 0 on"))?,
            limit: limit.ok_or_else(|| query::invalid("limit", "is 1 to 256"))?,
        })
    }

    /// Whether everything after the cursor can be given: what has left the outbox cannot be given again, and what was never
    /// in it was never asked for by somebody who knows this epoch.
    fn check(&self, epoch: &str, state: &OutboxState) -> Result<(), Refusal> {
        if self.epoch != epoch {
            let detail = "The outbox has another epoch; take the one in the discovery document.";
            return Err(Refusal::new(ErrorCode::EpochChanged, detail).with("epoch", epoch));
        }
        if self.after > state.head {
            let detail = "Nothing with such a number was ever in the outbox.";
            return Err(Refusal::new(ErrorCode::FutureCursor, detail).with("head", state.head));
        }
        if self.after < state.floor {
            let detail = "What comes after the cursor has left the outbox; start at floor.";
            return Err(Refusal::new(ErrorCode::OutdatedCursor, detail).with("floor", state.floor));
        }
        Ok(())
    }
}

impl Inbound {
    /// Gives a peer what waits for it: `epoch`, `after` and, if wanted, `limit` in the query.
    ///
    /// # Errors
    ///
    /// Those of [`Inbound::push`] about the request; `parameter_unknown`, `parameter_invalid`; `epoch_changed`,
    /// `future_cursor`, and `outdated_cursor` for a cursor below the oldest item that may still be there, each with what is
    /// right instead.
    pub async fn outbox(&self, ticket: Ticket) -> Result<BackfillPage, Refusal> {
        let page = self.page(Arc::new(ticket)).await;
        self.counters().call(Call::Backfill, page)
    }

    async fn page(&self, ticket: Arc<Ticket>) -> Result<BackfillPage, Refusal> {
        let peer = self.caller(&ticket).await?;
        let wanted = Wanted::read(ticket.target())?;
        let outbox = self.outboxes();
        let epoch = outbox.epoch();
        let state = outbox.state(&peer).await.map_err(unavailable)?;
        wanted.check(&epoch, &state)?;
        // The envelopes are what the bytes are about; what is around them comes on top.
        let items = outbox
            .after(&peer, wanted.after, wanted.limit, BATCH_BYTES_MAX)
            .await
            .map_err(unavailable)?;
        self.give(&peer, items.iter().map(|item| item.wire.len()).sum());
        let last = items.last().map(|item| item.peer_seq);
        Ok(BackfillPage {
            domain: self.own().clone(),
            epoch,
            floor: state.floor,
            next: last.filter(|last| *last < state.head),
            items,
        })
    }
}
