//! Resolved agents in memory, never older than what was last answered.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::name::{Did, Domain, Name};
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use tokio::sync::Semaphore;

use crate::agent::Agent;
use crate::directory::{AgentRecord, Directory};
use crate::error::StoreError;
use crate::limits::{CACHE_SECS, CACHED_AGENT_BYTES, LONG_REPLAYS_MAX, REPLAYED_AT_ONCE_BYTES_MAX};

/// The cache in front of a directory. Also remembers, as `None`, that a name is free.
///
/// Loading and forgetting the same agent take turns, so that a load that began before a change can
/// never put the older state back after it. A failed load is remembered by nobody.
#[derive(Debug, Clone)]
pub(super) struct AgentCache {
    domain: Domain,
    directory: Arc<dyn Directory>,
    agents: Cache<Did, Option<Arc<Agent>>>,
    long_replays: Arc<Semaphore>,
}

impl AgentCache {
    pub(super) fn new(domain: Domain, directory: Arc<dyn Directory>, agents_max: u64) -> Self {
        let agents = Cache::builder()
            .max_capacity(agents_max)
            .weigher(|_, agent: &Option<Arc<Agent>>| weight(agent.as_deref()))
            .time_to_live(Duration::from_secs(CACHE_SECS))
            .build();
        Self {
            domain,
            directory,
            agents,
            long_replays: Arc::new(Semaphore::new(LONG_REPLAYS_MAX)),
        }
    }

    /// The agent with this DID; `None` if there is none here.
    pub(super) async fn get(&self, did: &Did) -> Result<Option<Arc<Agent>>, StoreError> {
        if let Some(agent) = self.agents.get(did).await {
            return Ok(agent);
        }
        let handle = did.handle();
        if handle.domain != self.domain {
            return Ok(None);
        }
        let load = |cached: Option<moka::Entry<Did, Option<Arc<Agent>>>>| async move {
            if cached.is_some() {
                return Ok(Op::Nop);
            }
            let agent = match self.directory.get(&handle.name).await? {
                Some(record) => Some(Arc::new(self.replay(handle.name, record).await?)),
                None => None,
            };
            Ok::<_, StoreError>(Op::Put(agent))
        };
        Ok(
            match self.agents.entry_by_ref(did).and_try_compute_with(load).await? {
                CompResult::Inserted(entry)
                | CompResult::ReplacedWith(entry)
                | CompResult::Unchanged(entry) => entry.into_value(),
                CompResult::StillNone(_) | CompResult::Removed(_) => None,
            },
        )
    }

    /// Checks a stored history. A long one takes its time, which must not be that of whoever shares the caller's thread.
    async fn replay(&self, name: Name, record: AgentRecord) -> Result<Agent, StoreError> {
        if record.history_bytes() <= REPLAYED_AT_ONCE_BYTES_MAX {
            return Agent::from_record(&name, &record);
        }
        let turn = Arc::clone(&self.long_replays).acquire_owned().await;
        // The turn goes with the thread: a caller that gave up does not end it early.
        let replay = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Agent::from_record(&name, &record)
        });
        replay
            .await
            .unwrap_or_else(|error| Err(StoreError::Unavailable(Arc::new(error))))
    }

    /// How many entries there are, after what is overdue was removed.
    pub(super) async fn len(&self) -> u64 {
        self.agents.run_pending_tasks().await;
        self.agents.entry_count()
    }

    /// Runs a change of one agent and forgets what was known about it, whether or not the caller
    /// stays to hear the outcome.
    pub(super) async fn change<T, F>(&self, did: &Did, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (cache, did) = (self.clone(), did.clone());
        let task = tokio::spawn(async move {
            let outcome = change.await;
            cache
                .agents
                .entry(did)
                .and_compute_with(|_| std::future::ready(Op::Remove))
                .await;
            outcome
        });
        task.await
            .unwrap_or_else(|error| Err(StoreError::OutcomeUnknown(Arc::new(error))))
    }

    /// Runs a change that turns `before` into `after` if it answers `true`. That saves the next
    /// reader from replaying the history, where nothing else happened to the agent meanwhile.
    pub(super) async fn replace<F>(
        &self,
        before: Arc<Agent>,
        after: Arc<Agent>,
        change: F,
    ) -> Result<bool, StoreError>
    where
        F: Future<Output = Result<bool, StoreError>> + Send + 'static,
    {
        let cache = self.clone();
        let task = tokio::spawn(async move {
            let outcome = change.await;
            let is_changed = matches!(outcome, Ok(true));
            let did = after.identity.did().clone();
            let swap = |cached: Option<moka::Entry<Did, Option<Arc<Agent>>>>| {
                // Another change (of its standing, say) has taken `before` away, or is about to
                // take away whatever is put here: each does so after its commit.
                let cached = cached.and_then(moka::Entry::into_value);
                let is_before = cached.is_some_and(|cached| Arc::ptr_eq(&cached, &before));
                std::future::ready(if is_changed && is_before {
                    Op::Put(Some(after))
                } else {
                    Op::Remove
                })
            };
            cache.agents.entry(did).and_compute_with(swap).await;
            outcome
        });
        task.await
            .unwrap_or_else(|error| Err(StoreError::OutcomeUnknown(Arc::new(error))))
    }
}

/// A typical agent weighs 1; one with long operations as many as it takes the room of.
fn weight(agent: Option<&Agent>) -> u32 {
    let parts = agent.map_or(0, |agent| agent.history_bytes / CACHED_AGENT_BYTES);
    u32::try_from(parts).unwrap_or(u32::MAX).saturating_add(1)
}
