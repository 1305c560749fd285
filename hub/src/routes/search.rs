//! The search door (§9): the same search by query parameters and by the members of a body.

use crate::routes::Endpoint;

pub(crate) mod answer;
pub mod get;
mod parameters;
pub mod post;

pub(crate) use answer::find;
pub use answer::{Answer, FusionNumbers, ResultAgent, ResultItem, ResultRanks};
pub(crate) use parameters::{ATTRIBUTE_PREFIX, ATTRIBUTES, PARAMETERS, Search, invalid};

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::at("/api/v1/search").get(get::search).post(post::search)]
}

#[cfg(test)]
mod tests;
