//! What an AI-Market hub answers (its protocol v2), as far as this hub takes part: the search for capabilities. Errors have
//! that protocol's shape.

use crate::routes::Endpoint;

pub mod search;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::at("/ai-market/v2/search").get(search::search)]
}

#[cfg(test)]
mod tests;
