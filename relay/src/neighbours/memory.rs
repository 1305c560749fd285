//! Processes of one hub that are none: neighbours in one process's memory, for tests.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use aip_protocol::clock::Clock;
use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Claim, Ears, Entry, Neighbours, Signal, Taken};
use crate::limits::TAKEOVER_PAUSE_MILLIS;
use crate::mailbox::MailboxId;

/// Signals on their way to one house.
const LETTERS_MAX: usize = 65_536;

type Letter = (MailboxId, Signal);

/// Whose session of an agent is the newest.
#[derive(Debug, Clone, Copy)]
struct At {
    house: usize,
    generation: u64,
    share: bool,
}

#[derive(Debug, Default)]
struct Street {
    houses: Vec<(mpsc::Sender<Letter>, HashSet<MailboxId>)>,
    generation: u64,
    at: HashMap<MailboxId, At>,
    taken_over: HashMap<MailboxId, Instant>,
    claims: HashMap<(MailboxId, u64), (usize, Instant)>,
}

impl Street {
    fn tell(&self, from: usize, mailbox: &MailboxId, signal: &Signal) {
        for (number, (letters, here)) in self.houses.iter().enumerate() {
            if number != from && here.contains(mailbox) {
                // Nobody who reads is dropped.
                drop(letters.try_send((*mailbox, signal.clone())));
            }
        }
    }
}

/// One process.
#[derive(Debug)]
pub struct House {
    street: Arc<Mutex<Street>>,
    number: usize,
    letters: Mutex<Option<mpsc::Receiver<Letter>>>,
}

impl House {
    /// So many processes of one hub.
    pub fn street(houses: usize) -> Vec<Arc<Self>> {
        let street = Arc::<Mutex<Street>>::default();
        let build = |number| {
            let (sender, receiver) = mpsc::channel(LETTERS_MAX);
            lock(&street).houses.push((sender, HashSet::new()));
            Arc::new(Self {
                street: Arc::clone(&street),
                number,
                letters: Mutex::new(Some(receiver)),
            })
        };
        (0..houses).map(build).collect()
    }

    /// Lets `ears` hear the others, for as long as they live.
    pub fn listen(&self, ears: Weak<dyn Ears>, clock: Arc<dyn Clock>) {
        let letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner).take();
        tokio::spawn(async move {
            let Some(mut letters) = letters else { return };
            while let Some((mailbox, signal)) = letters.recv().await {
                let Some(ears) = ears.upgrade() else { return };
                ears.hear(&mailbox, signal, clock.now());
            }
        });
    }

    /// Agents that are here, as far as the others know.
    pub fn agents(&self) -> usize {
        let street = self.open();
        street.houses.get(self.number).map_or(0, |(_, here)| here.len())
    }

    /// Claims of all houses that have not ended.
    pub fn claims(&self) -> usize {
        let now = Instant::now();
        let street = self.open();
        street.claims.values().filter(|(_, until)| *until > now).count()
    }

    fn open(&self) -> MutexGuard<'_, Street> {
        lock(&self.street)
    }

    fn with_here(&self, act: impl FnOnce(&mut HashSet<MailboxId>)) {
        if let Some((_, here)) = self.open().houses.get_mut(self.number) {
            act(here);
        }
    }
}

#[async_trait]
impl Neighbours for House {
    fn tell(&self, mailbox: &MailboxId, signal: Signal) {
        self.open().tell(self.number, mailbox, &signal);
    }

    async fn arrive(&self, mailbox: &MailboxId) {
        // As over a network: not at once.
        tokio::task::yield_now().await;
        self.with_here(|here| _ = here.insert(*mailbox));
    }

    fn leave(&self, mailbox: &MailboxId) {
        self.with_here(|here| _ = here.remove(mailbox));
        let mut street = self.open();
        if street.at.get(mailbox).is_some_and(|at| at.house == self.number) {
            street.at.remove(mailbox);
        }
    }

    async fn join(&self, mailbox: &MailboxId, share: bool, generation: u64) -> Entry {
        tokio::task::yield_now().await;
        let (now, mut street) = (Instant::now(), self.open());
        let known = street.at.get(mailbox).copied();
        let is_new = generation == 0;
        if let (true, Some(end)) = (is_new, street.taken_over.get(mailbox))
            && *end > now
        {
            return Entry::Wait(end.duration_since(now));
        }
        if is_new {
            street.generation += 1;
        }
        let generation = if is_new { street.generation } else { generation };
        if is_new && known.is_some_and(|at| !(at.share && share)) {
            let end = now + Duration::from_millis(TAKEOVER_PAUSE_MILLIS);
            street.taken_over.insert(*mailbox, end);
        }
        if known.is_none_or(|at| at.generation <= generation) {
            let house = self.number;
            let at = At {
                house,
                generation,
                share,
            };
            street.at.insert(*mailbox, at);
        }
        street.tell(self.number, mailbox, &Signal::Joined { generation, share });
        Entry::In { generation }
    }

    async fn claim(&self, mailbox: &MailboxId, claims: &[Claim]) -> Vec<Taken> {
        tokio::task::yield_now().await;
        let (now, mut street) = (Instant::now(), self.open());
        let mut taken = Vec::new();
        for Claim { seq, hold } in claims {
            match street.claims.get(&(*mailbox, *seq)) {
                Some((house, until)) if *house != self.number && *until > now => taken.push(Taken {
                    seq: *seq,
                    hold: until.duration_since(now),
                }),
                _ => {
                    let claim = (self.number, now + *hold);
                    street.claims.insert((*mailbox, *seq), claim);
                }
            }
        }
        taken
    }

    fn release(&self, mailbox: &MailboxId, seqs: &[u64], after: Duration) {
        let (now, mut street) = (Instant::now(), self.open());
        for seq in seqs {
            let claim = street.claims.get_mut(&(*mailbox, *seq));
            if let Some((_, until)) = claim.filter(|(house, until)| *house == self.number && *until > now) {
                *until = now + after;
            }
        }
        if after.is_zero() {
            let seqs = seqs.to_vec();
            street.tell(self.number, mailbox, &Signal::Released { seqs });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
