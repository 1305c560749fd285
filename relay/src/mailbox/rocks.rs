//! Mailboxes on RocksDB.
