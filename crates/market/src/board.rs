//! The calls of this process that are found by their ids: all that are under way, and for a while those that were followed.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_protocol::time::Timestamp;
use uuid::Uuid;

use crate::invoke::Invoked;
use crate::limits::{ENDED_CALLS_BYTES_MAX, ENDED_CALLS_KEPT};
use crate::progress::Track;

/// Where calls are found. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub(crate) struct Board(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    tracks: HashMap<Uuid, Arc<Track>>,
    /// Those of them that have ended, the oldest first.
    ended: VecDeque<Ended>,
    ended_bytes: usize,
}

struct Ended {
    id: Uuid,
    at: Timestamp,
    bytes: usize,
}

/// The place of a call that is under way. Dropped without an end, the call is lost: nobody will say what came of it.
pub(crate) struct Place {
    board: Board,
    track: Arc<Track>,
}

impl Board {
    /// A call is under way.
    pub(crate) fn enter(&self, track: &Arc<Track>) -> Place {
        self.calls().tracks.insert(track.id, Arc::clone(track));
        track.begin();
        Place {
            board: self.clone(),
            track: Arc::clone(track),
        }
    }

    /// The call with this id.
    pub(crate) fn find(&self, id: Uuid) -> Option<Arc<Track>> {
        self.calls().tracks.get(&id).cloned()
    }

    /// Forgets what has ended long ago.
    pub(crate) fn clear(&self, now: Timestamp) {
        self.calls().clear(now);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn clear(&mut self, now: Timestamp) {
        let old = now - ENDED_CALLS_KEPT;
        while let Some(first) = self.ended.front() {
            if first.at >= old && self.ended_bytes <= ENDED_CALLS_BYTES_MAX {
                return;
            }
            self.tracks.remove(&first.id);
            self.ended_bytes = self.ended_bytes.saturating_sub(first.bytes);
            self.ended.pop_front();
        }
    }
}

impl Place {
    /// The call has ended so. It stays for a while where somebody followed it.
    pub(crate) fn end(self, invoked: &Invoked, now: Timestamp) {
        let track = &self.track;
        track.end(invoked.clone());
        let mut calls = self.board.calls();
        if track.is_followed {
            let bytes = track.weight();
            calls.ended_bytes += bytes;
            calls.ended.push_back(Ended {
                id: track.id,
                at: now,
                bytes,
            });
            calls.clear(now);
        } else {
            calls.tracks.remove(&track.id);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.track.ended().is_none() {
            self.track.lose();
            self.board.calls().tracks.remove(&self.track.id);
        }
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.calls();
        f.debug_struct("Board")
            .field("calls", &calls.tracks.len())
            .field("ended", &calls.ended.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_unix_secs(1_800_000_000 + secs)
    }

    fn invoked(bytes: usize) -> Invoked {
        Invoked {
            status: 200,
            body: Bytes::from(vec![b'x'; bytes]),
            replayed: false,
            headers: Vec::new(),
            routed: None,
        }
    }

    fn id(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    #[test]
    fn who_is_followed_stays_for_a_while_and_nobody_else() {
        let board = Board::default();
        for (number, is_followed) in [(1, true), (2, false)] {
            let place = board.enter(&Track::new(id(number), is_followed));
            assert!(board.find(id(number)).is_some());
            place.end(&invoked(1), at(0));
        }
        assert_eq!(board.find(id(1)).unwrap().ended(), Some(invoked(1)));
        assert!(board.find(id(2)).is_none());
        board.clear(at(0) + ENDED_CALLS_KEPT);
        assert!(board.find(id(1)).is_some());
        board.clear(at(0) + ENDED_CALLS_KEPT + Duration::from_secs(1));
        assert!(board.find(id(1)).is_none());
    }

    #[test]
    fn the_oldest_go_where_there_is_no_room() {
        let board = Board::default();
        // With what each takes beside its answer, 63 have room where 64 answers alone would.
        let mebibyte = 1024 * 1024;
        let count = ENDED_CALLS_BYTES_MAX / mebibyte + 3;
        for number in 0..count {
            board
                .enter(&Track::new(id(number), true))
                .end(&invoked(mebibyte), at(0));
        }
        assert!(board.find(id(3)).is_none());
        assert!(board.find(id(4)).is_some());
        assert!(board.calls().ended_bytes <= ENDED_CALLS_BYTES_MAX);
    }

    #[test]
    fn a_call_without_an_end_is_lost() {
        let board = Board::default();
        let track = Track::new(id(1), true);
        drop(board.enter(&track));
        assert!(board.find(id(1)).is_none() && track.ended().is_none());
    }
}
