//! A model behind HTTP: `/v1/embeddings`, as Ollama, TEI, vLLM and most clouds have it.

mod call;
mod options;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aip_catalog::{EmbedError, Embedder, Purpose};
use async_trait::async_trait;
use moka::sync::Cache;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::limits::{
    HTTP_PASSAGE_CALLS_MAX, HTTP_QUERY_CALLS_MAX, HTTP_TEXTS_MAX, PASSAGE_ATTEMPTS_MAX, PASSAGE_WAIT_MAX,
    QUERY_ATTEMPTS_MAX, QUERY_WAIT_MAX, SHORTENED_MAX,
};
use call::{Failure, Server};
pub use options::{ApiKey, HttpOptions, OptionsError};

/// A text's SHA-256, and its vector.
type Known = Cache<[u8; 32], Arc<[f32]>>;

/// Asks a server for vectors.
///
/// A text that is asked for again within a while is answered from memory. A blank text is not sent, since some servers refuse
/// it: its vector is all zero. Queries are tried twice at once, passages longer and with pauses, as the server asks for them.
/// Where a server is too slow for a batch or finds it too long, fewer texts are sent at once; where it finds a single text too
/// long, a shorter one. Whatever it answers is checked: as many vectors as texts, of the right dimension, of finite numbers;
/// their lengths are made 1. Nothing is sent anywhere but to the address that was given, also not where that one leads.
#[derive(Debug)]
pub struct HttpEmbedder {
    id: String,
    options: HttpOptions,
    server: Server,
    known: Known,
    queries: Semaphore,
    passages: Semaphore,
    /// Texts that the server manages in time: halved when it does not, one more when it does.
    fit_texts: AtomicUsize,
}

impl HttpEmbedder {
    /// Sets the client up; nothing is sent. The address is the operator's: it may be private, or this machine.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] says which option cannot be used.
    pub fn new(options: HttpOptions) -> Result<Self, OptionsError> {
        options.check()?;
        let server = Server::new(&options)?;
        let known = Cache::builder()
            .max_capacity(options.cache_bytes_max)
            .weigher(|_key, vector: &Arc<[f32]>| u32::try_from(vector.len() * 4 + 128).unwrap_or(u32::MAX))
            .build();
        Ok(Self {
            id: options.id(),
            server,
            known,
            queries: Semaphore::new(HTTP_QUERY_CALLS_MAX),
            passages: Semaphore::new(HTTP_PASSAGE_CALLS_MAX),
            fit_texts: AtomicUsize::new(options.batch_texts),
            options,
        })
    }

    /// The text as the model is given it.
    fn text(&self, purpose: Purpose, text: &str) -> String {
        let prefix = match purpose {
            Purpose::Query => &self.options.query_prefix,
            Purpose::Passage => &self.options.passage_prefix,
        };
        let end = text.floor_char_boundary(self.options.text_bytes_max);
        format!("{prefix}{}", text.get(..end).unwrap_or_default())
    }

    /// Sorts the texts into those whose vectors are known and those to ask for.
    fn look_up(&self, purpose: Purpose, texts: &[String]) -> Wanted {
        let mut wanted = Wanted::default();
        for text in texts {
            let is_blank = text.trim().is_empty();
            let text = self.text(purpose, text);
            let key = Sha256::digest(&text).into();
            wanted.keys.push(key);
            if is_blank {
                let zeros = vec![0.0; self.options.dimensions];
                wanted.found.insert(key, zeros.into());
            } else if let Some(vector) = self.known.get(&key) {
                wanted.found.insert(key, vector);
            } else if !wanted.missing.iter().any(|(other, _)| *other == key) {
                wanted.missing.push((key, text));
            }
        }
        wanted
    }

