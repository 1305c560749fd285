//! Long poll and event streams over the store in memory.

use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_relay::inbox::{Item, Output, Reader};
use aip_relay::limits::READERS_PER_AGENT_MAX;
use aip_relay::mailbox::{Cursor, Epoch, MailboxId};
use aip_relay::presence::CloseReason;
use aip_relay::session::SessionId;

use crate::link::{Bed, did, next};

async fn reader(bed: &Bed, after: Option<u64>, session: u64) -> Reader {
    let after = after.map(|seq| Cursor {
        epoch: Epoch::parse("e1").unwrap(),
        seq,
    });
    bed.inbox
        .reader(did("bob"), after.as_ref(), SessionId::from_random(session))
        .await
        .unwrap()
        .unwrap()
}

fn numbers(items: &[Item]) -> Vec<(u64, u32)> {
    items.iter().map(|item| (item.seq, item.attempt)).collect()
}

#[tokio::test]
async fn a_poll_reads_from_the_floor_or_after_a_cursor() {
    let bed = Bed::new();
    for number in 1..=3 {
        bed.send("bob", number).await;
    }
    let page = reader(&bed, None, 1).await.read(2).await.unwrap();
    assert_eq!((numbers(&page.items), page.floor), (vec![(1, 1), (2, 1)], 0));
    let page = reader(&bed, Some(1), 1).await.read(100).await.unwrap();
    assert_eq!(numbers(&page.items), [(2, 2), (3, 1)]);
    let floor = bed.inbox.ack(&did("bob"), "e1", 2, &[]).await.unwrap().unwrap();
    assert_eq!(floor.to_string(), "e1:2");
    let page = reader(&bed, None, 1).await.read(100).await.unwrap();
    assert_eq!((numbers(&page.items), page.floor), (vec![(3, 2)], 2));
}

#[tokio::test]
async fn a_poll_counts_as_an_attempt() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    reader(&bed, None, 1).await.read(100).await.unwrap();
    let (mut bob, _) = bed.join("bob", 2).await;
    let Output::Message(item) = next(&mut bob).await else {
        panic!("no message")
    };
    assert_eq!((item.seq, item.attempt), (1, 2));
}

#[tokio::test]
async fn row_48_a_stream_goes_on_after_its_cursor_and_repeats_nothing() {
    let bed = Bed::new();
    for number in 1..=5 {
        bed.send("bob", number).await;
    }
    let mut first = reader(&bed, None, 1).await;
    assert_eq!(numbers(&first.read(2).await.unwrap().items), [(1, 1), (2, 1)]);
    drop(first);
    let mut second = reader(&bed, Some(2), 1).await;
    assert_eq!(numbers(&second.read(2).await.unwrap().items), [(3, 1), (4, 1)]);
    assert_eq!(numbers(&second.read(2).await.unwrap().items), [(5, 1)]);
    assert_eq!(numbers(&second.read(2).await.unwrap().items), []);
}

#[tokio::test]
async fn a_wait_ends_with_a_message_and_misses_none() {
    let bed = Bed::new();
    let mut waiting = reader(&bed, None, 1).await;
    assert!(waiting.read(10).await.unwrap().items.is_empty());
    // Stored between the look and the wait.
    bed.send("bob", 1).await;
    waiting.changed().await;
    assert_eq!(numbers(&waiting.read(10).await.unwrap().items), [(1, 1)]);
    let (_, ()) = tokio::join!(bed.send("bob", 2), waiting.changed());
    assert_eq!(numbers(&waiting.read(10).await.unwrap().items), [(2, 1)]);
}

#[tokio::test]
async fn bad_cursors_are_refused() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    let start = |epoch: &str, seq| {
        let after = Cursor {
            epoch: Epoch::parse(epoch).unwrap(),
            seq,
        };
        let inbox = bed.inbox.clone();
        async move {
            inbox
                .reader(did("bob"), Some(&after), SessionId::from_random(1))
                .await
                .unwrap()
                .unwrap_err()
                .code
        }
    };
    assert_eq!(start("e2", 0).await, ErrorCode::EpochChanged);
    assert_eq!(start("e1", 2).await, ErrorCode::CursorInvalid);
}

