//! How a new peer grows (spec §8: an unknown peer starts small and grows with good traffic).
//!
//! In stages, each of which doubles everything. A stage takes both time and good items: time alone is free to who prepares
//! domains for later, and items alone can be made in a minute by who controls both ends.

use aip_protocol::time::Timestamp;

use crate::limits::{
    RAMP_BYTES_PER_SEC, RAMP_GOOD_ITEMS, RAMP_ITEMS_PER_SEC, RAMP_SENDERS, RAMP_STAGE_SECS, RAMP_STAGES_MAX,
};
use crate::peers::PeerRecord;

/// How far a peer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) items_per_sec: u64,
    pub(super) bytes_per_sec: u64,
    pub(super) senders: usize,
}

/// Where only the settings count.
pub(super) const GROWN: Reach = Reach {
    items_per_sec: u64::MAX,
    bytes_per_sec: u64::MAX,
    senders: usize::MAX,
};

/// The reach of a peer; one that was never met is at the beginning.
pub(super) fn reach(record: Option<&PeerRecord>, now: Timestamp) -> Reach {
    let stage = record.map_or(0, |record| stage(record, now));
    let factor = 1_u64.checked_shl(stage).unwrap_or(u64::MAX);
    Reach {
        items_per_sec: RAMP_ITEMS_PER_SEC.saturating_mul(factor),
        bytes_per_sec: RAMP_BYTES_PER_SEC.saturating_mul(factor),
        senders: RAMP_SENDERS.saturating_mul(usize::try_from(factor).unwrap_or(usize::MAX)),
    }
}

/// One stage for each [`RAMP_STAGE_SECS`] of age, and no more than good items allow: the first takes [`RAMP_GOOD_ITEMS`],
/// each further one twice as many as the one before.
fn stage(record: &PeerRecord, now: Timestamp) -> u32 {
    let age_secs = now.millis_since(record.first_seen).div_euclid(1_000).max(0);
    let by_age = u32::try_from(age_secs.div_euclid(RAMP_STAGE_SECS)).unwrap_or(u32::MAX);
    let by_items = (record.good_items / RAMP_GOOD_ITEMS).saturating_add(1).ilog2();
    by_age.min(by_items).min(RAMP_STAGES_MAX)
}
