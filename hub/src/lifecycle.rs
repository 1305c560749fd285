//! The life of the process: running, closing, hurried, ended. Every task that outlives a request belongs to it.
//!
//! The first SIGTERM or SIGINT closes: readiness turns false, listeners stop, sockets get their close frame, stores
//! are flushed. A second signal, or the end of `http.shutdown_timeout_secs`, hurries: what still runs is dropped.
//! Both are tokens and not one-off notifications, so whoever looks late still sees them.

use std::future::Future;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where the process stands. Cheap to clone; all clones are the same process.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    closing: CancellationToken,
    hurry: CancellationToken,
    tasks: TaskTracker,
}

impl Lifecycle {
    /// A process that runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when the hub begins to go away: sockets then close with 1001, waits return what they have.
    pub fn closing_token(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// Ends when the hub begins to go away.
    pub fn closing(&self) -> impl Future<Output = ()> + Send + use<> {
        self.closing.clone().cancelled_owned()
    }

    /// Whether the hub has begun to go away.
    pub fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Ends when there is no time left: drop what you are doing.
    pub fn hurried(&self) -> impl Future<Output = ()> + Send + use<> {
        self.hurry.clone().cancelled_owned()
    }

    /// Whether there is no time left.
    pub fn is_hurried(&self) -> bool {
        self.hurry.is_cancelled()
    }

    /// Begins to close; again is harmless.
    pub fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
    }

    /// Closes at once.
    pub fn hurry(&self) {
        self.close();
        self.hurry.cancel();
    }

    /// Closes, and hurries what is not done after `grace`.
    pub fn hurry_after(&self, grace: Duration) {
        self.close();
        let hurry = self.hurry.clone();
        // Not one of the process's own tasks: it would wait for itself.
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            hurry.cancel();
        });
    }

    /// Starts a task that belongs to the process. It must end soon after [`Lifecycle::closing`] does; when the
    /// process is hurried it is dropped at its next await.
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let hurried = self.hurried();
        self.tasks.spawn(async move {
            tokio::select! {
                () = hurried => {}
                () = task => {}
            }
        });
    }

    /// Runs `job` every `every` until the hub closes.
    pub fn spawn_every<F, J>(&self, every: Duration, mut job: J)
    where
        F: Future<Output = ()> + Send,
        J: FnMut() -> F + Send + 'static,
    {
        let closing = self.closing_token();
        self.spawn(async move {
            let mut ticks = tokio::time::interval(every);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = closing.cancelled() => return,
                    _ = ticks.tick() => job().await,
                }
            }
        });
    }

    /// How many tasks have not ended.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Waits until all tasks have ended, at most until the process is hurried; whether they have.
    pub async fn drained(&self) -> bool {
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => true,
            () = self.hurried() => self.tasks.is_empty(),
        }
    }
}

/// SIGTERM and SIGINT, from the moment it is made.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals over from the system's default, which is to end at once.
    ///
    /// # Errors
    /// The system refuses the handlers.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and tells its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn row_80_a_close_is_seen_by_whoever_looks_late() {
        let life = Lifecycle::new();
        life.close();
        life.closing().await;
        assert!(!life.is_hurried());
        assert!(life.drained().await);
    }

    #[tokio::test]
    async fn a_stuck_task_does_not_outlive_the_hurry() {
        let life = Lifecycle::new();
        life.spawn(std::future::pending());
        assert_eq!(life.tasks(), 1);
        life.hurry();
        life.drained().await;
        life.tasks.wait().await;
        assert_eq!(life.tasks(), 0);
    }

    #[tokio::test]
    async fn a_repeated_job_ends_with_the_process() {
        let life = Lifecycle::new();
        let (ran, mut runs) = tokio::sync::mpsc::channel(1);
        life.spawn_every(Duration::from_millis(1), move || {
            let ran = ran.clone();
            async move { ran.send(()).await.unwrap_or_default() }
        });
        for _ in 0..3 {
            assert_eq!(runs.recv().await, Some(()));
        }
        life.close();
        while runs.recv().await.is_some() {}
        assert!(life.drained().await);
    }
}
