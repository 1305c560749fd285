//! An agent's side of AIP/1, and what the command `aip` is made of. The rest of this text is the room's README.
//!
#![doc = include_str!("../README.md")]

mod backoff;
mod client;
mod clock;
mod entropy;
mod error;
mod files;
mod identities;
pub mod import;
pub mod inbox;
mod keys;
pub mod limits;
mod listen;
mod listing;
pub mod market;
mod message;
mod offers;
mod opening;
mod receipts;
pub mod search;
mod serve;
mod session;
mod tls;
mod transport;
mod wire;

pub use backoff::{Backoff, nak_secs};
pub use client::{
    Client, ClientBuilder, DeadLetter, DeadLetters, InboxPage, Move, Moved, Registration, Resolved, Rotation,
    Unreadable,
};
pub use clock::SystemClock;
pub use entropy::Entropy;
pub use error::{Error, KeyFileError, Problem, Result};
pub use inbox::{Inbox, InboxError};
pub use keys::{AgentKeys, KdfCost, KeyFile};
pub use listen::{Acker, ListenOptions, Listener, OnReplaced, SessionState};
pub use listing::{
    ChangedWords, HeldListing, IngestReport, IngestRow, ListingPage, ListingStatus, Proof, ProviderKey,
    Published,
};
pub use message::{
    Body, Content, Draft, Incoming, KIND_BOUNCE, KIND_DEFAULT, KIND_RECEIPT, SealedEnvelope, parse_agent,
};
pub use offers::{AnsweredOffer, AskedOffer, KIND_OFFER, KIND_OFFERED, OfferAnswer, Party};
pub use receipts::{Receipt, ReceiptState};
pub use serve::{CallProgress, KIND_CANCEL, KIND_INVOKE, KIND_INVOKED, KIND_PROGRESS, Served, ServedCall};
pub use wire::{HistorySummary, HubInfo, MessageStatus, ResolveAnswer, Sent, SentStatus};

/// The protocol crate, for the types that appear in signatures here.
pub use aip_protocol as protocol;
