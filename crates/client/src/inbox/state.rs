//! What an inbox remembers, as plain data: pure, and small enough to be written beside an application's own state.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Cursor, MessageKey};
use crate::limits::{IDS_KEPT, IDS_MAX};

/// The memory of an inbox. Serialises to a compact JSON object; put it into the transaction of your effects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct InboxState {
    epoch: Option<String>,
    floor: u64,
    beyond: BTreeSet<u64>,
    /// Id → when it was recorded, milliseconds since 1970.
    ids: HashMap<[u8; 16], i64>,
    /// The same ids, oldest first.
    order: VecDeque<[u8; 16]>,
}

impl InboxState {
    /// Everything up to here is settled.
    pub fn cursor(&self) -> Option<Cursor> {
        self.epoch.clone().map(|epoch| Cursor {
            epoch,
            seq: self.floor,
        })
    }

    /// See [`super::Inbox::enter`]. True when something changed.
    pub fn enter(&mut self, epoch: &str, floor: u64) -> bool {
        if self.epoch.as_deref() != Some(epoch) {
            self.epoch = Some(epoch.to_owned());
            self.floor = floor;
            self.beyond.clear();
            return true;
        }
        if floor <= self.floor {
            return false;
        }
        self.floor = floor;
        self.beyond = self.beyond.split_off(&floor.saturating_add(1));
        self.close_gaps();
        true
    }

    /// See [`super::Inbox::seen`].
    pub fn seen(&self, key: &MessageKey) -> bool {
        self.has_place(&key.cursor) || self.ids.contains_key(&key.id)
    }

    /// Whether recording this would change nothing. A place below the floor may be settled by the hub's word alone, and
    /// then the id is still to be remembered for the epochs to come.
    pub(super) fn holds(&self, key: &MessageKey) -> bool {
        let has_place = self.epoch.as_deref() != Some(&key.cursor.epoch) || self.has_place(&key.cursor);
        has_place && self.ids.contains_key(&key.id)
    }

    /// See [`super::Inbox::record`]. A place of another epoch than the current one is not kept, its id is.
    /// True when something changed.
    pub fn record(&mut self, key: &MessageKey, now: Timestamp) -> bool {
        let placed = self.epoch.as_deref() == Some(&key.cursor.epoch)
            && key.cursor.seq > self.floor
            && self.beyond.insert(key.cursor.seq);
        if placed {
            self.close_gaps();
        }
        let fresh = !self.ids.contains_key(&key.id);
        if fresh {
            self.ids.insert(key.id, now.unix_millis());
            self.order.push_back(key.id);
        }
        self.forget(now, IDS_KEPT, IDS_MAX);
        placed || fresh
    }

    fn has_place(&self, cursor: &Cursor) -> bool {
        self.epoch.as_deref() == Some(&cursor.epoch)
            && (cursor.seq <= self.floor || self.beyond.contains(&cursor.seq))
    }

    fn close_gaps(&mut self) {
        while self.beyond.remove(&self.floor.saturating_add(1)) {
            self.floor += 1;
        }
    }

    /// Drops ids that are older than `kept`, and the oldest above `most`. A clock that went back keeps ids longer.
    fn forget(&mut self, now: Timestamp, kept: Duration, most: usize) {
        let oldest = (now - kept).unix_millis();
        while let Some(id) = self.order.front() {
            let expired = self.ids.get(id).is_none_or(|at| *at < oldest);
            if !expired && self.order.len() <= most {
                return;
            }
            self.ids.remove(id);
            self.order.pop_front();
        }
    }
}

/// The serialised form: ids as hex, oldest first.
#[derive(Serialize, Deserialize)]
struct Saved {
    epoch: Option<String>,
    floor: u64,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    beyond: BTreeSet<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ids: Vec<(IdText, i64)>,
}

impl From<Saved> for InboxState {
    fn from(saved: Saved) -> Self {
        let order = saved.ids.iter().map(|(id, _)| id.0).collect();
        let ids = saved.ids.into_iter().map(|(id, at)| (id.0, at)).collect();
        Self {
            epoch: saved.epoch,
            floor: saved.floor,
            beyond: saved.beyond,
            ids,
            order,
        }
    }
}

