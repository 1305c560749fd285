//! What the store's record says about moves, and what streams may look like because of one.

use std::collections::BTreeMap;

use aip_protocol::time::Timestamp;
use async_nats::jetstream::stream::Config;
use serde::{Deserialize, Serialize};

use super::Route;
use crate::streams::Names;

/// What became of the shards since the store was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Moves {
    /// How many were made.
    pub(crate) made: u64,
    /// Which of them brought a shard to where it is; the others were never moved.
    pub(crate) eras: BTreeMap<u8, u64>,
    /// Above all numbers that streams ever had, if one was added. A number is not used for a second stream: places
    /// in the first one may be remembered.
    pub(crate) numbers: u16,
    /// The one that is under way.
    pub(crate) moving: Option<Moving>,
    /// Streams that shards have left, as long as they know the ids of what they held.
    pub(crate) left: Vec<Left>,
}

/// A move under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moving {
    pub(crate) shard: u8,
    pub(crate) from: u16,
    pub(crate) to: u16,
    /// The place of the shard's last message in its old stream, when the shard is in its new one.
    #[serde(default)]
    pub(crate) switched: Option<u64>,
    /// It is being taken back.
    #[serde(default)]
    pub(crate) undoing: bool,
}

/// A shard was in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    shard: u8,
    stream: u16,
    until_millis: i64,
}

impl Moves {
    /// The number that a new stream would have, when the shards are in these.
    pub(crate) fn next_number(&self, shards: &[u16]) -> u16 {
        let highest = shards.iter().copied().max().unwrap_or(0);
        self.numbers.max(highest.saturating_add(1))
    }

    /// Until when `stream` knows what it held of `shard`, if it does at `now`.
    pub(super) fn left_until(&self, shard: u8, stream: u16, now: Timestamp) -> Option<Timestamp> {
        let left = self
            .left
            .iter()
            .filter(|left| (left.shard, left.stream) == (shard, stream));
        let until = left.map(|left| left.until_millis).max()?;
        (until > now.unix_millis()).then(|| Timestamp::from_unix_nanos(i128::from(until) * 1_000_000))
    }

    /// The move is over, and `stream` knows until then what it held of the shard.
    pub(super) fn end(&mut self, stream: u16, until: Timestamp, now: Timestamp) {
        let Some(moving) = self.moving.take() else {
            return;
        };
        self.left.retain(|left| left.until_millis > now.unix_millis());
        self.left.push(Left {
            shard: moving.shard,
            stream,
            until_millis: until.unix_millis(),
        });
    }
}

impl Moving {
    pub(super) fn route(&self) -> Route {
        Route {
            shard: self.shard,
            from: self.from,
            to: self.to,
        }
    }
}

/// What a stream may have besides what it should have, because of a move under way or one that was.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    subjects: Vec<String>,
    /// What the subjects of fences begin with.
    fences: String,
    sources: bool,
}

impl Spare {
    /// Of the stream `name`.
    pub(crate) fn of(names: &Names, moves: &Moves, name: &str) -> Self {
        let mut spare = Self {
            // What a stream without any subject is given by the servers.
            subjects: vec![name.to_owned()],
            fences: names.fence_prefix(),
            sources: false,
        };
        if let Some(moving) = &moves.moving {
            spare.sources = name == names.mailboxes(moving.to);
            if spare.sources || name == names.mailboxes(moving.from) {
                spare.subjects.push(names.shard_subject(moving.shard));
            }
        }
        spare
    }

    /// `config` without it.
    pub(crate) fn apart_from(&self, config: &Config) -> Config {
        let mut config = config.clone();
        let spare = |subject: &String| {
            self.subjects.contains(subject) || (!self.fences.is_empty() && subject.starts_with(&self.fences))
        };
        config.subjects.retain(|subject| !spare(subject));
        if self.sources {
            config.sources = None;
        }
        config
    }
}
