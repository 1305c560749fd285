//! The sending side (spec §8): mail that waits in the outboxes goes to the peers, in order, again and again until it has left.
//!
//! One loop looks after all peers. A peer of which nothing waits costs nothing; of one that does not answer a few hundred
//! bytes are held, and a place in the order of next attempts. Messages are read from the store when they are about to be
//! sent, and live in memory for one attempt. What is known here of a peer (how often it failed, what waits for a retry) is a
//! matter of this process: after a restart delivery begins again with the lowest message that has not left.
//!
//! - Order: a message goes out when no earlier one of the same sender to the same recipient is on its way in another batch
//!   or waits for a retry. Different pairs overtake each other, however many messages of others wait before them.
//! - A batch that brought no answer, or none that can be read, goes out again: the receiving hub knows each `peer_seq`.
//! - A peer that fails is asked less and less often ([`backoff`](DeliveryConfig::backoff), [`breaker`](crate::breaker)), and never at the
//!   cost of those that answer: see [`schedule`](crate::schedule).
//! - Several processes of one hub: who holds the peer's lease sends. A lease that ends early harms nothing, since no message
//!   is sent before the answer to an earlier one of its pair came to the same process, or it is sent with it.

mod answer;
mod backoff;
pub(crate) mod batch;
mod config;
mod gather;
mod ledger;
mod peer;
mod push;
mod run;
mod seams;
mod sweep;
mod turn;
mod view;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_protocol::clock::Clock;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use rand_core::Rng;
use tokio::sync::Notify;

pub use answer::is_code;
pub use backoff::Backoff;
pub use config::DeliveryConfig;
pub use seams::{Bounce, BounceError, Bounces, LookUpError, NoBounces, PeerDirectory, PeerFacts, Seams};
pub use view::{DeliveryStats, LastError, PeerView};

use crate::limits::HOT_PEERS_MAX;
use crate::schedule::Schedule;
use answer::Failure;
use ledger::places::Places;
use peer::Peer;
use view::Counters;

/// Sends what waits in the outboxes.
pub struct Delivery {
    config: DeliveryConfig,
    seams: Seams,
    state: Mutex<State>,
    news: Notify,
    counters: Counters,
}

/// What one process knows about peers with mail.
struct State {
    peers: HashMap<Arc<Domain>, Peer>,
    schedule: Schedule<Arc<Domain>>,
    places: Arc<Places>,
    rng: Box<dyn Rng + Send>,
}

impl State {
    /// Forgets the failing peer that would be asked last: strangers can have us know many of those, and its mail is found
    /// again by a look through all outboxes. One with something on its way has no next attempt, so it is not forgotten.
    /// `false`: there is none.
    fn make_room(&mut self) -> bool {
        let Some(domain) = self.schedule.last_failing().cloned() else {
            return false;
        };
        self.schedule.unset(&domain);
        self.peers.remove(&domain);
        true
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("peers", &self.lock().peers.len())
            .finish_non_exhaustive()
    }
}

impl Delivery {
    /// Puts delivery together. It sends while [`Delivery::run`] runs. `rng` spreads the pauses.
    pub fn new(config: DeliveryConfig, seams: Seams, rng: Box<dyn Rng + Send>) -> Arc<Self> {
        let state = State {
            peers: HashMap::new(),
            schedule: Schedule::new(config.requests_max),
            places: Arc::default(),
            rng,
        };
        Arc::new(Self {
            config,
            seams,
            state: Mutex::new(state),
            news: Notify::new(),
            counters: Counters::default(),
        })
    }

    /// New mail for a peer is in its outbox. Cheap: called for every message. Above
    /// [`HOT_PEERS_MAX`] peers one that fails makes room, and where none does, a later look through all outboxes finds the mail.
    pub fn wake(&self, domain: &Domain) {
        let now = self.now();
        let mut state = self.lock();
        let known = state
            .peers
            .get_key_value(domain)
            .map(|(known, _)| Arc::clone(known));
        if known.is_none() && state.peers.len() >= HOT_PEERS_MAX && !state.make_room() {
            return;
        }
        let known = known.unwrap_or_else(|| Arc::new(domain.clone()));
        let State { peers, places, .. } = &mut *state;
        let peer = peers
            .entry(Arc::clone(&known))
            .or_insert_with(|| Peer::new(&self.config, places));
        peer.mail_came();
        self.plan(&mut state, &known, now);
    }

    /// A request of this peer was verified: if it was thought to be away, one attempt is made soon. Whether it is well is for
    /// that attempt to say. A peer cannot make this hub call it more often than every
    /// [`PROBE_EVERY`](crate::limits::PROBE_EVERY).
    pub fn probe(&self, domain: &Domain) {
        self.hurry(domain, Peer::probe_soon);
    }

    /// The operator wants an attempt now: pauses are forgotten, those of single messages too. Also wakes a peer of which
    /// nothing is known here.
    pub fn retry(&self, domain: &Domain) {
        self.wake(domain);
        self.hurry(domain, Peer::forget_pauses);
    }

    fn hurry(&self, domain: &Domain, change: fn(&mut Peer, Timestamp)) {
        let now = self.now();
        let mut state = self.lock();
        let Some((known, _)) = state.peers.get_key_value(domain) else {
            return;
        };
        let known = Arc::clone(known);
        if let Some(peer) = state.peers.get_mut(&known) {
            change(peer, now);
        }
        self.plan(&mut state, &known, now);
    }

    /// Puts a peer where it belongs among the next attempts, or forgets it when there is nothing left to do for it.
    fn plan(&self, state: &mut State, domain: &Arc<Domain>, now: Timestamp) {
        let Some(peer) = state.peers.get(domain) else {
            return;
        };
        match peer.next_at(now) {
            Some((at, class)) => {
                // Who is due keeps the place that it has waited in.
                let placed = state
                    .schedule
                    .at(domain)
                    .filter(|placed| *placed <= now && at <= now);
                let at = placed.unwrap_or(at.max(now));
                state.schedule.set(domain, at, class);
                if at <= now || state.schedule.next() == Some(at) {
                    self.news.notify_one();
                }
            }
            None => state.schedule.unset(domain),
        }
        if peer.is_idle() {
            state.peers.remove(domain);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self) -> &dyn Clock {
        &*self.seams.clock
    }

    fn now(&self) -> Timestamp {
        self.clock().now()
    }
}

/// A failure of ours, with its cause.
fn own(error: &(dyn std::error::Error + 'static)) -> Failure {
    let cause = error
        .source()
        .map_or_else(String::new, |cause| format!(": {cause}"));
    Failure::own(format!("{error}{cause}"))
}

#[cfg(test)]
mod tests;