impl From<InboxState> for Saved {
    fn from(state: InboxState) -> Self {
        let ids = &state.ids;
        let ids = state
            .order
            .iter()
            .filter_map(|id| Some((IdText(*id), *ids.get(id)?)))
            .collect();
        Self {
            epoch: state.epoch,
            floor: state.floor,
            beyond: state.beyond,
            ids,
        }
    }
}

/// A dedup key as 32 hexadecimal digits.
#[derive(Clone, Copy)]
pub(super) struct IdText(pub(super) [u8; 16]);

impl Serialize for IdText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", u128::from_be_bytes(self.0)))
    }
}

impl<'de> Deserialize<'de> for IdText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u128::from_str_radix(&text, 16).map_err(serde::de::Error::custom)?;
        if digits {
            Ok(Self(value.to_be_bytes()))
        } else {
            Err(serde::de::Error::custom("an id has 32 hex digits"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(epoch: &str, seq: u64, id: u8) -> MessageKey {
        MessageKey {
            cursor: Cursor {
                epoch: epoch.into(),
                seq,
            },
            id: [id; 16],
        }
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_unix_millis(secs * 1000)
    }

    #[test]
    fn the_floor_rises_over_closed_gaps_only() {
        let mut state = InboxState::default();
        state.enter("e", 0);
        for (seq, floor) in [(2, 0), (1, 2), (5, 2), (4, 2), (3, 5)] {
            state.record(&key("e", seq, u8::try_from(seq).unwrap()), at(0));
            assert_eq!(state.cursor().unwrap().seq, floor, "after {seq}");
        }
        assert!(state.beyond.is_empty());
    }

    #[test]
    fn the_hubs_floor_covers_what_was_never_offered() {
        let mut state = InboxState::default();
        state.enter("e", 0);
        state.record(&key("e", 7, 7), at(0));
        assert!(state.enter("e", 6));
        assert_eq!(
            state.cursor().unwrap().seq,
            7,
            "6 expired at the hub, 7 was processed here"
        );
        assert!(!state.enter("e", 3), "a floor never goes back");
    }

    #[test]
    fn the_newest_ids_of_all_epochs_are_kept_up_to_the_bound() {
        let mut state = InboxState::default();
        let key = |epoch: &str, n: usize| MessageKey {
            cursor: Cursor {
                epoch: epoch.into(),
                seq: n as u64 + 1,
            },
            id: (n as u128).to_be_bytes(),
        };
        state.enter("e", 0);
        for n in 0..IDS_MAX {
            state.record(&key("e", n), at(0));
        }
        state.enter("f", 0);
        assert!((0..IDS_MAX).all(|n| state.seen(&key("f", n))));
        state.record(&key("f", IDS_MAX), at(0));
        assert_eq!((state.ids.len(), state.order.len()), (IDS_MAX, IDS_MAX));
        assert!(!state.seen(&key("f", 0)), "the oldest made room");
        assert!((1..=IDS_MAX).all(|n| state.seen(&key("f", n))));
    }

    #[test]
    fn ids_are_forgotten_by_age_and_by_number() {
        let mut state = InboxState::default();
        state.enter("e", 0);
        state.record(&key("e", 1, 1), at(0));
        let later = at(i64::try_from(IDS_KEPT.as_secs()).unwrap() + 1);
        state.record(&key("e", 2, 2), later);
        assert_eq!(state.ids.len(), 1);
        assert!(state.seen(&key("e", 1, 9)), "the floor remembers it for ever");
        assert!(!state.seen(&key("f", 1, 1)));
        state.forget(later, IDS_KEPT, 0);
        assert!(state.ids.is_empty() && state.order.is_empty());
    }

    #[test]
    fn survives_its_own_serialisation() {
        let mut state = InboxState::default();
        state.enter("e", 3);
        for seq in [9, 5, 7] {
            state.record(&key("e", seq, u8::try_from(seq).unwrap()), at(1));
        }
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<InboxState>(&text).unwrap(), state);
        assert!(text.contains("09090909090909090909090909090909"), "{text}");
        assert!(serde_json::from_str::<InboxState>(r#"{"epoch":null,"floor":0,"ids":[["+9",0]]}"#).is_err());
    }
}
