//! What became of a message that was sent (spec §5).

use uuid::Uuid;

use super::Client;
use crate::error::Result;
use crate::message::parse_agent;
use crate::transport::Request;
use crate::wire::{MessageStatus, encoded};

impl Client {
    /// Asks the hub what became of a message; for its sender only, for 14 days. `to` (a handle or a DID) is needed when
    /// the same id went to several agents.
    pub async fn status(&self, id: Uuid, to: Option<&str>) -> Result<MessageStatus> {
        let mut path = format!("/api/v1/messages/{id}/status");
        if let Some(to) = to {
            path.push_str("?to=");
            path.push_str(&encoded(parse_agent(to)?.as_str()));
        }
        self.call_with_token(|| Request::get("asking for the status of a message", path.clone()))
            .await?
            .json()
    }
}
