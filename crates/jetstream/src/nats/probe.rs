//! Asking a stream whether it knows an id, without storing anything.

use aip_relay::mailbox::StoreError;
use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_STREAM;
use bytes::Bytes;
use serde::Deserialize;

use super::answer::ApiError;
use super::{Nats, named};

/// `Nats-Rollup`, here with a value that no stream accepts.
const ROLLUP: &str = "Nats-Rollup";
const NO_ROLLUP: &str = "probe";
/// Error code of a publish whose roll-up is refused.
const ROLLUP_REFUSED: u64 = 10111;

#[derive(Deserialize)]
struct Ack {
    #[serde(default)]
    error: Option<ApiError>,
    #[serde(default)]
    stream: String,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    duplicate: bool,
}

impl Nats {
    /// The place of the message that was stored in `stream` under `id`, as long as the stream knows it.
    ///
    /// A stream looks at the id before it looks at the roll-up, and refuses one of no valid kind before anything
    /// is proposed or remembered: the publish is a question.
    pub(crate) async fn known(
        &self,
        stream: &str,
        subject: &str,
        id: &str,
    ) -> Result<Option<u64>, StoreError> {
        let mut headers = named(HeaderMap::new(), id);
        headers.insert(NATS_EXPECTED_STREAM, stream);
        headers.insert(ROLLUP, NO_ROLLUP);
        let within = self.options().read_timeout;
        let message = self
            .request(subject.to_owned(), Some(headers), Bytes::new(), within)
            .await?;
        let unclear = || StoreError::Unavailable("JetStream does not say whether it knows an id".into());
        let Ok(ack) = serde_json::from_slice::<Ack>(&message.payload) else {
            return Err(unclear());
        };
        match ack.error {
            None if ack.duplicate && ack.seq > 0 && ack.stream == stream => Ok(Some(ack.seq)),
            Some(error) if error.err_code == ROLLUP_REFUSED => Ok(None),
            Some(error) => Err(error.unavailable()),
            None => Err(unclear()),
        }
    }
}
