//! Whole links over the store in memory.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::clock::ManualClock;
use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::inbox::{Inbox, Join, Link, Output, Ready, Terms};
use aip_relay::limits::STATUS_QUEUE_MAX;
use aip_relay::mailbox::memory::MemoryMailboxes;
use aip_relay::mailbox::{
    Append, AppendOutcome, Cursor, Epoch, MailboxId, MailboxStore, Quota, Route, Status,
};
use aip_relay::presence::{CloseReason, Presence, StatusUpdate};
use aip_relay::session::SessionId;
use bytes::Bytes;
use uuid::Uuid;

pub(crate) struct Bed {
    pub(crate) store: Arc<dyn MailboxStore>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) inbox: Inbox,
}

pub(crate) fn did(name: &str) -> Did {
    Did::parse(&format!("did:aip:hub.example:{name}")).unwrap()
}

impl Bed {
    pub(crate) fn new() -> Self {
        let store: Arc<dyn MailboxStore> = Arc::new(MemoryMailboxes::new(Epoch::parse("e1").unwrap()));
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_900_000_000_000)));
        let presence = Presence::new();
        let inbox = Inbox::new(Arc::clone(&store), Arc::clone(&presence), clock.clone());
        Self {
            store,
            presence,
            clock,
            inbox,
        }
    }

    fn now(&self) -> Timestamp {
        use aip_protocol::clock::Clock;
        self.clock.now()
    }

    /// Alice writes to `to`; returns the sequence number.
    pub(crate) async fn send(&self, to: &str, number: u128) -> u64 {
        let now = self.now();
        let append = Append {
            recipient: did(to),
            sender: did("alice"),
            id: Uuid::from_u128(number),
            dedup_key: number.to_be_bytes(),
            digest: [7; 32],
            remember_until: now + Duration::from_mins(15),
            accepted_at: now,
            expires_at: now + Duration::from_hours(24),
            wire: Bytes::from(format!("{{\"n\":{number}}}")),
            route: Route::Mailbox,
            quota: Quota::default(),
        };
        let Ok(AppendOutcome::Stored { seq: Some(seq) }) = self.store.append(append).await else {
            panic!("message {number} was not stored")
        };
        self.presence.wake(&MailboxId::of(&did(to)), seq, now);
        seq
    }

    pub(crate) async fn join(&self, name: &str, session: u64) -> (Link, Ready) {
        let session = SessionId::from_random(session);
        self.inbox
            .join(
                did(name),
                Join {
                    session,
                    share: false,
                    credit: 64,
                },
            )
            .await
            .unwrap()
    }
}

/// The next output, which must come.
pub(crate) async fn next(link: &mut Link) -> Output {
    tokio::time::timeout(Duration::from_secs(10), link.next())
        .await
        .expect("an output")
}

/// That nothing comes, once everything under way has been carried out.
async fn quiet(link: &mut Link) {
    for _ in 0..100 {
        tokio::select! {
            biased;
            output = link.next() => panic!("{output:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
}

async fn seqs(link: &mut Link, count: usize) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    while found.len() < count {
        match next(link).await {
            Output::Message(item) => found.push((item.seq, item.attempt)),
            other => panic!("{other:?}"),
        }
    }
    found
}

#[tokio::test]
async fn what_was_stored_before_and_during_a_session_arrives() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    bed.send("bob", 2).await;
    let (mut bob, ready) = bed.join("bob", 1).await;
    assert_eq!((ready.floor, ready.pending, ready.epoch.as_str()), (0, 2, "e1"));
    assert_eq!(seqs(&mut bob, 2).await, [(1, 1), (2, 1)]);
    quiet(&mut bob).await;
    bed.send("bob", 3).await;
    let Output::Message(item) = next(&mut bob).await else {
        panic!("no message")
    };
    assert_eq!((item.seq, &item.wire[..]), (3, &b"{\"n\":3}"[..]));
    bob.ack("e1".to_owned(), 1, vec![3]);
    assert_eq!(next(&mut bob).await, Output::Acked(1));
    bob.ack("e1".to_owned(), 2, vec![]);
    assert_eq!(next(&mut bob).await, Output::Acked(3));
}

#[tokio::test]
async fn a_new_session_gets_what_is_open_with_the_attempt_raised() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    let (mut first, _) = bed.join("bob", 1).await;
    assert_eq!(seqs(&mut first, 1).await, [(1, 1)]);
    drop(first);
    let (mut second, ready) = bed.join("bob", 2).await;
    assert_eq!(ready.pending, 1);
    assert_eq!(seqs(&mut second, 1).await, [(1, 2)]);
}

