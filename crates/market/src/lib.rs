//! The market: capabilities that are listed are invoked for money, and every call leaves a receipt (AIMarket v2).
//!
//! [`money`] is exact, [`store`] says what is kept and what one durable step is, [`offer`] is what can be invoked, and
//! [`invoke`] is the order in which an invocation is checked, paid for, made and answered; [`market`] is all of it in one
//! process. What is on the wire, and which bytes are signed, is in `aip_protocol::market`.

pub mod credential;
pub mod facilitator;
pub mod invoke;
pub mod limits;
pub mod market;
pub mod money;
pub mod offer;
pub mod peers;
pub mod progress;
pub mod provider;
pub mod refusal;
pub mod routing;
pub mod schema;
pub mod store;
#[cfg(feature = "testsuite")]
pub mod testsuite;

mod board;
mod crowd;
mod text;
