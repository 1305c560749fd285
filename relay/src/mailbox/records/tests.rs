//! Each record reads back as it was written, and nothing else is taken for one.

use aip_protocol::time::Timestamp;
use proptest::prelude::*;

use super::*;

fn message(wire: &[u8]) -> MessageRecord<'_> {
    MessageRecord {
        accepted_at: 1,
        expires_at: 2,
        id: Uuid::from_u128(3),
        sender: "did:aip:example.org:alice",
        recipient: "did:aip:example.org:bob",
        wire,
    }
}

#[test]
fn a_message_reads_back() {
    let written = message(b"{}").encode();
    let read = MessageRecord::decode(&written).unwrap();
    assert_eq!(
        (read.accepted_at, read.expires_at, read.id),
        (1, 2, Uuid::from_u128(3))
    );
    assert_eq!(
        (read.sender, read.recipient),
        ("did:aip:example.org:alice", "did:aip:example.org:bob")
    );
    assert_eq!(read.wire, b"{}");
}

#[test]
fn a_dead_letter_reads_back() {
    let written = DeadRecord {
        at: 5,
        until: 6,
        code: "poison",
        message: message(b"x"),
    }
    .encode();
    let read = DeadRecord::decode(&written).unwrap();
    assert_eq!((read.at, read.until, read.code), (5, 6, "poison"));
    assert_eq!((read.message.expires_at, read.message.wire), (2, &b"x"[..]));
}

#[test]
fn every_status_reads_back() {
    for (status, seq, code) in [
        (Status::Queued, None, None),
        (Status::Stored, Some(1), None),
        (Status::Delivered, None, None),
        (Status::Acked, Some(u64::MAX), None),
        (Status::Expired, Some(2), Some("expired".to_owned())),
        (Status::Refused, None, Some("mailbox_full".to_owned())),
        (Status::Dead, Some(3), Some("poison".to_owned())),
    ] {
        let record = StatusRecord {
            to: did("did:aip:example.org:bob").unwrap(),
            status,
            code,
            accepted_at: Timestamp::from_unix_millis(7),
            at: Timestamp::from_unix_millis(8),
            seq,
        };
        assert_eq!(decode_status(&encode_status(&record)).unwrap(), record);
    }
}

#[test]
fn what_is_absent_is_zero() {
    assert_eq!(decode_count(None).unwrap(), 0);
    assert_eq!(meta_number(None).unwrap(), 0);
    assert_eq!(meta_bucket(None).unwrap(), Bucket::FIRST);
    assert_eq!(decode_count(Some(encode_count(9))).unwrap(), 9);
}

/// Byte for byte what stores on disks hold.
#[test]
fn a_route_is_written_as_it_ever_was() {
    for (route, byte) in [(Route::Mailbox, 0), (Route::Direct, 1), (Route::Peer, 2)] {
        let record = DedupRecord {
            until: 9,
            digest: [7; 32],
            route,
            seq: Some(3),
        };
        let written = [
            &[VERSION][..],
            &9_u64.to_be_bytes(),
            &[7; 32],
            &[byte],
            &3_u64.to_be_bytes(),
        ]
        .concat();
        assert_eq!(record.encode(), written);
        assert_eq!(DedupRecord::decode(&written).unwrap(), record);
    }
}

#[test]
fn another_version_is_not_guessed_at() {
    let mut bytes = MailboxRecord::EMPTY.encode().to_vec();
    bytes[0] = 2;
    assert!(matches!(
        MailboxRecord::decode(&bytes),
        Err(StoreError::Corrupt(_))
    ));
}

proptest! {
    #[test]
    fn counters_read_back(next_seq: u64, floor: u64, pending: u64, bytes: u64, dead: u64) {
        let record = MailboxRecord { next_seq, floor, pending, bytes, dead };
        prop_assert_eq!(MailboxRecord::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn dedup_records_read_back(until: u64, digest: [u8; 32], route in 0..3, seq in 1..u64::MAX) {
        let (route, seq) = match route {
            0 => (Route::Mailbox, Some(seq)),
            1 => (Route::Direct, None),
            _ => (Route::Peer, Some(seq)),
        };
        let record = DedupRecord { until, digest, route, seq };
        prop_assert_eq!(DedupRecord::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn attempts_read_back(sessions in prop::collection::vec(0..6_u64, 0..20)) {
        let mut record = AttemptRecord::default();
        for session in &sessions {
            record.raise(*session);
        }
        let different: std::collections::BTreeSet<_> = sessions.iter().collect();
        prop_assert_eq!(record.attempts as usize, sessions.len());
        prop_assert_eq!(record.sessions() as usize, different.len().min(limits::SESSIONS_COUNTED_MAX));
        prop_assert_eq!(AttemptRecord::decode(&record.encode()).unwrap(), record);
    }

    /// Bytes of whatever origin: an error or a record, never a panic.
    #[test]
    fn damaged_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut bytes = bytes;
        if let Some(version) = bytes.first_mut() {
            *version = VERSION;
        }
        drop(MailboxRecord::decode(&bytes));
        drop(MessageRecord::decode(&bytes));
        drop(DeadRecord::decode(&bytes));
        drop(AttemptRecord::decode(&bytes));
        drop(DedupRecord::decode(&bytes));
        drop(decode_status(&bytes));
        drop(decode_count(Some(bytes.clone().into())));
        drop(meta_number(Some(bytes.into())));
    }
}
