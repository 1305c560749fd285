//! A model in this process, on threads of its own.

mod queue;
mod worker;

use std::fmt;
use std::sync::{Arc, OnceLock};

use aip_catalog::{EmbedError, Embedder, Purpose};
use async_trait::async_trait;
use tokio::sync::oneshot;

use crate::limits::{LOCAL_BATCH_TEXTS, LOCAL_TEXTS_MAX, THREADS_MAX};
use crate::model::files::ModelFiles;
use crate::model::{e5, universal};
use queue::{Job, Queue};
use worker::{Load, Worker};

/// How a model is run.
#[derive(Debug, Clone, Copy)]
pub struct LocalOptions {
    /// Threads, from 1 to [`THREADS_MAX`]. Each does one call at a time, without the help of the others; all share one copy
    /// of the model.
    pub threads: usize,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self { threads: 1 }
    }
}

/// A model that runs in this process on the CPU.
///
/// Threads begin and the model is read when the first text comes; until then it costs nothing. Queries go before passages,
/// also before those of a call that is half done. A caller that no longer waits costs no more work. When this is dropped, the
/// threads end after the step they are at, and whoever still waits is told.
pub struct LocalEmbedder {
    id: &'static str,
    dimensions: usize,
    threads: usize,
    queue: Arc<Queue>,
    worker: Arc<Worker>,
    started: OnceLock<Result<(), String>>,
}

impl fmt::Debug for LocalEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEmbedder")
            .field("id", &self.id)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl LocalEmbedder {
    /// multilingual-e5-small: 384 numbers; strong on products and on long text. It takes about 130 MB of memory once it is
    /// used, 27 MB of them the file.
    pub fn e5(files: ModelFiles, options: LocalOptions) -> Self {
        let load: Load = Box::new(move || Ok(Box::new(e5::E5::load(&files)?)));
        Self::new("multilingual-e5-small-q4-67k", e5::WIDTH, options, load)
    }

    /// The multilingual universal sentence encoder 3: 512 numbers; fast, strong on what people want done. It takes about 150 MB
    /// of memory once it is used.
    pub fn universal(files: ModelFiles, options: LocalOptions) -> Self {
        let load: Load = Box::new(move || Ok(Box::new(universal::Universal::load(&files)?)));
        Self::new("use-multilingual-v3-84k", universal::WIDTH, options, load)
    }

    fn new(id: &'static str, dimensions: usize, options: LocalOptions, load: Load) -> Self {
        let queue = Arc::new(Queue::default());
        Self {
            id,
            dimensions,
            threads: options.threads.clamp(1, THREADS_MAX),
            worker: Arc::new(Worker::new(id, Arc::clone(&queue), load)),
            queue,
            started: OnceLock::new(),
        }
    }

    /// Begins the threads if that has not been done.
    fn start(&self) -> Result<(), EmbedError> {
        let started = self
            .started
            .get_or_init(|| (0..self.threads).try_for_each(|number| worker::start(&self.worker, number)));
        started
            .as_ref()
            .map_err(|reason| EmbedError::Unavailable(reason.clone()))
            .copied()
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn id(&self) -> &str {
        self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn batch_max(&self) -> usize {
        LOCAL_BATCH_TEXTS
    }

    async fn embed(&self, purpose: Purpose, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if texts.len() > LOCAL_TEXTS_MAX {
            let reason = format!(
                "{} texts at once; at most {LOCAL_TEXTS_MAX} are taken",
                texts.len()
            );
            return Err(EmbedError::Broken(reason));
        }
        self.start()?;
        let (reply, answer) = oneshot::channel();
        self.queue.push(Job::new(purpose, texts, reply))?;
        answer.await.unwrap_or_else(|_gone| {
            let reason = "it was stopped before the text's turn came".to_owned();
            Err(EmbedError::Unavailable(reason))
        })
    }
}

impl Drop for LocalEmbedder {
    fn drop(&mut self) {
        self.queue.close();
    }
}

#[cfg(test)]
mod tests;
