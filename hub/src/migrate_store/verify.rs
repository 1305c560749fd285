//! Whether a mailbox is the same in both stores.

use std::time::Duration;

use aip_protocol::name::Did;
use aip_relay::mailbox::{DeadLetters, MailboxId};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;
use uuid::Uuid;

use super::mailbox::{Moved, source_page, target_page};
use super::{MESSAGES, Move, MoveError};

/// Looks at a mailbox of the target: the server that is asked may lag behind what was written.
const LOOKS_MAX: u32 = 20;
/// Between two of them.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// What a mailbox holds, in so few bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    messages: u64,
    bytes: u64,
    /// Of the messages in their order.
    pending: [u8; 32],
    /// Of each dead letter; their order is of no consequence.
    dead: Vec<[u8; 32]>,
}

impl Move {
    pub(super) async fn is_same(&self, id: MailboxId) -> Result<Moved, MoveError> {
        let source = self.content(id, true).await?;
        for _ in 0..LOOKS_MAX {
            if self.content(id, false).await? == source {
                return Ok(Moved {
                    mailboxes: 1,
                    messages: source.messages,
                    bytes: source.bytes,
                    dead: source.dead.len() as u64,
                });
            }
            sleep(LOOK_PAUSE).await;
        }
        Err(MoveError::Differs(id))
    }

    async fn content(&self, id: MailboxId, of_source: bool) -> Result<Content, MoveError> {
        let (mut content, mut after) = (Content::default(), 0);
        let mut hash = Sha256::new();
        loop {
            let page = if of_source {
                source_page(self, id, after).await?
            } else {
                target_page(self, id, after).await?
            };
            let Some(newest) = page.last() else { break };
            after = newest.seq;
            for message in &page {
                content.messages += 1;
                content.bytes += message.wire.len() as u64;
                hash.update(digest(
                    &message.sender,
                    message.id,
                    &message.expires_at.to_string(),
                    &message.wire,
                ));
            }
        }
        content.pending = hash.finalize().into();
        content.dead = self.dead_content(id, of_source).await?;
        Ok(content)
    }

    async fn dead_content(&self, id: MailboxId, of_source: bool) -> Result<Vec<[u8; 32]>, MoveError> {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = if of_source {
                self.source
                    .dead(&id, after, MESSAGES)
                    .await
                    .map_err(MoveError::Source)?
            } else {
                self.target
                    .dead(&id, after, MESSAGES)
                    .await
                    .map_err(MoveError::Target)?
            };
            let Some(newest) = page.last() else { break };
            after = newest.seq;
            found.extend(page.iter().map(|letter| {
                let fate = format!("{} {}", letter.at, letter.code);
                digest(&letter.sender, letter.id, &fate, &letter.wire)
            }));
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Each part after its length, so that no two lists of parts are the same bytes.
fn digest(sender: &Did, id: Uuid, more: &str, wire: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [sender.as_str().as_bytes(), id.as_bytes(), more.as_bytes(), wire] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
