//! The vectors of queries: kept for the next time, waited for only so long.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use moka::future::Cache;
use tokio::sync::Semaphore;

use super::shelf::Shelf;
use crate::embedder::{EmbedError, Purpose};
use crate::limits::{QUERIES_EMBEDDED_AT_ONCE_MAX, QUERY_VECTORS_BYTES_MAX};

/// Embedder and text.
type Key = (String, String);

/// Asks embedders for the vectors of queries.
#[derive(Debug)]
pub(super) struct Asking {
    known: Cache<Key, Arc<[f32]>>,
    /// A query that is waited for no longer is still embedded, for the next time.
    at_once: Arc<Semaphore>,
    timeout: Duration,
}

impl Asking {
    pub(super) fn new(timeout: Duration) -> Self {
        let bytes = |key: &Key, vector: &Arc<[f32]>| {
            u32::try_from(key.0.len() + key.1.len() + 4 * vector.len() + 64).unwrap_or(u32::MAX)
        };
        Self {
            known: Cache::builder()
                .max_capacity(QUERY_VECTORS_BYTES_MAX)
                .weigher(bytes)
                .build(),
            at_once: Arc::new(Semaphore::new(QUERIES_EMBEDDED_AT_ONCE_MAX)),
            timeout,
        }
    }

    /// The vector of a query; none where the embedder does not give one in time.
    pub(super) async fn vector(&self, shelf: &Arc<Shelf>, text: &str, now: Timestamp) -> Option<Arc<[f32]>> {
        let key = (shelf.space.id().to_owned(), text.to_owned());
        if let Some(vector) = self.known.get(&key).await {
            return Some(vector);
        }
        if shelf.is_resting(now) {
            return None;
        }
        let permit = Arc::clone(&self.at_once).try_acquire_owned().ok()?;
        let (known, asked) = (self.known.clone(), Arc::clone(shelf));
        let embedding = tokio::spawn(async move {
            let _permit = permit;
            let text = key.1.clone();
            known.try_get_with(key, embed(&asked, text)).await
        });
        let failure = match tokio::time::timeout(self.timeout, embedding).await {
            Ok(Ok(Ok(vector))) => {
                shelf.answered();
                return Some(vector);
            }
            // It answered: that it refuses this text says nothing of the next.
            Ok(Ok(Err(error))) if matches!(*error, EmbedError::Broken(_)) => {
                tracing::debug!(%error, embedder = shelf.space.id(), "A query goes by text alone");
                return None;
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        shelf.failed(now);
        tracing::debug!(embedder = shelf.space.id(), failure, "A query goes by text alone");
        None
    }
}

async fn embed(shelf: &Shelf, text: String) -> Result<Arc<[f32]>, EmbedError> {
    let vectors = shelf.embedder.embed(Purpose::Query, &[text]).await?;
    let vector = vectors.into_iter().next().unwrap_or_default();
    let is_sound = vector.len() == shelf.space.dimensions() && vector.iter().all(|value| value.is_finite());
    if is_sound {
        Ok(vector.into())
    } else {
        Err(EmbedError::Broken("its vector is of another form".to_owned()))
    }
}
