//! The agent's DID for the world outside: its `did:web` twin, and the resolution interface of the W3C (§3).

use crate::routes::Endpoint;

pub mod resolve;
pub mod web;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/agents/{name}/did.json").get(web::did_web),
        Endpoint::at("/1.0/identifiers/{did}").get(resolve::resolve_did),
    ]
}

#[cfg(test)]
mod tests;
