//! One look-up at a time for each thing looked up, however many wait for it.
//!
//! The look-up has a task of its own, so that a caller who goes away takes it from nobody.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_protocol::name::Domain;
use tokio::sync::watch;

/// Look-ups under way.
pub(crate) struct Flights<K, T> {
    running: Arc<Mutex<HashMap<K, Flight<T>>>>,
    /// Most look-ups at the same time.
    all_max: usize,
    /// Most of them at one domain.
    domain_max: usize,
}

struct Flight<T> {
    domain: Domain,
    landed: watch::Receiver<Option<T>>,
}

impl<K, T> fmt::Debug for Flights<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights")
            .field("all_max", &self.all_max)
            .field("domain_max", &self.domain_max)
            .finish_non_exhaustive()
    }
}

impl<K, T> Flights<K, T>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(all_max: usize, domain_max: usize) -> Self {
        Self {
            running: Arc::default(),
            all_max,
            domain_max,
        }
    }

    /// What the look-up of `key` that is under way finds, or else the one that `start` begins.
    ///
    /// `None`: too many are under way, or it ended in a panic.
    pub(crate) async fn join<F>(&self, key: K, domain: &Domain, start: impl FnOnce() -> F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut landed = self.board(key, domain, start)?;
        let found = landed.wait_for(Option::is_some).await.ok()?;
        found.clone()
    }

    fn board<F>(
        &self,
        key: K,
        domain: &Domain,
        start: impl FnOnce() -> F,
    ) -> Option<watch::Receiver<Option<T>>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut running = lock(&self.running);
        if let Some(flight) = running.get(&key) {
            return Some(flight.landed.clone());
        }
        let at_domain = running.values().filter(|flight| flight.domain == *domain).count();
        if running.len() >= self.all_max || at_domain >= self.domain_max {
            return None;
        }
        let (found, landed) = watch::channel(None);
        let flight = Flight {
            domain: domain.clone(),
            landed: landed.clone(),
        };
        running.insert(key.clone(), flight);
        // Whatever happens to the task, its place is free afterwards.
        let place = Place {
            running: Arc::clone(&self.running),
            key,
        };
        let work = start();
        tokio::spawn(async move {
            let value = work.await;
            // Who comes after this point asks anew; who came before hears the answer.
            drop(place);
            found.send_replace(Some(value));
        });
        Some(landed)
    }
}

/// An entry of the table, as long as it lasts.
struct Place<K: Eq + Hash, T> {
    running: Arc<Mutex<HashMap<K, Flight<T>>>>,
    key: K,
}

impl<K: Eq + Hash, T> Drop for Place<K, T> {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_look_up_that_panics_leaves_no_place_taken() {
        let flights: Flights<u8, u8> = Flights::new(1, 1);
        let domain = Domain::parse("two.example").unwrap();
        let panics = || async { panic!("the test says so") };
        assert_eq!(flights.join(1, &domain, panics).await, None);
        assert_eq!(flights.join(1, &domain, || async { 7 }).await, Some(7));
    }

    #[tokio::test]
    async fn one_domain_has_so_many_and_all_together_so_many() {
        let flights: Flights<u8, u8> = Flights::new(3, 2);
        let [two, six] = ["two.example", "six.example"].map(|text| Domain::parse(text).unwrap());
        let board = |key, domain| flights.board(key, domain, std::future::pending::<u8>).is_some();
        assert!(board(1, &two) && board(2, &two));
        assert!(!board(3, &two), "a third at one domain");
        assert!(board(1, &two), "one that is under way");
        assert!(board(4, &six));
        assert!(!board(5, &six), "a fourth in all");
    }
}
