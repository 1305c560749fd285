//! Work that is finished whether or not somebody still waits for it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Work that runs in the task of its caller, and goes on in one of its own when the caller goes away.
///
/// Nearly every caller stays, so nearly no work costs a task. The tracker counts it either way.
pub(super) struct Outlive<F: Future<Output: Send> + Send + 'static> {
    /// There until it is done.
    work: Option<Pin<Box<F>>>,
    tasks: TaskTracker,
    _counted: TaskTrackerToken,
}

impl<F: Future<Output: Send> + Send + 'static> Outlive<F> {
    pub(super) fn new(tasks: &TaskTracker, work: F) -> Self {
        Self {
            work: Some(Box::pin(work)),
            tasks: tasks.clone(),
            _counted: tasks.token(),
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for Outlive<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Not put back where it panics: nothing is left to go on with.
        let Some(mut work) = self.work.take() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for Outlive<F> {
    fn drop(&mut self) {
        // Without a runtime the process is ending.
        if let Some(work) = self.work.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(self.tasks.spawn_on(work, &runtime));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    /// Work that waits for one channel and then tells another.
    fn relay(
        tasks: &TaskTracker,
    ) -> (
        oneshot::Sender<u32>,
        Outlive<impl Future<Output = u32> + Send + use<>>,
        oneshot::Receiver<u32>,
    ) {
        let (go, gone) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let work = Outlive::new(tasks, async move {
            let number = gone.await.unwrap();
            tell.send(number).unwrap();
            number
        });
        (go, work, told)
    }

    #[tokio::test]
    async fn the_caller_that_stays_gets_the_answer() {
        let tasks = TaskTracker::new();
        let (go, work, told) = relay(&tasks);
        assert_eq!(tasks.len(), 1);
        go.send(7).unwrap();
        assert_eq!(work.await, 7);
        assert_eq!(told.await, Ok(7));
        assert_eq!(tasks.len(), 0);
    }

    #[tokio::test]
    async fn work_goes_on_when_its_caller_is_gone() {
        let tasks = TaskTracker::new();
        let (go, mut work, told) = relay(&tasks);
        assert!(timeout(Duration::ZERO, &mut work).await.is_err(), "it waits");
        drop(work);
        assert_eq!(tasks.len(), 1, "a shutdown still waits for it");
        go.send(7).unwrap();
        assert_eq!(told.await, Ok(7));
        tasks.close();
        tasks.wait().await;
    }
}
