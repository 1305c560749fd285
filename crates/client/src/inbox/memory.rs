//! An inbox that forgets with the process: for tests, and for agents whose effects are no worse twice.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use super::{Cursor, Inbox, InboxError, InboxState, MessageKey};

/// Remembers while the process lives.
#[derive(Debug, Default)]
pub struct MemoryInbox(Mutex<InboxState>);

impl MemoryInbox {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, InboxState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Inbox for MemoryInbox {
    async fn cursor(&self) -> Result<Option<Cursor>, InboxError> {
        Ok(self.state().cursor())
    }

    async fn enter(&self, epoch: &str, floor: u64) -> Result<(), InboxError> {
        self.state().enter(epoch, floor);
        Ok(())
    }

    async fn seen(&self, key: &MessageKey) -> Result<bool, InboxError> {
        Ok(self.state().seen(key))
    }

    async fn record(&self, keys: &[MessageKey], now: Timestamp) -> Result<(), InboxError> {
        let mut state = self.state();
        for key in keys {
            state.record(key, now);
        }
        Ok(())
    }
}
