//! AIMarket v2 on the wire: which bytes its manifests, receipts and documents are signed over, and who signed them.
//!
//! AIMarket signs text that is put together from the members of a JSON object, as Python prints them. [`number`] and
//! [`digest`] are that spelling, [`value`] is JSON that keeps what the spelling depends on, and there is one module for
//! each object that is signed: [`receipt`], [`manifest`], [`document`] (a whole object) and [`announce`]. Each has a
//! function that signs and one that verifies against *pinned* keys and answers a [`Check`], in three states: a key that
//! could not be had is no forgery. [`origin`] says whose key that is. [`evm`] is what wallets sign, and
//! [`x402`] how calls are paid with it.

pub mod announce;
pub mod digest;
pub mod document;
pub mod evm;
pub mod manifest;
pub mod number;
pub mod origin;
pub mod receipt;
pub mod signature;
pub mod value;
pub mod verdict;
pub mod x402;

pub use number::Number;
pub use value::{Members, Value};
pub use verdict::{Check, Reason, Verdict};

use crate::time::Timestamp;

/// AIMarket's form of a moment: UTC, whole seconds (rounded down), `2026-11-29T20:15:30Z`.
pub fn time_text(moment: Timestamp) -> String {
    let text = moment.to_string();
    text.split_once('.')
        .map_or_else(|| text.clone(), |(seconds, _)| format!("{seconds}Z"))
}
