//! Agents and their identity histories (§3).

use crate::routes::Endpoint;

pub mod create;
pub mod history;
pub mod operate;
pub mod show;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/api/v1/agents").post(create::create),
        Endpoint::at("/api/v1/agents/{name}/operations").post(operate::operate),
        Endpoint::at("/api/v1/agents/{name}/history").get(history::history),
        Endpoint::at("/agents/{name}").get(show::show),
    ]
}

#[cfg(test)]
mod tests;
