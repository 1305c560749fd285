//! Who exists: agents and their identity histories, challenges and tokens, invites (spec §1, §3, §6); what they offer:
//! listings, and who hands them in (§9); what is known of the hubs of other domains (§8); and what the market keeps.
//!
//! [`Registry`] is the front that the hub talks to. It parses and judges what strangers send, keeps
//! resolved agents in a bounded cache, and leaves storage to two seams: [`Directory`] (agents and
//! histories) and [`Grants`] (tokens and invites). A third, [`Listings`], is the store that a catalog is made from; a
//! fourth, [`FederationStore`](aip_federation::peers::FederationStore), is the federation room's, and a fifth,
//! [`MarketStore`](aip_market::store::MarketStore), the market's. Each has an implementation in memory ([`MemoryStore`]; that
//! of the market is its own [`MemoryMarket`](aip_market::store::MemoryMarket)) and one in SQL ([`SqlStore`]: SQLite in a file,
//! or PostgreSQL for several processes), held together by contract suites (`testsuite`, a feature).
//!
//! A refusal is a value that goes back to the caller ([`RegistryError::Refused`]); a failure of a
//! store is an error for the operator's log ([`StoreError`]).

pub mod agent;
pub mod config;
pub mod directory;
pub mod error;
pub mod grants;
pub mod limits;
pub mod listings;
mod memory;
mod peers;
mod registry;
pub mod secret;
pub mod siblings;
mod sql;
#[cfg(feature = "testsuite")]
pub mod testsuite;

pub use agent::{Agent, AgentSummary, Kept, QuotaOverride, Standing};
pub use config::{Policy, RegistryConfig};
pub use directory::Directory;
pub use error::{RegistryError, StoreError};
pub use grants::Grants;
pub use listings::Listings;
pub use memory::MemoryStore;
pub use registry::{
    Challenge, HistoryPage, IssuedToken, NewInvite, Operated, Registered, Registry, Seams, SocketChallenge,
};
pub use siblings::{AloneSiblings, Siblings, Spend};
pub use sql::{Backup, Digest, Fact, Migrated, PostgresOptions, SqlFigures, SqlStore};
