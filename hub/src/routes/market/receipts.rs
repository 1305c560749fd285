//! Receipts that this hub gave out: looked up by their nonce, and checked.

use crate::routes::Endpoint;

pub mod show;
pub mod verify;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/ai-market/v2/receipts/verify").post(verify::verify),
        Endpoint::at("/ai-market/v2/receipts/{nonce}").get(show::show),
    ]
}
