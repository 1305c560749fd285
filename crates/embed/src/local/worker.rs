//! The threads of a model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use aip_catalog::EmbedError;
use rayon::ThreadPoolBuilder;

use super::queue::{Job, Queue};
use crate::limits::STEP_PIECES_MAX;
use crate::model::Model;

/// Reads the model.
pub(super) type Load = Box<dyn Fn() -> Result<Box<dyn Model>, EmbedError> + Send + Sync>;

/// What all threads of one model share.
pub(super) struct Worker {
    id: &'static str,
    queue: Arc<Queue>,
    load: Load,
    model: OnceLock<Result<Box<dyn Model>, String>>,
}

/// Begins a thread. It is a pool of one, so that the library's own wish for threads ends there: how much of the machine a
/// model takes is ours to say, and its sums have the same order on every machine.
pub(super) fn start(worker: &Arc<Worker>, number: usize) -> Result<(), String> {
    let name = format!("embed-{number}");
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .thread_name(move |_| name.clone())
        .panic_handler(|_panic| {})
        .build()
        .map_err(|error| error.to_string())?;
    let worker = Arc::clone(worker);
    pool.spawn(move || worker.run());
    Ok(())
}

impl Worker {
    pub(super) fn new(id: &'static str, queue: Arc<Queue>, load: Load) -> Self {
        Self {
            id,
            queue,
            load,
            model: OnceLock::new(),
        }
    }

    fn run(&self) {
        while let Some(mut job) = self.queue.next() {
            // A panic of a library costs the call it happened in, not the thread.
            let stepped = catch_unwind(AssertUnwindSafe(|| step(self.model()?, &mut job)));
            let failed = match stepped {
                Ok(Ok(())) if job.vectors.len() < job.texts.len() => {
                    self.queue.put_back(job);
                    continue;
                }
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(_panic) => Some(EmbedError::Broken("the model's library panicked".to_owned())),
            };
            let answer = failed.map_or(Ok(job.vectors), Err);
            if job.reply.send(answer).is_err() {
                tracing::debug!(model = self.id, "Nobody waits for these vectors any more");
            }
        }
    }

    fn model(&self) -> Result<&dyn Model, EmbedError> {
        let model = self.model.get_or_init(|| {
            let model = (self.load)().map_err(|error| error.to_string());
            match &model {
                Ok(_) => tracing::info!(model = self.id, "The embedding model is loaded"),
                Err(error) => tracing::error!(model = self.id, error, "The embedding model cannot be used"),
            }
            model
        });
        match model {
            Ok(model) => Ok(model.as_ref()),
            Err(reason) => Err(EmbedError::Broken(reason.clone())),
        }
    }
}

/// The next few texts of a call.
fn step(model: &dyn Model, job: &mut Job) -> Result<(), EmbedError> {
    let mut texts = Vec::new();
    let mut pieces = 0;
    for text in job.texts.iter().skip(job.vectors.len()) {
        let text = model.pieces(job.purpose, text)?;
        pieces += text.len();
        if pieces > STEP_PIECES_MAX && !texts.is_empty() {
            break;
        }
        texts.push(text);
    }
    job.vectors.extend(model.vectors(&texts)?);
    Ok(())
}