#[tokio::test]
async fn a_message_is_offered_again_when_its_time_has_come() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    let (mut bob, _) = bed.join("bob", 1).await;
    seqs(&mut bob, 1).await;
    for (pause_millis, attempt) in [(30_000, 2), (60_000, 3)] {
        quiet(&mut bob).await;
        bed.clock.advance(Duration::from_millis(pause_millis - 1));
        quiet(&mut bob).await;
        bed.clock.advance(Duration::from_millis(1));
        assert_eq!(seqs(&mut bob, 1).await, [(1, attempt)]);
    }
}

#[tokio::test]
async fn row_30_messages_stored_during_connects_are_delivered_once() {
    let bed = Arc::new(Bed::new());
    for round in 0..200_u64 {
        let sender = Arc::clone(&bed);
        let sending = tokio::spawn(async move {
            for _ in 0..round % 5 {
                tokio::task::yield_now().await;
            }
            sender.send("bob", u128::from(round)).await
        });
        let (mut bob, _) = bed.join("bob", round).await;
        let got = seqs(&mut bob, 1).await;
        assert_eq!(got, [(sending.await.unwrap(), 1)], "round {round}");
        bob.ack("e1".to_owned(), round + 1, vec![]);
        assert_eq!(next(&mut bob).await, Output::Acked(round + 1));
        quiet(&mut bob).await;
    }
}

#[tokio::test]
async fn row_31_the_late_end_of_a_replaced_link_leaves_its_successor_alone() {
    let bed = Bed::new();
    let (mut old, _) = bed.join("bob", 1).await;
    let (mut new, _) = bed.join("bob", 2).await;
    assert_eq!(next(&mut old).await, Output::Close(CloseReason::Replaced));
    drop(old);
    assert_eq!(bed.presence.counts().sessions, 1);
    bed.send("bob", 1).await;
    assert_eq!(seqs(&mut new, 1).await, [(1, 1)]);
    assert!(bed.presence.is_connected(&MailboxId::of(&did("bob"))));
}

#[tokio::test]
async fn acks_taken_in_are_carried_out_before_the_end() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    bed.send("bob", 2).await;
    let (mut bob, _) = bed.join("bob", 1).await;
    seqs(&mut bob, 2).await;
    bob.ack("e1".to_owned(), 1, vec![]);
    bob.reject("e1".to_owned(), 2, "unreadable".to_owned());
    bob.settle().await;
    drop(bob);
    let state = bed.store.state(&MailboxId::of(&did("bob"))).await.unwrap();
    assert_eq!((state.floor, state.pending, state.dead), (2, 0, 1));
}

#[tokio::test]
async fn an_ack_for_what_was_offered_before_counts() {
    let bed = Bed::new();
    for number in 1..=3 {
        bed.send("bob", number).await;
    }
    let (mut first, _) = bed.join("bob", 1).await;
    seqs(&mut first, 3).await;
    drop(first);
    // Nothing was offered in this session yet, but all three were before: the store remembers.
    let session = SessionId::from_random(2);
    let (mut second, _) = bed
        .inbox
        .join(
            did("bob"),
            Join {
                session,
                share: false,
                credit: 0,
            },
        )
        .await
        .unwrap();
    second.ack("e1".to_owned(), 2, vec![]);
    assert!(second.is_backlogged(), "later frames wait for the store's word");
    assert_eq!(next(&mut second).await, Output::Acked(2));
    assert!(!second.is_backlogged());
}

#[tokio::test]
async fn an_ack_beyond_what_was_offered_is_refused() {
    let bed = Bed::new();
    let (mut bob, _) = bed.join("bob", 1).await;
    bob.ack("e1".to_owned(), 1_000, vec![]);
    let Output::Refused { code, .. } = next(&mut bob).await else {
        panic!("no refusal")
    };
    assert_eq!(code, ErrorCode::CursorInvalid);
    bob.credit(0);
    bed.send("bob", 1).await;
    bob.ack("e1".to_owned(), 1, vec![]);
    let Output::Refused { code, .. } = next(&mut bob).await else {
        panic!("no refusal")
    };
    assert_eq!(code, ErrorCode::CursorInvalid);
    bob.ack("e2".to_owned(), 0, vec![]);
    let Output::Refused { code, .. } = next(&mut bob).await else {
        panic!("no refusal")
    };
    assert_eq!(code, ErrorCode::EpochChanged);
    bob.credit(64);
    assert_eq!(seqs(&mut bob, 1).await, [(1, 1)]);
}

