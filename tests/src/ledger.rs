//! An inbox whose record is the application's effect: both happen, or neither does.
//!
//! It stands for an application that writes its effects and the inbox into one transaction, as the client library asks
//! for (`aip_client::inbox`, way 3). Here the effect is a line in the history.

use std::path::Path;

use aip_client::inbox::{Cursor, FileInbox, Inbox, InboxError, MessageKey};
use aip_client::protocol::time::Timestamp;
use async_trait::async_trait;

use crate::history::{Event, History};

/// See the module.
#[derive(Debug)]
pub struct Ledger {
    inbox: FileInbox,
    owner: String,
    history: History,
}

impl Ledger {
    /// Opens the file inbox in `folder`; its records go into the history as effects of `owner`.
    ///
    /// # Errors
    /// As [`FileInbox::open`]; [`InboxError::InUse`] while an earlier life still writes.
    pub fn open(folder: &Path, owner: String, history: History) -> Result<Self, InboxError> {
        Ok(Self {
            inbox: FileInbox::open(folder)?,
            owner,
            history,
        })
    }
}

#[async_trait]
impl Inbox for Ledger {
    async fn cursor(&self) -> Result<Option<Cursor>, InboxError> {
        self.inbox.cursor().await
    }

    async fn enter(&self, epoch: &str, floor: u64) -> Result<(), InboxError> {
        self.inbox.enter(epoch, floor).await
    }

    async fn seen(&self, key: &MessageKey) -> Result<bool, InboxError> {
        self.inbox.seen(key).await
    }

    /// On a thread of its own: whoever waits may be killed, the record and its line may not be torn apart.
    async fn record(&self, keys: &[MessageKey], now: Timestamp) -> Result<(), InboxError> {
        let (inbox, owner, history) = (self.inbox.clone(), self.owner.clone(), self.history.clone());
        let keys = keys.to_vec();
        let runtime = tokio::runtime::Handle::current();
        let written = tokio::task::spawn_blocking(move || {
            runtime.block_on(inbox.record(&keys, now))?;
            for key in keys {
                let MessageKey {
                    cursor: Cursor { epoch, seq },
                    id,
                } = key;
                history.push(Event::Apply {
                    to: owner.clone(),
                    id: hex::encode(id),
                    epoch,
                    seq,
                });
            }
            Ok(())
        });
        written
            .await
            .map_err(|error| InboxError::Store(Box::new(error)))?
    }
}