    /// Vectors of texts that differ, in order; fewer at once and shorter where the server wants that.
    async fn fetch(&self, purpose: Purpose, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        // The batch that is next lies on top. With each: how often its text was halved.
        let mut todo: Vec<(Vec<String>, u32)> = batches(texts, self.fit_texts.load(Ordering::Relaxed));
        while let Some((mut batch, shortened)) = todo.pop() {
            let half = batch.len() / 2;
            match self.ask(purpose, &batch).await {
                Ok(found) => {
                    self.fit(batch.len() + 1);
                    vectors.extend(found);
                }
                Err(failure) if half > 0 && failure.is_about_size() => {
                    if matches!(failure, Failure::TimedOut) {
                        self.fit_texts.store(half, Ordering::Relaxed);
                    }
                    let rest = batch.split_off(half);
                    todo.push((rest, 0));
                    todo.push((batch, 0));
                }
                Err(Failure::TooMuch(_)) if shortened < SHORTENED_MAX => {
                    todo.push((batch.into_iter().map(halved).collect(), shortened + 1));
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(vectors)
    }

    /// So many texts may be tried at once.
    fn fit(&self, texts: usize) {
        self.fit_texts
            .fetch_max(texts.min(self.options.batch_texts), Ordering::Relaxed);
    }

    /// Asks once, and again where that may help.
    async fn ask(&self, purpose: Purpose, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let (attempts_max, wait_max) = match purpose {
            Purpose::Query => (QUERY_ATTEMPTS_MAX, QUERY_WAIT_MAX),
            Purpose::Passage => (PASSAGE_ATTEMPTS_MAX, PASSAGE_WAIT_MAX),
        };
        let mut wait = wait_max / 16;
        let mut attempt = 1;
        loop {
            let failure = match self.server.call(texts).await {
                Err(failure) if attempt < attempts_max => failure,
                answer => return answer,
            };
            let Some(asked) = failure.wait(wait) else {
                return Err(failure);
            };
            if asked > wait_max && purpose == Purpose::Query {
                return Err(failure);
            }
            tracing::debug!(model = self.id, attempt, %failure, "The embedding server is asked again");
            tokio::time::sleep(asked.min(wait_max)).await;
            wait = (wait * 4).min(wait_max);
            attempt += 1;
        }
    }
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.options.dimensions
    }

    fn batch_max(&self) -> usize {
        self.options.batch_texts
    }

    async fn embed(&self, purpose: Purpose, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.len() > HTTP_TEXTS_MAX {
            let reason = format!(
                "{} texts at once; at most {HTTP_TEXTS_MAX} are taken",
                texts.len()
            );
            return Err(EmbedError::Broken(reason));
        }
        let Wanted {
            keys,
            mut found,
            missing,
        } = self.look_up(purpose, texts);
        if !missing.is_empty() {
            let (keys, texts): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
            let turns = match purpose {
                Purpose::Query => &self.queries,
                Purpose::Passage => &self.passages,
            };
            let _turn = turns.acquire().await.map_err(unavailable)?;
            for (key, vector) in keys.into_iter().zip(self.fetch(purpose, &texts).await?) {
                let vector: Arc<[f32]> = vector.into();
                self.known.insert(key, Arc::clone(&vector));
                found.insert(key, vector);
            }
        }
        let vectors = keys
            .iter()
            .map(|key| found.get(key).map(|vector| vector.to_vec()));
        let vectors: Option<Vec<Vec<f32>>> = vectors.collect();
        vectors.ok_or_else(|| unavailable("a vector is missing"))
    }
}

/// What is known of the texts of a call.
#[derive(Default)]
struct Wanted {
    /// Of each text, in order.
    keys: Vec<[u8; 32]>,
    found: HashMap<[u8; 32], Arc<[f32]>>,
    /// Each of them once.
    missing: Vec<([u8; 32], String)>,
}

fn unavailable(reason: impl std::fmt::Display) -> EmbedError {
    EmbedError::Unavailable(reason.to_string())
}

/// The texts in batches, the first one last.
fn batches(texts: &[String], batch_texts: usize) -> Vec<(Vec<String>, u32)> {
    let mut batches: Vec<_> = texts
        .chunks(batch_texts)
        .map(|batch| (batch.to_vec(), 0))
        .collect();
    batches.reverse();
    batches
}

/// The first half of a text.
fn halved(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(text.len() / 2));
    text
}

#[cfg(test)]
mod tests;
