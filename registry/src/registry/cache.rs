//! Resolved agents in memory, never older than what was last answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aip_protocol::name::{Did, Domain, Name};
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use tokio::sync::Semaphore;

use crate::agent::Agent;
use crate::directory::{AgentRecord, Directory};
use crate::error::StoreError;
use crate::limits::{CACHE_SECS, CACHED_AGENT_BYTES, LONG_REPLAYS_MAX, REPLAYED_AT_ONCE_BYTES_MAX};
use crate::siblings::Siblings;

/// The cache in front of a directory. Also remembers that a name is free.
///
/// Loading and forgetting the same agent take turns, so that a load that began before a change can
/// never put the older state back after it. A failed load is remembered by nobody.
#[derive(Debug, Clone)]
pub(super) struct AgentCache {
    domain: Domain,
    directory: Arc<dyn Directory>,
    siblings: Arc<dyn Siblings>,
    agents: Cache<Did, Held>,
    /// Raised when everything held is to be read anew.
    era: Arc<AtomicU64>,
    long_replays: Arc<Semaphore>,
}

/// What is held of one agent, or of its absence.
#[derive(Debug, Clone)]
struct Held {
    agent: Option<Arc<Agent>>,
    /// When the reading of it began.
    era: u64,
}

impl AgentCache {
    pub(super) fn new(
        domain: Domain,
        directory: Arc<dyn Directory>,
        siblings: Arc<dyn Siblings>,
        agents_max: u64,
    ) -> Self {
        let agents = Cache::builder()
            .max_capacity(agents_max)
            .weigher(|_, held: &Held| weight(held.agent.as_deref()))
            .time_to_live(Duration::from_secs(CACHE_SECS))
            .build();
        Self {
            domain,
            directory,
            siblings,
            agents,
            era: Arc::default(),
            long_replays: Arc::new(Semaphore::new(LONG_REPLAYS_MAX)),
        }
    }

    /// The agent with this DID; `None` if there is none here.
    pub(super) async fn get(&self, did: &Did) -> Result<Option<Arc<Agent>>, StoreError> {
        let era = self.era();
        if let Some(held) = self.agents.get(did).await.filter(|held| held.era == era) {
            return Ok(held.agent);
        }
        let handle = did.handle();
        if handle.domain != self.domain {
            return Ok(None);
        }
        let load = |cached: Option<moka::Entry<Did, Held>>| async move {
            let era = self.era();
            if cached.is_some_and(|cached| cached.value().era == era) {
                return Ok(Op::Nop);
            }
            let agent = match self.directory.get(&handle.name).await? {
                Some(record) => Some(Arc::new(self.replay(handle.name, record).await?)),
                None => None,
            };
            Ok::<_, StoreError>(Op::Put(Held { agent, era }))
        };
        Ok(
            match self.agents.entry_by_ref(did).and_try_compute_with(load).await? {
                CompResult::Inserted(entry)
                | CompResult::ReplacedWith(entry)
                | CompResult::Unchanged(entry) => entry.into_value().agent,
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

    /// Forgets one agent, after a load that is under way.
    pub(super) async fn forget(&self, did: &Did) {
        self.agents
            .entry_by_ref(did)
            .and_compute_with(|_| std::future::ready(Op::Remove))
            .await;
    }

    /// Nothing that was read up to now is believed any more; a load that is under way neither.
    pub(super) fn forget_all(&self) {
        self.era.fetch_add(1, Ordering::AcqRel);
    }

    fn era(&self) -> u64 {
        self.era.load(Ordering::Acquire)
    }

    /// How many entries there are, after what is overdue was removed.
    pub(super) async fn len(&self) -> u64 {
        self.agents.run_pending_tasks().await;
        self.agents.entry_count()
    }

    /// Runs a change of one agent, forgets what was known about it and tells the other processes, whether or not the
    /// caller stays to hear the outcome.
    pub(super) async fn change<T, F>(&self, did: &Did, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (cache, did) = (self.clone(), did.clone());
        let task = tokio::spawn(async move {
            let outcome = change.await;
            cache.forget(&did).await;
            // Told after a failure too: it may have taken place.
            cache.siblings.changed(&did);
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
            let era = cache.era();
            let swap = |cached: Option<moka::Entry<Did, Held>>| {
                // Another change (of its standing, say) has taken `before` away, or is about to
                // take away whatever is put here: each does so after its commit.
                let cached = cached.map(moka::Entry::into_value).filter(|held| held.era == era);
                let is_before = cached
                    .and_then(|held| held.agent)
                    .is_some_and(|cached| Arc::ptr_eq(&cached, &before));
                std::future::ready(if is_changed && is_before {
                    Op::Put(Held {
                        agent: Some(after),
                        era,
                    })
                } else {
                    Op::Remove
                })
            };
            cache.agents.entry_by_ref(&did).and_compute_with(swap).await;
            cache.siblings.changed(&did);
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
