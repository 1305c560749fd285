//! What the hub's own agent counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of a message to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has its answer.
    Answered,
    /// Its answer says why not.
    Refused,
    /// It was answered before; nothing went out.
    Repeated,
    /// It asks for nothing.
    Ignored,
    /// It lies with the dead letters.
    Rejected,
    /// It is offered again.
    Postponed,
}

impl Fate {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Answered,
        Self::Refused,
        Self::Repeated,
        Self::Ignored,
        Self::Rejected,
        Self::Postponed,
    ];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Repeated => "repeated",
            Self::Ignored => "ignored",
            Self::Rejected => "rejected",
            Self::Postponed => "postponed",
        }
    }
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct AgentStats {
    answered: AtomicU64,
    refused: AtomicU64,
    repeated: AtomicU64,
    ignored: AtomicU64,
    rejected: AtomicU64,
    postponed: AtomicU64,
    sent: AtomicU64,
    sessions: AtomicU64,
}

impl AgentStats {
    fn of(&self, fate: Fate) -> &AtomicU64 {
        match fate {
            Fate::Answered => &self.answered,
            Fate::Refused => &self.refused,
            Fate::Repeated => &self.repeated,
            Fate::Ignored => &self.ignored,
            Fate::Rejected => &self.rejected,
            Fate::Postponed => &self.postponed,
        }
    }

    pub(super) fn count(&self, fate: Fate) {
        self.of(fate).fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a session of the agent until the value is dropped.
    pub(super) fn begin_session(&self) -> Session<'_> {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Session(self)
    }

    /// Messages with this fate.
    pub fn messages(&self, fate: Fate) -> u64 {
        self.of(fate).load(Ordering::Relaxed)
    }

    /// Messages that the agent sent and that were not known before.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Sessions of the agent in this process: 1 while it reads its mailbox.
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }
}

/// One session.
#[derive(Debug)]
pub(super) struct Session<'a>(&'a AgentStats);

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}
