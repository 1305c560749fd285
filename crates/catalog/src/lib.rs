//! What agents offer, and how it is found (spec §9): by text and by meaning, fused by rank, weighted by trust.
//!
//! The catalog is derived: it reads listings from a [`Source`] in the order of its changes and can be deleted at any time.
//! It knows neither SQL nor HTTP. Meaning comes from [`Embedder`]s, trust from [`TrustScores`].

mod background;
pub mod catalog;
mod cursor;
pub mod embedder;
pub mod entry;
pub mod error;
pub mod limits;
pub mod numbers;
pub mod price;
pub mod query;
pub mod ranking;
pub mod source;
#[cfg(test)]
mod testing;
pub mod text;
pub mod trust;
pub mod vectors;

pub use background::give_way;
pub use catalog::{
    Catalog, CatalogOptions, CatalogStats, EntryState, Explain, Found, FoundItem, SearchError, SpaceStats,
};
pub use embedder::{EmbedError, Embedder, Purpose};
pub use entry::{AttributeValue, Entry};
pub use error::CatalogError;
pub use numbers::NumberSet;
pub use price::Price;
pub use query::{Filter, Query};
pub use source::{Change, Source, SourceError};
pub use text::{TextHit, TextHits, TextIndex, TextOptions, TextView};
pub use trust::{NoTrust, TrustScores};
