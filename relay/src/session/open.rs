//! The messages of one agent that were offered and are not settled, and who holds them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::SessionId;

/// Where an offered message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Left alone until then.
    Until(Duration),
    /// In the hands of another process, until then at most.
    Taken(Duration),
    /// To be offered again.
    Due,
    /// On its way from the store to its holder.
    Moving,
    /// Acked, and that is not durable yet: it occupies its place until then.
    Acked,
}

/// One offered message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    /// The size of the envelope.
    pub(super) bytes: u64,
    /// How often it was offered.
    pub(super) attempt: u32,
    /// The session whose window it occupies; nobody's after a nak.
    pub(super) holder: Option<SessionId>,
    /// What happens next.
    pub(super) stage: Stage,
}

/// What a session has in hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Messages.
    pub(super) messages: u32,
    /// Bytes of their envelopes.
    pub(super) bytes: u64,
}

/// All offered messages of one agent. `insert` and `remove` keep the indexes; every change is made of the two.
#[derive(Debug, Default)]
pub(super) struct Open {
    offers: BTreeMap<u64, Offer>,
    timers: BTreeSet<(Duration, u64)>,
    due: BTreeSet<u64>,
    windows: BTreeMap<SessionId, Window>,
    parked: usize,
    /// Offers that are kept from other processes.
    claimed: BTreeSet<u64>,
    /// Those that no longer are.
    freed: Vec<u64>,
    /// On their way to a session here, given back by another process meanwhile: should they turn out to be taken, that
    /// is over.
    returned: BTreeSet<u64>,
}

impl Open {
    /// Puts an offer down, over an older one of the same message.
    pub(super) fn insert(&mut self, seq: u64, offer: Offer) {
        self.lift(seq);
        self.returned.remove(&seq);
        match offer.stage {
            Stage::Until(at) | Stage::Taken(at) => drop(self.timers.insert((at, seq))),
            Stage::Due => drop(self.due.insert(seq)),
            Stage::Moving | Stage::Acked => {}
        }
        match offer.holder {
            Some(session) => {
                let window = self.windows.entry(session).or_default();
                window.messages += 1;
                window.bytes += offer.bytes;
            }
            None => self.parked += 1,
        }
        self.offers.insert(seq, offer);
    }

    /// Takes an offer away; `None` if there was none. Its claim is left to end by itself: another process that has read
    /// the message just before it was settled is still told that it is taken.
    pub(super) fn remove(&mut self, seq: u64) -> Option<Offer> {
        self.claimed.remove(&seq);
        self.returned.remove(&seq);
        self.lift(seq)
    }

    /// Takes an offer out of the indexes.
    fn lift(&mut self, seq: u64) -> Option<Offer> {
        let offer = self.offers.remove(&seq)?;
        match offer.stage {
            Stage::Until(at) | Stage::Taken(at) => drop(self.timers.remove(&(at, seq))),
            Stage::Due => drop(self.due.remove(&seq)),
            Stage::Moving | Stage::Acked => {}
        }
        match offer.holder {
            Some(session) => self.shrink(session, offer.bytes),
            None => self.parked -= 1,
        }
        Some(offer)
    }

    fn shrink(&mut self, session: SessionId, bytes: u64) {
        let Some(window) = self.windows.get_mut(&session) else {
            return;
        };
        window.messages -= 1;
        window.bytes -= bytes;
        if window.messages == 0 {
            self.windows.remove(&session);
        }
    }

    /// Takes away everything up to and including `upto`.
    pub(super) fn remove_upto(&mut self, upto: u64) {
        while let Some(seq) = self.offers.keys().next().copied().filter(|seq| *seq <= upto) {
            self.remove(seq);
        }
    }

    /// What the agent has acked is not offered again.
    pub(super) fn mark_acked(&mut self, upto: u64, also: &[u64]) {
        let below: Vec<u64> = self.offers.range(..=upto).map(|(seq, _)| *seq).collect();
        for seq in below.iter().chain(also) {
            if let Some(offer) = self.get(*seq).copied() {
                self.set(*seq, offer.holder, Stage::Acked);
            }
        }
    }

    /// Changes who holds an offer and what happens to it next.
    pub(super) fn set(&mut self, seq: u64, holder: Option<SessionId>, stage: Stage) {
        if let Some(offer) = self.lift(seq) {
            self.insert(
                seq,
                Offer {
                    holder,
                    stage,
                    ..offer
                },
            );
        }
    }

    /// The offer of a message.
    pub(super) fn get(&self, seq: u64) -> Option<&Offer> {
        self.offers.get(&seq)
    }

    /// What `session` has in hand.
    pub(super) fn window(&self, session: SessionId) -> Window {
        self.windows.get(&session).copied().unwrap_or_default()
    }

    /// How many offers are in nobody's hands.
    pub(super) fn parked(&self) -> usize {
        self.parked
    }

