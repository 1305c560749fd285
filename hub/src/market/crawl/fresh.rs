//! How old a signed document of a peer may be: an old one could be shown again by anybody.

use aip_protocol::time::Timestamp;

use super::error::{CrawlError, Page};
use crate::market::limits::{DOCUMENT_AGE_MAX, DOCUMENT_AHEAD_MAX};

/// Milliseconds of a day.
const DAY_MILLIS: i64 = 86_400_000;

/// Checks when a document was made.
///
/// # Errors
/// It says no time, one that is long ago, or one that is not yet.
pub(super) fn check_age(page: Page, generated_at: &str, now: Timestamp) -> Result<(), CrawlError> {
    let Ok(at) = Timestamp::parse(generated_at) else {
        return Err(CrawlError::wrong(page, "has no time in `generated_at`"));
    };
    let (oldest, ahead) = (now.millis_since(at), at.millis_since(now));
    let millis = |limit: std::time::Duration| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
    if oldest > millis(DOCUMENT_AGE_MAX) {
        let days = oldest / DAY_MILLIS;
        return Err(CrawlError::wrong(page, format!("was made {days} days ago")));
    }
    if ahead > millis(DOCUMENT_AHEAD_MAX) {
        return Err(CrawlError::wrong(page, "says that it was made in the future"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pitfall_52_a_document_is_of_this_week() {
        let now = Timestamp::parse("2026-11-30T12:00:00Z").unwrap();
        let is_good = |at: &str| check_age(Page::Manifest, at, now).is_ok();
        for good in [
            "2026-11-30T12:00:00Z",
            "2026-11-23T12:00:01Z",
            "2026-11-30T12:59:59Z",
        ] {
            assert!(is_good(good), "{good}");
        }
        for bad in [
            "2026-11-22T12:00:00Z",
            "2026-11-30T14:00:00Z",
            "",
            "yesterday",
            "2026-11-30",
        ] {
            assert!(!is_good(bad), "{bad}");
        }
    }
}
