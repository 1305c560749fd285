//! Work that gives way: a thread on which listings are taken up, while searches run at the priority of the process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use crate::error::CatalogError;
use crate::limits::JOBS_WAITING_MAX;

type Job = Box<dyn FnOnce() + Send>;

/// A thread of low priority that does one job after the other. Threads that a job begins give way, too. It ends once this is
/// dropped and its jobs are done.
#[derive(Debug)]
pub(crate) struct Background {
    jobs: Sender<Job>,
}

impl Background {
    /// Begins the thread; it gives way by `steps`, see [`give_way`].
    ///
    /// # Errors
    /// [`CatalogError::Files`] where the system has no thread to give.
    pub(crate) fn begin(name: &str, steps: i32) -> Result<Self, CatalogError> {
        let (jobs, taken) = channel(JOBS_WAITING_MAX);
        let work = move || {
            give_way(steps);
            work(taken);
        };
        thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { jobs })
    }

    /// Does the job after those that were given before, and waits for it. Once there was room for it, it is done also where
    /// nobody waits any more.
    ///
    /// # Errors
    /// [`CatalogError::Files`] where the job panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CatalogError> {
        let (reply, answer) = oneshot::channel();
        let job = move || {
            if reply.send(act()).is_err() {
                tracing::trace!("Nobody waits for this work any more");
            }
        };
        let lost = || CatalogError::Files(std::io::Error::other("the thread of the catalog failed"));
        self.jobs.send(Box::new(job)).await.map_err(|_gone| lost())?;
        answer.await.map_err(|_gone| lost())
    }
}

fn work(mut jobs: Receiver<Job>) {
    while let Some(job) = jobs.blocking_recv() {
        // A panic costs the job it happened in: whoever waits for it is told.
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("Work of the catalog panicked");
        }
    }
}

/// Lowers the priority of this thread, and of those that it will begin, by so many steps of `nice`: each step leaves about a
/// fifth less time to it where others want the processor, and all of it where none does. It cannot be taken back. On systems
/// other than Linux, where a thread has no such priority of its own, nothing changes.
pub fn give_way(steps: i32) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(steps) {
        tracing::debug!(%error, "A thread keeps its priority");
    }
    #[cfg(not(target_os = "linux"))]
    let _kept = steps;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn jobs_are_done_in_their_order_and_a_panic_costs_one_only() {
        let background = Background::begin("test", 1).unwrap();
        let (order, seen) = std::sync::mpsc::sync_channel(2);
        let panicked = background.run(|| panic!("a job that fails"));
        let also = order.clone();
        let first = background.run(move || also.send(1).unwrap());
        let second = background.run(move || order.send(2).unwrap());
        let (panicked, first, second) = tokio::join!(panicked, first, second);
        assert!(panicked.is_err() && first.is_ok() && second.is_ok());
        assert_eq!(seen.iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_thread_and_what_it_begins_give_way_and_others_do_not() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let background = Background::begin("test", 3).unwrap();
        let found = background.run(move || (nice(), thread::spawn(nice).join().unwrap()));
        let expected = (before + 3).min(19);
        assert_eq!(found.await.unwrap(), (expected, expected));
        assert_eq!(nice(), before);
    }
}
