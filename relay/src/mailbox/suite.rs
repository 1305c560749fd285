//! The contract of a mailbox store.
