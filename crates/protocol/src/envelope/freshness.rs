//! Freshness, judged once, by the first hub (§5).

use std::time::Duration;

use crate::error::{ErrorCode, Refusal};
use crate::limits::{TOLERANCE_SECS, WINDOW_SECS};
use crate::time::Timestamp;

/// Accepts iff `-S <= now - created_at <= W + S`, both ends included, and returns until when the
/// accepted id is remembered, `created_at + W + S`.
///
/// Else `created_at_out_of_window`, with the members `created_at`, `hub_time` and `age_ms`.
pub fn check_window(created_at: Timestamp, now: Timestamp) -> Result<Timestamp, Refusal> {
    let remembered_until = created_at + Duration::from_secs(WINDOW_SECS + TOLERANCE_SECS);
    let earliest = created_at - Duration::from_secs(TOLERANCE_SECS);
    if earliest <= now && now <= remembered_until {
        return Ok(remembered_until);
    }
    let age_ms = now.millis_since(created_at);
    let detail = format!(
        "created_at is {created_at}, this hub's clock says {now} ({age_ms} ms later); -300 s to 900 s are accepted"
    );
    Err(Refusal::new(ErrorCode::CreatedAtOutOfWindow, detail)
        .with("created_at", created_at.to_string())
        .with("hub_time", now.to_string())
        .with("age_ms", age_ms))
}

/// `expired` when `expires_at` is before `now`; the moment itself still counts.
pub fn check_expiry(expires_at: Option<Timestamp>, now: Timestamp) -> Result<(), Refusal> {
    match expires_at {
        Some(expires_at) if expires_at < now => Err(Refusal::new(
            ErrorCode::Expired,
            format!("expires_at {expires_at} is past, it is {now}"),
        )),
        _ => Ok(()),
    }
}
