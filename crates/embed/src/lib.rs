//! Text to vectors, for the catalog's semantic list: models that run in this process on the CPU, and models behind HTTP.
//!
//! [`LocalEmbedder`] runs one of two small multilingual models on threads of its own; `bundled` holds their files where the
//! feature of that name puts them into the binary. [`HttpEmbedder`] asks a server for `/v1/embeddings`.

#[cfg(feature = "bundled")]
pub mod bundled;
pub mod http;
pub mod limits;
pub mod local;
mod model;

pub use http::{ApiKey, HttpEmbedder, HttpOptions, OptionsError};
pub use local::{LocalEmbedder, LocalOptions};
pub use model::files::{ModelFiles, Part};
