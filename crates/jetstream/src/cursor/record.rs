//! The cursor as bytes. Sequence numbers are written as distances, so a record is mostly single bytes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use aip_relay::mailbox::StoreError;
use bytes::Bytes;

use super::{Attempts, Cursor, DeadPlace};
use crate::codec::{Reader, Writer, readable};
use crate::limits;

/// The layout written today.
const VERSION: u8 = 1;

/// Numbers that only rise, as distances.
struct Rising(u64);

impl Rising {
    fn write(&mut self, to: &mut Writer, value: u64) {
        to.number(value.saturating_sub(self.0));
        self.0 = value;
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Option<u64> {
        self.0 = self.0.checked_add(from.number()?)?;
        Some(self.0)
    }
}

impl Cursor {
    /// The record. Of the attempts only those of the messages with the most are written: the others are no
    /// danger to anyone if they are counted anew.
    pub(crate) fn encode(&self) -> Bytes {
        let mut to = Writer::new(VERSION, 128 + 16 * self.dead.len());
        to.number(self.floor)
            .number(self.settled_bytes)
            .number(self.next_seq)
            .number(self.read_from.0)
            .number(self.read_from.1)
            .fixed(self.stamp);
        self.write_above(&mut to);
        self.write_attempts(&mut to);
        self.write_dead(&mut to);
        to.finish()
    }

    fn write_above(&self, to: &mut Writer) {
        to.number(self.above.runs().len() as u64);
        let mut place = Rising(self.floor);
        for (first, last) in self.above.runs() {
            place.write(to, first);
            place.write(to, last);
        }
    }

    /// Sessions are large numbers and few: they are written once, and named by their place.
    fn write_attempts(&self, to: &mut Writer) {
        let written = self.most_attempts();
        let sessions = written.iter().flat_map(|(_, attempts)| attempts.known());
        let sessions: BTreeSet<u64> = sessions.collect();
        let places: HashMap<u64, u64> = sessions.iter().copied().zip(0..).collect();
        to.number(sessions.len() as u64);
        for session in &sessions {
            to.fixed(*session);
        }
        to.number(written.len() as u64);
        let mut place = Rising(self.floor);
        for (seq, attempts) in written {
            place.write(to, seq);
            to.number(u64::from(attempts.count()))
                .number(u64::from(attempts.sessions()));
            for session in attempts.known() {
                to.number(places.get(&session).copied().unwrap_or_default());
            }
        }
    }

    fn most_attempts(&self) -> Vec<(u64, Attempts)> {
        let all = self.attempts.iter().map(|(seq, attempts)| (*seq, *attempts));
        let mut most: Vec<(u64, Attempts)> = all.collect();
        if most.len() > limits::ATTEMPTS_WRITTEN_MAX {
            most.sort_by_key(|(_, attempts)| Reverse(attempts.count()));
            most.truncate(limits::ATTEMPTS_WRITTEN_MAX);
            most.sort_by_key(|(seq, _)| *seq);
        }
        most
    }

    fn write_dead(&self, to: &mut Writer) {
        to.number(self.dead.len() as u64);
        let mut place = Rising(0);
        for (seq, dead) in &self.dead {
            place.write(to, *seq);
            to.number(dead.stream_seq).time(dead.until);
        }
    }

    /// Reads a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        readable(
            Reader::new(VERSION, bytes).and_then(Self::read),
            "the cursor of a mailbox is unreadable",
        )
    }

    fn read(mut from: Reader<'_>) -> Option<Self> {
        let mut cursor = Self {
            floor: from.number()?,
            settled_bytes: from.number()?,
            next_seq: from.number()?,
            read_from: (from.number()?, from.number()?),
            stamp: from.fixed()?,
            ..Self::EMPTY
        };
        cursor.read_above(&mut from)?;
        cursor.read_attempts(&mut from)?;
        cursor.read_dead(&mut from)?;
        from.end(cursor)
    }

    fn read_above(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let mut place = Rising(self.floor);
        for _ in 0..from.number()? {
            let (first, last) = (place.read(from)?, place.read(from)?);
            if first <= self.floor.checked_add(1)? {
                return None;
            }
            self.above.push(first, last)?;
        }
        Some(())
    }

    fn read_attempts(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let mut sessions = Vec::new();
        for _ in 0..from.number()? {
            sessions.push(from.fixed()?);
        }
        let mut place = Rising(self.floor);
        for _ in 0..from.number()? {
            let seq = place.read(from)?;
            let count = u32::try_from(from.number()?).ok()?;
            let mut known = Vec::new();
            for _ in 0..from.number()? {
                let place = usize::try_from(from.number()?).ok()?;
                known.push(*sessions.get(place)?);
            }
            self.attempts.insert(seq, Attempts::from_parts(count, &known)?);
        }
        Some(())
    }

    fn read_dead(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let mut place = Rising(0);
        for _ in 0..from.number()? {
            let seq = place.read(from)?;
            let dead = DeadPlace {
                stream_seq: from.number()?,
                until: from.time()?,
            };
            self.dead.insert(seq, dead);
        }
        Some(())
    }
}
