//! Receipts, on both sides: what was asked for is written down, what comes is checked, and what asks is answered.

use std::sync::Arc;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{Client, blocking};
use crate::error::Result;
use crate::limits::RECEIPT_BYTES_MAX;
use crate::message::{Draft, Incoming, KIND_BOUNCE, KIND_RECEIPT, SealedEnvelope};
use crate::opening::UNREADABLE;
use crate::receipts::{AskedKey, Kept, Receipt, ReceiptState};

/// Why a receipt is not good.
const RECEIPT_MISMATCH: &str = "receipt_mismatch";

/// The body of a receipt (`docs/protocol/federation.md`).
#[derive(Deserialize)]
struct ReceiptBody {
    #[serde(with = "crate::wire::uuid_text")]
    id: Uuid,
    digest: String,
    state: ReceiptState,
    at: Timestamp,
}

/// What to do with a receipt that came.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It was kept just now.
    Kept(Box<Receipt>),
    /// It tells nothing new, or is for nothing that was asked for here: done with.
    Done,
    /// It is a lie or no receipt at all: to the dead letters, with this code.
    Bad(&'static str),
}

impl Client {
    /// The receipts that came for messages of this agent, in the order in which they were given. The newest
    /// [`RECEIPTS_KEPT_MAX`](crate::limits::RECEIPTS_KEPT_MAX) messages that asked for one are remembered.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub async fn receipts(&self) -> Result<Vec<Receipt>> {
        let receipts = Arc::clone(&self.0.receipts);
        blocking(move || receipts.list()).await?
    }

    /// The receipt for a message, if it has come.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub async fn receipt(&self, id: Uuid) -> Result<Option<Receipt>> {
        let mut receipts = self.receipts().await?.into_iter();
        Ok(receipts.find(|receipt| receipt.id == id))
    }

    /// The receipt that a message asks for, to be sent by the application: such as one that says
    /// [`ReceiptState::Read`]. [`ReceiptState::Delivered`] is sent by itself when the message is acknowledged. Its id follows
    /// from the message, so that sending it twice is sending it once. `None` where no receipt is asked for.
    pub fn receipt_for(&self, message: &Incoming, state: ReceiptState) -> Option<Draft> {
        let is_of_mail = message.kind != KIND_RECEIPT && message.kind != KIND_BOUNCE;
        (message.asks_receipt && is_of_mail).then(|| {
            let body = json!({
                "id": message.id.to_string(),
                "digest": message.envelope.multihash(),
                "state": state,
                "at": Timestamp::from_unix_millis(self.now().unix_millis()).to_string(),
            });
            Draft::json(&message.from, body)
                .kind(KIND_RECEIPT)
                .reply_to(message.id.to_string())
                .id(receipt_id(message, state))
        })
    }

    /// Writes down what a receipt for this will have to say.
    pub(super) async fn expect_receipt(&self, sealed: &SealedEnvelope) -> Result<()> {
        let (key, digest) = (
            asked_key(&sealed.envelope().to, sealed.id()),
            sealed.envelope().multihash(),
        );
        let (receipts, now) = (Arc::clone(&self.0.receipts), self.now());
        blocking(move || receipts.ask(key, digest, now)).await?
    }

    /// A verified message of type `aip.receipt` came: it counts where its signer is the very recipient of a message that
    /// asked, and where it names the very bytes.
    pub(crate) async fn take_receipt(&self, message: &Incoming) -> Result<Taken> {
        let Some(receipt) = read(message) else {
            return Ok(Taken::Bad(UNREADABLE));
        };
        let key = asked_key(&receipt.from, receipt.id);
        let (receipts, kept) = (Arc::clone(&self.0.receipts), receipt.clone());
        Ok(match blocking(move || receipts.keep(key, kept)).await?? {
            Kept::Now => Taken::Kept(Box::new(receipt)),
            Kept::Before => Taken::Done,
            Kept::Unasked => {
                tracing::info!(id = %receipt.id, from = %receipt.from, "a receipt for what was not asked for here");
                Taken::Done
            }
            Kept::OtherDigest => Taken::Bad(RECEIPT_MISMATCH),
        })
    }

    /// The receipts for messages that were processed, where they are asked for and this client gives any.
    pub(crate) fn answers_for<'a>(&self, messages: &'a [Incoming]) -> impl Iterator<Item = Draft> + use<'a> {
        let client = self.clone();
        let messages = if self.0.answers_receipts { messages } else { &[] };
        messages
            .iter()
            .filter_map(move |message| client.receipt_for(message, ReceiptState::Delivered))
    }

    /// Sends receipts. One that cannot be sent is told and forgotten: a receipt proves something where it is there, and its
    /// absence proves nothing.
    pub(crate) async fn send_receipts(&self, drafts: &[Draft]) {
        let results = match self.send_batch(drafts).await {
            Ok(results) => results,
            Err(error) => vec![Err(error)],
        };
        for error in results.into_iter().filter_map(Result::err) {
            // Sealed anew, it has other bytes under the same id: the first one is there.
            if !error.is_code(ErrorCode::IdReused) {
                tracing::warn!(error = error.sentence(), "a receipt could not be sent");
            }
        }
    }
}

/// What a message is known by whose receipt is waited for: its recipient and its id. Not its sender: this agent may have
/// moved since, and the receipt comes to who it is now. The digest holds all three.
fn asked_key(recipient: &Did, id: Uuid) -> AskedKey {
    let mut hash = Sha256::new();
    hash.update(id.as_bytes());
    hash.update(recipient.as_str());
    let digest = hash.finalize();
    digest.first_chunk().copied().unwrap_or_default()
}

/// One message has one receipt of a state, whoever makes it how often.
fn receipt_id(message: &Incoming, state: ReceiptState) -> Uuid {
    let mut hash = Sha256::new();
    hash.update("aip/1 receipt\n");
    hash.update(message.envelope.dedup_key());
    hash.update(match state {
        ReceiptState::Delivered => "delivered",
        ReceiptState::Read => "read",
    });
    let digest = hash.finalize();
    let bytes = digest.first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

fn read(message: &Incoming) -> Option<Receipt> {
    let body = ReceiptBody::deserialize(message.content.as_json()?).ok()?;
    let is_of_one = message.reply_to.as_deref() == Some(body.id.to_string().as_str());
    let is_small = message.envelope.to_wire().len() <= RECEIPT_BYTES_MAX;
    (is_of_one && is_small).then(|| Receipt {
        id: body.id,
        from: message.from.clone(),
        digest: body.digest,
        state: body.state,
        at: body.at,
        accepted_at: message.accepted_at,
        envelope: message.envelope.json.clone(),
    })
}
