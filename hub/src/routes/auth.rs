//! Tokens for the doors that only the agent itself may open (§6): a challenge, signed, becomes a token.

use crate::routes::Endpoint;

pub mod challenge;
pub mod token;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/api/v1/auth/challenge").post(challenge::challenge),
        Endpoint::at("/api/v1/auth/token").post(token::token),
    ]
}

#[cfg(test)]
mod tests;
