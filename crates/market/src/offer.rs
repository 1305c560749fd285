//! What can be invoked, and where it is found.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::market::evm::Address;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Did;

use crate::limits::{ID_CHARS_MAX, ID_CHARS_MIN};
use crate::money::Usd;
use crate::schema::Schema;

mod notes;
mod terms;

pub use notes::{Changed, Notes};
pub use terms::Terms;

/// A capability as it is sold: read from its listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The hub's id of the listing.
    pub id: String,
    /// Whose offer it is, and who is paid. Of another hub's it is that hub: `did:aip:{host}:hub`.
    pub agent: Did,
    /// Where it is sold.
    pub source: Source,
    /// AIMarket's `product_id`; see [`is_id`].
    pub product_id: String,
    /// AIMarket's `capability_id`; see [`is_id`].
    pub capability_id: String,
    /// The version of the listing.
    pub version: u64,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The attribute `category`.
    pub category: Option<String>,
    /// What one call costs; nothing: it is free.
    pub price: Usd,
    /// What its input is like.
    pub input_schema: Option<Schema>,
    /// What its result is like.
    pub output_schema: Option<Schema>,
    /// How its provider is called; `None`: it is listed, and cannot be invoked here.
    pub way: Option<Way>,
    /// How long its provider may take; `None`: as the operator says.
    pub timeout: Option<Duration>,
    /// What may be had for nothing, of one field of the input.
    pub free_tier: Option<FreeTier>,
    /// The key with which its provider signs what it answers over HTTP (`X-Provider-Signature`); `None`: it need not.
    pub provider_key: Option<VerifyingKey>,
    /// Where buyers pay it on a chain (the attribute `payout_address`); `None`: they cannot.
    pub payout: Option<Address>,
    /// What a buyer should know about its words.
    pub notes: Notes,
}

impl Offer {
    /// Whether it can be invoked here: it says how, and its schemas are ones. Manifests and prices show no other.
    pub fn is_invocable(&self) -> bool {
        let schemas = [&self.input_schema, &self.output_schema];
        self.way.is_some() && schemas.into_iter().flatten().all(Schema::is_usable)
    }
}

/// Where an offer is sold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// On this hub.
    Local,
    /// On another hub, of which this one sells on or passes on calls.
    Peer(PeerSource),
}

impl Source {
    /// The hub as a call names it in `source_hub`; `None`: this one.
    pub fn hub(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Peer(peer) => Some(&peer.hub),
        }
    }
}

/// Another hub that sells an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerSource {
    /// Its canonical address, without a slash at the end: `https://hub.example`. Searches answer it in `source_hub`.
    pub hub: String,
    /// What it calls itself: a stranger's text.
    pub name: String,
}

/// How a provider is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// `POST` to this address, which the provider chose: only through the guarded way out.
    Http(String),
    /// A sealed message to the provider agent, answered by one: it needs no public address.
    Relay,
    /// A call of the hub that [`Offer::source`] names. No listing of an agent says this of itself.
    Peer,
}

/// `free_tier {field, max}` of a listing with a price: an input whose number `field` (a path with points) is there and is `max`
/// at most costs nothing to whoever shows no purse. Of a free capability it says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct FreeTier {
    /// Where the number is in the input, such as `puzzle.T`.
    pub field: String,
    /// The largest that is free.
    pub max: f64,
}

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<'a> {
    /// AIMarket's id.
    pub product_id: &'a str,
    /// AIMarket's id.
    pub capability_id: &'a str,
    /// At which hub; `None`: at this one. Else its canonical address, as in [`PeerSource::hub`].
    pub hub: Option<&'a str>,
}

/// Finds what is sold. What it answers may be a moment old: the price that it says is the price of the call.
pub trait Offers: Send + Sync + Debug {
    /// The offer with these ids at this hub.
    fn find(&self, asked: &Asked<'_>) -> Option<Arc<Offer>>;

    /// At which hubs these ids are sold, as a call names them: `local`, and the addresses of others in their order; for who
    /// asks at the wrong one. At most a few.
    fn hubs_of(&self, product_id: &str, capability_id: &str) -> Vec<String>;
}

/// Whether this can be an AIMarket id: 2 to 80 of `[A-Za-z0-9_.@-]` without `..`. Other listings are not sold.
pub fn is_id(text: &str) -> bool {
    (ID_CHARS_MIN..=ID_CHARS_MAX).contains(&text.len())
        && !text.contains("..")
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'@' | b'-'))
}
