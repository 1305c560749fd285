//! The keys of a store: what lies in which column family.
//!
//! All parts have a fixed width and numbers are big-endian, so keys sort as the tuples they stand for and two
//! different tuples never give the same key.
//!
//! | family | key | value |
//! |---|---|---|
//! | meta | name | schema, epoch, clock high-water, how far was swept |
//! | message | mailbox 16 ‖ seq 8 | times, id, sender, recipient, envelope |
//! | mailbox | mailbox 16 | next sequence number, floor, counters |
//! | sender | mailbox 16 ‖ sender 16 | pending messages of this sender |
//! | attempt | mailbox 16 ‖ seq 8 | attempts, sessions |
//! | expiry | time 8 ‖ kind 1 ‖ mailbox 16 ‖ seq 8 | nothing: what ends when, in order |
//! | dedup | bucket 4 ‖ key 16 | until, digest, route, seq |
//! | dead | mailbox 16 ‖ seq 8 | time, code, the message |
//! | status | bucket 4 ‖ sender 16 ‖ id 16 ‖ recipient 16 | status, code, times |
//!
//! A *mailbox* is an agent's, or the outbox for a peer: those hold the same. A status is kept by who the message is for,
//! wherever it waits.
//!
//! A *bucket* is a stretch of time. Everything in a bucket ends with it, so that it is dropped as one range:
//! no deletions one by one, and the disk is given back at once.

use aip_protocol::time::Timestamp;
use uuid::Uuid;

use super::types::MailboxId;
use super::view::{Key, Span};
use crate::limits;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Nanoseconds since 1970, cut to what fits: from 1970 to 2554.
pub(crate) fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.unix_nanos().max(0)).unwrap_or(u64::MAX)
}

/// The time that [`nanos`] wrote.
pub(crate) fn moment(nanos: u64) -> Timestamp {
    Timestamp::from_unix_nanos(i128::from(nanos))
}

/// Seconds in the nanoseconds of [`nanos`].
pub(crate) fn secs(secs: u64) -> u64 {
    secs.saturating_mul(NANOS_PER_SEC)
}

/// Names in the family `meta`.
pub(crate) mod meta {
    use super::Key;

    /// The layout of the store, 4 bytes.
    pub(crate) fn schema() -> Key {
        Key::from_parts(&[b"schema"])
    }

    /// The epoch, text.
    pub(crate) fn epoch() -> Key {
        Key::from_parts(&[b"epoch"])
    }

    /// The latest time seen.
    pub(crate) fn clock() -> Key {
        Key::from_parts(&[b"clock"])
    }

    /// Batches written so far.
    pub(crate) fn commits() -> Key {
        Key::from_parts(&[b"commits"])
    }

    /// Nothing in `expiry` lies before it.
    pub(crate) fn swept() -> Key {
        Key::from_parts(&[b"swept"])
    }

    /// The first bucket of the family `dedup` that may hold something.
    pub(crate) fn dedup_bucket() -> Key {
        Key::from_parts(&[b"dedup_bucket"])
    }

    /// The first bucket of the family `status` that may hold something.
    pub(crate) fn status_bucket() -> Key {
        Key::from_parts(&[b"status_bucket"])
    }
}

/// The key of a mailbox's counters.
pub(crate) fn mailbox(mailbox: &MailboxId) -> Key {
    Key::from_parts(&[mailbox.as_bytes()])
}

/// A message, an attempt or a dead letter.
pub(crate) fn message(mailbox: &MailboxId, seq: u64) -> Key {
    Key::from_parts(&[mailbox.as_bytes(), &seq.to_be_bytes()])
}

/// The messages of a mailbox from `seq` on.
pub(crate) fn messages_from(mailbox: &MailboxId, seq: u64) -> Span {
    Span {
        from: message(mailbox, seq),
        until: message(mailbox, u64::MAX),
    }
}

/// The sequence number in a key of [`message`].
pub(crate) fn seq_of(key: &[u8]) -> Option<u64> {
    let (_, seq) = key.split_first_chunk::<16>()?;
    Some(u64::from_be_bytes(seq.try_into().ok()?))
}

/// The count of a sender in a mailbox.
pub(crate) fn sender(mailbox: &MailboxId, sender: &MailboxId) -> Key {
    Key::from_parts(&[mailbox.as_bytes(), sender.as_bytes()])
}

/// What an entry of the family `expiry` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Message,
    DeadLetter,
}

/// One entry of the family `expiry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expiry {
    pub(crate) at: u64,
    pub(crate) ends: Ends,
    pub(crate) mailbox: MailboxId,
    pub(crate) seq: u64,
}

impl Expiry {
    pub(crate) fn key(&self) -> Key {
        let ends = match self.ends {
            Ends::Message => 0_u8,
            Ends::DeadLetter => 1,
        };
        Key::from_parts(&[
            &self.at.to_be_bytes(),
            &[ends],
            self.mailbox.as_bytes(),
            &self.seq.to_be_bytes(),
        ])
    }

    pub(crate) fn parse(key: &[u8]) -> Option<Self> {
        let (at, rest) = key.split_first_chunk::<8>()?;
        let (ends, rest) = rest.split_first()?;
        let (mailbox, seq) = rest.split_first_chunk::<16>()?;
        let ends = match ends {
            0 => Ends::Message,
            1 => Ends::DeadLetter,
            _ => return None,
        };
        Some(Self {
            at: u64::from_be_bytes(*at),
            ends,
            mailbox: MailboxId::from_bytes(*mailbox),
            seq: u64::from_be_bytes(seq.try_into().ok()?),
        })
    }