    /// Offers whose pause ended by `now` become due; returns them.
    pub(super) fn expire(&mut self, now: Duration) -> Vec<u64> {
        let mut expired = Vec::new();
        while let Some((_, seq)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            if let Some(offer) = self.lift(seq) {
                self.insert(
                    seq,
                    Offer {
                        stage: Stage::Due,
                        ..offer
                    },
                );
            }
            expired.push(seq);
        }
        expired
    }

    /// When the next pause ends.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The offers that are due and that `session` holds or may take, in mailbox order.
    pub(super) fn due_for(&self, session: SessionId) -> impl Iterator<Item = (u64, &Offer)> {
        let mine = move |offer: &&Offer| offer.holder.is_none_or(|holder| holder == session);
        self.due
            .iter()
            .filter_map(move |seq| Some((*seq, self.offers.get(seq).filter(mine)?)))
    }

    /// Everything that `session` held is due, for whoever comes, unless it is acked.
    pub(super) fn release_all(&mut self, session: SessionId) {
        let held = self
            .offers
            .iter()
            .filter(|(_, offer)| offer.holder == Some(session));
        let held: Vec<(u64, Stage)> = held.map(|(seq, offer)| (*seq, offer.stage)).collect();
        for (seq, stage) in held {
            let stage = if stage == Stage::Acked {
                Stage::Acked
            } else {
                Stage::Due
            };
            self.set(seq, None, stage);
            if stage == Stage::Due {
                self.free(seq);
            }
        }
    }

    /// Keeps an offer from other processes.
    pub(super) fn claim(&mut self, seq: u64) {
        self.claimed.insert(seq);
    }

    /// Whether an offer is kept from other processes.
    pub(super) fn is_claimed(&self, seq: u64) -> bool {
        self.claimed.contains(&seq)
    }

    /// Other processes may have it.
    pub(super) fn free(&mut self, seq: u64) {
        if self.claimed.remove(&seq) {
            self.freed.push(seq);
        }
    }

    /// Another process has it, until `until` at most: nobody's here.
    pub(super) fn taken(&mut self, seq: u64, until: Duration) {
        self.claimed.remove(&seq);
        let stage = if self.returned.contains(&seq) {
            Stage::Due
        } else {
            Stage::Taken(until)
        };
        self.set(seq, None, stage);
    }

    /// Another process has given it back.
    pub(super) fn given_back(&mut self, seq: u64) {
        match self.get(seq).map(|offer| offer.stage) {
            Some(Stage::Taken(_)) => self.set(seq, None, Stage::Due),
            Some(Stage::Moving) => _ = self.returned.insert(seq),
            _ => {}
        }
    }

    /// What other processes may have since the last call.
    pub(super) fn take_freed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.freed)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        let mut freed = std::mem::take(&mut self.freed);
        freed.extend(std::mem::take(&mut self.claimed));
        *self = Self {
            freed,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SessionId = SessionId(1);
    const B: SessionId = SessionId(2);

    fn held(by: SessionId, bytes: u64, until: u64) -> Offer {
        Offer {
            bytes,
            attempt: 1,
            holder: Some(by),
            stage: Stage::Until(Duration::from_secs(until)),
        }
    }

    #[test]
    fn windows_follow_their_offers() {
        let mut open = Open::default();
        open.insert(1, held(A, 10, 30));
        open.insert(2, held(A, 20, 30));
        open.insert(3, held(B, 40, 60));
        assert_eq!(
            open.window(A),
            Window {
                messages: 2,
                bytes: 30
            }
        );
        open.set(2, None, Stage::Until(Duration::from_secs(5)));
        assert_eq!(
            (open.window(A), open.parked()),
            (
                Window {
                    messages: 1,
                    bytes: 10
                },
                1
            )
        );
        open.remove_upto(2);
        assert_eq!((open.window(A), open.parked()), (Window::default(), 0));
        assert_eq!(
            open.window(B),
            Window {
                messages: 1,
                bytes: 40
            }
        );
        assert_eq!(open.next_due(), Some(Duration::from_mins(1)));
    }

    #[test]
    fn a_pause_ends_once() {
        let mut open = Open::default();
        open.insert(1, held(A, 10, 30));
        open.insert(2, held(A, 10, 31));
        assert_eq!(open.expire(Duration::from_secs(30)), vec![1]);
        assert_eq!(open.expire(Duration::from_secs(30)), Vec::<u64>::new());
        assert_eq!(open.due_for(A).map(|(seq, _)| seq).collect::<Vec<_>>(), vec![1]);
        assert_eq!(open.due_for(B).count(), 0);
        open.release_all(A);
        assert_eq!(
            open.due_for(B).map(|(seq, _)| seq).collect::<Vec<_>>(),
            vec![1, 2]
        );
        assert_eq!(open.window(A), Window::default());
    }
}
