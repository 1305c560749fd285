//! Mail that comes back: the hub's own agent writes to its sender (`docs/protocol/federation.md`).

use std::sync::Arc;

use aip_federation::delivery::{Bounce, BounceError, Bounces};
use aip_federation::outbox::Fate;
use aip_relay::relay::SendError;
use async_trait::async_trait;
use serde::Serialize;

use crate::agent::{HubAgent, Outgoing};

/// The type of the message.
const KIND: &str = "aip.bounce";

/// What it says.
#[derive(Serialize)]
struct Body {
    id: String,
    to: String,
    status: &'static str,
    code: String,
    accepted_at: String,
}

/// Senders are told by the hub's own agent.
#[derive(Debug)]
pub(super) struct AgentBounces(pub(super) Arc<HubAgent>);

#[async_trait]
impl Bounces for AgentBounces {
    async fn bounce(&self, bounce: Bounce) -> Result<(), BounceError> {
        // What the agent itself sent and could not deliver is told to nobody: a bounce has no bounce.
        if bounce.sender == *self.0.did() {
            return Ok(());
        }
        let (status, code) = match bounce.fate {
            Fate::Refused(code) => ("refused", code),
            Fate::Dead(code) => ("dead", code),
            Fate::Delivered | Fate::Expired => return Ok(()),
        };
        let id = bounce.id.hyphenated().to_string();
        let body = Body {
            to: bounce.recipient.to_string(),
            status,
            code,
            accepted_at: bounce.accepted_at.to_string(),
            id: id.clone(),
        };
        let mut message = Outgoing::json(bounce.sender, KIND, "application/json", &body)
            .map_err(|error| BounceError(Box::new(error)))?;
        message.key = Some(format!("{id} {}", bounce.recipient));
        message.reply_to = Some(id);
        match self.0.send(message).await {
            // A mailbox that is full, a sender who is gone: that will not be otherwise soon, and the status tells.
            Ok(_) | Err(SendError::Refused(_)) => Ok(()),
            Err(error) => Err(BounceError(Box::new(error))),
        }
    }
}
