//! What only several processes on real servers can show: they agree, whatever fails.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test is to panic"
)]

mod cluster;
mod costs;
mod crashes;
mod histories;
mod kit;
mod long;
#[path = "../../../../relay/tests/mailbox_model/model.rs"]
mod model;
#[path = "../kit/pair.rs"]
mod pair;
mod stalls;
#[path = "../kit/stores.rs"]
mod stores;
mod two;
