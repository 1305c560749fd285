//! Hubs that sell here: who they are, and how they say that they are there.

use crate::routes::Endpoint;

pub mod announce;
pub mod peers;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/ai-market/v2/federation/announce").post(announce::announce),
        Endpoint::at("/ai-market/v2/federation/peers").get(peers::peers),
    ]
}
