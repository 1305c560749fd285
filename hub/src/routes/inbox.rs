//! The inbox for clients without a WebSocket (§6): long poll, ack, event stream, dead letters.

use actix_web::HttpRequest;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_relay::inbox::Item;
use aip_relay::mailbox::{Cursor, StoreError};
use aip_relay::session::SessionId;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::extract::bearer;
use crate::routes::Endpoint;

pub mod ack;
pub mod dead;
pub mod poll;
pub mod redrive;
pub mod stream;

/// The endpoints of this resource. None of them answers `HEAD`: a look into the inbox counts as an offer.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/api/v1/inbox").stream(poll::poll),
        Endpoint::at("/api/v1/inbox/ack").post(ack::ack),
        Endpoint::at("/api/v1/inbox/stream").stream(stream::stream),
        Endpoint::at("/api/v1/inbox/dead").stream(dead::dead),
        Endpoint::at("/api/v1/inbox/dead/{seq}/redrive").post(redrive::redrive),
    ]
}

/// A message as it is offered.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the documentation; the bytes are put together"
)]
struct InboxItem {
    /// Its place in the mailbox.
    #[schema(example = 17)]
    seq: u64,
    /// Which offer this is, from 1.
    #[schema(example = 1)]
    attempt: u32,
    /// When the hub accepted it, RFC 3339.
    accepted_at: String,
    /// The envelope as its sender wrote it.
    #[schema(value_type = Object)]
    envelope: String,
}

/// Appends an item. The envelope goes in as the bytes that the sender wrote.
fn put_item(text: &mut Vec<u8>, item: &Item) {
    let Item {
        seq,
        attempt,
        accepted_at,
        wire,
    } = item;
    let head =
        format!("{{\"seq\":{seq},\"attempt\":{attempt},\"accepted_at\":\"{accepted_at}\",\"envelope\":");
    text.extend_from_slice(head.as_bytes());
    text.extend_from_slice(wire);
    text.push(b'}');
}

/// The bytes that [`put_item`] needs beside the envelope, about.
const ITEM_BYTES: usize = 128;

/// What the offers of a request count as: all requests with one token are one session.
fn session_of(req: &HttpRequest) -> SessionId {
    let digest = Sha256::digest(bearer(req).unwrap_or("").as_bytes());
    let bits = digest
        .iter()
        .take(8)
        .fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte));
    SessionId::from_random(bits)
}

/// A cursor as the hub writes it, `epoch:seq`.
fn cursor(text: &str) -> Result<Cursor, ApiError> {
    Cursor::parse(text).ok_or_else(|| {
        let detail = "A cursor is `epoch:seq`, as the hub wrote it. Start again without one.";
        Refusal::new(ErrorCode::CursorInvalid, detail).into()
    })
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::failed(error.code(), error)
    }
}

#[cfg(test)]
mod tests;