    /// All entries from `from` up to and including `now`.
    pub(crate) fn span(from: u64, now: u64) -> Span {
        let until = now.saturating_add(1);
        Span {
            from: Key::from_parts(&[&from.to_be_bytes()]),
            until: Key::from_parts(&[&until.to_be_bytes()]),
        }
    }
}

/// A stretch of time, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket(u32);

impl Bucket {
    /// That of 1970.
    pub(crate) const FIRST: Self = Self(0);
    /// That of a time which no clock says.
    pub(crate) const LAST: Self = Self(u32::MAX);

    /// The bucket of `at` (nanoseconds), for dedup records: as long as a record's longest life.
    pub(crate) fn dedup(at: u64) -> Self {
        Self::of(at, limits::DEDUP_LIFE_SECS)
    }

    /// The bucket of `at` (nanoseconds), for statuses: a day.
    pub(crate) fn status(at: u64) -> Self {
        Self::of(at, 86_400)
    }

    fn of(at: u64, length_secs: u64) -> Self {
        Self(u32::try_from(at / secs(length_secs)).unwrap_or(u32::MAX))
    }

    pub(crate) fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(bytes))
    }

    pub(crate) fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    /// This bucket and the ones up to and including `last`.
    pub(crate) fn through(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }

    /// All keys of the buckets before `end`, from this one on.
    pub(crate) fn span(self, end: Self) -> Span {
        Span {
            from: Key::from_parts(&[&self.to_bytes()]),
            until: Key::from_parts(&[&end.to_bytes()]),
        }
    }
}

/// A dedup record.
pub(crate) fn dedup(bucket: Bucket, key: &[u8; 16]) -> Key {
    Key::from_parts(&[&bucket.to_bytes(), key])
}

/// A status.
pub(crate) fn status(bucket: Bucket, sender: &MailboxId, id: Uuid, recipient: &MailboxId) -> Key {
    Key::from_parts(&[
        &bucket.to_bytes(),
        sender.as_bytes(),
        id.as_bytes(),
        recipient.as_bytes(),
    ])
}

/// Sender and id in a key of [`status`].
pub(crate) fn status_parts(key: &[u8]) -> Option<(MailboxId, Uuid)> {
    let (_bucket, rest) = key.split_first_chunk::<4>()?;
    let (sender, rest) = rest.split_first_chunk::<16>()?;
    let (id, _recipient) = rest.split_first_chunk::<16>()?;
    Some((MailboxId::from_bytes(*sender), Uuid::from_bytes(*id)))
}

/// The statuses of one message in one bucket, whoever the recipient.
pub(crate) fn statuses(bucket: Bucket, sender: &MailboxId, id: Uuid) -> Span {
    let prefix: [&[u8]; 3] = [&bucket.to_bytes(), sender.as_bytes(), id.as_bytes()];
    let [bucket, sender, id] = prefix;
    Span {
        from: Key::from_parts(&prefix),
        // A recipient's 16 bytes of hash are below 17 bytes of ones.
        until: Key::from_parts(&[bucket, sender, id, &[0xff; 17]]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::name::Did;

    fn id(text: &str) -> MailboxId {
        MailboxId::of(&Did::parse(text).unwrap())
    }

    /// Joining a DID and a neighbour by text would make these pairs collide.
    #[test]
    fn row_06_keys_of_different_tuples_differ() {
        let (short, long) = (id("did:aip:a.org:b"), id("did:aip:a.org:b.c"));
        assert_ne!(short, long);
        assert_ne!(sender(&short, &long), sender(&long, &short));
        let uuid = Uuid::from_u128(7);
        let bucket = Bucket::status(0);
        assert_ne!(
            status(bucket, &short, uuid, &long),
            status(bucket, &long, uuid, &short)
        );
        assert_ne!(message(&short, 0x0102), message(&short, 0x0201));
    }

    #[test]
    fn keys_sort_as_numbers_do() {
        let mailbox = id("did:aip:a.org:b");
        let mut keys: Vec<Key> = [1, 255, 256, 65_536, u64::MAX]
            .map(|seq| message(&mailbox, seq))
            .into();
        keys.reverse();
        keys.sort();
        let seqs: Vec<u64> = keys.iter().filter_map(|key| seq_of(key.as_slice())).collect();
        assert_eq!(seqs, [1, 255, 256, 65_536, u64::MAX]);
    }

    #[test]
    fn expiry_keys_read_back() {
        for ends in [Ends::Message, Ends::DeadLetter] {
            let entry = Expiry {
                at: 12,
                ends,
                mailbox: id("did:aip:a.org:b"),
                seq: 9,
            };
            assert_eq!(Expiry::parse(entry.key().as_slice()), Some(entry));
        }
        assert_eq!(Expiry::parse(b"short"), None);
    }

    #[test]
    fn times_outside_the_range_are_cut() {
        assert_eq!(nanos(Timestamp::from_unix_nanos(-5)), 0);
        assert_eq!(nanos(Timestamp::MAX), u64::MAX);
        assert_eq!(
            moment(nanos(Timestamp::from_unix_millis(1_234))),
            Timestamp::from_unix_millis(1_234)
        );
    }
}