#[tokio::test]
async fn acks_over_http_are_checked_like_those_of_a_session() {
    let bed = Bed::new();
    for number in 1..=3 {
        bed.send("bob", number).await;
    }
    let ack =
        async |epoch: &str, upto, also: &[u64]| bed.inbox.ack(&did("bob"), epoch, upto, also).await.unwrap();
    assert_eq!(
        ack("e1", 1, &[]).await.unwrap_err().code,
        ErrorCode::CursorInvalid,
        "nothing was offered"
    );
    reader(&bed, None, 1).await.read(2).await.unwrap();
    assert_eq!(
        ack("e1", 3, &[]).await.unwrap_err().code,
        ErrorCode::CursorInvalid,
        "two were offered"
    );
    assert_eq!(
        ack("e1", 1, &[9]).await.unwrap_err().code,
        ErrorCode::CursorInvalid
    );
    assert_eq!(ack("e2", 1, &[]).await.unwrap_err().code, ErrorCode::EpochChanged);
    assert_eq!(
        ack("e1", 0, &[2; 1_025]).await.unwrap_err().code,
        ErrorCode::MemberInvalid
    );
    assert_eq!(ack("e1", 0, &[2]).await.unwrap().seq, 0);
    assert_eq!(ack("e1", 1, &[]).await.unwrap().seq, 2);
    assert_eq!(ack("e1", 2, &[1]).await.unwrap().seq, 2, "again is harmless");
}

#[tokio::test]
async fn an_ack_over_http_frees_the_window_of_a_session() {
    let bed = Bed::new();
    for number in 1..=65 {
        bed.send("bob", number).await;
    }
    let (mut bob, _) = bed.join("bob", 1).await;
    for _ in 0..64 {
        assert!(matches!(next(&mut bob).await, Output::Message(_)));
    }
    bed.inbox.ack(&did("bob"), "e1", 1, &[]).await.unwrap().unwrap();
    let Output::Message(item) = next(&mut bob).await else {
        panic!("no message")
    };
    assert_eq!(item.seq, 65);
}

#[tokio::test]
async fn row_37_polls_in_two_sessions_exhaust_a_message_too() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    bed.send("bob", 2).await;
    for session in [1, 1, 1, 1, 1, 1, 1, 1, 1, 2] {
        let page = reader(&bed, None, session).await.read(1).await.unwrap();
        assert_eq!(page.items[0].seq, 1);
    }
    let page = reader(&bed, None, 2).await.read(1).await.unwrap();
    assert_eq!(numbers(&page.items), [(2, 1)], "the rest is delivered");
    let dead = bed.inbox.dead(&did("bob"), None, 10).await.unwrap().unwrap();
    assert_eq!(
        (dead.items[0].seq, &*dead.items[0].code),
        (1, "attempts_exhausted")
    );
}

#[tokio::test]
async fn readers_of_one_agent_are_bounded_and_counted() {
    let bed = Bed::new();
    let mut all = Vec::new();
    for _ in 0..READERS_PER_AGENT_MAX {
        all.push(reader(&bed, None, 1).await);
    }
    let refused = bed
        .inbox
        .reader(did("bob"), None, SessionId::from_random(1))
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(
        (refused.code, refused.retry_after_secs),
        (ErrorCode::RateLimited, Some(1))
    );
    assert_eq!(bed.presence.counts().readers, READERS_PER_AGENT_MAX as u64);
    drop(all);
    assert_eq!(
        (bed.presence.counts().readers, bed.presence.counts().agents),
        (0, 0)
    );
}

#[tokio::test]
async fn a_wait_ends_when_the_agent_is_closed() {
    let bed = Bed::new();
    let waiting = reader(&bed, None, 1).await;
    bed.presence
        .close_agent(&MailboxId::of(&did("bob")), CloseReason::Unauthenticated);
    tokio::time::timeout(Duration::from_secs(10), waiting.changed())
        .await
        .expect("the wait ends");
    assert!(waiting.is_closed());
}
