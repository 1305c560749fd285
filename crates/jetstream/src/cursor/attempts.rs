//! How often a message was offered, and in which sessions.

use aip_relay::limits::SESSIONS_COUNTED_MAX;

/// Offers of one message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    count: u32,
    sessions: [u64; SESSIONS_COUNTED_MAX],
    counted: usize,
}

impl Attempts {
    /// As it was written; `None` with more sessions than are counted.
    pub(super) fn from_parts(count: u32, sessions: &[u64]) -> Option<Self> {
        let mut attempts = Self {
            count,
            ..Self::default()
        };
        for session in sessions {
            *attempts.sessions.get_mut(attempts.counted)? = *session;
            attempts.counted += 1;
        }
        Some(attempts)
    }

    /// Offers so far.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Different sessions, up to their bound.
    pub(crate) fn sessions(&self) -> u32 {
        u32::try_from(self.counted).unwrap_or(u32::MAX)
    }

    /// The sessions that are known.
    pub(super) fn known(&self) -> impl Iterator<Item = u64> + '_ {
        self.sessions.iter().copied().take(self.counted)
    }

    /// One offer more, in `session`.
    pub(super) fn raise(&mut self, session: u64) {
        self.count = self.count.saturating_add(1);
        if self.known().any(|known| known == session) {
            return;
        }
        if let Some(free) = self.sessions.get_mut(self.counted) {
            *free = session;
            self.counted += 1;
        }
    }
}
