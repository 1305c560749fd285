//! What reaches a session or a reader that is connected to the other process.

use aip_protocol::error::ErrorCode;
use tokio::time::timeout;
use uuid::Uuid;

use super::{PATIENCE, Town, closed, did, mailbox, message, next, status};
use crate::inbox::Output;
use crate::mailbox::Status;
use crate::presence::{CloseReason, StatusUpdate};

fn stored(n: u64, town: &Town) -> StatusUpdate {
    StatusUpdate {
        id: Uuid::from_u64_pair(7, n),
        to: did("bob"),
        status: Status::Stored,
        code: None,
        at: town.now(),
    }
}

/// A message that one process stores wakes the session at the other.
pub async fn mail_reaches_a_session_elsewhere(town: &Town) {
    let mut one = town.join(0, "bob", 1, false, 64).await;
    for n in 1..=3 {
        assert_eq!(town.send(n).await, n);
        assert_eq!(message(&mut one).await.seq, n);
    }
}

/// And a long poll.
pub async fn mail_reaches_a_reader_elsewhere(town: &Town) {
    let mut reader = town.read(1, 1).await;
    assert!(reader.read(10).await.unwrap().items.is_empty());
    town.send(1).await;
    timeout(PATIENCE, reader.changed()).await.unwrap();
    assert_eq!(reader.read(10).await.unwrap().items[0].seq, 1);
}

/// A sender hears what became of its message, wherever it is connected.
pub async fn a_status_reaches_its_sender_elsewhere(town: &Town) {
    let mut alice = town.join(0, "alice", 1, false, 64).await;
    town.processes[1]
        .presence
        .status(&mailbox("alice"), stored(1, town));
    assert_eq!(*status(&mut alice).await, stored(1, town));
    let mut bob = town.join(1, "bob", 2, false, 64).await;
    town.send(1).await;
    message(&mut bob).await;
    bob.ack("e1".to_owned(), 1, Vec::new());
    assert_eq!(next(&mut bob).await, Output::Acked(1));
    let update = status(&mut alice).await;
    assert_eq!(
        (update.id, update.status),
        (Uuid::from_u64_pair(7, 1), Status::Acked)
    );
}

/// All sessions of a sender that shares hear it, each once.
pub async fn a_status_reaches_every_sharing_session(town: &Town) {
    let mut here = town.join(0, "alice", 1, true, 64).await;
    let mut there = town.join(1, "alice", 2, true, 64).await;
    let presence = &town.processes[0].presence;
    for n in [1, 2] {
        presence.status(&mailbox("alice"), stored(n, town));
        assert_eq!(*status(&mut here).await, stored(n, town));
        assert_eq!(*status(&mut there).await, stored(n, town));
    }
}

/// Whoever is no longer let in is shown out everywhere.
pub async fn a_suspended_agent_is_closed_everywhere(town: &Town) {
    let mut here = town.join(0, "bob", 1, true, 64).await;
    let mut there = town.join(1, "bob", 2, true, 64).await;
    let reader = town.read(1, 3).await;
    let presence = &town.processes[0].presence;
    presence.close_agent(&mailbox("bob"), CloseReason::Unauthenticated);
    assert_eq!(closed(&mut here).await, CloseReason::Unauthenticated);
    assert_eq!(closed(&mut there).await, CloseReason::Unauthenticated);
    timeout(PATIENCE, reader.changed()).await.unwrap();
    assert!(reader.is_closed());
}

/// An ack over HTTP at one process makes room in the session at the other.
pub async fn an_ack_elsewhere_makes_room(town: &Town) {
    let mut one = town.join(0, "bob", 1, false, 1).await;
    town.send(1).await;
    town.send(2).await;
    assert_eq!(message(&mut one).await.seq, 1);
    // Asking for more says that the first was sent.
    assert!(
        futures_util::future::poll_immediate(Box::pin(one.next()))
            .await
            .is_none()
    );
    let floor = town.processes[1].inbox.ack(&did("bob"), "e1", 1, &[]).await;
    assert_eq!(floor.unwrap().unwrap().seq, 1);
    assert_eq!(message(&mut one).await.seq, 2);
}

/// What a poll at one process was given can be acked at the other, over a socket too; nothing else can.
pub async fn what_was_offered_elsewhere_can_be_acked(town: &Town) {
    let mut one = town.join(0, "bob", 1, false, 0).await;
    for n in 1..=3 {
        town.send(n).await;
    }
    let mut reader = town.read(1, 2).await;
    assert_eq!(reader.read(2).await.unwrap().items.len(), 2);
    one.ack("e1".to_owned(), 2, Vec::new());
    assert_eq!(next(&mut one).await, Output::Acked(2));
    one.ack("e1".to_owned(), 3, Vec::new());
    let Output::Refused { code, .. } = next(&mut one).await else {
        panic!("a message that was never offered is acked")
    };
    assert_eq!(code, ErrorCode::CursorInvalid);
}

/// Hints that were lost cost nothing but a look.
pub async fn a_look_finds_what_nobody_told_of(town: &Town) {
    let mut one = town.join(0, "bob", 1, false, 64).await;
    let mut reader = town.read(0, 2).await;
    assert!(reader.read(10).await.unwrap().items.is_empty());
    let watching = std::mem::take(&mut *town.watching.lock().unwrap());
    for n in 1..=300 {
        town.send(n).await;
    }
    *town.watching.lock().unwrap() = watching;
    let presence = &town.processes[0].presence;
    presence.look_again_all(town.now());
    timeout(PATIENCE, reader.changed()).await.unwrap();
    let mut came = 0;
    while came < 300 {
        match next(&mut one).await {
            Output::Message(item) => {
                came += 1;
                assert_eq!(item.seq, came);
                one.ack("e1".to_owned(), came, Vec::new());
            }
            Output::Acked(_) => {}
            other => panic!("{other:?}"),
        }
    }
    town.send(301).await;
    let last = loop {
        match next(&mut one).await {
            Output::Message(item) => break item.seq,
            Output::Acked(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(last, 301);
}
