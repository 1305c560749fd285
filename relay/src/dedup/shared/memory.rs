//! A shared window in one process's memory, for tests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aip_protocol::clock::Clock;
use async_trait::async_trait;

use super::{Accepted, SharedWindow};

/// Remembers everything until its end.
#[derive(Debug)]
pub struct MemoryWindow {
    noted: Mutex<HashMap<[u8; 16], Accepted>>,
    clock: Arc<dyn Clock>,
}

impl MemoryWindow {
    /// Nothing noted yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            noted: Mutex::default(),
            clock,
        }
    }
}

#[async_trait]
impl SharedWindow for MemoryWindow {
    async fn recall(&self, key: [u8; 16]) -> Option<Accepted> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = noted.get(&key).copied();
        accepted.filter(|accepted| self.clock.now() <= accepted.until)
    }

    fn note(&self, key: [u8; 16], accepted: Accepted) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.insert(key, accepted);
    }
}
