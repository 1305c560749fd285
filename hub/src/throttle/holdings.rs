//! What each network address holds of something that all share, bounded: so that one stranger cannot take all of it.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Network;
use crate::limits::THROTTLE_BUCKETS;

/// Amounts held, per network address. Cheap to clone; all clones count together.
#[derive(Clone)]
pub struct Holdings(Arc<Held>);

struct Held {
    amounts: Box<[AtomicUsize]>,
    each_max: usize,
}

impl Holdings {
    /// Nothing held yet; an address may hold `each_max`.
    pub fn new(each_max: usize) -> Self {
        let buckets = usize::try_from(THROTTLE_BUCKETS).unwrap_or(usize::MAX);
        Self(Arc::new(Held {
            amounts: iter::repeat_with(AtomicUsize::default).take(buckets).collect(),
            each_max,
        }))
    }

    /// A hold of nothing; without an address it has no bound.
    pub fn hold(&self, network: Option<Network>) -> Hold {
        Hold {
            holdings: self.clone(),
            network,
            amount: 0,
        }
    }

    fn of(&self, network: Option<Network>) -> Option<&AtomicUsize> {
        let Network(bucket) = network?;
        self.0.amounts.get(usize::try_from(bucket).ok()?)
    }
}

impl std::fmt::Debug for Holdings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holdings")
            .field("each_max", &self.0.each_max)
            .finish_non_exhaustive()
    }
}

/// What one caller holds, until it is dropped.
#[derive(Debug)]
pub struct Hold {
    holdings: Holdings,
    network: Option<Network>,
    amount: usize,
}

impl Hold {
    /// Holds so much more; `false`, and nothing changes, where the address would hold too much.
    pub fn grow(&mut self, more: usize) -> bool {
        let Some(held) = self.holdings.of(self.network) else {
            return true;
        };
        let each_max = self.holdings.0.each_max;
        let fits = |held: usize| held.checked_add(more).filter(|sum| *sum <= each_max);
        let has_grown = held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok();
        if has_grown {
            self.amount += more;
        }
        has_grown
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(held) = self.holdings.of(self.network) {
            held.fetch_sub(self.amount, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_holds_its_part_and_gives_it_back() {
        let holdings = Holdings::new(10);
        let [one, other] = [Some(Network(1)), Some(Network(2))];
        let (mut first, mut second) = (holdings.hold(one), holdings.hold(one));
        assert!(first.grow(4) && first.grow(2) && second.grow(4));
        assert!(!second.grow(1) && second.grow(0));
        assert!(holdings.hold(other).grow(10), "another address has its own");
        drop(first);
        assert!(second.grow(6) && !second.grow(usize::MAX));
        drop(second);
        assert!(holdings.hold(one).grow(10));
    }

    #[test]
    fn without_an_address_there_is_no_bound() {
        let holdings = Holdings::new(1);
        let mut hold = holdings.hold(None);
        assert!(hold.grow(5) && hold.grow(usize::MAX));
    }
}