#[tokio::test]
async fn senders_learn_what_became_of_their_messages() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    bed.send("bob", 2).await;
    let (mut alice, _) = bed.join("alice", 1).await;
    let (mut bob, _) = bed.join("bob", 2).await;
    seqs(&mut bob, 2).await;
    bob.ack("e1".to_owned(), 1, vec![]);
    next(&mut bob).await;
    bob.reject("e1".to_owned(), 2, "unreadable".to_owned());
    quiet(&mut bob).await;
    let mut told = Vec::new();
    for _ in 0..2 {
        let Output::Status(update) = next(&mut alice).await else {
            panic!("no status")
        };
        assert_eq!(update.to, did("bob"));
        told.push((update.id.as_u128(), update.status, update.code.clone()));
    }
    assert_eq!(
        told,
        [
            (1, Status::Acked, None),
            (2, Status::Dead, Some("unreadable".to_owned()))
        ]
    );
}

#[tokio::test]
async fn row_34_a_full_status_queue_drops_status_frames_and_never_messages() {
    let bed = Bed::new();
    let (mut alice, _) = bed.join("alice", 1).await;
    let update = |number| StatusUpdate {
        id: Uuid::from_u128(number),
        to: did("bob"),
        status: Status::Acked,
        code: None,
        at: bed.now(),
    };
    for number in 0..STATUS_QUEUE_MAX as u128 + 7 {
        bed.presence.status(&MailboxId::of(&did("alice")), update(number));
    }
    bed.send("alice", 9_000).await;
    let (mut statuses, mut messages) = (0, 0);
    while statuses + messages < STATUS_QUEUE_MAX + 1 {
        match next(&mut alice).await {
            Output::Status(_) => statuses += 1,
            Output::Message(_) => messages += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        (statuses, messages, bed.presence.counts().statuses_dropped),
        (STATUS_QUEUE_MAX, 1, 7)
    );
}

#[tokio::test]
async fn nobody_can_ack_for_somebody_else() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    let (mut bob, _) = bed.join("bob", 1).await;
    seqs(&mut bob, 1).await;
    let (mut mallory, _) = bed.join("mallory", 2).await;
    mallory.ack("e1".to_owned(), 1, vec![1]);
    assert!(matches!(
        next(&mut mallory).await,
        Output::Refused {
            code: ErrorCode::CursorInvalid,
            ..
        }
    ));
    let refused = bed
        .inbox
        .ack(&did("mallory"), "e1", 1, &[])
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::CursorInvalid);
    let state = bed.store.state(&MailboxId::of(&did("bob"))).await.unwrap();
    assert_eq!((state.floor, state.pending), (0, 1));
}

#[tokio::test]
async fn row_82_presence_forgets_who_is_gone() {
    let bed = Bed::new();
    for number in 0..50 {
        let (link, _) = bed.join(&format!("agent{number}"), number).await;
        assert_eq!(bed.presence.counts().agents, 1);
        drop(link);
    }
    let counts = bed.presence.counts();
    assert_eq!((counts.agents, counts.sessions, counts.readers), (0, 0, 0));
}

#[tokio::test]
async fn row_80_everybody_is_told_when_the_hub_goes_away() {
    let bed = Bed::new();
    let (mut a, _) = bed.join("a", 1).await;
    let (mut b, _) = bed.join("b", 2).await;
    bed.presence
        .close_agent(&MailboxId::of(&did("b")), CloseReason::Unauthenticated);
    bed.presence.close_all(CloseReason::GoingAway);
    assert_eq!(next(&mut a).await, Output::Close(CloseReason::GoingAway));
    assert_eq!(
        next(&mut b).await,
        Output::Close(CloseReason::Unauthenticated),
        "the first reason counts"
    );
}

#[tokio::test]
async fn a_redriven_message_arrives_under_a_new_number() {
    let bed = Bed::new();
    bed.send("bob", 1).await;
    let (mut bob, _) = bed.join("bob", 1).await;
    seqs(&mut bob, 1).await;
    bob.reject("e1".to_owned(), 1, "unreadable".to_owned());
    quiet(&mut bob).await;
    let page = bed.inbox.dead(&did("bob"), None, 10).await.unwrap().unwrap();
    assert_eq!(
        (page.items.len(), page.items[0].seq, &*page.items[0].code),
        (1, 1, "unreadable")
    );
    let later = Terms {
        quota: Quota::default(),
        retention: Duration::from_mins(1),
    };
    let seq = bed.inbox.redrive(&did("bob"), 1, later).await.unwrap().unwrap();
    assert_eq!(seq, 2);
    assert_eq!(seqs(&mut bob, 1).await, [(2, 1)]);
    assert!(
        bed.inbox
            .dead(&did("bob"), None, 10)
            .await
            .unwrap()
            .unwrap()
            .items
            .is_empty()
    );
    let again = bed
        .inbox
        .redrive(&did("bob"), 1, later)
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(again.code, ErrorCode::NotFound);
    let other = Cursor {
        epoch: Epoch::parse("e2").unwrap(),
        seq: 0,
    };
    let refused = bed
        .inbox
        .dead(&did("bob"), Some(&other), 10)
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::EpochChanged);
}
