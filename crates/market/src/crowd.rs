//! How many calls each provider has under way in this process: one that does not answer leaves places to the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_protocol::name::Did;

use crate::limits::UNDER_WAY_PER_AGENT_MAX;

/// The calls that are under way, by the agent who does the work. As many entries as calls at most. Cheap to clone; all
/// clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crowd(Arc<Mutex<HashMap<Did, usize>>>);

/// A place of one call; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    crowd: Crowd,
    agent: Did,
}

impl Crowd {
    /// A place for one more call of this agent; `None` where it has as many as it may.
    pub(crate) fn take_place(&self, agent: &Did) -> Option<Place> {
        let mut counts = self.counts();
        let count = counts.get(agent).copied().unwrap_or(0);
        if count >= UNDER_WAY_PER_AGENT_MAX {
            return None;
        }
        counts.insert(agent.clone(), count + 1);
        Some(Place {
            crowd: self.clone(),
            agent: agent.clone(),
        })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Did, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.crowd.counts();
        let count = counts.get(&self.agent).copied().unwrap_or(0);
        if count > 1 {
            counts.insert(self.agent.clone(), count - 1);
        } else {
            counts.remove(&self.agent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_and_nothing_is_kept_of_who_has_none() {
        let did = |name: &str| Did::parse(&format!("did:aip:hub.example:{name}")).unwrap();
        let (crowd, slow, other) = (Crowd::default(), did("slow"), did("other"));
        let mut places: Vec<Place> = (0..UNDER_WAY_PER_AGENT_MAX)
            .map(|_| crowd.take_place(&slow).unwrap())
            .collect();
        assert!(crowd.take_place(&slow).is_none());
        assert!(crowd.take_place(&other).is_some());
        places.pop();
        places.push(crowd.take_place(&slow).unwrap());
        assert!(crowd.take_place(&slow).is_none());
        drop(places);
        assert!(crowd.counts().is_empty());
    }
}
