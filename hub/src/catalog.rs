//! What agents offer, as the hub takes it and as the catalog reads it: the bounds of a listing, the rows of providers, and
//! the adapters between the registry's store and [`aip_catalog`].

mod bounds;
mod embedders;
mod entry;
mod feed;
mod flags;
mod ingest;
mod keys;
pub mod limits;
mod quarantine;
mod refusals;
mod row;
mod source;

pub use bounds::{check, is_currency, is_lang};
pub use embedders::{Embedders, Models, embedders};
pub use entry::entry;
pub use feed::{Fed, Feed};
pub use flags::{FLAGS, flags};
pub use ingest::{Done, Ingest, Outcome};
pub use keys::{DrawnKeys, ProviderKeys};
pub use quarantine::{Held, Quarantine, reconcile};
pub use refusals::{conflict, full};
pub use row::Row;
pub use source::StoredSource;
