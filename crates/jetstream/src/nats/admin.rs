//! Questions about streams, and a way to know that the server has seen what was sent before.

use std::collections::HashMap;
use std::time::Duration;

use aip_relay::mailbox::StoreError;
use serde::Deserialize;
use tokio::time::timeout;

use super::answer::{self, Answer};
use super::{Nats, Silence};
use crate::limits;

#[derive(Deserialize)]
struct Info {
    state: State,
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    subjects: HashMap<String, u64>,
}

impl Nats {
    /// The subjects of a stream that match `filter` and hold something, in no order; at most
    /// [`limits::SUBJECTS_MAX`], which is also what the server tells at once.
    pub(crate) async fn subjects(&self, stream: &str, filter: &str) -> Result<Vec<String>, StoreError> {
        let body = serde_json::json!({ "subjects_filter": filter }).to_string();
        let call = self.api(&format!("STREAM.INFO.{stream}"));
        let message = self
            .request(call, None, body.into(), self.options().read_timeout)
            .await?;
        match answer::read::<Info>(&message.payload)? {
            Answer::Done(Info { state }) => {
                Ok(state.subjects.into_keys().take(limits::SUBJECTS_MAX).collect())
            }
            Answer::Refused(error) => Err(error.unavailable()),
        }
    }

    /// Returns when the server has handled everything that was sent before, such as a new subscription: a message
    /// to ourselves has come back.
    pub(crate) async fn round_trip(&self, within: Duration) -> Result<(), Silence> {
        if !self.connected() {
            return Err(Silence::NotConnected);
        }
        let there_and_back = async {
            let mut replies = self.0.inbox.open(1).await;
            let subject = replies.subject().to_owned();
            let sent = self.client().publish(subject, bytes::Bytes::new()).await;
            sent.map_err(|_closed| Silence::NotConnected)?;
            replies.next().await.map(|_| ()).ok_or(Silence::NotConnected)
        };
        timeout(within, there_and_back)
            .await
            .unwrap_or(Err(Silence::TimedOut))
    }
}
