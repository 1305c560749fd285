//! Registries of several processes: the registry's seam on Redis.

use std::sync::Arc;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_registry::secret::SecretHash;
use aip_registry::{Siblings, Spend};
use async_trait::async_trait;
use redis::cmd;
use tokio::sync::mpsc;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use crate::Cluster;
use crate::letter::News;
use crate::limits::{LIFE_MAX, LOOK_PAUSE};
use crate::post::Order;
use crate::shared::Shared;

#[async_trait]
impl Siblings for Cluster {
    fn changed(&self, did: &Did) {
        self.shared.order(Order::Tell(News::Changed(did.clone())));
    }

    async fn spend(&self, challenge: &SecretHash, until: Timestamp) -> Spend {
        let Shared {
            link,
            counters,
            names,
            clock,
            ..
        } = &*self.shared;
        let left = until.millis_since(clock.now());
        let life_max = u64::try_from(LIFE_MAX.as_millis()).unwrap_or(u64::MAX);
        let life = u64::try_from(left).unwrap_or(0).clamp(1, life_max);
        let mut set = cmd("SET");
        set.arg(names.spent(challenge))
            .arg(self.shared.own_name())
            .arg("NX")
            .arg("PX")
            .arg(life);
        let question =
            |mut connection| async move { set.query_async::<Option<String>>(&mut connection).await };
        match link.ask(counters, 1, question).await {
            Some(Some(_ok)) => Spend::Fresh,
            Some(None) => Spend::Spent,
            None => {
                counters.unanswered.one();
                Spend::Unknown
            }
        }
    }
}

/// Lets the registry forget what others have changed; and everything, again and again, while nobody can be heard.
pub(crate) async fn run(shared: Arc<Shared>, mut changed: mpsc::Receiver<Did>, stop: CancellationToken) {
    let mut look = interval(LOOK_PAUSE);
    loop {
        tokio::select! {
            did = changed.recv() => {
                if let (Some(did), Some(registry)) = (did, shared.registry()) {
                    registry.forget(&did).await;
                }
            }
            _ = look.tick() => {
                if !shared.link.is_up() {
                    shared.forget_all();
                }
            }
            () = stop.cancelled() => return,
        }
    }
}
