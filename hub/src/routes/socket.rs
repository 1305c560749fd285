//! The WebSocket door (§6). What happens on an upgraded connection is in [`crate::socket`].

use crate::routes::Endpoint;

pub mod connect;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::at("/api/v1/agents/connect").stream(connect::connect)]
}
