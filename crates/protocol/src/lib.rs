//! AIP/1 on the wire: names, keys, strict JSON, signatures, identity histories, envelopes, sealing.
//!
//! This crate is the protocol of `docs/protocol/aip-v1.md` and nothing else: no I/O, no clock, no
//! ambient randomness, no runtime, no framework. Time and chance are arguments. A hub, a client and
//! anyone else's implementation meet in the bytes that are made and judged here.
//!
//! Text and bytes of strangers are parsed once, at the door, into types that cannot hold a bad
//! value; whatever is refused becomes a [`error::Refusal`] with a stable code.

pub mod challenge;
pub mod clock;
pub mod discovery;
pub mod document;
pub mod envelope;
pub mod error;
pub mod fusion;
pub mod http_signature;
pub mod identity;
pub mod json;
pub mod limits;
pub mod listing;
pub mod market;
pub mod multikey;
pub mod name;
pub mod peer;
pub mod seal;
pub mod signature;
pub mod sse;
pub mod time;

mod members;
