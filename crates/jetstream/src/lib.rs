//! Mailboxes on NATS JetStream.
