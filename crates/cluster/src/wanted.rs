//! Whose signals are to be heard, and whose are: what the subscriber has to make equal.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_relay::mailbox::MailboxId;
use tokio::sync::{Notify, oneshot};

use crate::limits::SUBSCRIBE_BATCH_MAX;

/// What is to be done about subscriptions next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Errand {
    pub(crate) subscribe: Vec<MailboxId>,
    pub(crate) unsubscribe: Vec<MailboxId>,
}

#[derive(Debug, Default)]
struct State {
    here: HashSet<MailboxId>,
    heard: HashSet<MailboxId>,
    /// Where the two may differ, or somebody waits.
    open: HashSet<MailboxId>,
    waiting: HashMap<MailboxId, Vec<oneshot::Sender<()>>>,
    is_connected: bool,
}

/// See the module. Bounded by the agents that are connected here.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    state: Mutex<State>,
    news: Notify,
}

impl Wanted {
    /// An agent has arrived; what is returned ends when it is heard, or cannot be.
    pub(crate) fn arrive(&self, mailbox: &MailboxId) -> oneshot::Receiver<()> {
        let (done, wait) = oneshot::channel();
        let mut state = self.state();
        state.here.insert(*mailbox);
        let is_heard = state.heard.contains(mailbox) && !state.open.contains(mailbox);
        if state.is_connected && !is_heard {
            state.open.insert(*mailbox);
            let waiting = state.waiting.entry(*mailbox).or_default();
            // Those who gave up waiting do not pile up.
            waiting.retain(|done| !done.is_closed());
            waiting.push(done);
            self.news.notify_one();
        }
        wait
    }

    pub(crate) fn leave(&self, mailbox: &MailboxId) {
        let mut state = self.state();
        state.here.remove(mailbox);
        // Also when it is not heard: it may be about to.
        if state.is_connected {
            state.open.insert(*mailbox);
            self.news.notify_one();
        }
    }

    /// A new connection: nobody is heard yet, everybody is to be.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.is_connected = true;
        state.heard.clear();
        let State { open, here, .. } = &mut *state;
        open.clone_from(here);
    }

    /// No connection: nobody waits for one.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_connected = false;
        state.open.clear();
        state.waiting.clear();
    }

    /// Waits until [`Self::next`] may have something.
    pub(crate) async fn changed(&self) {
        self.news.notified().await;
    }

    /// Some of what is to be done; [`Self::done`] says that it was.
    pub(crate) fn next(&self) -> Errand {
        let mut state = self.state();
        let batch: Vec<_> = state.open.iter().copied().take(SUBSCRIBE_BATCH_MAX).collect();
        let mut errand = Errand::default();
        for mailbox in batch {
            state.open.remove(&mailbox);
            match (state.here.contains(&mailbox), state.heard.contains(&mailbox)) {
                (true, false) => errand.subscribe.push(mailbox),
                (false, true) => {
                    // Who arrives from here on has to be subscribed to again.
                    state.heard.remove(&mailbox);
                    errand.unsubscribe.push(mailbox);
                }
                // Came and went, or went and came, in the meantime.
                (true, true) | (false, false) => drop(state.waiting.remove(&mailbox)),
            }
        }
        errand
    }

    pub(crate) fn done(&self, errand: &Errand) {
        let mut state = self.state();
        for mailbox in &errand.subscribe {
            state.heard.insert(*mailbox);
            if !state.open.contains(mailbox) {
                // Dropping the line ends the wait.
                state.waiting.remove(mailbox);
            }
        }
    }

    /// Whether there is more to do.
    pub(crate) fn is_open(&self) -> bool {
        !self.state().open.is_empty()
    }

    /// Agents that are here.
    pub(crate) fn len(&self) -> usize {
        self.state().here.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bob() -> MailboxId {
        MailboxId::from_bytes([1; 16])
    }

    fn is_over(wait: &mut oneshot::Receiver<()>) -> bool {
        !matches!(wait.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    fn subscribe() -> Errand {
        Errand {
            subscribe: vec![bob()],
            unsubscribe: vec![],
        }
    }

    #[test]
    fn without_a_connection_nobody_waits_and_nothing_is_forgotten() {
        let wanted = Wanted::default();
        assert!(is_over(&mut wanted.arrive(&bob())));
        assert!(wanted.next() == Errand::default());
        wanted.begin();
        assert_eq!(wanted.next(), subscribe());
        wanted.done(&subscribe());
        wanted.end();
        wanted.begin();
        assert_eq!(wanted.next(), subscribe());
    }

    #[test]
    fn an_arrival_ends_when_it_is_heard() {
        let wanted = Wanted::default();
        wanted.begin();
        let (mut first, mut second) = (wanted.arrive(&bob()), wanted.arrive(&bob()));
        assert_eq!(wanted.next(), subscribe());
        assert!(!is_over(&mut first) && !is_over(&mut second));
        let mut third = wanted.arrive(&bob());
        wanted.done(&subscribe());
        assert!(wanted.is_open() && !is_over(&mut third));
        assert!(wanted.next() == Errand::default());
        assert!(is_over(&mut first) && is_over(&mut second) && is_over(&mut third));
        assert!(is_over(&mut wanted.arrive(&bob())), "it is heard");
    }

    #[test]
    fn the_last_word_counts() {
        let wanted = Wanted::default();
        wanted.begin();
        drop(wanted.arrive(&bob()));
        assert_eq!(wanted.next(), subscribe());
        wanted.leave(&bob());
        wanted.done(&subscribe());
        let unsubscribe = Errand {
            subscribe: vec![],
            unsubscribe: vec![bob()],
        };
        assert_eq!(wanted.next(), unsubscribe);
        let mut wait = wanted.arrive(&bob());
        wanted.done(&unsubscribe);
        assert_eq!(wanted.next(), subscribe());
        wanted.done(&subscribe());
        assert!(is_over(&mut wait));
        wanted.leave(&bob());
        let mut wait = wanted.arrive(&bob());
        assert!(wanted.next() == Errand::default());
        assert!(is_over(&mut wait));
    }

    #[test]
    fn a_connection_that_ends_lets_everybody_go() {
        let wanted = Wanted::default();
        wanted.begin();
        let mut wait = wanted.arrive(&bob());
        wanted.end();
        assert!(is_over(&mut wait));
    }
}
