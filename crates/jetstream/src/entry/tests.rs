//! Entries read back as they were written, and nothing else reads at all.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_unix_secs(secs)
}

fn did(name: &str) -> Did {
    Did::parse(&format!("did:aip:example.org:{name}")).unwrap()
}

fn entry(kind: Kind, seq: u64, wire: Vec<u8>) -> Entry {
    Entry {
        kind,
        seq,
        total_bytes: seq * 1_000,
        stamp: seq.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        reuse: Reuse::NONE,
        accepted_at: at(1_000) + Duration::from_nanos(7),
        expires_at: at(2_000),
        until: at(1_900),
        dedup_key: [1; 16],
        digest: [2; 32],
        id: Uuid::from_u64_pair(4, seq),
        sender: did("alice"),
        recipient: did("bob"),
        wire: wire.into(),
    }
}

proptest! {
    #[test]
    fn an_entry_reads_back(
        kind in prop::sample::select(&Kind::ALL),
        seq: u64,
        total_bytes: u64,
        from_stream_seq: u64,
        wire in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let written = Entry {
            total_bytes,
            reuse: Reuse { from_stream_seq, until: at(5) },
            ..entry(kind, seq % 1_000_000, wire)
        };
        prop_assert_eq!(&Entry::decode(&written.encode()).unwrap(), &written);
        let dead = DeadEntry { code: "undecodable".into(), at: at(3_000), entry: written };
        prop_assert_eq!(&DeadEntry::decode(&dead.encode()).unwrap(), &dead);
    }

    #[test]
    fn nothing_else_is_an_entry(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        // No time is lost on a panic, whatever another program left in the subject.
        let _either: Result<Entry, StoreError> = Entry::decode(&bytes.into());
    }
}

#[test]
fn a_cut_head_is_corrupt() {
    let whole = entry(Kind::Message, 1, Vec::new()).encode();
    for len in 0..whole.len() {
        assert!(matches!(
            Entry::decode(&whole.slice(..len)),
            Err(StoreError::Corrupt(_))
        ));
    }
}

#[test]
fn the_first_answer_is_told_again() {
    assert_eq!(
        entry(Kind::Message, 7, vec![]).answer(),
        (Some(7), Route::Mailbox)
    );
    assert_eq!(entry(Kind::Direct, 7, vec![]).answer(), (None, Route::Direct));
    assert_eq!(entry(Kind::Peer, 7, vec![]).answer(), (Some(7), Route::Peer));
}

#[test]
fn a_letter_lies_in_the_outbox_of_its_recipients_hub() {
    let entry = |kind| entry(kind, 7, vec![]);
    let bob = MailboxId::of(&did("bob"));
    for kind in [Kind::Message, Kind::Direct, Kind::Redriven] {
        assert_eq!(entry(kind).mailbox(), bob);
    }
    assert_eq!(
        entry(Kind::Peer).mailbox(),
        MailboxId::of_peer(&did("bob").domain())
    );
}

#[test]
fn reused_ids_are_looked_for_as_long_as_one_counts() {
    let first = Reuse::NONE.with(9, at(100), at(50));
    assert_eq!((first.from_stream_seq, first.until), (10, at(100)));
    assert!(
        first.counts(at(160)) && !first.counts(at(161)),
        "by a clock that is late"
    );
    let second = first.with(20, at(90), at(60));
    assert_eq!(
        second,
        Reuse {
            from_stream_seq: 10,
            until: at(100)
        }
    );
    let later = second.with(30, at(300), at(161));
    assert_eq!((later.from_stream_seq, later.until), (31, at(300)));
    assert!(!Reuse::NONE.counts(at(0)));
}
