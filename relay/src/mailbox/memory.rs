//! Mailboxes in memory.
