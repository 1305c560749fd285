//! Counters of look-ups, of peers or of agents elsewhere: where answers came from, and why there was none. Both are closed lists.
//!
//! A caller who waits for a look-up that is under way is not counted: one question to a hub is one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::directory::PeerError;
use crate::identities::IdentityError;

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// What this process held, be it that there is nothing.
    Memory,
    /// The store, or the settings.
    Store,
    /// The hub of the domain, asked now.
    Hub,
    /// The store, although it is old: the hub could not be reached.
    Stale,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Store, Self::Hub, Self::Stale];

    /// A stable word for labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Store => "store",
            Self::Hub => "hub",
            Self::Stale => "stale",
        }
    }
}

/// Why there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// There is no such agent.
    NotFound,
    /// The history contradicts the one known before, or is not its agent's.
    Forked,
    /// What was shown is no history.
    Unsound,
    /// The operator blocked the peer.
    Blocked,
    /// The peer showed a key that no pinned one vouches for.
    Frozen,
    /// The hub could not be reached.
    Unreachable,
    /// There is no hub, or none to speak with.
    Unfit,
    /// It was asked afresh a moment ago.
    TooSoon,
    /// Too many look-ups were under way.
    Busy,
    /// Our own store failed.
    Store,
}

impl Miss {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::NotFound,
        Self::Forked,
        Self::Unsound,
        Self::Blocked,
        Self::Frozen,
        Self::Unreachable,
        Self::Unfit,
        Self::TooSoon,
        Self::Busy,
        Self::Store,
    ];

    /// A stable word for labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Forked => "forked",
            Self::Unsound => "unsound",
            Self::Blocked => "blocked",
            Self::Frozen => "frozen",
            Self::Unreachable => "unreachable",
            Self::Unfit => "unfit",
            Self::TooSoon => "too_soon",
            Self::Busy => "busy",
            Self::Store => "store",
        }
    }
}

impl From<&PeerError> for Miss {
    fn from(error: &PeerError) -> Self {
        match error {
            PeerError::Blocked => Self::Blocked,
            PeerError::Frozen { .. } => Self::Frozen,
            PeerError::Unreachable { .. } => Self::Unreachable,
            PeerError::Unfit(_) => Self::Unfit,
            PeerError::TooSoon { .. } => Self::TooSoon,
            PeerError::Busy => Self::Busy,
            PeerError::Store(_) => Self::Store,
        }
    }
}

impl From<&IdentityError> for Miss {
    fn from(error: &IdentityError) -> Self {
        match error {
            IdentityError::NotFound => Self::NotFound,
            IdentityError::Forked => Self::Forked,
            IdentityError::Unsound(_) => Self::Unsound,
            IdentityError::Peer(error) => error.into(),
        }
    }
}

/// What was counted since this process began.
#[derive(Debug, Default)]
pub struct Looks {
    answered: [AtomicU64; Source::ALL.len()],
    missed: [AtomicU64; Miss::ALL.len()],
}

impl Looks {
    /// Answers by where they came from.
    pub fn answered(&self) -> impl Iterator<Item = (Source, u64)> {
        let counts = self.answered.iter().map(|count| count.load(Ordering::Relaxed));
        Source::ALL.into_iter().zip(counts)
    }

    /// Look-ups without an answer, by why.
    pub fn missed(&self) -> impl Iterator<Item = (Miss, u64)> {
        let counts = self.missed.iter().map(|count| count.load(Ordering::Relaxed));
        Miss::ALL.into_iter().zip(counts)
    }

    /// Counts how a look-up ended, and passes it on.
    pub(crate) fn counted<T, E>(&self, found: Result<(T, Source), E>) -> Result<T, E>
    where
        for<'a> Miss: From<&'a E>,
    {
        match &found {
            Ok((_, source)) => self.answer(*source),
            Err(error) => self.miss(error.into()),
        }
        found.map(|(answer, _)| answer)
    }

    pub(crate) fn answer(&self, source: Source) {
        let mut counts = Source::ALL.into_iter().zip(&self.answered);
        if let Some((_, count)) = counts.find(|(other, _)| *other == source) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn miss(&self, miss: Miss) {
        let mut counts = Miss::ALL.into_iter().zip(&self.missed);
        if let Some((_, count)) = counts.find(|(other, _)| *other == miss) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Those that are not zero, as words: for tests.
    #[cfg(test)]
    pub(crate) fn words(&self) -> Vec<(&'static str, u64)> {
        let answered = self.answered().map(|(source, count)| (source.as_str(), count));
        let missed = self.missed().map(|(miss, count)| (miss.as_str(), count));
        answered.chain(missed).filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_by_itself() {
        let looks = Looks::default();
        for (times, source) in (1..).zip(Source::ALL) {
            (0..times).for_each(|_| looks.answer(source));
        }
        for (times, miss) in (1..).zip(Miss::ALL) {
            (0..times).for_each(|_| looks.miss(miss));
        }
        let answered: Vec<u64> = looks.answered().map(|(_, count)| count).collect();
        assert_eq!(answered, [1, 2, 3, 4]);
        let missed: Vec<u64> = looks.missed().map(|(_, count)| count).collect();
        assert_eq!(missed, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
}
