//! Which stream holds which shard, and since when. It changes while a store is open: shards move.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Names;
use crate::limits;
use crate::shards::Moves;

/// What the store's record says about shards.
#[derive(Debug)]
pub(crate) struct Held {
    /// The stream of each shard.
    streams: Vec<Arc<str>>,
    eras: BTreeMap<u8, u64>,
    /// How many moves it takes into account.
    made: u64,
}

impl Held {
    /// `shards` tells the number of the stream for each of the [`limits::SHARDS`] shards; a missing one is 0.
    pub(super) fn new(names: &Names, shards: &[u16], moves: &Moves) -> Self {
        let number = |shard| shards.get(shard).copied().unwrap_or(0);
        Self {
            streams: (0..limits::SHARDS)
                .map(|shard| names.mailboxes(number(shard)).into())
                .collect(),
            eras: moves.eras.clone(),
            made: moves.made,
        }
    }

    /// The stream that holds `shard`.
    pub(crate) fn stream(&self, shard: u8) -> Arc<str> {
        // There is one for every byte; the first stands in for what cannot be missing.
        let first = || self.streams.first().cloned().unwrap_or_else(|| "".into());
        self.streams
            .get(usize::from(shard))
            .cloned()
            .unwrap_or_else(first)
    }

    /// The number of the move that brought `shard` there; 0: it was never moved.
    pub(crate) fn era(&self, shard: u8) -> u64 {
        self.eras.get(&shard).copied().unwrap_or(0)
    }

    /// All streams of mailboxes, each once.
    pub(super) fn streams(&self) -> Vec<Arc<str>> {
        let mut streams = self.streams.clone();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// The shards that are elsewhere than in `old`; none when `old` is not older.
    pub(super) fn moved_since(&self, old: &Self) -> Vec<u8> {
        if self.made <= old.made {
            return Vec::new();
        }
        let moved = self
            .eras
            .keys()
            .filter(|shard| self.era(**shard) != old.era(**shard));
        moved.copied().collect()
    }
}
