//! Acks on their way to the store: gathered while one is being made durable, then sent as one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::SessionId;

/// Sequence numbers that an agent has dealt with.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) upto: u64,
    pub(super) also: BTreeSet<u64>,
    /// Who is told when it is durable.
    pub(super) tell: Vec<SessionId>,
}

impl Batch {
    fn covers(&self, seq: u64) -> bool {
        seq <= self.upto || self.also.contains(&seq)
    }

    fn is_empty(&self) -> bool {
        self.tell.is_empty()
    }

    fn add(
        &mut self,
        upto: u64,
        also: impl IntoIterator<Item = u64>,
        tell: impl IntoIterator<Item = SessionId>,
    ) {
        self.upto = self.upto.max(upto);
        self.also = self.also.split_off(&self.upto.saturating_add(1));
        self.also.extend(also.into_iter().filter(|seq| *seq > self.upto));
        for session in tell {
            if !self.tell.contains(&session) {
                self.tell.push(session);
            }
        }
    }
}

/// The acks of one agent that are not durable yet.
#[derive(Debug, Default)]
pub(super) struct Acks {
    waiting: Batch,
    running: Option<(SessionId, Batch)>,
    /// After a failure: not before this.
    not_before: Option<Duration>,
}

impl Acks {
    /// Takes an ack in; `from` is told when it is durable.
    pub(super) fn add(&mut self, from: SessionId, upto: u64, also: Vec<u64>) {
        self.waiting.add(upto, also, [from]);
    }

    /// Whether the agent has acked `seq`, durable or not.
    pub(super) fn covers(&self, seq: u64) -> bool {
        self.waiting.covers(seq) || self.running.as_ref().is_some_and(|(_, batch)| batch.covers(seq))
    }

    /// How many single sequence numbers wait.
    pub(super) fn backlog(&self) -> usize {
        self.waiting.also.len()
    }

    /// Whether [`Self::start`] would start something.
    pub(super) fn is_startable(&self, now: Duration) -> bool {
        self.running.is_none() && !self.waiting.is_empty() && self.not_before.is_none_or(|at| at <= now)
    }

    /// When a failed ack is tried again.
    pub(super) fn next_due(&self) -> Option<Duration> {
        if self.running.is_some() || self.waiting.is_empty() {
            None
        } else {
            self.not_before
        }
    }

    /// What `session` is to make durable now.
    pub(super) fn start(&mut self, session: SessionId, now: Duration) -> Option<(u64, Vec<u64>)> {
        if !self.is_startable(now) {
            return None;
        }
        self.not_before = None;
        let batch = std::mem::take(&mut self.waiting);
        let work = (batch.upto, batch.also.iter().copied().collect());
        self.running = Some((session, batch));
        Some(work)
    }

    /// The running ack of `session` is durable; returns what it was.
    pub(super) fn done(&mut self, session: SessionId) -> Option<Batch> {
        self.running
            .take_if(|(by, _)| *by == session)
            .map(|(_, batch)| batch)
    }

    /// The running ack of `session` did not come through: it waits again, until `retry_at`.
    pub(super) fn failed(&mut self, session: SessionId, retry_at: Option<Duration>) {
        if let Some((_, batch)) = self.running.take_if(|(by, _)| *by == session) {
            self.waiting.add(batch.upto, batch.also, batch.tell);
            self.not_before = retry_at;
        }
    }

    /// Nobody is left who could carry the waiting acks out: the messages will be offered again.
    pub(super) fn forget_waiting(&mut self) {
        self.waiting = Batch::default();
        self.not_before = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SessionId = SessionId(1);
    const B: SessionId = SessionId(2);
    const NOW: Duration = Duration::ZERO;

    fn told(batch: Option<Batch>) -> Vec<SessionId> {
        batch.unwrap().tell
    }

    #[test]
    fn acks_gather_while_one_runs() {
        let mut acks = Acks::default();
        acks.add(A, 1, vec![3, 5]);
        assert_eq!(acks.start(A, NOW), Some((1, vec![3, 5])));
        acks.add(B, 3, vec![4, 7]);
        acks.add(A, 4, vec![2, 9]);
        assert_eq!(acks.start(A, NOW), None);
        assert!(acks.covers(2) && acks.covers(5) && acks.covers(9) && !acks.covers(6));
        assert_eq!(told(acks.done(A)), [A]);
        assert_eq!(acks.start(B, NOW), Some((4, vec![7, 9])));
        assert_eq!(told(acks.done(B)), [B, A]);
        assert_eq!(acks.start(B, NOW), None);
    }

    #[test]
    fn a_failed_ack_is_tried_again_with_what_came_since() {
        let mut acks = Acks::default();
        acks.add(A, 2, vec![4]);
        acks.start(A, NOW);
        acks.add(A, 3, vec![]);
        acks.failed(A, Some(Duration::from_secs(1)));
        assert_eq!(acks.next_due(), Some(Duration::from_secs(1)));
        assert_eq!(acks.start(A, NOW), None);
        assert_eq!(acks.start(A, Duration::from_secs(1)), Some((3, vec![4])));
    }

    #[test]
    fn only_who_carries_an_ack_out_can_end_it() {
        let mut acks = Acks::default();
        acks.add(A, 2, vec![]);
        acks.start(A, NOW);
        assert!(acks.done(B).is_none());
        acks.failed(B, None);
        assert_eq!(told(acks.done(A)), [A]);
    }
}
