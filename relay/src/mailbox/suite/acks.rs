//! Ack, offer, and what stays until then.

use super::super::{AckOutcome, Attempt, Select, Status};
use super::{Context, bob, did, duplicate, stored};
use crate::limits;
use crate::mailbox::MailboxId;

/// An ack settles all up to its number and tells the sender's part what was settled.
pub async fn an_ack_settles_up_to_its_number(cx: &Context) {
    for n in 1..=4 {
        cx.send(n).await;
    }
    let AckOutcome::Acked(acked) = cx.ack(3, &[]).await else {
        return assert_eq!("acked", "refused");
    };
    assert_eq!(acked.floor, 3);
    let first = acked.messages.first().unwrap();
    let sent = cx.envelope("alice", "bob", 1);
    assert_eq!((first.seq, first.id), (1, sent.id));
    assert_eq!((&first.sender, &first.recipient), (&sent.sender, &sent.recipient));
    assert_eq!(acked.messages.len(), 3);
    assert_eq!(cx.pending_seqs().await, [4]);
    let state = cx.state().await;
    assert_eq!((state.floor, state.next_seq, state.pending), (3, 5, 1));
    assert_eq!(cx.status(3).await, Some((Status::Acked, None)));
    assert_eq!(cx.status(4).await, Some((Status::Stored, None)));
    assert_eq!(cx.store.stats().acked, 3);
}

/// Delivered is not acked: until the ack the message is there, under the same id.
pub async fn row_28_a_fetched_message_stays_until_its_ack(cx: &Context) {
    cx.send(1).await;
    let first = cx.pending().await;
    cx.store.offer(&bob(), &[1], 1).await.unwrap();
    let again = cx.pending().await;
    assert_eq!((first[0].id, &first[0].wire), (again[0].id, &again[0].wire));
    assert_eq!(cx.acked(1, &[]).await, (1, vec![1]));
    assert!(cx.pending().await.is_empty());
}

/// Twice, late, of nothing, of a buried message: always the same answer, never a change.
pub async fn row_41_an_ack_twice_or_late_is_harmless(cx: &Context) {
    assert_eq!(
        cx.acked(0, &[]).await,
        (0, vec![]),
        "of a mailbox that nobody wrote to"
    );
    for n in 1..=4 {
        cx.send(n).await;
    }
    cx.store
        .bury(&bob(), 2, "poison", cx.now())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(cx.acked(3, &[]).await, (3, vec![1, 3]));
    for (upto, also) in [(3, &[][..]), (1, &[2]), (0, &[1, 2, 3]), (0, &[]), (2, &[2, 2])] {
        assert_eq!(cx.acked(upto, also).await, (3, vec![]));
    }
    assert_eq!(cx.pending_seqs().await, [4]);
    assert_eq!(
        cx.store.dead(&bob(), 0, 10).await.unwrap().len(),
        1,
        "an ack does not reach dead letters"
    );
    assert_eq!(cx.status(2).await, Some((Status::Dead, Some("poison".into()))));
    assert_eq!(cx.store.stats().acked, 2);
}

/// Acks in any order: the floor waits for the lowest one that is missing.
pub async fn acks_out_of_order_hold_the_floor(cx: &Context) {
    for n in 1..=6 {
        cx.send(n).await;
    }
    assert_eq!(cx.acked(0, &[5, 3]).await, (0, vec![3, 5]));
    assert_eq!(cx.pending_seqs().await, [1, 2, 4, 6]);
    assert_eq!(cx.acked(1, &[3]).await, (1, vec![1]));
    assert_eq!(
        cx.acked(0, &[2]).await,
        (3, vec![2]),
        "over what was acked before"
    );
    assert_eq!(cx.acked(0, &[6, 4]).await, (6, vec![4, 6]));
    assert_eq!(cx.send(7).await, stored(7));
    assert_eq!(cx.state().await.floor, 6);
}

/// What was never given out cannot be acked, and a bounded number of single ones at a time.
pub async fn an_ack_beyond_the_end_changes_nothing(cx: &Context) {
    cx.send(1).await;
    cx.send(2).await;
    for (upto, also) in [(3, &[][..]), (u64::MAX, &[]), (1, &[3]), (0, &[1, u64::MAX])] {
        assert_eq!(cx.ack(upto, also).await, AckOutcome::BeyondEnd);
    }
    let many = vec![1; limits::ACK_ALSO_MAX + 1];
    assert_eq!(cx.ack(0, &many).await, AckOutcome::TooMany);
    assert_eq!(cx.pending_seqs().await, [1, 2]);
    assert_eq!(cx.acked(0, &many[1..]).await, (1, vec![1]), "as many as allowed");
}

/// An ack in one mailbox leaves the same number in another alone.
pub async fn row_29_an_ack_reaches_one_mailbox_only(cx: &Context) {
    cx.send(1).await;
    cx.append(cx.envelope("alice", "carol", 2)).await;
    let carol = MailboxId::of(&did("carol"));
    cx.store.ack(&carol, 1, &[], cx.now()).await.unwrap();
    assert_eq!(cx.pending_seqs().await, [1]);
    assert_eq!(cx.store.state(&carol).await.unwrap().pending, 0);
}

/// A sequence number is used once, even when the mailbox has become empty.
pub async fn a_sequence_number_is_never_used_again(cx: &Context) {
    for n in 1..=3 {
        assert_eq!(cx.send(n).await, stored(n));
        cx.acked(n, &[]).await;
    }
    assert_eq!(cx.send(3).await, duplicate(3));
    assert_eq!(cx.send(4).await, stored(4));
}

/// Attempts rise with each offer; sessions are counted once each, up to their bound.
pub async fn offers_are_counted(cx: &Context) {
    cx.send(1).await;
    cx.send(2).await;
    let offer = async |seqs: &[u64], session| cx.store.offer(&bob(), seqs, session).await.unwrap();
    let attempt = |seq, attempt, sessions| Attempt {
        seq,
        attempt,
        sessions,
    };
    assert_eq!(offer(&[1, 2], 7).await, [attempt(1, 1, 1), attempt(2, 1, 1)]);
    assert_eq!(offer(&[1], 7).await, [attempt(1, 2, 1)]);
    assert_eq!(offer(&[1], 8).await, [attempt(1, 3, 2)]);
    assert_eq!(offer(&[1], 7).await, [attempt(1, 4, 2)]);
    let shown = cx.fetch(Select::Seqs(vec![1]), 1, usize::MAX).await;
    assert_eq!((shown[0].attempts, shown[0].sessions), (4, 2));
    for session in 9..20 {
        offer(&[2], session).await;
    }
    let bound = u32::try_from(limits::SESSIONS_COUNTED_MAX).unwrap();
    assert_eq!(offer(&[2], 20).await, [attempt(2, 13, bound)]);
    assert!(offer(&[], 1).await.is_empty());
}
