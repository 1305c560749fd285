//! The one loop: starts attempts when they are due, while there are slots for them.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::name::Domain;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Delivery;

/// The longest sleep: a clock that was set is noticed after so long.
const SLEEP_MAX: Duration = Duration::from_mins(1);

impl Delivery {
    /// Sends until `stop`. Then requests on their way are waited for, for a while; those that take longer are broken off, and
    /// their messages go out again when the hub is back: the receiving hub knows them.
    pub async fn run(self: &Arc<Self>, stop: CancellationToken) {
        tokio::join!(self.pump(&stop), self.sweep(&stop));
    }

    async fn pump(self: &Arc<Self>, stop: &CancellationToken) {
        let mut attempts = JoinSet::new();
        while !stop.is_cancelled() {
            self.start_due(&mut attempts);
            let pause = self.until_next();
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.news.notified() => {}
                Some(ended) = attempts.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "An attempt to reach a peer broke down");
                    }
                }
                () = sleep(pause) => {}
            }
        }
        let ending = async { while attempts.join_next().await.is_some() {} };
        if timeout(self.config.stop_grace, ending).await.is_err() {
            attempts.shutdown().await;
        }
        self.release_all().await;
    }

    fn start_due(self: &Arc<Self>, attempts: &mut JoinSet<()>) {
        let now = self.now();
        loop {
            let mut state = self.lock();
            let Some((domain, slot)) = state.schedule.take(now) else {
                return;
            };
            if let Some(peer) = state.peers.get_mut(&domain) {
                peer.begin(now);
                drop(state);
                attempts.spawn(Arc::clone(self).attempt(domain, slot));
            } else {
                state.schedule.free(slot);
            }
        }
    }

    fn until_next(&self) -> Duration {
        let now = self.now();
        let millis = self.lock().schedule.next().map(|at| at.millis_since(now));
        let millis = millis.map(|millis| u64::try_from(millis).unwrap_or(0));
        // A millisecond more: moments are finer than timers.
        millis.map_or(SLEEP_MAX, |millis| {
            Duration::from_millis(millis.saturating_add(1)).min(SLEEP_MAX)
        })
    }

    /// Others need not wait until our leases end by themselves.
    async fn release_all(&self) {
        let now = self.now();
        let held: Vec<Arc<Domain>> = {
            let state = self.lock();
            let held = state.peers.iter().filter(|(_, peer)| peer.holds_lease(now));
            held.map(|(domain, _)| Arc::clone(domain)).collect()
        };
        let releasing = async {
            for domain in &held {
                self.release(domain).await;
            }
        };
        if timeout(self.config.stop_grace, releasing).await.is_err() {
            tracing::debug!("Not every lease was given back; they end by themselves");
        }
    }
}
