//! What the store says no to, in words.

use aip_protocol::error::{ErrorCode, Refusal};

/// 409 for a version that the hub has passed.
pub fn conflict(version: u64) -> Refusal {
    let detail = format!(
        "The hub holds version {version} of this listing, with other bytes: send a higher one than that."
    );
    Refusal::new(ErrorCode::VersionConflict, detail).with("version", version)
}

/// 507 for an agent that has as many listings as it may.
pub fn full(max: u32) -> Refusal {
    let detail =
        format!("The agent has {max} listings here, as many as it may: delete some, or ask the operator.");
    Refusal::new(ErrorCode::ListingsFull, detail).with("listings_max", max)
}
