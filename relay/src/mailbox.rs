//! The mailbox seam.
